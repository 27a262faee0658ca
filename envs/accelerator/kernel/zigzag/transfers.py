"""What every memory moves in ZigZag's count, how often, and how long it may take, compiled.

A memory that holds some of the innermost loops passes its data on once for each turn of the loops
outside of them. Loops that follow at once and use the data again do not move it, so they belong to
the memory below. Where the data take at most half of a memory, or the share of it that is free, new
data may come all the time; else only while the last loop that uses the old data again turns for the
last time.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.zigzag.loops import (
    DIMS,
    OPERANDS,
    OUTPUT,
    RELEVANCE,
    RELEVANT,
    REUSED,
    tensor,
)
from archgym.envs.accelerator.kernel.zigzag.memories import LEVELS, MEMORIES, sums_above

__all__ = [
    "ALLOWED",
    "AVERAGE",
    "COUNT",
    "DIRECTIONS",
    "FROM_ABOVE",
    "FROM_BELOW",
    "PERIOD",
    "REAL",
    "TO_ABOVE",
    "TO_BELOW",
    "TRANSFER",
    "transfers",
    "turned_inside",
]

DIRECTIONS = 4
TO_BELOW, FROM_BELOW, TO_ABOVE, FROM_ABOVE = range(DIRECTIONS)
TRANSFER = 5
REAL, ALLOWED, PERIOD, COUNT, AVERAGE = range(TRANSFER)
"""Of one transfer: cycles that it takes, that it may take, and from one to the next; how many there
are; bits a cycle on average."""
CONTENT = 6
ELEMENTS, TURNS, REPEATS, END, SHARE, FREE = range(CONTENT)
"""Of what one memory holds of an operand: elements; cycles that they last; turns of the outermost
loops that use them again; factors inside; share of the memory; whether new ones come any time."""


@compiled
def turned_inside(operand: int, first: int, dims: Ints, n: int) -> int:
    """The first factor from ``first`` on that does not use the same data again."""
    while first < n and RELEVANCE[operand, dims[first]] == REUSED:
        first += 1
    return first


@compiled
def top_loops(operand: int, low: int, high: int, kind: int, dims: Ints, factors: Ints) -> float:
    """Product of the outermost factors from ``low`` to ``high`` that are all of one kind."""
    turns = 1.0
    for i in range(high - 1, low - 1, -1):
        if RELEVANCE[operand, dims[i]] != kind:
            break
        turns *= factors[i]
    return turns


@compiled
def width_of(
    operand: int, first: int, inside: bool, dims: Ints, n: int, spread: Floats, widths: Floats
) -> float:
    """Bits of an element, with loops from ``first`` on left; see ``memories.sums_above``."""
    if operand == OUTPUT and sums_above(dims, first, n, spread, inside):
        return float(widths[OPERANDS])
    return float(widths[operand])


@compiled
def may_come_any_time(levels: Ints, counts: Ints, holds: Floats) -> None:
    """Sets `FREE` of every memory of an operand: whether new data may come all the time.

    Args:
        levels: from ``memories.hierarchy``.
        counts: memories of each operand.
        holds: from :func:`contents`, shape (`OPERANDS`, `LEVELS` + 1, `CONTENT`).
    """
    taken = np.zeros(MEMORIES)
    for operand in range(OPERANDS):
        for level in range(counts[operand]):
            taken[levels[operand, level]] += holds[operand, level + 1, SHARE]
    for operand in range(OPERANDS):  # outputs take free room first, then weights
        for level in range(counts[operand]):
            memory = levels[operand, level]
            hold = holds[operand, level + 1]
            if taken[memory] <= 0.5:
                hold[FREE] = 1.0
            elif hold[SHARE] <= 1.0 - taken[memory]:
                hold[FREE] = 1.0
                taken[memory] += hold[SHARE]


@compiled
def contents(
    operand: int,
    dims: Ints,
    factors: Ints,
    n: int,
    mean: Floats,
    whole: Floats,
    sizes: Ints,
    stride: int,
    widths: Floats,
    levels: Ints,
    count: int,
    bits: Floats,
    held: Ints,
    found: Floats,
) -> None:
    """What the memories of an operand hold, into ``found``, shape (`LEVELS` + 1, `CONTENT`).

    The first row is the array itself. The other arguments are those of :func:`transfers`.
    """
    cover, moved = np.ones(DIMS), np.ones(DIMS)
    found[0, ELEMENTS] = 1.0
    found[0, TURNS] = 1.0
    found[0, REPEATS] = 1.0
    found[0, END] = 0.0
    if operand != OUTPUT:
        for i in range(turned_inside(operand, 0, dims, n)):
            found[0, TURNS] *= factors[i]
    start = 0
    turns = 1.0
    for level in range(count):
        if level == unrolled_at(levels):
            cover *= mean
            moved *= whole
        end = turned_inside(operand, held[level], dims, n)
        for i in range(start, end):
            cover[dims[i]] *= factors[i]
            moved[dims[i]] *= factors[i]
            turns *= factors[i]
        row = found[level + 1]
        row[ELEMENTS] = tensor(operand, moved, sizes, stride)
        row[TURNS] = turns
        row[REPEATS] = top_loops(operand, start, end, REUSED, dims, factors)
        row[END] = end
        size = np.rint(tensor(operand, cover, sizes, stride))
        size *= width_of(operand, end, False, dims, n, mean, widths)
        size = np.floor(size / top_loops(operand, start, end, RELEVANT, dims, factors))
        row[SHARE] = size / bits[levels[level]]
        start = end


@compiled
def unrolled_at(levels: Ints) -> int:
    """Which of the memories of an operand is the first that is not in a processing element."""
    return 1 if levels[0] < OPERANDS else 0


@compiled
def moves(operand: int, direction: int, partial: bool) -> bool:
    """Whether data move: inputs and weights come from above, outputs go there.

    Partial sums do both.
    """
    down = direction in (TO_BELOW, FROM_ABOVE)
    return bool(partial if operand == OUTPUT and down else down != (operand == OUTPUT))


@compiled
def transfers(
    dims: Ints,
    factors: Ints,
    n: int,
    mean: Floats,
    whole: Floats,
    sizes: Ints,
    stride: int,
    widths: Floats,
    levels: Ints,
    counts: Ints,
    bits: Floats,
    ports: Floats,
    held: Ints,
    found: Floats,
    first: Floats,
) -> None:
    """The transfers of all memories.

    Args:
        dims: loop of each factor, innermost first.
        factors: as many as ``n``.
        n: number of factors.
        mean: what the array unrolls of every loop, as it fills memories.
        whole: as it moves.
        sizes: of the loops.
        stride: of the layer.
        widths: as in ``memories.allocate``.
        levels: from ``memories.hierarchy``, and so are ``counts``, ``bits`` and ``ports``.
        counts: memories of each operand.
        bits: their sizes.
        ports: what their ports move in a cycle, bits.
        held: from ``memories.allocate``.
        found: becomes the transfers, shape (`OPERANDS`, `LEVELS`, `DIRECTIONS`, `TRANSFER`).
        first: becomes the bits of each operand in its innermost memory.
    """
    holds = np.zeros((OPERANDS, LEVELS + 1, CONTENT))
    for operand in range(OPERANDS):
        contents(
            operand,
            dims,
            factors,
            n,
            mean,
            whole,
            sizes,
            stride,
            widths,
            levels[operand],
            counts[operand],
            bits,
            held[operand],
            holds[operand],
        )
    may_come_any_time(levels, counts, holds)
    found[:] = 0.0
    for operand in range(OPERANDS):
        hold = holds[operand]
        total = hold[counts[operand], TURNS]
        inner = unrolled_at(levels[operand])
        width = width_of(operand, int(hold[1, END]), False, dims, n, whole, widths)
        first[operand] = hold[1, ELEMENTS] * width
        for level in range(counts[operand]):
            port = ports[levels[operand, level]]
            for direction in range(DIRECTIONS):
                above = direction >= TO_ABOVE
                if above and level == counts[operand] - 1:
                    continue
                place = level + 1 if above else level
                inside = place == 0 and inner == 1
                end = int(hold[place, END])
                partial = operand == OUTPUT and sums_above(dims, end, n, whole, inside)
                if not moves(operand, direction, partial):
                    continue
                amount = hold[place, ELEMENTS] * (widths[OPERANDS] if partial else widths[operand])
                if not above and level == inner:
                    amount *= np.rint(tensor(operand, whole, sizes, stride))
                period = hold[place, TURNS]
                record = found[operand, level, direction]
                record[REAL] = np.ceil(amount / port)
                record[ALLOWED] = period
                if hold[place, FREE] == 0:
                    record[ALLOWED] = np.floor(period / hold[place, REPEATS])
                record[PERIOD] = period
                record[COUNT] = np.floor(total / period)
                record[AVERAGE] = np.floor(amount / period)
