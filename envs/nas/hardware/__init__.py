"""The chip that runs the networks: sub-accelerators, cost, latency tables and given devices."""
