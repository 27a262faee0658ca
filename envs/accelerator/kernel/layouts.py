"""How the mapper may lay a layer out on an array, compiled."""

from __future__ import annotations

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.loopnest import (
    H_COLUMNS,
    H_DATAFLOW,
    H_LANES,
    H_ROWS,
    H_WORD,
    ceil_div,
)

__all__ = ["MAX_LAYOUTS", "array_cycles", "even", "fill_bytes", "layouts"]

MAX_LAYOUTS = 96
MOST_FOLDS = 1
"""More turns than the fewest that are tried where what is left of the array is of use."""


@compiled
def even(size: int, most: int) -> int:
    """What of ``size`` to compute side by side where ``most`` fits: as few turns, equally long."""
    return ceil_div(size, ceil_div(size, most))


@compiled
def add_layout(found: Ints, count: int, k: int, c: int, r: int, p: int, q: int, g: int) -> int:
    """Appends one layout; returns the new count."""
    if count < MAX_LAYOUTS:
        found[count, 0] = k
        found[count, 1] = c
        found[count, 2] = r
        found[count, 3] = p
        found[count, 4] = q
        found[count, 5] = g
        count += 1
    return count


@compiled
def row_stationary(layer: Ints, rows: int, columns: int, found: Ints) -> int:
    """Row-stationary layouts, see :func:`layouts`."""
    count = 0
    high = even(layer[2], rows)
    stacked = rows // high
    turns = ceil_div(layer[4], columns)
    last = 0
    # Output rows along the columns in the fewest turns or some more, or channels only.
    for more_turns in range(MOST_FOLDS + 2):
        p = ceil_div(layer[4], turns + more_turns) if more_turns <= MOST_FOLDS else 1
        if p == last or (more_turns > 0 and layer[0] == 1 and layer[7] == 1):
            continue
        last = p
        beside = columns // p
        c = 1
        while True:
            wide = even(layer[1], min(c, stacked))
            k = max(1, min(stacked // wide, layer[0]))
            more = min(beside, ceil_div(layer[0], k))
            g = max(1, min((stacked // (wide * k)) * (beside // more), layer[7]))
            count = add_layout(found, count, even(layer[0], k * more), wide, high, p, 1, g)
            if c >= min(stacked, layer[1]):
                break
            c *= 2
    return count


@compiled
def channels_and_groups(layer: Ints, rows: int, c: int, p: int, q: int, found: Ints) -> int:
    """Layouts with output channels down the rows, and groups below them where there is room."""
    count = 0
    turns = ceil_div(layer[0], rows)
    last = 0
    for more_turns in range(MOST_FOLDS + 1 if layer[7] > 1 else 1):
        k = ceil_div(layer[0], turns + more_turns)
        if k != last:
            g = even(layer[7], rows // k)
            count = add_layout(found, count, k, c, 1, p, q, g)
        last = k
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

    A layout takes as few turns as the array allows, and spreads a loop evenly over them; a tile of
    the buffer that is smaller than that leaves rows and columns idle (``sides.py``).
    """
    flow = int(hw[H_DATAFLOW])
    rows = int(hw[H_ROWS])
    columns = int(hw[H_COLUMNS])
    flat = layer[5] == 1 and layer[2] == 1 and layer[3] == 1
    if flow == 0:
        return channels_and_groups(layer, rows, even(layer[1], columns), 1, 1, found)
    if flow == 1:
        if flat:
            return add_layout(found, 0, 1, 1, 1, even(layer[4], rows * columns), 1, 1)
        return add_layout(found, 0, 1, 1, 1, even(layer[4], rows), even(layer[5], columns), 1)
    if flow == 3:
        if flat:
            return channels_and_groups(layer, rows, 1, even(layer[4], columns), 1, found)
        return channels_and_groups(layer, rows, 1, 1, even(layer[5], columns), found)
    if flow == 4:
        if flat:
            return add_layout(found, 0, 1, 1, 1, even(layer[4], rows * columns), 1, 1)
        return add_layout(found, 0, 1, 1, 1, 1, even(layer[5], rows * columns), 1)
    if flow == 5:
        return add_layout(found, 0, 1, even(layer[1], rows * columns), 1, 1, 1, 1)
    return row_stationary(layer, rows, columns, found)


@compiled
def array_cycles(layer: Ints, spatial: Ints, turns: Ints, hw: Floats) -> float:
    """Cycles of the array alone.

    Args:
        layer: as in ``loopnest.dram_traffic``.
        spatial: K, C, R, P, Q, groups computed side by side.
        turns: of K, of C, and of pixels.
        hw: as in ``layout.HARDWARE``.
    """
    window_turns = ceil_div(layer[2], spatial[2]) * layer[3] * turns[1]
    array = float(turns[0]) * ceil_div(window_turns, int(hw[H_LANES])) * turns[2]
    return float(array * ceil_div(layer[7], spatial[5]))


@compiled
def fill_bytes(layer: Ints, spatial: Ints, hw: Floats) -> float:
    """What the array needs before its first cycle."""
    inputs = spatial[1] * window(spatial[3], spatial[2], layer[6]) * spatial[4]
    return float((inputs + spatial[0] * spatial[1] * spatial[2]) * hw[H_WORD])
