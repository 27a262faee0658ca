"""Every candidate of the mapper tried, compiled; slow, for tests of the mapper."""

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
    fits,
    take_tile,
)
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import (
    H_DATAFLOW,
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

__all__ = ["try_all"]

WIDTH = len(FOUND)


@compiled
def try_all(given: Ints, hw: Floats, objective: int, found: Floats) -> bool:
    """As :func:`search`, by trying every candidate, without bounds; slow, for tests."""
    layer = np.empty(9, np.int64)
    whole_batch(given, layer)
    options = np.empty((MAX_LAYOUTS, 6), np.int64)
    registers = np.empty((8 * MAX_REGISTERS, 4), np.int64)
    sides = np.empty((LOOPS, MAX_SIDES), np.int64)
    n_sides = np.empty(LOOPS, np.int64)
    all_sides(layer, hw, sides, n_sides)
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
    macs = products(layer)
    best = (np.inf, np.inf)
    for s in range(layouts(layer, hw, options)):
        layout = options[s]
        n_registers = register_tiles(layer, layout, hw, True, registers)
        # Each pair of a buffer tile and an order of the memory level, times each register tile
        # and order inside.
        for n in range(6 * buffer_tiles(layer, layout, sides, n_sides, k, c, pixels, counts)):
            x = n // 6
            take_tile(
                layout,
                k[x // (counts[1] * counts[2])],
                c[x // counts[2] % counts[1]],
                pixels[x % counts[2]],
                tile,
                spatial,
                turns,
            )
            compute = array_cycles(layer, spatial, turns, hw)
            fill = fill_bytes(layer, tile, hw)
            reduced = float(spatial[1] * spatial[2])
            if not fits(layer, tile, hw):
                continue
            dram_traffic(layer, tile, n % 6, hw, again, dram)
            for r in range(6 * n_registers):
                if not orders_allowed(int(hw[H_DATAFLOW]), r % 6):
                    continue
                register_tiling(layer, tile, spatial, registers[r // 6], hw, tiling)
                register_traffic(tiling, r % 6, again, register)
                settle(layer, compute, macs, reduced, fill, dram, register, hw, trial)
                now = score(objective, trial[0], trial[6])
                if better(now, best):
                    best = now
                    keep(trial, spatial, registers[r // 6], r % 6, tile, n % 6, found)
    return best[0] < np.inf
