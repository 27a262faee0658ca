"""How the mapper may lay a layer out on an array, compiled.

A layout gives the largest part of each loop that is computed side by side. A smaller tile of the
buffer uses only a part of the array (``buffer_tiles.py``), so a layout that is at most as large as
another one in every loop is not tried.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import (
    H_COLUMNS,
    H_DATAFLOW,
    H_LANES,
    H_ROWS,
    H_THIRDS,
    H_WORD,
    ceil_div,
)

__all__ = [
    "MAX_LAYOUTS",
    "MAX_PARTS",
    "array_cycles",
    "array_parts",
    "even",
    "first_bytes",
    "insert",
    "layouts",
    "loop_parts",
    "side_parts",
]

MAX_LAYOUTS = 512
MAX_PARTS = 512

ODD = np.array([1, 3, 9], dtype=np.int64)
"""Odd factors of the sizes tried: those of usual sides of arrays (4, 6, 8, 12, 16, 24, ...), and of
the product of two such sides. With 7, 21 and 49 as well (for sides of 14), the mapper takes 1.7
times as long."""
ODD_OF_SIDE = 2
"""How many of `ODD` a side has."""
ODD_OF_POWERS = 1
"""How many of `ODD` there are where only powers of two are tried."""

_ALONG = [[1, 2, 0, 0], [0, 0, 1, 2], [3, 4, 2, 0], [1, 0, 0, 2], [0, 0, 0, 3], [0, 3, 0, 0]]
_FLAT = [[1, 2, 0, 0], [0, 0, 3, 0], [3, 4, 2, 0], [1, 0, 2, 0], [0, 0, 3, 0], [0, 3, 0, 0]]
ALONG = np.array([_ALONG, _FLAT], dtype=np.int64)
"""What K, C, output rows and columns are spread over, by dataflow, and of matrix products: 0
nothing, 1 rows, 2 columns, 3 all processing elements, 4 filters above each other."""


@compiled
def even(size: int, maximum: int) -> int:
    """Part of ``size`` to compute side by side where ``maximum`` fits: few, equally long turns."""
    return ceil_div(size, ceil_div(size, maximum))


@compiled
def insert(values: Ints, count: int, value: int) -> int:
    """Puts a number into ``count`` ascending ones, unless it is there; returns the new count."""
    at = count
    while at > 0 and values[at - 1] > value:
        at -= 1
    if (at > 0 and values[at - 1] == value) or count == len(values):
        return count
    for i in range(count, at, -1):
        values[i] = values[i - 1]
    values[at] = value
    return count + 1


@compiled
def multiples(maximum: int, odd: int, found: Ints) -> int:
    """Numbers up to ``maximum``: powers of two times one of the first ``odd`` of `ODD`, and itself.

    Sizes tried on an array are tried on every larger array too. They ascend; returns their number.
    """
    count = insert(found, 0, maximum)
    for i in range(odd):
        part = ODD[i]
        while part < maximum:
            count = insert(found, count, part)
            part *= 2
    return count


@compiled
def side_parts(side: int, hw: Floats, found: Ints) -> int:
    """Parts of a side of the array that are tried, ascending, the last all of it; how many."""
    return multiples(side, ODD_OF_SIDE if hw[H_THIRDS] > 0 else ODD_OF_POWERS, found)


@compiled
def array_parts(rows: int, columns: int, hw: Floats, found: Ints) -> int:
    """As `side_parts`, of all processing elements."""
    return multiples(rows * columns, len(ODD) if hw[H_THIRDS] > 0 else ODD_OF_POWERS, found)


@compiled
def stacks(layer: Ints, rows: int, hw: Floats, found: Ints) -> int:
    """Filters that a column of a row-stationary array may hold, one above the other, ascending."""
    parts = np.empty(MAX_PARTS, np.int64)
    high = even(layer[2], rows)
    count = 0
    for i in range(side_parts(rows, hw, parts)):
        if parts[i] >= high:
            count = insert(found, count, parts[i] // high)
    filters = 1
    while filters <= rows // high:
        count = insert(found, count, filters)
        filters *= 2
    return count


@compiled
def is_flat(layer: Ints) -> bool:
    """Whether it is a matrix product, whose pixels have no columns."""
    return bool(layer[5] == 1 and layer[2] == 1 and layer[3] == 1)


@compiled
def loop_parts(layer: Ints, hw: Floats, loop: int, found: Ints) -> int:
    """What of a loop is side by side at most, in each part of the array that is tried.

    Args:
        layer: as in ``loopnest.dram_traffic``.
        hw: as in ``vectors.HARDWARE``.
        loop: 0 K, 1 C, 2 output rows, 3 output columns.
        found: becomes the numbers, ascending.

    Returns:
        How many.
    """
    rows = int(hw[H_ROWS])
    columns = int(hw[H_COLUMNS])
    along = ALONG[int(is_flat(layer)), int(hw[H_DATAFLOW]), loop]
    if along == 1:
        return side_parts(rows, hw, found)
    if along == 2:
        return side_parts(columns, hw, found)
    if along == 3:
        return array_parts(rows, columns, hw, found)
    if along == 4:
        return stacks(layer, rows, hw, found)
    return insert(found, 0, 1)


@compiled
def add_layout(found: Ints, count: int, k: int, c: int, r: int, p: int, q: int, g: int) -> int:
    """Appends one layout; returns the new count."""
    if count < len(found):
        found[count, 0] = k
        found[count, 1] = c
        found[count, 2] = r
        found[count, 3] = p
        found[count, 4] = q
        found[count, 5] = g
        count += 1
    return count


@compiled
def row_stationary(layer: Ints, rows: int, columns: int, hw: Floats, found: Ints) -> int:
    """Row-stationary layouts, see :func:`layouts`.

    Output rows take all columns, or half of them, or one, and what is left is for channels.
    """
    heaps = np.empty(MAX_PARTS, np.int64)
    high = even(layer[2], rows)
    stacked = rows // high
    count = 0
    last_k = 0
    for i in range(stacks(layer, rows, hw, heaps) - 1, -1, -1):
        c = min(heaps[i], layer[1])
        k = min(stacked // c, layer[0])
        if k <= last_k and layer[7] == 1:
            continue
        last_k = k
        last = 0
        for share in range(3):
            minimum = columns if share == 2 else min(1 + share, columns)
            p = even(layer[4], columns // minimum)
            beside = columns // p if p == layer[4] else minimum
            if beside <= last or (layer[7] == 1 and k * last >= layer[0]):
                continue
            last = beside
            more = min(beside, ceil_div(layer[0], k))
            g = max(1, min((stacked // (c * k)) * (beside // more), layer[7]))
            count = add_layout(found, count, min(k * more, layer[0]), c, high, p, 1, g)
    return count


@compiled
def channels_and_groups(
    layer: Ints, rows: int, c: int, p: int, q: int, hw: Floats, found: Ints
) -> int:
    """Layouts with output channels down the rows, and groups below them where there is room."""
    parts = np.empty(MAX_PARTS, np.int64)
    count = 0
    last = 0
    for i in range(side_parts(rows, hw, parts) - 1, -1, -1):
        k = even(layer[0], parts[i])
        g = even(layer[7], rows // k)
        if g > last:
            count = add_layout(found, count, k, c, 1, p, q, g)
        last = g
    return count


@compiled
def layouts(layer: Ints, hw: Floats, found: Ints) -> int:
    """Ways to lay a layer out on the array: K, C, R, P, Q, groups side by side; returns how many.

    nvdla_ws: K (then groups) down the rows, C along the columns. kx_free: K (then groups) down the
    rows, output columns along the columns. shidiannao_os: output rows and columns; where a layer
    has only one output column (a matrix product) its pixels fill both. xp_ws: output columns over
    all PEs, nlr_cp: C over all PEs. eyeriss_rs: filter rows down a column of PEs, output rows
    along the columns; where that leaves room, input or output channels or groups beside each
    other (Chen et al., JSSC 2017, section IV).
    """
    flow = int(hw[H_DATAFLOW])
    rows = int(hw[H_ROWS])
    columns = int(hw[H_COLUMNS])
    flat = is_flat(layer)
    if flow == 0:
        return channels_and_groups(layer, rows, columns, 1, 1, hw, found)
    if flow == 1:
        if flat:
            return add_layout(found, 0, 1, 1, 1, rows * columns, 1, 1)
        return add_layout(found, 0, 1, 1, 1, rows, columns, 1)
    if flow == 3:
        if flat:
            return channels_and_groups(layer, rows, 1, columns, 1, hw, found)
        return channels_and_groups(layer, rows, 1, 1, columns, hw, found)
    if flow == 4:
        if flat:
            return add_layout(found, 0, 1, 1, 1, rows * columns, 1, 1)
        return add_layout(found, 0, 1, 1, 1, 1, rows * columns, 1)
    if flow == 5:
        return add_layout(found, 0, 1, rows * columns, 1, 1, 1, 1)
    return row_stationary(layer, rows, columns, hw, found)


@compiled
def array_cycles(layer: Ints, spatial: Ints, turns: Ints, hw: Floats) -> float:
    """Cycles of the array alone.

    Args:
        layer: as in ``loopnest.dram_traffic``.
        spatial: K, C, R, P, Q, groups computed side by side.
        turns: of K, of C, and of pixels.
        hw: as in ``vectors.HARDWARE``.
    """
    window_turns = ceil_div(layer[2], spatial[2]) * layer[3] * turns[1]
    array = float(turns[0]) * ceil_div(window_turns, int(hw[H_LANES])) * turns[2]
    return float(array * ceil_div(layer[7], spatial[5]))


@compiled
def first_bytes(hw: Floats) -> float:
    """What has to come from memory before the first cycle: an input and a weight.

    The other elements of the array start as theirs come; how fast they do is in the time that the
    memory and the network on chip take.
    """
    return float(2.0 * hw[H_WORD])
