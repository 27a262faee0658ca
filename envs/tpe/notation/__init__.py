"""Matrix multiplication as a loop nest over M, N, K and bit weight, with primitives in it."""
