"""What the mapper can say of a tile before it tries it, compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.layouts import array_cycles, fill_bytes
from archgym.envs.accelerator.kernel.loopnest import (
    H_BYPASS,
    H_DATAFLOW,
    H_DOUBLE,
    H_DRAM,
    H_INPUT_RF,
    H_LINKS,
    H_SUM,
    H_WORD,
    ceil_div,
    windows,
)
from archgym.envs.accelerator.kernel.sides import fits, take_tile

__all__ = ["register_floor", "tile_bounds"]


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
def memory_order(k: int, c: int, x: int, moved: Floats) -> tuple[int, float]:
    """The loop order with the least memory traffic, an index into `ORDERS`, and its bytes.

    One of the three tensors stays while the other two come again; which of the two orders that
    keep it makes no difference. ``loopnest.dram_traffic`` says the same of each order.

    Args:
        k: tiles of the loop over K.
        c: over C.
        x: over pixels.
        moved: bytes of inputs and weights, of one trip of the partial sums out and back, and of
            the outputs.
    """
    many_k = k if c > 1 or x > 1 else 1
    many_c = c if k > 1 or x > 1 else 1
    weights_stay = moved[0] * many_k + moved[1] + moved[2] * ((c if x > 1 else 1) - 1)
    outputs_stay = moved[0] * many_k + moved[1] * (x if c > 1 else 1)
    inputs_stay = moved[0] + moved[1] * (x if k > 1 else 1) + moved[2] * (many_c - 1)
    order = 0
    least = weights_stay
    if outputs_stay < least:
        order = 1
        least = outputs_stay
    if inputs_stay < least:
        order = 3
        least = inputs_stay
    return order, least + moved[3]


@compiled
def tile_bounds(
    layer: Ints,
    layout: Ints,
    k: Ints,
    c: Ints,
    pixels: Ints,
    counts: Ints,
    hw: Floats,
    most: float,
    orders: Ints,
    bounds: Floats,
) -> int:
    """For each buffer tile the best order of the memory level, and the least time it could take.

    Args:
        layer: as in ``loopnest.dram_traffic``.
        layout: the array used as far as the layer goes.
        k: as in ``sides.buffer_tiles``, and so are ``c``, ``pixels`` and ``counts``.
        c: see ``k``.
        pixels: see ``k``.
        counts: see ``k``.
        hw: as in ``layout.HARDWARE``.
        most: cycles above which a tile is of no interest.
        orders: becomes the orders, -1 for a tile that does not fit or takes longer.
        bounds: becomes lower bounds of the time, cycles.

    Returns:
        The tile with the lowest bound, -1 for none.
    """
    tile = np.empty(4, np.int64)
    spatial = np.empty(6, np.int64)
    turns = np.empty(3, np.int64)
    moved = np.empty(4)
    groups = float(layer[7])
    word = hw[H_WORD]
    outputs = groups * layer[0] * layer[4] * layer[5]
    moved[1] = groups * layer[0] * layer[1] * layer[2] * layer[3] * word
    if hw[H_BYPASS] > 0:
        moved[1] = 0.0
    moved[2] = 2.0 * outputs * hw[H_SUM]
    moved[3] = outputs * word
    # With a link for each operand or each way the traffic may be spread over all of them.
    links = 1.0 if hw[H_LINKS] == 0.0 else (3.0 if hw[H_LINKS] == 1.0 else 2.0)
    rate = hw[H_DRAM] * links
    first = -1
    least = np.inf
    for x in range(counts[2]):
        rows = windows(
            layer[4], max(ceil_div(layer[4], pixels[x, 0]), layer[8]), layer[2], layer[6]
        )
        columns = windows(layer[5], ceil_div(layer[5], pixels[x, 1]), layer[3], layer[6])
        moved[0] = groups * layer[1] * rows * columns * word
        for i in range(counts[0]):
            for j in range(counts[1]):
                n = (i * counts[1] + j) * counts[2] + x
                orders[n] = -1
                take_tile(layout, k[i], c[j], pixels[x], tile, spatial, turns)
                compute = array_cycles(layer, spatial, turns, hw)
                if compute > most or not fits(layer, tile, hw):
                    continue
                order, total = memory_order(
                    ceil_div(layer[0], tile[0]), ceil_div(layer[1], tile[1]), pixels[x, 5], moved
                )
                if hw[H_DOUBLE] > 0:
                    bound = max(compute, total / rate)
                    bound += fill_bytes(layer, spatial, hw) / hw[H_DRAM]
                else:
                    bound = compute + total / rate
                bound = np.ceil(bound * (1.0 - 1e-12))
                if bound > most:
                    continue
                orders[n] = order
                bounds[n] = bound
                if bound < least:
                    least = bound
                    first = n
    return first
