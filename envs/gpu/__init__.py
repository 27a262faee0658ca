"""GPU kernels: Triton kernels measured on a GPU, tables of what was measured, and a model."""
