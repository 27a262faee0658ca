"""Traffic, time and energy of one layer under one tiling of a spatial array, compiled.

Three storage levels: memory, global buffer, register files. At each of the two outer levels the
loops over output channels (K), input channels with the window (C) and output pixels (X) run in one
of six orders over tiles; a tensor is fetched again once for every turn of a loop that it does not
depend on, if a loop that it depends on runs inside (the reuse rule of Timeloop, ISPASS 2019).
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.vectors import FOUND, HARDWARE

__all__ = [
    "ORDERS",
    "ceil_div",
    "dram_traffic",
    "refetches",
    "register_tiling",
    "register_traffic",
    "settle",
    "whole_batch",
    "windows",
]

# Orders of the groups K (0), C (1) and X (2), outermost first.
ORDERS = np.array(
    [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]], dtype=np.int64
)

(
    H_DATAFLOW,
    H_ROWS,
    H_COLUMNS,
    H_LANES,
    H_INPUT_RF,
    H_WEIGHT_RF,
    H_OUTPUT_RF,
    H_BUFFER,
    H_INPUT_PART,
    H_WEIGHT_PART,
    H_OUTPUT_PART,
    H_NOC,
    H_PORT,
    H_DRAM,
    H_LINKS,
    H_WORD,
    H_SUM,
    H_DOUBLE,
    H_BYPASS,
    H_WAITS,
    H_MAESTRO,
    H_STORAGE,
    H_DIVIDE,
    H_VICTORY,
    H_ORDERS,
    H_DRAINS,
    H_THIRDS,
    H_MAC_PJ,
    H_INPUT_RF_PJ,
    H_WEIGHT_RF_PJ,
    H_OUTPUT_RF_PJ,
    H_BUFFER_PJ,
    H_NOC_PJ,
    H_DRAM_PJ,
) = range(len(HARDWARE))
SPATIAL = FOUND.index("spatial_K")
REGISTER = FOUND.index("register_K")
TILE = FOUND.index("tile_K")
DRAM_ORDER = FOUND.index("dram_order")


@compiled
def ceil_div(a: int, b: int) -> int:
    """Smallest whole number of at least a / b."""
    return -(-a // b)


@compiled
def refetches(order: int, k: float, c: float, x: float, found: Floats) -> None:
    """How often input, weight and output tiles come, under ``order`` with k, c, x turns."""
    inner_k = False
    inner_c = False
    inner_x = False
    found[0] = 1.0
    found[1] = 1.0
    found[2] = 1.0
    for i in range(2, -1, -1):
        loop = ORDERS[order, i]
        if loop == 0:
            if inner_c or inner_x:
                found[0] = k
            inner_k = k > 1
        elif loop == 1:
            if inner_k or inner_x:
                found[2] = c
            inner_c = c > 1
        else:
            if inner_k or inner_c:
                found[1] = x
            inner_x = x > 1


@compiled
def windows(total: int, parts: int, size: int, stride: int) -> int:
    """Inputs along one axis that ``parts`` tiles read, each its own whole window."""
    return (total - parts) * min(stride, size) + parts * size


@compiled
def whole_batch(given: Ints, layer: Ints) -> None:
    """A row of ``LayerTable.bounds``, with the rows of all images of the batch, into ``layer``."""
    for i in range(9):
        layer[i] = given[i]
    layer[4] *= layer[8]


@compiled
def dram_traffic(
    layer: Ints, tile: Ints, order: int, hw: Floats, again: Floats, found: Floats
) -> float:
    """Words to and from memory for buffer tiles.

    Args:
        layer: K, C, R, S, P (of the whole batch), Q, stride, groups, batch, shape (9,).
        tile: K, C, P, Q of a buffer tile.
        order: of the loops over tiles, an index into `ORDERS`.
        hw: as in ``vectors.HARDWARE``.
        again: room for three numbers.
        found: becomes words of input, weight, output, partial sums read back.

    Returns:
        Bytes in both directions; without weights that go around the buffer.
    """
    k = ceil_div(layer[0], tile[0])
    c = ceil_div(layer[1], tile[1])
    p = ceil_div(layer[4], tile[2])
    q = ceil_div(layer[5], tile[3])
    refetches(order, k, c, p * q, again)
    groups = float(layer[7])
    rows = windows(layer[4], max(p, layer[8]), layer[2], layer[6])
    columns = windows(layer[5], q, layer[3], layer[6])
    outputs = groups * layer[0] * layer[4] * layer[5]
    found[0] = groups * layer[1] * rows * columns * again[0]
    found[1] = groups * layer[0] * layer[1] * layer[2] * layer[3] * again[1]
    found[2] = outputs * again[2]
    found[3] = outputs * (again[2] - 1.0)
    if hw[H_BYPASS] > 0:
        found[1] = 0.0
    word = hw[H_WORD]
    return float((found[0] + found[1] + outputs) * word + 2.0 * found[3] * hw[H_SUM])


@compiled
def register_tiling(
    layer: Ints, tile: Ints, spatial: Ints, register: Ints, hw: Floats, found: Floats
) -> None:
    """How register tiles cut a buffer tile, whatever the order of the loops.

    Args:
        layer: as in :func:`dram_traffic`.
        tile: as there.
        spatial: K, C, R, P, Q, G computed side by side, shape (6,).
        register: K, C, window code, Q held in a PE (0: it slides along the row), shape (4,).
        hw: as in ``vectors.HARDWARE``.
        found: becomes turns over K, C with the window, pixels inside a buffer tile; turns over
            buffer tiles of K, C, pixels; words of input, weight, output that cross once.
    """
    window_rows = layer[2] if (register[2] == 2 or spatial[2] > 1) else 1
    window_columns = layer[3] if register[2] >= 1 else 1
    turns = ceil_div(layer[2], window_rows) * ceil_div(layer[3], window_columns)
    # A PE that slides along a row (register[3] is 0) covers all of it in one go.
    wide = min(spatial[4] * register[3], tile[3]) if register[3] > 0 else tile[3]
    parts_p = ceil_div(tile[2], spatial[3])
    parts_q = ceil_div(tile[3], wide)
    tiles_p = ceil_div(layer[4], tile[2])
    tiles_q = ceil_div(layer[5], tile[3])
    groups = float(layer[7])
    # Inputs that a PE can keep while the window slides are read once; others at every use.
    held = register[1] * window(max(register[3], 1), window_columns, layer[6])
    if hw[H_DATAFLOW] == 1.0 or held <= max(hw[H_INPUT_RF], 1.0):
        parts = max(min(parts_p * tiles_p, layer[4]), layer[8])
        rows = windows(layer[4], parts, window_rows, layer[6])
        columns = windows(layer[5], min(parts_q * tiles_q, layer[5]), window_columns, layer[6])
        inputs = float(rows) * columns * turns
    else:
        inputs = float(layer[4]) * layer[5] * layer[2] * layer[3]
    found[0] = ceil_div(tile[0], spatial[0] * register[0])
    found[1] = ceil_div(tile[1], spatial[1] * register[1]) * turns
    found[2] = parts_p * parts_q
    found[3] = ceil_div(layer[0], tile[0])
    found[4] = ceil_div(layer[1], tile[1])
    found[5] = tiles_p * tiles_q
    found[6] = groups * layer[1] * inputs
    found[7] = groups * layer[0] * layer[1] * layer[2] * layer[3]
    found[8] = groups * layer[0] * layer[4] * layer[5]


@compiled
def register_traffic(tiling: Floats, order: int, again: Floats, found: Floats) -> None:
    """Words between buffer and array.

    Args:
        tiling: from :func:`register_tiling`.
        order: of the loops inside a buffer tile, an index into `ORDERS`.
        again: room for three numbers.
        found: becomes words of input, weight, output, partial sums read back.
    """
    refetches(order, tiling[0], tiling[1], tiling[2], again)
    found[0] = tiling[6] * again[0] * tiling[3]
    found[1] = tiling[7] * again[1] * tiling[5]
    found[2] = tiling[8] * again[2] * tiling[4]
    found[3] = found[2] - tiling[8]


@compiled
def settle(
    layer: Ints,
    compute: float,
    macs: float,
    reduced: float,
    fill_bytes: float,
    dram: Floats,
    register: Floats,
    hw: Floats,
    found: Floats,
) -> None:
    """Time and energy from the traffic at both levels, into the result vector ``found``.

    A single buffer is filled, then read by the array, then left alone while the array computes:
    the three times add up, and each transfer is as slow as the slower of its link and the port.
    """
    word = hw[H_WORD]
    part = hw[H_SUM]
    outputs = float(layer[7]) * layer[0] * layer[4] * layer[5]
    weights = register[1] if hw[H_BYPASS] > 0 else dram[1]
    spilled = dram[3]
    # What stays a partial sum is wider than a finished output.
    into = (dram[0] + weights) * word + spilled * part
    out = outputs * word + (dram[2] - outputs) * part
    if hw[H_LINKS] == 1.0:
        busiest = max(dram[0] * word, weights * word, out + spilled * part)
    elif hw[H_LINKS] == 2.0:
        busiest = max(into, out)
    else:
        busiest = into + out
    drawn = (register[0] + register[1]) * word + register[3] * part
    returned = outputs * word + (register[2] - outputs) * part
    dram_cycles = busiest / hw[H_DRAM]
    noc_cycles = max(drawn, returned) / hw[H_NOC]
    around = register[1] * word if hw[H_BYPASS] > 0 else 0.0
    through = into + out - around
    accessed = drawn - around + returned + through
    port_cycles = accessed / hw[H_PORT]
    fill = fill_bytes / hw[H_DRAM]
    if hw[H_DOUBLE] > 0:
        cycles = max(compute, noc_cycles, port_cycles, dram_cycles) + fill
    else:
        filled = max(dram_cycles, through / hw[H_PORT])
        cycles = compute + filled + max(noc_cycles, (accessed - through) / hw[H_PORT])
    found[0] = np.ceil(cycles)
    found[1] = compute
    found[2] = noc_cycles
    found[3] = port_cycles
    found[4] = dram_cycles
    found[5] = fill
    found[7] = macs * hw[H_MAC_PJ]
    found[8] = (
        macs * (hw[H_INPUT_RF_PJ] + hw[H_WEIGHT_RF_PJ])
        + 2.0 * macs / reduced * hw[H_OUTPUT_RF_PJ]
        + register[0] * hw[H_INPUT_RF_PJ]
        + register[1] * hw[H_WEIGHT_RF_PJ]
    )
    found[9] = (drawn + returned) * hw[H_NOC_PJ]
    found[10] = accessed * hw[H_BUFFER_PJ]
    found[11] = (into + out) * hw[H_DRAM_PJ]
    found[6] = found[7] + found[8] + found[9] + found[10] + found[11]
    found[12] = dram[0]
    found[13] = weights
    found[14] = dram[2]
    found[15] = spilled
    found[16] = register[0]
    found[17] = register[1]
    found[18] = register[2]
    found[19] = register[3]
    found[20] = into + out
    found[21] = macs
