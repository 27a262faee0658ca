"""The mapper: the best tiling of a layer on a spatial array, exact, compiled.

Candidates are every way to lay the layer out on the array (``layouts.py``); tiles of the buffer
that cut each loop into 1, 2, 4, 8, ... parts, down to one that leaves all but one row and column
idle (``sides.py``); tiles of the register files with sides that are powers of two
(``registers.py``); and at both levels every loop order that the dataflow allows. Of the register
tiles only those that no other one dominates are tried; the loop order of the memory level, which
touches nothing but memory traffic, is chosen by itself; and whatever cannot beat the best so far
even if each word crossed the array's edge once is skipped (``bounds.py``). The result is that of
trying all candidates (``exhaustive.py``; a test does).
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.bounds import register_floor, tile_bounds
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.layout import FOUND
from archgym.envs.accelerator.kernel.layouts import (
    MAX_LAYOUTS,
    array_cycles,
    fill_bytes,
    layouts,
)
from archgym.envs.accelerator.kernel.loopnest import (
    H_DATAFLOW,
    H_DRAM,
    H_WAITS,
    H_WORD,
    TILE,
    ceil_div,
    dram_traffic,
    register_tiling,
    register_traffic,
    settle,
    whole_batch,
)
from archgym.envs.accelerator.kernel.registers import (
    MAX_REGISTERS,
    orders_allowed,
    register_tiles,
)
from archgym.envs.accelerator.kernel.results import better, keep, products, score
from archgym.envs.accelerator.kernel.sides import (
    MAX_PIXELS,
    MAX_SIDES,
    buffer_tiles,
    take_tile,
)

__all__ = ["search"]

WIDTH = len(FOUND)


@compiled
def search(given: Ints, hw: Floats, objective: int, found: Floats) -> bool:
    """The best mapping of one layer, into ``found``; returns whether there is any.

    Args:
        given: a row of ``LayerTable.bounds``.
        hw: as in ``layout.HARDWARE``.
        objective: as in ``layout.OBJECTIVES``.
        found: as in ``layout.FOUND``.
    """
    layer = np.empty(9, np.int64)
    whole_batch(given, layer)
    options = np.empty((MAX_LAYOUTS, 6), np.int64)
    count = layouts(layer, hw, options)
    cycles = np.empty(count)
    turns = np.empty(3, np.int64)
    for i in range(count):
        turns[0] = ceil_div(layer[0], options[i, 0])
        turns[1] = ceil_div(layer[1], options[i, 1])
        turns[2] = ceil_div(layer[4], options[i, 3]) * ceil_div(layer[5], options[i, 4])
        cycles[i] = array_cycles(layer, options[i], turns, hw)
    best = (np.inf, np.inf)
    for _ in range(count):  # the layout that computes fastest first
        fastest = 0
        for i in range(1, count):
            if cycles[i] < cycles[fastest]:
                fastest = i
        if objective == 0 and cycles[fastest] > best[0]:
            break  # nor can those after it be faster
        cycles[fastest] = np.inf
        best = search_layout(layer, options[fastest], hw, objective, best, found)
    if best[0] == np.inf:
        return False
    if hw[H_WAITS] > 0:
        # A convention of the hardware, not of the mapping: it has no part in the choice.
        rows = window(int(found[TILE + 2]), layer[2], layer[6])
        columns = window(int(found[TILE + 3]), layer[3], layer[6])
        wait = found[TILE + 1] * rows * columns * hw[H_WORD] / hw[H_DRAM]
        found[0] = np.ceil(found[0] + wait)
        found[5] += wait
    return True


@compiled
def search_layout(
    layer: Ints,
    layout: Ints,
    hw: Floats,
    objective: int,
    best: tuple[float, float],
    found: Floats,
) -> tuple[float, float]:
    """Improves on ``best`` and ``found`` with one layout; returns the best score."""
    registers = np.empty((MAX_REGISTERS, 4), np.int64)
    floors = np.empty((MAX_REGISTERS, 4))
    k = np.empty((MAX_SIDES, 3), np.int64)
    c = np.empty((MAX_SIDES, 3), np.int64)
    pixels = np.empty((MAX_PIXELS, 6), np.int64)
    counts = np.empty(3, np.int64)
    tile = np.empty(4, np.int64)
    spatial = np.empty(6, np.int64)
    turns = np.empty(3, np.int64)
    again = np.empty(3)
    dram = np.empty(4)
    tiling = np.empty(9)
    register = np.empty(4)
    trial = np.zeros(WIDTH)
    flow = int(hw[H_DATAFLOW])
    macs = products(layer)
    n_tiles = buffer_tiles(layer, layout, k, c, pixels, counts)
    orders = np.empty(n_tiles, np.int64)
    bounds = np.empty(n_tiles)
    most = best[0] if objective == 0 else np.inf
    first = tile_bounds(layer, layout, k, c, pixels, counts, hw, most, orders, bounds)
    if first < 0:
        return best
    n_registers = register_tiles(layer, layout, hw, False, registers)
    low = np.empty(4)
    for r in range(n_registers):
        register_floor(layer, registers[r], hw, floors[r])
        for i in range(4):
            low[i] = floors[r, i] if r == 0 else min(low[i], floors[r, i])
    for turn in range(-1, n_tiles):
        # The tile that may be fastest first: it makes the sharpest bound.
        n = first if turn < 0 else turn
        if orders[n] < 0 or turn == first or (objective == 0 and bounds[n] > best[0]):
            continue
        i, j, x = n // (counts[1] * counts[2]), n // counts[2] % counts[1], n % counts[2]
        take_tile(layout, k[i], c[j], pixels[x], tile, spatial, turns)
        compute = array_cycles(layer, spatial, turns, hw)
        fill = fill_bytes(layer, spatial, hw)
        reduced = float(spatial[1] * spatial[2])
        dram_traffic(layer, tile, orders[n], hw, again, dram)
        settle(layer, compute, macs, reduced, fill, dram, low, hw, trial)
        if not better(score(objective, trial[0], trial[6]), best):
            continue
        for r in range(n_registers):
            settle(layer, compute, macs, reduced, fill, dram, floors[r], hw, trial)
            if not better(score(objective, trial[0], trial[6]), best):
                continue
            register_tiling(layer, tile, spatial, registers[r], hw, tiling)
            for order in range(6):
                if not orders_allowed(flow, order):
                    continue
                register_traffic(tiling, order, again, register)
                settle(layer, compute, macs, reduced, fill, dram, register, hw, trial)
                now = score(objective, trial[0], trial[6])
                if better(now, best):
                    best = now
                    keep(trial, spatial, registers[r], order, tile, orders[n], found)
    return best
