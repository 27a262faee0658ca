"""What is searched: metrics, objectives, fidelities, workloads, and what a subclass writes."""
