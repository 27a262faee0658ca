"""Candidates of the mapper for the tiles of the buffer, compiled.

A tile of the buffer that is smaller than what the array could compute side by side leaves rows or
columns idle: it takes less room, and less time to fill. So a larger array can be used like a
smaller one.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.layouts import even
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER,
    H_BYPASS,
    H_INPUT_PART,
    H_OUTPUT_PART,
    H_SUM,
    H_WEIGHT_PART,
    H_WORD,
    ceil_div,
)

__all__ = ["MAX_PIXELS", "MAX_SIDES", "buffer_tiles", "fits", "take_tile"]

MAX_SIDES = 64
MAX_PIXELS = 1024


@compiled
def add_side(size: int, side: int, extent: int, found: Ints, count: int) -> int:
    """Appends a side, with what of it is computed side by side and the turns of the whole loop."""
    if count > 0 and found[count - 1, 0] <= side:
        return count
    tiles = ceil_div(size, side)
    found[count, 0] = side
    found[count, 1] = even(side, extent)
    found[count, 2] = (tiles - 1) * ceil_div(side, extent)
    found[count, 2] += ceil_div(size - (tiles - 1) * side, extent)
    return count + 1


@compiled
def loop_sides(size: int, extent: int, found: Ints) -> int:
    """Sides of tiles of one loop worth trying, largest first; returns how many.

    The loop is cut into 1, 2, 4, 8, ... parts of whole multiples of what the array computes side by
    side, and, from four such multiples downwards, into as many equal parts; the last is 1.

    Args:
        size: bound of the loop.
        extent: what of it the array computes side by side at most.
        found: becomes sides, what of each is computed side by side, and turns of the whole loop,
            shape (n, 3).
    """
    units = ceil_div(size, extent)
    count = 0
    parts = 1
    while True:
        if parts < 2 * units:
            side = min(ceil_div(units, parts) * extent, size)
            count = add_side(size, side, extent, found, count)
        if units <= 4 * parts:  # else whole multiples come near enough
            count = add_side(size, ceil_div(size, parts), extent, found, count)
        if found[count - 1, 0] == 1:
            return count
        parts *= 2


@compiled
def pixel_tiles(layer: Ints, spatial: Ints, found: Ints) -> int:
    """Output tiles worth trying, largest first: whole rows, then parts of one stretch of rows.

    Rows are parted where the array is filled by them, where there is only one, and, if it has
    columns of outputs too, wherever some of its rows idle.

    Args:
        layer: as in ``loopnest.dram_traffic``.
        spatial: a layout.
        found: becomes rows, columns, rows and columns side by side, turns, and tiles, shape (n, 6).
    """
    high = np.empty((MAX_SIDES, 3), np.int64)
    wide = np.empty((MAX_SIDES, 3), np.int64)
    rows = loop_sides(layer[4], spatial[3], high)
    columns = loop_sides(layer[5], spatial[4], wide)
    count = 0
    for i in range(rows):
        side = high[i, 0]
        parted = side == spatial[3] or side == 1 or (spatial[4] > 1 and side < spatial[3])
        for j in range(columns if parted else 1):
            if count < len(found):
                found[count, 0] = high[i, 0]
                found[count, 1] = wide[j, 0]
                found[count, 2] = high[i, 1]
                found[count, 3] = wide[j, 1]
                found[count, 4] = high[i, 2] * wide[j, 2]
                found[count, 5] = ceil_div(layer[4], high[i, 0]) * ceil_div(layer[5], wide[j, 0])
                count += 1
    return count


@compiled
def buffer_tiles(layer: Ints, spatial: Ints, k: Ints, c: Ints, pixels: Ints, counts: Ints) -> int:
    """Sides of the buffer tiles of a layout, and how many there are of each; returns the product.

    Args:
        layer: as in ``loopnest.dram_traffic``.
        spatial: the layout.
        k: becomes sides of K, as in `loop_sides`.
        c: of C.
        pixels: becomes output tiles, as in `pixel_tiles`.
        counts: shape (3,).
    """
    counts[0] = loop_sides(layer[0], spatial[0], k)
    counts[1] = loop_sides(layer[1], spatial[1], c)
    counts[2] = pixel_tiles(layer, spatial, pixels)
    return int(counts[0] * counts[1] * counts[2])


@compiled
def take_tile(
    layout: Ints, k: Ints, c: Ints, pixels: Ints, tile: Ints, spatial: Ints, turns: Ints
) -> None:
    """A buffer tile.

    Args:
        layout: the array used as far as the layer goes.
        k: its side of K, as in `loop_sides`.
        c: of C.
        pixels: its output tile, as in `pixel_tiles`.
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
