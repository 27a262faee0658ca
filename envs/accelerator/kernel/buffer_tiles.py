"""Candidates of the mapper for the tiles of the buffer, compiled.

A tile of the buffer that is smaller than what the array could compute side by side leaves rows or
columns idle, but takes less room. The tiles of an array are tiles of every larger array too
(``spatial_layouts.loop_parts``), so a larger array can be used like a smaller one.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER,
    H_BYPASS,
    H_INPUT_PART,
    H_OUTPUT_PART,
    H_SUM,
    H_WAITS,
    H_WEIGHT_PART,
    H_WORD,
    ceil_div,
)
from archgym.envs.accelerator.kernel.spatial_layouts import (
    MAX_PARTS,
    even,
    first_bytes,
    insert,
    loop_parts,
)

__all__ = [
    "LOOPS",
    "MAX_PIXELS",
    "MAX_SIDES",
    "all_sides",
    "buffer_tiles",
    "fill_bytes",
    "fits",
    "read_bytes",
    "room",
    "take_tile",
    "within",
]

LOOPS = 4
"""Loops that tiles cut: K, C, output rows, output columns."""
MAX_SIDES = 256
MAX_PIXELS = 4096


@compiled
def loop_sides(size: int, parts: Ints, n_parts: int, found: Ints) -> int:
    """Sides of tiles of one loop, ascending; returns how many.

    For each part of the array the loop is cut into 1, 2, 4, 8, ... tiles, each a whole multiple of
    what the part computes side by side.
    """
    count = insert(found, 0, size)
    for i in range(n_parts):
        if parts[i] >= size:
            break
        extent = even(size, parts[i])
        units = ceil_div(size, extent)
        tiles = 2
        while tiles < 2 * units:
            count = insert(found, count, min(ceil_div(units, tiles) * extent, size))
            tiles *= 2
    return count


@compiled
def all_sides(layer: Ints, hw: Floats, sides: Ints, counts: Ints) -> None:
    """Sides of tiles of every loop, shape (`LOOPS`, n), and how many there are of each."""
    parts = np.empty(MAX_PARTS, np.int64)
    for loop in range(LOOPS):
        size = layer[loop] if loop < 2 else layer[loop + 2]
        n_parts = loop_parts(layer, hw, loop, parts)
        counts[loop] = loop_sides(size, parts, n_parts, sides[loop])


@compiled
def useful_sides(size: int, sides: Ints, count: int, extent: int, found: Ints) -> int:
    """The sides that a layout can use; returns how many.

    Of the sides that cut the loop into equally many tiles, a larger one is of use only if it takes
    the array fewer turns.

    Args:
        size: bound of the loop.
        sides: ascending, shape (n,).
        count: how many.
        extent: what of the loop is computed side by side at most.
        found: becomes sides, what of each is computed side by side, and turns of the whole loop,
            shape (n, 3).
    """
    n = 0
    last_tiles = 0
    for i in range(count):
        side = sides[i]
        tiles = ceil_div(size, side)
        turns = (tiles - 1) * ceil_div(side, extent)
        turns += ceil_div(size - (tiles - 1) * side, extent)
        if tiles != last_tiles or turns < found[n - 1, 2]:
            found[n, 0] = side
            found[n, 1] = even(side, extent)
            found[n, 2] = turns
            n += 1
        last_tiles = tiles
    return n


@compiled
def buffer_tiles(
    layer: Ints,
    layout: Ints,
    sides: Ints,
    n_sides: Ints,
    k: Ints,
    c: Ints,
    pixels: Ints,
    counts: Ints,
) -> int:
    """Sides of the buffer tiles of a layout, and how many there are of each; returns the product.

    Output tiles are whole rows, or parts of as many rows as are computed side by side.

    Args:
        layer: as in ``loopnest.dram_traffic``.
        layout: as in ``spatial_layouts.layouts``.
        sides: as in `all_sides`, and so is ``n_sides``.
        n_sides: number of sides of each loop.
        k: becomes sides of K, as in `useful_sides`.
        c: of C.
        pixels: becomes output tiles: rows, columns, rows and columns side by side, turns, and
            tiles, shape (n, 6).
        counts: becomes how many of each, shape (3,).
    """
    high = np.empty((MAX_SIDES, 3), np.int64)
    wide = np.empty((MAX_SIDES, 3), np.int64)
    counts[0] = useful_sides(layer[0], sides[0], n_sides[0], layout[0], k)
    counts[1] = useful_sides(layer[1], sides[1], n_sides[1], layout[1], c)
    rows = useful_sides(layer[4], sides[2], n_sides[2], layout[3], high)
    columns = useful_sides(layer[5], sides[3], n_sides[3], layout[4], wide)
    n = 0
    for i in range(rows):
        for j in range(columns if high[i, 0] <= layout[3] else 1):
            if n < len(pixels):
                x = columns - 1 - j
                pixels[n, 0] = high[i, 0]
                pixels[n, 1] = wide[x, 0]
                pixels[n, 2] = high[i, 1]
                pixels[n, 3] = wide[x, 1]
                pixels[n, 4] = high[i, 2] * wide[x, 2]
                pixels[n, 5] = ceil_div(layer[4], high[i, 0]) * ceil_div(layer[5], wide[x, 0])
                n += 1
    counts[2] = n
    return int(counts[0] * counts[1] * counts[2])


@compiled
def take_tile(
    layout: Ints, k: Ints, c: Ints, pixels: Ints, tile: Ints, spatial: Ints, turns: Ints
) -> None:
    """A buffer tile.

    Args:
        layout: what of the array is used at most.
        k: its side of K, as in `useful_sides`.
        c: of C.
        pixels: its output tile, as in `buffer_tiles`.
        tile: becomes its sides: K, C, rows, columns.
        spatial: becomes what of the layout it uses.
        turns: becomes the turns of K, C and pixels.
    """
    tile[0] = k[0]
    tile[1] = c[0]
    tile[2] = pixels[0]
    tile[3] = pixels[1]
    spatial[0] = k[1]
    spatial[1] = c[1]
    spatial[2] = layout[2]
    spatial[3] = pixels[2]
    spatial[4] = pixels[3]
    spatial[5] = layout[5]
    turns[0] = k[2]
    turns[1] = c[2]
    turns[2] = pixels[4]


@compiled
def room(hw: Floats) -> tuple[float, float, float, float]:
    """Bytes that inputs, weights and outputs of a buffer tile may take, and all together."""
    if hw[H_INPUT_PART] >= 0:
        return hw[H_INPUT_PART], hw[H_WEIGHT_PART], hw[H_OUTPUT_PART], np.inf
    return np.inf, np.inf, np.inf, hw[H_BUFFER]


@compiled
def within(
    inputs: float, weights: float, outputs: float, rooms: tuple[float, float, float, float]
) -> bool:
    """Whether a buffer tile of a number of bytes fits."""
    return bool(
        inputs + weights + outputs <= rooms[3]
        and inputs <= rooms[0]
        and weights <= rooms[1]
        and outputs <= rooms[2]
    )


@compiled
def read_bytes(layer: Ints, tile: Ints, hw: Floats) -> float:
    """Bytes of inputs and weights of a buffer tile; without weights that go around the buffer."""
    inputs = tile[1] * window(tile[2], layer[2], layer[6]) * window(tile[3], layer[3], layer[6])
    weights = 0.0 if hw[H_BYPASS] > 0 else float(tile[0] * tile[1] * layer[2] * layer[3])
    return float((inputs + weights) * hw[H_WORD])


@compiled
def fill_bytes(layer: Ints, tile: Ints, hw: Floats) -> float:
    """What has to come from memory before the first cycle: the first words, or a whole tile."""
    if hw[H_WAITS] > 0:
        return first_bytes(hw) + read_bytes(layer, tile, hw)
    return first_bytes(hw)


@compiled
def fits(layer: Ints, tile: Ints, hw: Floats) -> bool:
    """Whether a buffer tile fits."""
    inputs = tile[1] * window(tile[2], layer[2], layer[6]) * window(tile[3], layer[3], layer[6])
    weights = 0.0 if hw[H_BYPASS] > 0 else tile[0] * tile[1] * layer[2] * layer[3] * hw[H_WORD]
    outputs = tile[0] * tile[2] * tile[3] * hw[H_SUM]
    return within(inputs * hw[H_WORD], weights, outputs, room(hw))
