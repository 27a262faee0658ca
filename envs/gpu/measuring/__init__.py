"""Measuring Triton kernels on the GPU of this machine; needs torch and triton."""
