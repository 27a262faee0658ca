"""NAS-v0: neural networks and the chip that runs them, searched together."""
