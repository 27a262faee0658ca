"""The mappings that dataflows are known by, on all of an array or a part of it, compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import DIMS, C, K, P, Q, R, S
from archgym.envs.accelerator.kernel.loopnest import (
    H_DATAFLOW,
    H_INPUT_RF,
    H_MAESTRO,
    H_OUTPUT_RF,
    H_WEIGHT_RF,
)

__all__ = ["FORMS", "published"]

FORMS = 12
"""Forms of each mapping: what a PE holds."""
WHOLE = 1 << 40
"""A tile that no loop exceeds."""


@compiled
def put(loops: Ints, position: int, dim: int, spread: int, tile: int) -> None:
    """Writes one loop of a level."""
    loops[position, 0] = dim
    loops[position, 1] = spread
    loops[position, 2] = tile


@compiled
def held_window(dims: Ints, form: int, room: float) -> tuple[int, int]:
    """Filter rows and columns that a PE holds: all, a row, or one weight; 0 for no room.

    Nor is there a form that holds the same as one before it.
    """
    if (form == 1 and dims[R] == 1) or (form == 2 and dims[S] == 1):
        return 0, 0
    r = dims[R] if form == 0 else 1
    s = dims[S] if form < 2 else 1
    if form > 2 or (r * s > room and form < 2):
        return 0, 0
    return r, s


@compiled
def held_rows(
    dims: Ints, form: int, inputs: float, weights: float, sums: float
) -> tuple[int, int, int]:
    """Filters, channels and weights of a row that a row-stationary PE holds; 0 for no room.

    Nor is there a form that holds the same as another one.
    """
    s = dims[S] if form < 6 else 1
    k = 2 if form % 6 < 3 else 1
    c = 4 >> (form % 3)
    if k > dims[K] or c >= 2 * dims[C] or (form >= 6 and dims[S] == 1):
        return 0, 0, 0
    row = s == 1 or s <= min(weights, inputs)
    pair = k == 1 or (k <= sums and k * s <= weights)
    deep = c == 1 or (c * k * s <= weights and c * s <= inputs)
    if not (row and pair and deep):
        return 0, 0, 0
    return k, c, s


@compiled
def published(
    dims: Ints, hw: Floats, rows: int, columns: int, form: int, outer: Ints, inner: Ints
) -> tuple[int, int, int]:
    """The mapping that a dataflow is known by; returns clusters, PEs of one, and levels.

    They are those of MAESTRO's examples: NVDLA's KC-partitioned, ShiDianNao's YX-partitioned,
    Eyeriss's row-stationary (two filters, four channels a PE), X- and C-partitioned. Where the
    register files are too small for a window, a PE takes one row of it or one weight at a time.

    Args:
        dims: loop bounds.
        hw: as in ``vectors.HARDWARE``.
        rows: of the array that are used.
        columns: of the array that are used.
        form: what a PE holds, below `FORMS`; the first that there is room for is the known one.
        outer: becomes the outer level's loops, see ``levels.analyse``.
        inner: becomes the inner level's.

    Returns:
        0 clusters if the register files are too small for the form, or there is no such form.
    """
    flow = int(hw[H_DATAFLOW])
    weights = max(1.0, hw[H_WEIGHT_RF])
    inputs = max(1.0, hw[H_INPUT_RF])
    sums = max(1.0, hw[H_OUTPUT_RF])
    if hw[H_MAESTRO] > 0:  # MAESTRO reports the need, and has no limit
        weights = inputs = sums = np.inf
    if flow == 2:
        k, c, s = held_rows(dims, form, inputs, weights, sums)
        r = 1
    else:
        k, c = 1, 1
        r, s = held_window(dims, form, min(weights, inputs))
    if flow == 1:  # the window streams past
        r = s = 1 if form == 0 else 0
    if s == 0:
        return 0, 0, 0
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
