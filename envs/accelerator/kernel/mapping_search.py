"""The mapper: the best tiling of a layer on a spatial array, exact, compiled.

Candidates are the ways to lay the layer out on the array (``spatial_layouts.py``); tiles of the
buffer that cut each loop into 1, 2, 4, 8, ... parts, for the array and for smaller parts of it
(``buffer_tiles.py``); tiles of the register files with sides that are powers of two
(``register_tiles.py``); and at both levels every loop order that the dataflow allows. Only
register tiles that no other one dominates are tried. The loop order of the memory level affects
only memory traffic, so it is chosen separately. A lower bound of time and energy skips candidates
that cannot beat the best so far (``cost_bounds.py``). The result equals that of trying all
candidates (``exhaustive_search.py``; a test compares them). The published mappings of the dataflows
are further candidates (``published_candidates.py``).
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.buffer_tiles import (
    LOOPS,
    MAX_PIXELS,
    MAX_SIDES,
    all_sides,
    buffer_tiles,
    fill_bytes,
    take_tile,
)
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.cost_bounds import register_floor, tile_bounds, tile_floor
from archgym.envs.accelerator.kernel.loopnest import (
    H_DATAFLOW,
    ceil_div,
    dram_traffic,
    register_tiling,
    register_traffic,
    settle,
    whole_batch,
)
from archgym.envs.accelerator.kernel.register_tiles import (
    MAX_REGISTERS,
    orders_allowed,
    register_tiles,
)
from archgym.envs.accelerator.kernel.results import better, keep, products, score
from archgym.envs.accelerator.kernel.spatial_layouts import (
    MAX_LAYOUTS,
    array_cycles,
    layouts,
)
from archgym.envs.accelerator.kernel.vectors import FOUND

__all__ = ["search"]

WIDTH = len(FOUND)


@compiled
def search(given: Ints, hw: Floats, objective: int, found: Floats) -> bool:
    """The best mapping of one layer, into ``found``; returns whether there is any.

    Args:
        given: a row of ``LayerTable.bounds``.
        hw: as in ``vectors.HARDWARE``.
        objective: as in ``vectors.OBJECTIVES``.
        found: as in ``vectors.FOUND``.
    """
    layer = np.empty(9, np.int64)
    whole_batch(given, layer)
    options = np.empty((MAX_LAYOUTS, 6), np.int64)
    sides = np.empty((LOOPS, MAX_SIDES), np.int64)
    n_sides = np.empty(LOOPS, np.int64)
    all_sides(layer, hw, sides, n_sides)
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
        best = search_layout(layer, options[fastest], sides, n_sides, hw, objective, best, found)
    return best[0] < np.inf


@compiled
def search_layout(
    layer: Ints,
    layout: Ints,
    sides: Ints,
    n_sides: Ints,
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
    low = np.empty(4)
    max_tiles = buffer_tiles(layer, layout, sides, n_sides, k, c, pixels, counts)
    tiles = np.empty((max_tiles, 3), np.int64)
    orders = np.empty(max_tiles, np.int64)
    bounds = np.empty((max_tiles, 2))
    registers = registers[: register_tiles(layer, layout, hw, False, registers)]
    for r in range(len(registers)):
        register_floor(layer, registers[r], hw, floors[r])
        for i in range(4):
            low[i] = floors[r, i] if r == 0 else min(low[i], floors[r, i])
    n_tiles = tile_bounds(
        layer,
        layout,
        k,
        c,
        pixels,
        counts,
        hw,
        objective,
        best,
        low,
        registers,
        tiles,
        orders,
        bounds,
    )
    first = 0
    for n in range(1, n_tiles):
        if better((bounds[n, 0], bounds[n, 1]), (bounds[first, 0], bounds[first, 1])):
            first = n
    for turn in range(-1 if n_tiles > 0 else 0, n_tiles):
        # The tile that may be best first: it makes the sharpest bound.
        n = first if turn < 0 else turn
        if turn == first or not better((bounds[n, 0], bounds[n, 1]), best):
            continue
        take_tile(layout, k[tiles[n, 0]], c[tiles[n, 1]], pixels[tiles[n, 2]], tile, spatial, turns)
        best = search_tile(
            layer,
            tile,
            spatial,
            turns,
            orders[n],
            low,
            registers,
            floors,
            hw,
            objective,
            best,
            found,
        )
    return best


@compiled
def search_tile(
    layer: Ints,
    tile: Ints,
    spatial: Ints,
    turns: Ints,
    outside: int,
    low: Floats,
    registers: Ints,
    floors: Floats,
    hw: Floats,
    objective: int,
    best: tuple[float, float],
    found: Floats,
) -> tuple[float, float]:
    """Improves on ``best`` and ``found`` with one buffer tile; returns the best score."""
    again = np.empty(3)
    dram = np.empty(4)
    tiling = np.empty(9)
    register = np.empty(4)
    trial = np.zeros(WIDTH)
    macs = products(layer)
    fill = fill_bytes(layer, tile, hw)
    compute = array_cycles(layer, spatial, turns, hw)
    reduced = float(spatial[1] * spatial[2])
    dram_traffic(layer, tile, outside, hw, again, dram)
    tile_floor(layer, tile, low, register)
    settle(layer, compute, macs, reduced, fill, dram, register, hw, trial)
    if not better(score(objective, trial[0], trial[6]), best):
        return best
    for r in range(len(registers)):
        tile_floor(layer, tile, floors[r], register)
        settle(layer, compute, macs, reduced, fill, dram, register, hw, trial)
        if not better(score(objective, trial[0], trial[6]), best):
            continue
        register_tiling(layer, tile, spatial, registers[r], hw, tiling)
        for order in range(6):
            if not orders_allowed(int(hw[H_DATAFLOW]), order):
                continue
            register_traffic(tiling, order, again, register)
            settle(layer, compute, macs, reduced, fill, dram, register, hw, trial)
            now = score(objective, trial[0], trial[6])
            if better(now, best):
                best = now
                keep(trial, spatial, registers[r], order, tile, outside, found)
    return best
