"""Lower bounds on the cost of a tile, by which the mapper skips tiles untried; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.buffer_tiles import room, within
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER_PJ,
    H_BYPASS,
    H_DATAFLOW,
    H_DOUBLE,
    H_DRAM,
    H_DRAM_PJ,
    H_INPUT_RF,
    H_INPUT_RF_PJ,
    H_LANES,
    H_LINKS,
    H_MAC_PJ,
    H_NOC,
    H_NOC_PJ,
    H_OUTPUT_RF_PJ,
    H_SUM,
    H_WAITS,
    H_WEIGHT_RF_PJ,
    H_WORD,
    ceil_div,
    windows,
)
from archgym.envs.accelerator.kernel.results import better, score
from archgym.envs.accelerator.kernel.spatial_layouts import first_bytes

__all__ = ["register_floor", "tile_bounds", "tile_floor"]


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
def max_held(layer: Ints, layout: Ints, registers: Ints) -> tuple[int, int, int, int]:
    """Most of K, C and output columns that a PE holds, and fewest turns over the window.

    Of output columns 0 stands for a whole row.
    """
    k = c = q = 1
    turns = layer[2] * layer[3]
    for r in range(len(registers)):
        k = max(k, registers[r, 0])
        c = max(c, registers[r, 1])
        q = 0 if registers[r, 3] == 0 or q == 0 else max(q, registers[r, 3])
        rows = 1 if registers[r, 2] == 2 or layout[2] > 1 else layer[2]
        turns = min(turns, rows * (1 if registers[r, 2] >= 1 else layer[3]))
    return k, c, q, turns


@compiled
def tile_floor(layer: Ints, tile: Ints, once: Floats, found: Floats) -> None:
    """Fewest words between buffer and array under a buffer tile.

    A tensor comes again for each tile of a loop that it does not depend on.

    Args:
        layer: as in ``loopnest.dram_traffic``.
        tile: as there.
        once: words if each tensor crosses once.
        found: becomes words of input, weight, output, partial sums read back.
    """
    pixels = ceil_div(layer[4], tile[2]) * ceil_div(layer[5], tile[3])
    found[0] = once[0] * ceil_div(layer[0], tile[0])
    found[1] = once[1] * pixels
    found[2] = once[2] * ceil_div(layer[1], tile[1])
    found[3] = found[2] - once[2]


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
    minimum = weights_stay
    if outputs_stay < minimum:
        order = 1
        minimum = outputs_stay
    if inputs_stay < minimum:
        order = 3
        minimum = inputs_stay
    return order, minimum + moved[3]


@compiled
def tile_bounds(
    layer: Ints,
    layout: Ints,
    k: Ints,
    c: Ints,
    pixels: Ints,
    counts: Ints,
    hw: Floats,
    objective: int,
    best: tuple[float, float],
    low: Floats,
    registers: Ints,
    tiles: Ints,
    orders: Ints,
    bounds: Floats,
) -> int:
    """The buffer tiles that are of interest, the one with the lowest bound first; how many.

    Args:
        layer: as in ``loopnest.dram_traffic``.
        layout: what of the array is used at most.
        k: as in ``buffer_tiles.buffer_tiles``, and so are ``c``, ``pixels`` and ``counts``.
        c: see ``k``.
        pixels: see ``k``.
        counts: see ``k``.
        hw: as in ``vectors.HARDWARE``.
        objective: as in ``vectors.OBJECTIVES``.
        best: score that a tile has to be better than.
        low: fewest words between buffer and array, as in `register_floor`.
        registers: register tiles, shape (n, 4), see ``register_tiles.py``.
        tiles: becomes positions in ``k``, ``c`` and ``pixels``, shape (n, 3).
        orders: becomes the best order of the memory level of each.
        bounds: becomes lower bounds of its score, shape (n, 2).
    """
    moved = np.empty(4)
    groups = float(layer[7])
    word = hw[H_WORD]
    outputs = groups * layer[0] * layer[4] * layer[5]
    moved[1] = groups * layer[0] * layer[1] * layer[2] * layer[3] * word
    weight_bytes = layer[2] * layer[3] * word
    if hw[H_BYPASS] > 0:
        moved[1] = 0.0
        weight_bytes = 0.0
    moved[2] = 2.0 * outputs * hw[H_SUM]
    moved[3] = outputs * word
    rooms = room(hw)
    # With a link for each operand or each way the traffic may be spread over all of them.
    links = 1.0 if hw[H_LINKS] == 0.0 else (3.0 if hw[H_LINKS] == 1.0 else 2.0)
    seconds = 1.0 / (hw[H_DRAM] * links)
    fill = first_bytes(hw) / hw[H_DRAM]
    waits = 1.0 / hw[H_DRAM] if hw[H_WAITS] == 1.0 else 0.0
    slowness = 1.0 / hw[H_NOC]
    double = hw[H_DOUBLE] > 0
    lanes = int(hw[H_LANES])
    window_turns = ceil_div(layer[2], layout[2]) * layer[3]
    group_turns = ceil_div(layer[7], layout[5])
    held = max_held(layer, layout, registers)
    k_tiles = np.empty((counts[0], 2), np.int64)
    for i in range(counts[0]):
        k_tiles[i, 0] = ceil_div(layer[0], k[i, 0])
        k_tiles[i, 1] = ceil_div(k[i, 0], k[i, 1] * held[0]) * k_tiles[i, 0]
    macs = groups * layer[0] * layer[1] * layer[2] * layer[3] * layer[4] * layer[5]
    sums_pj = 2.0 * macs / layout[2] * hw[H_OUTPUT_RF_PJ]
    min_pj = macs * (hw[H_MAC_PJ] + hw[H_INPUT_RF_PJ] + hw[H_WEIGHT_RF_PJ])
    edge_pj = hw[H_NOC_PJ] if hw[H_BYPASS] > 0 else hw[H_NOC_PJ] + hw[H_BUFFER_PJ]
    count = 0
    for x in range(counts[2]):
        rows = windows(
            layer[4], max(ceil_div(layer[4], pixels[x, 0]), layer[8]), layer[2], layer[6]
        )
        columns = windows(layer[5], ceil_div(layer[5], pixels[x, 1]), layer[3], layer[6])
        moved[0] = groups * layer[1] * rows * columns * word
        input_bytes = (
            window(pixels[x, 0], layer[2], layer[6])
            * window(pixels[x, 1], layer[3], layer[6])
            * word
        )
        output_bytes = pixels[x, 0] * pixels[x, 1] * hw[H_SUM]
        x_turns = ceil_div(pixels[x, 0], pixels[x, 2]) * pixels[x, 5]
        if held[2] > 0:
            x_turns *= ceil_div(pixels[x, 1], pixels[x, 3] * held[2])
        for j in range(counts[1]):
            c_tiles = ceil_div(layer[1], c[j, 0])
            c_turns = ceil_div(c[j, 0], c[j, 1] * held[1]) * held[3] * c_tiles
            inputs = c[j, 0] * input_bytes
            product_pj = min_pj + sums_pj / c[j, 1]
            turns = ceil_div(window_turns * c[j, 2], lanes) * pixels[x, 4] * float(group_turns)
            for i in range(counts[0]):
                weights = k[i, 0] * c[j, 0] * weight_bytes
                if not within(inputs, weights, k[i, 0] * output_bytes, rooms):
                    break  # nor is a larger side of K
                compute = k[i, 2] * turns
                if objective == 0 and compute > best[0]:
                    continue
                order, total = memory_order(k_tiles[i, 0], c_tiles, pixels[x, 5], moved)
                # Between buffer and array one tensor may stay while the loops inside a tile turn.
                few, many = low[0] * k_tiles[i, 0] * word, low[0] * k_tiles[i, 1] * word
                light, heavy = low[1] * pixels[x, 5] * word, low[1] * x_turns * word
                spill = low[2] * (c_turns - 1) * hw[H_SUM]
                inside = low[2] * (c_tiles - 1) * hw[H_SUM]
                drawn = min(few + heavy + spill, many + light + spill, many + heavy + inside)
                noc = max(drawn, low[2] * word + inside) * slowness
                bound = total * seconds
                if double:
                    bound = max(compute, noc, bound) + fill + (inputs + weights) * waits
                else:
                    bound += compute + noc
                bound = np.ceil(bound * (1.0 - 1e-12))
                energy = (drawn + low[2] * word + inside) * edge_pj + total * hw[H_DRAM_PJ]
                floor = score(objective, bound, (product_pj + energy) * (1.0 - 1e-12))
                if not better(floor, best):
                    continue
                tiles[count, 0] = i
                tiles[count, 1] = j
                tiles[count, 2] = x
                orders[count] = order
                bounds[count, 0] = floor[0]
                bounds[count, 1] = floor[1]
                count += 1
    return count
