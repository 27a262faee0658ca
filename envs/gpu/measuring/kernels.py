"""The kernels: matrix product with split K, attention forward, and a fused normalisation.

Written from the published algorithms: a tiled product whose tiles are visited in groups of rows
for reuse in the L2 cache; attention with an online softmax (Dao, FlashAttention-2, 2023); and
RMS normalisation (Zhang and Sennrich, 2019) fused with the residual addition before it.

This module needs triton and is imported by nothing at the start of archgym.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["group_m", "steps_per_split"])
def gemm_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    group_m,
    steps_per_split,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    REST_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EVEN_K: tl.constexpr,
    PARTIAL: tl.constexpr,
):
    """One tile of C = A B; with PARTIAL, the share of a part of K, in single precision.

    A tile has BLOCK_N + REST_N columns; REST_N are multiplied apart, 0 for none.
    """
    pid = tl.program_id(0)
    part = tl.program_id(1)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N + REST_N)
    in_group = group_m * tiles_n
    first_m = (pid // in_group) * group_m
    height = tl.minimum(tiles_m - first_m, group_m)
    tile_m = first_m + (pid % in_group) % height
    tile_n = (pid % in_group) // height

    rows = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    columns = (tile_n * (BLOCK_N + REST_N) + tl.arange(0, BLOCK_N)) % n
    depth = tl.arange(0, BLOCK_K)
    first = part * steps_per_split
    last = tl.minimum(first + steps_per_split, tl.cdiv(k, BLOCK_K))
    offset = first * BLOCK_K
    a = a_ptr + rows[:, None] * stride_am + (offset + depth)[None, :] * stride_ak
    b = b_ptr + (offset + depth)[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    if REST_N > 0:
        others = (tile_n * (BLOCK_N + REST_N) + BLOCK_N + tl.arange(0, REST_N)) % n
        b_rest = b_ptr + (offset + depth)[:, None] * stride_bk + others[None, :] * stride_bn
        rest = tl.zeros((BLOCK_M, REST_N), dtype=tl.float32)
    for step in range(first, last):
        if EVEN_K:
            left = tl.load(a)
            right = tl.load(b)
        else:
            inside = depth < k - step * BLOCK_K
            left = tl.load(a, mask=inside[None, :], other=0.0)
            right = tl.load(b, mask=inside[:, None], other=0.0)
        if REST_N > 0:
            if EVEN_K:
                farther = tl.load(b_rest)
            else:
                farther = tl.load(b_rest, mask=inside[:, None], other=0.0)
        total = tl.dot(left, right, total)
        if REST_N > 0:
            rest = tl.dot(left, farther, rest)
            b_rest += BLOCK_K * stride_bk
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bk

    out_rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    out_columns = tile_n * (BLOCK_N + REST_N) + tl.arange(0, BLOCK_N)
    inside_c = (out_rows < m)[:, None] & (out_columns < n)[None, :]
    place = out_rows[:, None] * n + out_columns[None, :]
    if PARTIAL:
        tl.store(c_ptr + part.to(tl.int64) * m * n + place, total, mask=inside_c)
    else:
        tl.store(c_ptr + place, total.to(c_ptr.dtype.element_ty), mask=inside_c)
    if REST_N > 0:
        out_others = tile_n * (BLOCK_N + REST_N) + BLOCK_N + tl.arange(0, REST_N)
        inside_rest = (out_rows < m)[:, None] & (out_others < n)[None, :]
        place_rest = out_rows[:, None] * n + out_others[None, :]
        if PARTIAL:
            tl.store(c_ptr + part.to(tl.int64) * m * n + place_rest, rest, mask=inside_rest)
        else:
            tl.store(c_ptr + place_rest, rest.to(c_ptr.dtype.element_ty), mask=inside_rest)


@triton.jit(do_not_specialize=["parts"])
def sum_kernel(partial_ptr, c_ptr, size, parts, BLOCK: tl.constexpr):
    """Adds the parts of a product with split K, in their order."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(0, parts):
        at = partial_ptr + tl.cast(part, tl.int64) * size + place
        total += tl.load(at, mask=inside, other=0.0)
    tl.store(c_ptr + place, total.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    length,
    scale_log2,
    HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """Rows of softmax(Q K') V of one head; inputs of shape (heads, length, HEAD)."""
    tile = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    base = head * length * HEAD
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    depth = tl.arange(0, HEAD)
    row_ok = rows < length
    q_at = base + rows[:, None] * HEAD + depth[None, :]
    q = tl.load(q_ptr + q_at, mask=row_ok[:, None], other=0.0)
    highest = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((BLOCK_M,), dtype=tl.float32)
    total = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, (tile + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        key_ok = keys < length
        k_at = base + keys[None, :] * HEAD + depth[:, None]
        k = tl.load(k_ptr + k_at, mask=key_ok[None, :], other=0.0)
        score = tl.dot(q, k) * scale_log2
        allowed = key_ok[None, :]
        if CAUSAL:
            allowed = allowed & (rows[:, None] >= keys[None, :])
        score = tl.where(allowed, score, -1.0e30)
        new_highest = tl.maximum(highest, tl.max(score, 1))
        p = tl.exp2(score - new_highest[:, None])
        fade = tl.exp2(highest - new_highest)
        weight = weight * fade + tl.sum(p, 1)
        total = total * fade[:, None]
        v_at = base + keys[:, None] * HEAD + depth[None, :]
        v = tl.load(v_ptr + v_at, mask=key_ok[:, None], other=0.0)
        total = tl.dot(p.to(v.dtype), v, total)
        highest = new_highest
    total = total / weight[:, None]
    tl.store(o_ptr + q_at, total.to(o_ptr.dtype.element_ty), mask=row_ok[:, None])


@triton.jit
def norm_kernel(
    x_ptr,
    residual_ptr,
    gain_ptr,
    sum_ptr,
    y_ptr,
    rows,
    columns,
    epsilon,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
    ONE_PASS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Stores h = x + residual and y = gain h / rms(h); some rows a program."""
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    column = tl.arange(0, BLOCK_COLUMNS)
    row_ok = (row < rows)[:, None]
    at = row.to(tl.int64)[:, None] * columns
    if ONE_PASS:
        ok = row_ok & (column < columns)[None, :]
        here = at + column[None, :]
        h = tl.load(x_ptr + here, mask=ok, other=0.0).to(tl.float32)
        h += tl.load(residual_ptr + here, mask=ok, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(h * h, 1) / columns + epsilon)
        gain = tl.load(gain_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
        y = h * scale[:, None] * gain[None, :]
        tl.store(sum_ptr + here, h.to(sum_ptr.dtype.element_ty), mask=ok)
        tl.store(y_ptr + here, y.to(y_ptr.dtype.element_ty), mask=ok)
    else:
        squares = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), dtype=tl.float32)
        for start in tl.range(0, columns, BLOCK_COLUMNS, num_stages=STAGES):
            ok = row_ok & (start + column < columns)[None, :]
            here = at + (start + column)[None, :]
            h = tl.load(x_ptr + here, mask=ok, other=0.0).to(tl.float32)
            h += tl.load(residual_ptr + here, mask=ok, other=0.0).to(tl.float32)
            squares += h * h
            tl.store(sum_ptr + here, h.to(sum_ptr.dtype.element_ty), mask=ok)
        scale = tl.rsqrt(tl.sum(squares, 1) / columns + epsilon)
        for start in tl.range(0, columns, BLOCK_COLUMNS, num_stages=STAGES):
            inside = start + column < columns
            ok = row_ok & inside[None, :]
            here = at + (start + column)[None, :]
            h = tl.load(x_ptr + here, mask=ok, other=0.0).to(tl.float32)
            h += tl.load(residual_ptr + here, mask=ok, other=0.0).to(tl.float32)
            gain = tl.load(gain_ptr + start + column, mask=inside, other=0.0).to(tl.float32)
            y = h * scale[:, None] * gain[None, :]
            tl.store(y_ptr + here, y.to(y_ptr.dtype.element_ty), mask=ok)
