"""Memory traces: formats, generators, recordings, and the workloads made of them."""
