"""Task graphs: their format, those that ship, and how a workload names them."""
