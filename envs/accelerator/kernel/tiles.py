"""Candidates of the mapper: layouts on the array, tiles of register files and buffer, compiled."""

from __future__ import annotations

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER,
    H_BYPASS,
    H_COLUMNS,
    H_DATAFLOW,
    H_INPUT_PART,
    H_INPUT_RF,
    H_LANES,
    H_OUTPUT_PART,
    H_OUTPUT_RF,
    H_ROWS,
    H_SUM,
    H_WEIGHT_PART,
    H_WEIGHT_RF,
    H_WORD,
    ceil_div,
)

__all__ = [
    "MAX_LAYOUTS",
    "MAX_REGISTERS",
    "MAX_SIDES",
    "balanced",
    "compute_cycles",
    "fill_bytes",
    "fits",
    "layouts",
    "orders_allowed",
    "pixel_tiles",
    "register_tiles",
]

MAX_LAYOUTS = 64
MAX_REGISTERS = 512
MAX_SIDES = 32


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
    high = min(layer[2], rows)
    stacked = rows // high
    for across in range(2):  # output rows along the columns, or channels only
        p = min(columns, layer[4]) if across == 0 else 1
        if across == 1 and (layer[0] == 1 or p == columns):
            continue
        beside = columns // p
        c = 1
        while c <= stacked:
            wide = min(c, layer[1])
            k = max(1, min(stacked // wide, layer[0]))
            more = min(beside, max(1, layer[0] // k))
            g = max(1, min((stacked // (wide * k)) * (beside // more), layer[7]))
            count = add_layout(found, count, k * more, wide, high, p, 1, g)
            if wide < c:
                break
            c *= 2
        if stacked > 1 and layer[1] >= stacked:
            more = min(beside, layer[0])
            count = add_layout(found, count, more, stacked, high, p, 1, 1)
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
    flat = layer[5] == 1 and layer[2] == 1 and layer[3] == 1
    if flow == 0:
        k = min(rows, layer[0])
        return add_layout(found, 0, k, min(columns, layer[1]), 1, 1, 1, min(rows // k, layer[7]))
    if flow == 1:
        if flat:
            return add_layout(found, 0, 1, 1, 1, min(rows * columns, layer[4]), 1, 1)
        return add_layout(found, 0, 1, 1, 1, min(rows, layer[4]), min(columns, layer[5]), 1)
    if flow == 3:
        k = min(rows, layer[0])
        g = min(rows // k, layer[7])
        if flat:
            return add_layout(found, 0, k, 1, 1, min(columns, layer[4]), 1, g)
        return add_layout(found, 0, k, 1, 1, 1, min(columns, layer[5]), g)
    if flow == 4:
        if flat:
            return add_layout(found, 0, 1, 1, 1, min(rows * columns, layer[4]), 1, 1)
        return add_layout(found, 0, 1, 1, 1, 1, min(rows * columns, layer[5]), 1)
    if flow == 5:
        return add_layout(found, 0, 1, min(rows * columns, layer[1]), 1, 1, 1, 1)
    return row_stationary(layer, rows, columns, found)


@compiled
def orders_allowed(flow: int, order: int) -> bool:
    """Whether the dataflow's stationarity allows a loop order between buffer and array."""
    if flow == 0 or flow == 4:  # weights stay: pixels innermost
        return order == 0 or order == 2
    if flow == 1:  # outputs stay: input channels innermost
        return order == 1 or order == 4
    return True


@compiled
def window_allowed(flow: int, code: int, layer: Ints) -> bool:
    """Whether a PE may hold this part of the filter window: one weight, a row, or all of it."""
    if flow == 1:  # the window moves through the array
        return code == 2
    if flow == 2:  # a PE works on a row
        return code == 1
    if flow == 5:
        return code == 0
    if code == 1:
        return bool(layer[3] > 1)
    return bool(code == 0 or layer[2] > 1)


@compiled
def register_tiles(layer: Ints, spatial: Ints, hw: Floats, everything: bool, found: Ints) -> int:
    """Tiles of the register files: K, C, window code, Q, shape (n, 4); returns n.

    Sides are powers of two. Unless ``everything`` is asked for, of the input channels only the
    most that fit are kept, and the most with which the inputs fit too (so that they are held
    while the window slides): others only add traffic.
    """
    flow = int(hw[H_DATAFLOW])
    weights = max(hw[H_WEIGHT_RF], 1.0)
    sums = max(hw[H_OUTPUT_RF], 1.0)
    inputs = max(hw[H_INPUT_RF], 1.0)
    need_k = 1 if flow == 5 else ceil_div(layer[0], spatial[0])
    need_c = 1 if flow == 5 or flow == 1 else ceil_div(layer[1], spatial[1])
    need_q = 1 if flow == 5 or flow == 1 or flow == 2 else ceil_div(layer[5], spatial[4])
    count = 0
    for code in range(3):
        if not window_allowed(flow, code, layer):
            continue
        columns = layer[3] if code > 0 else 1
        size = columns * (layer[2] if code == 2 else 1)
        # Weights that stream past (ShiDianNao) need no room; a row that is longer than a
        # row-stationary PE's file comes in pieces.
        streams = flow == 1 or flow == 2
        k = 1
        while k <= sums and (k * size <= weights or flow == 1 or (streams and k == 1)):
            most = 1
            while most < need_c and most * 2 * size * k <= weights:
                most *= 2
            q = 1
            while True:
                along = window(q, columns, layer[6])
                full = q >= need_q or q * 2 * k > sums
                c = 1
                while c <= most:
                    last = c == most
                    edge = c * along <= inputs and c * 2 * along > inputs
                    kept = everything or (last and (code > 0 or full)) or (code > 0 and edge)
                    if kept and count < len(found):
                        found[count, 0] = k
                        found[count, 1] = c
                        found[count, 2] = code
                        found[count, 3] = 0 if flow == 2 else q
                        count += 1
                    c *= 2
                if full:
                    break
                q *= 2
            if k >= need_k:
                break
            k *= 2
    return count


@compiled
def balanced(size: int, unit: int, found: Ints) -> int:
    """Tile sides worth trying, largest first: 1, 2, 4, ... balanced parts of ``size``."""
    units = ceil_div(size, unit)
    count = 0
    parts = 1
    while True:
        side = ceil_div(units, parts)
        if count == 0 or found[count - 1] != min(side * unit, size):
            found[count] = min(side * unit, size)
            count += 1
        if side == 1:
            return count
        parts *= 2


@compiled
def pixel_tiles(layer: Ints, spatial: Ints, rows: Ints, columns: Ints) -> int:
    """Output tiles worth trying, largest first: whole rows, then parts of one stretch of rows.

    Their rows and columns go into ``rows`` and ``columns``; returns how many there are.
    """
    count = balanced(layer[4], spatial[3], rows)
    for i in range(count):
        columns[i] = layer[5]
    more = balanced(layer[5], spatial[4], columns[count - 1 :])
    for i in range(count, count + more - 1):
        rows[i] = rows[count - 1]
    return count + more - 1


@compiled
def fits(layer: Ints, tile: Ints, hw: Floats) -> bool:
    """Whether a buffer tile fits."""
    inputs = tile[1] * window(tile[2], layer[2], layer[6]) * window(tile[3], layer[3], layer[6])
    inputs = inputs * hw[H_WORD]
    weights = tile[0] * tile[1] * layer[2] * layer[3] * hw[H_WORD]
    if hw[H_BYPASS] > 0:
        weights = 0.0
    outputs = tile[0] * tile[2] * tile[3] * hw[H_SUM]
    if hw[H_INPUT_PART] >= 0:
        split = inputs <= hw[H_INPUT_PART] and weights <= hw[H_WEIGHT_PART]
        return bool(split and outputs <= hw[H_OUTPUT_PART])
    return bool(inputs + weights + outputs <= hw[H_BUFFER])


@compiled
def compute_cycles(layer: Ints, spatial: Ints, hw: Floats) -> float:
    """Cycles of the array alone."""
    turns = ceil_div(layer[2], spatial[2]) * layer[3] * ceil_div(layer[1], spatial[1])
    return (
        float(ceil_div(layer[0], spatial[0]))
        * ceil_div(turns, int(hw[H_LANES]))
        * ceil_div(layer[4], spatial[3])
        * ceil_div(layer[5], spatial[4])
        * ceil_div(layer[7], spatial[5])
    )


@compiled
def fill_bytes(layer: Ints, spatial: Ints, hw: Floats) -> float:
    """What the array needs before its first cycle."""
    inputs = spatial[1] * window(spatial[3], spatial[2], layer[6]) * spatial[4]
    return float((inputs + spatial[0] * spatial[1] * spatial[2]) * hw[H_WORD])
