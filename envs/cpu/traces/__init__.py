"""Instruction streams: formats, recordings, generators, and the workloads made of them."""
