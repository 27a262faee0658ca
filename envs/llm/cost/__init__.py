"""Cost model: kernels, collectives, memory, and the pipeline as an event graph."""
