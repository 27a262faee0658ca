"""ZigZag's memories, and which loops of an order each of them holds, compiled.

From the inside: registers of each operand in every processing element, the buffer (one for all
operands, or one for each), and the memory. Each operand has its own list of those that hold it. For
a given order of loops, memories are filled from the inside. One takes as many of the innermost
loops that are left for each of its operands as fit, so that the fewest bits come from above.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import (
    H_BUFFER,
    H_BYPASS,
    H_DRAM,
    H_INPUT_PART,
    H_INPUT_RF,
    H_NOC,
    H_OUTPUT_PART,
    H_OUTPUT_RF,
    H_SUM,
    H_WEIGHT_PART,
    H_WEIGHT_RF,
    H_WORD,
)
from archgym.envs.accelerator.kernel.zigzag.loops import (
    DIMS,
    INPUT,
    OPERANDS,
    OUTPUT,
    RELEVANCE,
    REUSED,
    WEIGHT,
    tensor,
)

__all__ = [
    "DRAM",
    "LEVELS",
    "MEMORIES",
    "SHARED_BUFFER",
    "allocate",
    "hierarchy",
    "sums_above",
]

LEVELS = 3
"""Memories that hold an operand, at most."""
SHARED_BUFFER, DRAM = 6, 7
MEMORIES = 8
"""Registers of outputs, weights and inputs; their buffers; a buffer for all; the memory."""
MIN_PORT_BITS = 64.0
"""Smallest access of the buffer, as in ZigZag's ``tpu_like``."""


@compiled
def hierarchy(hw: Floats, levels: Ints, counts: Ints, bits: Floats, ports: Floats) -> None:
    """The memories of a design.

    Args:
        hw: as in ``vectors.HARDWARE``.
        levels: becomes the memories that hold each operand, innermost first, shape (`OPERANDS`,
            `LEVELS`).
        counts: becomes how many.
        bits: becomes the size of each memory, bits.
        ports: becomes what a port of each moves in a cycle, bits.
    """
    word, part = 8.0 * hw[H_WORD], 8.0 * hw[H_SUM]
    words = (hw[H_OUTPUT_RF], hw[H_WEIGHT_RF], hw[H_INPUT_RF])
    parts = (hw[H_OUTPUT_PART], hw[H_WEIGHT_PART], hw[H_INPUT_PART])
    split = hw[H_INPUT_PART] >= 0
    port = max(np.floor(8.0 * hw[H_NOC]), MIN_PORT_BITS)
    bits[:] = 0.0
    ports[:] = 1.0
    for operand in range(OPERANDS):
        width = part if operand == OUTPUT else word
        n = 0
        if words[operand] >= 1:
            bits[operand] = words[operand] * width
            ports[operand] = width
            levels[operand, n] = operand
            n += 1
        if operand != WEIGHT or hw[H_BYPASS] == 0:
            levels[operand, n] = OPERANDS + operand if split else SHARED_BUFFER
            n += 1
        levels[operand, n] = DRAM
        counts[operand] = n + 1
        bits[OPERANDS + operand] = max(0.0, 8.0 * parts[operand])
        ports[OPERANDS + operand] = port
    bits[SHARED_BUFFER] = 8.0 * hw[H_BUFFER]
    ports[SHARED_BUFFER] = port
    bits[DRAM] = np.inf
    ports[DRAM] = max(1.0, np.floor(8.0 * hw[H_DRAM]))


@compiled
def sums_above(dims: Ints, first: int, n: int, spread: Floats, inside: bool) -> bool:
    """Whether outputs are still partial sums, as loops over them follow.

    Args:
        dims: loop of each factor.
        first: the first factor that is left.
        n: number of factors.
        spread: what the array unrolls of every loop.
        inside: whether the array unrolls outside of here.
    """
    for i in range(first, n):
        if RELEVANCE[OUTPUT, dims[i]] == REUSED:
            return True
    if inside:
        for dim in range(DIMS):
            if RELEVANCE[OUTPUT, dim] == REUSED and spread[dim] > 1.0:
                return True
    return False


@compiled
def slices(
    operand: int,
    start: int,
    width: float,
    dims: Ints,
    factors: Ints,
    n: int,
    spread: Floats,
    sizes: Ints,
    stride: int,
    room: float,
    found: Floats,
) -> int:
    """Bits of an operand with none, one, two, ... more factors, as far as they fit; how many.

    Args:
        operand: which.
        start: factors that memories inside of this one hold.
        width: bits of an element.
        dims: loop of each factor.
        factors: as many as ``n``.
        n: number of factors.
        spread: what the array unrolls inside of this memory.
        sizes: of the loops.
        stride: of the layer.
        room: bits of the memory.
        found: becomes the sizes, bits.
    """
    cover = spread.copy()
    for i in range(start):
        cover[dims[i]] *= factors[i]
    count = 0
    for i in range(start, n + 1):
        size = tensor(operand, cover, sizes, stride) * width
        if size > room:
            break
        found[count] = size
        count += 1
        if i < n:
            cover[dims[i]] *= factors[i]
    return count


@compiled
def level_in(operand: int, memory: int, levels: Ints, counts: Ints) -> int:
    """Which of an operand's memories a memory is, -1 if none."""
    for level in range(counts[operand]):
        if levels[operand, level] == memory:
            return level
    return -1


@compiled
def fewest(size: Floats, moved: Floats, options: Ints, room: float, taken: Ints) -> None:
    """The choice for each operand that fits and with which the fewest bits come from above.

    Args:
        size: bits of each choice, shape (`OPERANDS`, n).
        moved: bits that come from above.
        options: number of choices.
        room: bits of the memory.
        taken: becomes the choices; of equal ones those with more inputs, then weights.
    """
    best = np.inf
    for i in range(options[INPUT]):
        for w in range(options[WEIGHT]):
            for o in range(options[OUTPUT]):
                if size[INPUT, i] + size[WEIGHT, w] + size[OUTPUT, o] > room:
                    break
                total = moved[INPUT, i] + moved[WEIGHT, w] + moved[OUTPUT, o]
                if total <= best:
                    best = total
                    taken[INPUT], taken[WEIGHT], taken[OUTPUT] = i, w, o


@compiled
def allocate(
    dims: Ints,
    factors: Ints,
    n: int,
    spread: Floats,
    sizes: Ints,
    stride: int,
    widths: Floats,
    levels: Ints,
    counts: Ints,
    bits: Floats,
    held: Ints,
) -> bool:
    """How many of the innermost factors every memory holds; whether they fit.

    Args:
        dims: loop of each factor, innermost first.
        factors: as many as ``n``.
        n: number of factors.
        spread: what the array unrolls of every loop.
        sizes: of the loops.
        stride: of the layer.
        widths: bits of a finished output, a weight, an input and a partial sum.
        levels: from :func:`hierarchy`, and so are ``counts`` and ``bits``.
        counts: memories of each operand.
        bits: their sizes.
        held: becomes how many factors each memory of an operand holds with those inside of it,
            shape (`OPERANDS`, `LEVELS`).
    """
    one = np.ones(DIMS)
    size = np.empty((OPERANDS, n + 1))
    moved = np.empty((OPERANDS, n + 1))
    options, taken = np.empty(OPERANDS, np.int64), np.zeros(OPERANDS, np.int64)
    start = np.empty(OPERANDS, np.int64)
    for memory in range(DRAM):
        inner = memory < OPERANDS
        for operand in range(OPERANDS):
            options[operand] = 1
            size[operand, 0] = 0.0
            moved[operand, 0] = 0.0
            level = level_in(operand, memory, levels, counts)
            if level < 0:
                continue
            start[operand] = held[operand, level - 1] if level > 0 else 0
            width = widths[operand]
            if operand == OUTPUT and sums_above(dims, start[operand], n, spread, inner):
                width = widths[OPERANDS]
            options[operand] = slices(
                operand,
                start[operand],
                width,
                dims,
                factors,
                n,
                one if inner else spread,
                sizes,
                stride,
                bits[memory],
                size[operand],
            )
            if options[operand] == 0:
                return False
            for i in range(options[operand]):
                moved[operand, i] = size[operand, i]
                for left in range(start[operand] + i, n):
                    moved[operand, i] *= factors[left]
        if size[INPUT, 0] + size[WEIGHT, 0] + size[OUTPUT, 0] > bits[memory]:
            return False
        fewest(size, moved, options, bits[memory], taken)
        for operand in range(OPERANDS):
            level = level_in(operand, memory, levels, counts)
            if level >= 0:
                held[operand, level] = start[operand] + taken[operand]
    for operand in range(OPERANDS):
        held[operand, counts[operand] - 1] = n
    return True
