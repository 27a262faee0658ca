"""Large language models on clusters: training plans, on one kernel, collective and memory model."""
