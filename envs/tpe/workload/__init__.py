"""Workloads of a tensor engine: matrix products, and distributions of their operands."""
