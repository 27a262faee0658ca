"""The mapper: the best tiling of a layer on a spatial array, exact, compiled.

Candidates are every way to lay the layer out on the array (:func:`layouts`); tiles of the register
files with sides that are powers of two; tiles of the buffer that cut each side into 1, 2, 4, 8, ...
balanced parts; and at both levels every loop order that the dataflow allows. Of the register tiles
only those that no other one dominates are tried; the loop order of the memory level, which touches
nothing but memory traffic, is chosen by itself; and whatever cannot beat the best so far even if
each word crossed the array's edge once is skipped. The result is that of trying all candidates (a
test does).
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.layout import FOUND
from archgym.envs.accelerator.kernel.loopnest import (
    DRAM_ORDER,
    H_DATAFLOW,
    H_DRAM,
    H_INPUT_RF,
    H_WAITS,
    H_WORD,
    REGISTER,
    SPATIAL,
    TILE,
    dram_traffic,
    register_tiling,
    register_traffic,
    settle,
    whole_batch,
    windows,
)
from archgym.envs.accelerator.kernel.tiles import (
    MAX_LAYOUTS,
    MAX_REGISTERS,
    MAX_SIDES,
    balanced,
    compute_cycles,
    fill_bytes,
    fits,
    layouts,
    orders_allowed,
    pixel_tiles,
    register_tiles,
)

__all__ = ["better", "score", "search", "try_all"]

WIDTH = len(FOUND)


@compiled
def score(objective: int, cycles: float, energy: float) -> tuple[float, float]:
    """What is minimised, and what breaks ties."""
    if objective == 0:
        return cycles, energy
    if objective == 1:
        return energy, cycles
    return cycles * energy, cycles


@compiled
def better(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Whether pair ``a`` is smaller than pair ``b``."""
    return a[0] < b[0] or (a[0] == b[0] and a[1] < b[1])


@compiled
def keep(
    trial: Floats,
    spatial: Ints,
    register: Ints,
    inside: int,
    tile: Ints,
    outside: int,
    found: Floats,
) -> None:
    """Writes a result and its mapping into ``found``."""
    for i in range(SPATIAL):
        found[i] = trial[i]
    for i in range(6):
        found[SPATIAL + i] = spatial[i]
    for i in range(4):
        found[REGISTER + i] = register[i]
        found[TILE + i] = tile[i]
    found[TILE - 1] = inside
    found[DRAM_ORDER] = outside


@compiled
def register_floor(layer: Ints, register: Ints, hw: Floats, found: Floats) -> None:
    """Fewest words between buffer and array with a register tile: each tensor crosses once."""
    groups = float(layer[7])
    columns = layer[3] if register[2] >= 1 else 1
    held = register[1] * window(max(register[3], 1), columns, layer[6])
    pixels = float(layer[4]) * layer[5]
    if hw[H_DATAFLOW] == 1.0 or held <= max(hw[H_INPUT_RF], 1.0):
        inputs = float(windows(layer[4], layer[8], layer[2], layer[6]))
        inputs *= windows(layer[5], 1, layer[3], layer[6])
    else:
        inputs = pixels * layer[2] * layer[3]
    found[0] = groups * layer[1] * inputs
    found[1] = groups * layer[0] * layer[1] * layer[2] * layer[3]
    found[2] = groups * layer[0] * pixels
    found[3] = 0.0


@compiled
def tile_sides(layer: Ints, spatial: Ints, sides: Ints, counts: Ints) -> int:
    """Buffer tiles of a layout: sides of K and C, pixels; returns how many there are.

    ``sides`` of shape (4, n) becomes sides of K, of C, and rows and columns of pixel tiles.
    """
    counts[0] = balanced(layer[0], spatial[0], sides[0])
    counts[1] = balanced(layer[1], spatial[1], sides[1])
    counts[2] = pixel_tiles(layer, spatial, sides[2], sides[3])
    return int(counts[0] * counts[1] * counts[2])


@compiled
def take_tile(n: int, sides: Ints, counts: Ints, tile: Ints) -> None:
    """The n-th buffer tile, into ``tile``."""
    x = n % counts[2]
    tile[0] = sides[0, n // (counts[1] * counts[2])]
    tile[1] = sides[1, n // counts[2] % counts[1]]
    tile[2] = sides[2, x]
    tile[3] = sides[3, x]


@compiled
def memory_order(layer: Ints, tile: Ints, hw: Floats, again: Floats, dram: Floats) -> int:
    """The loop order with the least memory traffic for a buffer tile; -1 if it does not fit."""
    if not fits(layer, tile, hw):
        return -1
    least = np.inf
    best = 0
    for order in range(6):
        moved = dram_traffic(layer, tile, order, hw, again, dram)
        if moved < least:
            least = moved
            best = order
    return best


@compiled
def memory_orders(layer: Ints, sides: Ints, counts: Ints, hw: Floats, orders: Ints) -> int:
    """`memory_order` of all buffer tiles; returns the one with the least traffic, -1 for none."""
    tile = np.empty(4, np.int64)
    again = np.empty(3)
    dram = np.empty(4)
    first = -1
    least = np.inf
    for n in range(len(orders)):
        take_tile(n, sides, counts, tile)
        orders[n] = memory_order(layer, tile, hw, again, dram)
        if orders[n] >= 0:
            moved = dram_traffic(layer, tile, orders[n], hw, again, dram)
            if moved < least:
                least = moved
                first = n
    return first


@compiled
def search_layout(
    layer: Ints,
    spatial: Ints,
    hw: Floats,
    objective: int,
    best: tuple[float, float],
    found: Floats,
) -> tuple[float, float]:
    """Improves on ``best`` and ``found`` with one layout; returns the best score."""
    registers = np.empty((MAX_REGISTERS, 4), np.int64)
    floors = np.empty((MAX_REGISTERS, 4))
    sides = np.empty((4, 2 * MAX_SIDES), np.int64)
    counts = np.empty(3, np.int64)
    tile = np.empty(4, np.int64)
    again = np.empty(3)
    dram = np.empty(4)
    tiling = np.empty(9)
    register = np.empty(4)
    trial = np.zeros(WIDTH)
    flow = int(hw[H_DATAFLOW])
    macs = products(layer)
    compute = compute_cycles(layer, spatial, hw)
    reduced = float(spatial[1] * spatial[2])
    fill = fill_bytes(layer, spatial, hw)
    n_registers = register_tiles(layer, spatial, hw, False, registers)
    low = np.empty(4)
    for r in range(n_registers):
        register_floor(layer, registers[r], hw, floors[r])
        for i in range(4):
            low[i] = floors[r, i] if r == 0 else min(low[i], floors[r, i])
    n_tiles = tile_sides(layer, spatial, sides, counts)
    orders = np.empty(n_tiles, np.int64)
    first = memory_orders(layer, sides, counts, hw, orders)
    for turn in range(-1, n_tiles):
        # The tile with the least memory traffic first: it makes the sharpest bound.
        n = first if turn < 0 else turn
        if n < 0 or orders[n] < 0 or turn == first:
            continue
        take_tile(n, sides, counts, tile)
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


@compiled
def products(layer: Ints) -> float:
    """Multiply-accumulates of a layer whose rows are those of the whole batch."""
    macs = float(layer[7]) * layer[0] * layer[1] * layer[2] * layer[3] * layer[4] * layer[5]
    return float(macs)


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
    for i in range(count):
        cycles[i] = compute_cycles(layer, options[i], hw)
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
def try_all(given: Ints, hw: Floats, objective: int, found: Floats) -> bool:
    """As :func:`search`, by trying every candidate, without bounds; slow, for tests."""
    layer = np.empty(9, np.int64)
    whole_batch(given, layer)
    options = np.empty((MAX_LAYOUTS, 6), np.int64)
    registers = np.empty((8 * MAX_REGISTERS, 4), np.int64)
    sides = np.empty((4, 2 * MAX_SIDES), np.int64)
    counts = np.empty(3, np.int64)
    tile = np.empty(4, np.int64)
    again = np.empty(3)
    dram = np.empty(4)
    tiling = np.empty(9)
    register = np.empty(4)
    trial = np.zeros(WIDTH)
    macs = products(layer)
    best = (np.inf, np.inf)
    for s in range(layouts(layer, hw, options)):
        spatial = options[s]
        compute = compute_cycles(layer, spatial, hw)
        fill = fill_bytes(layer, spatial, hw)
        reduced = float(spatial[1] * spatial[2])
        n_registers = register_tiles(layer, spatial, hw, True, registers)
        # Each pair of a buffer tile and an order of the memory level, times each register tile
        # and order inside.
        for n in range(6 * tile_sides(layer, spatial, sides, counts)):
            take_tile(n // 6, sides, counts, tile)
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
