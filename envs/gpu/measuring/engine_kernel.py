"""The matrix product whose tiles are loaded and stored by the copy engine of the GPU.

One thread of a block asks for a tile, and the engine (Hopper's tensor memory accelerator) brings it
into shared memory: other threads compute no addresses and hold none. Written from the published
algorithm, as ``kernels.py`` beside it; this module needs triton as well.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["m", "n", "k", "group_m"])
def engine_kernel(
    a_tiles,
    b_tiles,
    b_rest_tiles,
    c_tiles,
    c_ptr,
    m,
    n,
    k,
    group_m,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    REST_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    ALONG_K: tl.constexpr,
):
    """One tile of C = A B; with ALONG_K, adjacent elements of B lie along K.

    A tile has BLOCK_N + REST_N columns; REST_N are multiplied apart, 0 for none. What is outside
    of A and B is read as zero, and what is outside of C is not written.
    """
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N + REST_N)
    in_group = group_m * tiles_n
    first_m = (pid // in_group) * group_m
    height = tl.minimum(tiles_m - first_m, group_m)
    row = (first_m + (pid % in_group) % height) * BLOCK_M
    column = ((pid % in_group) // height) * (BLOCK_N + REST_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    if REST_N > 0:
        rest = tl.zeros((BLOCK_M, REST_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        at = step * BLOCK_K
        left = a_tiles.load([row, at])
        right = b_tiles.load([column, at]).T if ALONG_K else b_tiles.load([at, column])
        if REST_N > 0:
            if ALONG_K:
                farther = b_rest_tiles.load([column + BLOCK_N, at]).T
            else:
                farther = b_rest_tiles.load([at, column + BLOCK_N])
        total = tl.dot(left, right, total)
        if REST_N > 0:
            rest = tl.dot(left, farther, rest)
    if REST_N > 0:
        # Stored by threads: of two copies by the engine the second would wait for the first.
        rows = row + tl.arange(0, BLOCK_M)
        others = column + BLOCK_N + tl.arange(0, REST_N)
        inside = (rows < m)[:, None] & (others < n)[None, :]
        place = rows[:, None] * n + others[None, :]
        tl.store(c_ptr + place, rest.to(c_ptr.dtype.element_ty), mask=inside)
    c_tiles.store([row, column], total.to(c_tiles.dtype))
