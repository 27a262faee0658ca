"""The best of ZigZag's mappings: every order of the factors of the loops, compiled.

The time of a mapping is ZigZag's. Its energy is that of every other mapping: by the words that it
moves and what a word costs in the design's technology.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import (
    H_DRAINS,
    H_ORDERS,
    H_SUM,
    H_WORD,
    SPATIAL,
    settle,
    whole_batch,
)
from archgym.envs.accelerator.kernel.results import better, products, score
from archgym.envs.accelerator.kernel.vectors import FOUND
from archgym.envs.accelerator.kernel.zigzag.loops import (
    DIMS,
    FX,
    FY,
    INPUT,
    MAX_LOOPS,
    OPERANDS,
    OUTPUT,
    WEIGHT,
    C,
    layer_sizes,
    next_order,
    split_loops,
    tensor,
    unroll,
)
from archgym.envs.accelerator.kernel.zigzag.memories import LEVELS, MEMORIES, allocate, hierarchy
from archgym.envs.accelerator.kernel.zigzag.stalls import latency
from archgym.envs.accelerator.kernel.zigzag.transfers import (
    DIRECTIONS,
    TRANSFER,
    transfers,
    turned_inside,
)

__all__ = ["search_orders"]


@compiled
def words_above(
    operand: int,
    held: int,
    dims: Ints,
    factors: Ints,
    n: int,
    mean: Floats,
    sizes: Ints,
    stride: int,
) -> float:
    """Words of an operand that come to memories that together hold ``held`` factors."""
    cover = mean.copy()
    held = turned_inside(operand, held, dims, n)
    for i in range(held):
        cover[dims[i]] *= factors[i]
    words = tensor(operand, cover, sizes, stride)
    for i in range(held, n):
        words *= factors[i]
    return float(words)


@compiled
def search_orders(given: Ints, hw: Floats, objective: int, found: Floats) -> bool:
    """The best mapping of one layer, into ``found``; returns whether there is any.

    Args:
        given: a row of ``LayerTable.bounds``.
        hw: as in ``vectors.HARDWARE``.
        objective: as in ``vectors.OBJECTIVES``.
        found: as in ``vectors.FOUND``; the mapping itself is left out.
    """
    sizes, turns = np.empty(DIMS, np.int64), np.empty(DIMS, np.int64)
    mean, whole = np.empty(DIMS), np.empty(DIMS)
    dims, factors = np.empty(MAX_LOOPS, np.int64), np.empty(MAX_LOOPS, np.int64)
    levels, counts = np.zeros((OPERANDS, LEVELS), np.int64), np.zeros(OPERANDS, np.int64)
    bits, ports = np.empty(MEMORIES), np.empty(MEMORIES)
    held = np.zeros((OPERANDS, LEVELS), np.int64)
    moved = np.empty((OPERANDS, LEVELS, DIRECTIONS, TRANSFER))
    first = np.empty(OPERANDS)
    dram, register = np.empty(4), np.empty(4)
    trial = np.zeros(len(FOUND))
    layer_sizes(given, sizes)
    stride = int(given[6])
    passed = unroll(sizes, hw, mean, whole, turns)
    n = split_loops(turns, int(hw[H_ORDERS]), dims, factors)
    hierarchy(hw, levels, counts, bits, ports)
    widths = np.array([hw[H_WORD], hw[H_WORD], hw[H_WORD], hw[H_SUM]]) * 8.0
    layer = np.empty(9, np.int64)
    whole_batch(given, layer)
    macs = products(layer)
    outputs = float(layer[7]) * layer[0] * layer[4] * layer[5]
    reduced = mean[C] * mean[FY] * mean[FX]
    total = 1.0
    for i in range(n):
        total *= factors[i]
    drained = float(passed) if hw[H_DRAINS] > 0 else 0.0
    best = (np.inf, np.inf)
    more = True
    while more:
        if allocate(dims, factors, n, mean, sizes, stride, widths, levels, counts, bits, held):
            transfers(
                dims,
                factors,
                n,
                mean,
                whole,
                sizes,
                stride,
                widths,
                levels,
                counts,
                bits,
                ports,
                held,
                moved,
                first,
            )
            cycles = latency(total, levels, counts, ports, moved, first) + drained
            for place, operand in enumerate((INPUT, WEIGHT, OUTPUT)):
                top = held[operand, counts[operand] - 2] if counts[operand] > 1 else 0
                inside = held[operand, 0] if levels[operand, 0] < OPERANDS else 0
                dram[place] = words_above(operand, top, dims, factors, n, mean, sizes, stride)
                register[place] = words_above(
                    operand, inside, dims, factors, n, mean, sizes, stride
                )
            dram[3] = max(0.0, dram[2] - outputs)
            register[3] = max(0.0, register[2] - outputs)
            settle(layer, total, macs, reduced, 0.0, dram, register, hw, trial)
            trial[0] = np.ceil(cycles)
            now = score(objective, trial[0], trial[6])
            if better(now, best):
                best = now
                for i in range(SPATIAL):
                    found[i] = trial[i]
        more = next_order(dims, factors, n)
    return best[0] < np.inf
