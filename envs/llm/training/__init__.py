"""The training environment: design space, workload, metrics, baseline."""
