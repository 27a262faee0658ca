"""The serving environment: fleet, workload, design space, metrics, baseline."""
