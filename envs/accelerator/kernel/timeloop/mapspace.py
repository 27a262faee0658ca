"""All mappings that Timeloop's constraints of its sample eyeriss-256 allow, compiled.

Every tile divides its loop. From the inside: a PE holds partial sums of some output channels (K),
weights of some input channels (C) and of all rows of the window; columns of the window, C and K are
spread down a column of the array, output columns (Q) and K along a row. The buffer holds all output
rows of a tile of inputs and outputs; weights go around it. Inside of a tile of the buffer output
rows turn first, then K; outside C, then K, then Q (configs/mapper/eyeriss-256.yaml of v3.0.3).
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import window
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER,
    H_COLUMNS,
    H_DRAM,
    H_INPUT_RF,
    H_NOC,
    H_OUTPUT_RF,
    H_ROWS,
    H_WEIGHT_RF,
    H_WORD,
    windows,
)

__all__ = ["FACTORS", "all_mappings", "cycles_of", "words_of"]

FACTORS = 7
"""Factors of a mapping: Q along rows, K along rows, C down columns, K down columns; C and K in a
PE; K in a tile of the buffer."""


@compiled
def divisors(number: int) -> Ints:
    """All divisors, ascending."""
    found = np.empty(number, np.int64)
    count = 0
    for i in range(1, number + 1):
        if number % i == 0:
            found[count] = i
            count += 1
    return found[:count]


@compiled
def words_of(layer: Ints, mapping: Ints, found: Floats) -> None:
    """Words that a mapping moves for one image of one group.

    Args:
        layer: a row of ``LayerTable.bounds``.
        mapping: see `FACTORS`.
        found: becomes words of inputs, weights and outputs to and from memory, words of inputs from
            the buffer, of partial sums back into the array, and out of it; and turns of the array.
    """
    k, c, high, wide = layer[0], layer[1], layer[2], layer[3]
    stride = layer[6]
    side = mapping[0]
    turns_q = layer[5] // side
    spread_k = mapping[1] * mapping[3]
    turns_k = k // (spread_k * mapping[5] * mapping[6])
    turns_c = c // (mapping[2] * mapping[4])
    rows = window(layer[4], high, stride)
    # Neighbours along Q share inputs inside a tile of the buffer; across tiles only if C stays.
    apart = float(c) * rows * window(side, wide, stride) * turns_q * turns_k
    outputs = float(k) * layer[4] * layer[5]
    if turns_c == 1:
        found[0] = float(c) * rows * windows(layer[5], 1, wide, stride)
    else:
        found[0] = apart
    found[1] = float(k) * c * high * wide
    if mapping[6] * turns_c * turns_k > 1:
        found[1] *= turns_q
    found[2] = outputs
    found[3] = apart * mapping[6]
    found[4] = outputs * (turns_c - 1)
    found[5] = outputs * turns_c
    found[6] = float(k // spread_k) * (c // mapping[2]) * high * layer[4] * turns_q


@compiled
def cycles_of(words: Floats, hw: Floats) -> float:
    """Time of one image of one group: the array's, or that of the slowest way of the slowest port.

    Args:
        words: from :func:`words_of`.
        hw: as in ``vectors.HARDWARE``.
    """
    memory = hw[H_WORD] / hw[H_DRAM]
    buffer = hw[H_WORD] / hw[H_NOC]
    return float(
        max(
            words[6],
            (words[0] + words[1]) * memory,
            words[2] * memory,
            (words[3] + words[4]) * buffer,
            (words[0] + words[5]) * buffer,
        )
    )


@compiled
def all_mappings(layer: Ints, hw: Floats, found: Ints) -> int:
    """Every mapping that fits, into ``found``, shape (n, `FACTORS`), as far as there is room.

    Returns:
        How many there are.
    """
    rows, columns = int(hw[H_ROWS]), int(hw[H_COLUMNS])
    high, wide, stride = layer[2], layer[3], layer[6]
    weights, sums = max(hw[H_WEIGHT_RF], 1.0), max(hw[H_OUTPUT_RF], 1.0)
    inputs = max(hw[H_INPUT_RF], 1.0)
    entries = hw[H_BUFFER] / hw[H_WORD]
    all_k, all_c, all_q = divisors(layer[0]), divisors(layer[1]), divisors(layer[5])
    tall = window(layer[4], high, stride)
    trial = np.empty(FACTORS, np.int64)
    count = 0
    for trial[0] in all_q:
        for trial[1] in all_k:
            if trial[0] * trial[1] > columns:
                break
            for trial[2] in all_c:
                for trial[3] in all_k:
                    if wide * trial[2] * trial[3] > rows:
                        break
                    if layer[0] % (trial[1] * trial[3]) > 0:
                        continue
                    for trial[4] in all_c:
                        if trial[4] * high > min(inputs, weights):
                            break
                        if layer[1] % (trial[2] * trial[4]) > 0:
                            continue
                        held = trial[2] * trial[4] * tall * window(trial[0], wide, stride)
                        count = within_pe(
                            layer, trial, all_k, weights, sums, entries - held, found, count
                        )
    return count


@compiled
def within_pe(
    layer: Ints,
    trial: Ints,
    all_k: Ints,
    weights: float,
    sums: float,
    room: float,
    found: Ints,
    count: int,
) -> int:
    """Appends the mappings that share all but K in a PE and in the buffer; the new count.

    Args:
        layer: as in :func:`words_of`.
        trial: a mapping, of which the last two factors are set.
        all_k: divisors of K.
        weights: words of a PE's register file for weights.
        sums: for partial sums.
        room: words that are left of the buffer for outputs.
        found: see :func:`all_mappings`.
        count: mappings found so far.
    """
    spread = trial[1] * trial[3]
    pixels = float(layer[4]) * trial[0]
    for trial[5] in all_k:
        if trial[5] > sums or trial[5] * trial[4] * layer[2] > weights:
            break
        for trial[6] in all_k:
            tile = spread * trial[5] * trial[6]
            if tile > layer[0] or tile * pixels > room:
                break
            if layer[0] % tile > 0:
                continue
            if count < len(found):
                for i in range(FACTORS):
                    found[count, i] = trial[i]
            count += 1
    return count
