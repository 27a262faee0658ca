"""The mappings that dataflows are known by, compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import DIMS, C, K, P, Q, R, S
from archgym.envs.accelerator.kernel.loopnest import (
    H_COLUMNS,
    H_DATAFLOW,
    H_INPUT_RF,
    H_MAESTRO,
    H_OUTPUT_RF,
    H_ROWS,
    H_WEIGHT_RF,
)

__all__ = ["published"]

WHOLE = 1 << 40
"""A tile that no loop exceeds."""


@compiled
def put(loops: Ints, position: int, dim: int, spread: int, tile: int) -> None:
    """Writes one loop of a level."""
    loops[position, 0] = dim
    loops[position, 1] = spread
    loops[position, 2] = tile


@compiled
def published(dims: Ints, hw: Floats, outer: Ints, inner: Ints) -> tuple[int, int, int]:
    """The mapping that a dataflow is known by; returns clusters, PEs of one, and levels.

    They are those of MAESTRO's examples: NVDLA's KC-partitioned, ShiDianNao's YX-partitioned,
    Eyeriss's row-stationary (two filters, four channels a PE), X- and C-partitioned. Where the
    register files are too small for a window, a PE takes one row of it or one weight at a time.
    """
    flow = int(hw[H_DATAFLOW])
    rows = int(hw[H_ROWS])
    columns = int(hw[H_COLUMNS])
    weights = max(1.0, hw[H_WEIGHT_RF])
    inputs = max(1.0, hw[H_INPUT_RF])
    sums = max(1.0, hw[H_OUTPUT_RF])
    if hw[H_MAESTRO] > 0:  # it says what a mapping needs, and never that there is less
        weights = inputs = sums = np.inf
    room = min(weights, inputs)
    r = dims[R] if dims[R] * dims[S] <= room else 1
    s = dims[S] if r * dims[S] <= room else 1
    if flow == 0:
        put(outer, 0, K, 1, 1)
        put(outer, 1, C, 0, columns)
        put(outer, 2, R, 0, r)
        put(outer, 3, S, 0, s)
        put(outer, 4, P, 0, 1)
        put(outer, 5, Q, 0, 1)
        put(inner, 0, K, 0, 1)
        put(inner, 1, C, 1, 1)
        put(inner, 2, P, 0, 1)
        put(inner, 3, Q, 0, 1)
        put(inner, 4, R, 0, r)
        put(inner, 5, S, 0, s)
        return rows, columns, 2
    if flow == 1:
        put(outer, 0, K, 0, 1)
        put(outer, 1, C, 0, 1)
        put(outer, 2, P, 1, 1)
        put(outer, 3, Q, 0, columns)
        put(outer, 4, R, 0, dims[R])
        put(outer, 5, S, 0, dims[S])
        put(inner, 0, K, 0, 1)
        put(inner, 1, C, 0, 1)
        put(inner, 2, P, 0, 1)
        put(inner, 3, Q, 1, 1)
        put(inner, 4, R, 0, dims[R])
        put(inner, 5, S, 0, dims[S])
        return rows, columns, 2
    if flow == 2:
        high = min(dims[R], rows * columns)
        s = dims[S] if dims[S] <= room else 1
        k = 2 if sums >= 2 and 2 * s <= weights else 1
        c = 4
        while c > 1 and (c * k * s > weights or c * s > inputs):
            c //= 2
        put(outer, 0, K, 0, k)
        put(outer, 1, C, 0, c)
        put(outer, 2, R, 0, high)
        put(outer, 3, P, 1, 1)
        put(outer, 4, Q, 0, 1)
        put(outer, 5, S, 0, s)
        put(inner, 0, Q, 0, 1)
        put(inner, 1, C, 0, c)
        put(inner, 2, K, 0, k)
        put(inner, 3, P, 0, 1)
        put(inner, 4, R, 1, 1)
        put(inner, 5, S, 0, s)
        return max(1, rows * columns // high), high, 2
    if flow == 3:
        put(outer, 0, K, 1, 1)
        put(outer, 1, C, 0, 1)
        put(outer, 2, R, 0, r)
        put(outer, 3, S, 0, s)
        put(outer, 4, P, 0, 1)
        put(outer, 5, Q, 0, columns)
        put(inner, 0, K, 0, 1)
        put(inner, 1, C, 0, 1)
        put(inner, 2, P, 0, 1)
        put(inner, 3, Q, 1, 1)
        put(inner, 4, R, 0, r)
        put(inner, 5, S, 0, s)
        return rows, columns, 2
    for i in range(DIMS):
        put(inner, i, i, 1 if i == 0 else 0, WHOLE)
    if flow == 4:
        put(outer, 0, K, 0, 1)
        put(outer, 1, C, 0, 1)
        put(outer, 2, P, 0, 1)
        put(outer, 3, Q, 1, 1)
        put(outer, 4, R, 0, r)
        put(outer, 5, S, 0, s)
    else:
        put(outer, 0, K, 0, 1)
        put(outer, 1, P, 0, 1)
        put(outer, 2, Q, 0, 1)
        put(outer, 3, R, 0, r)
        put(outer, 4, S, 0, s)
        put(outer, 5, C, 1, 1)
    return rows * columns, 1, 1
