"""The loops that ZigZag orders, and the size of an operand under some of them, compiled.

Rows and columns of the array unroll one loop each. What is left of every loop is split into its
prime factors, which are merged until there are no more than a limit.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Floats, Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.loopnest import H_COLUMNS, H_DATAFLOW, H_ROWS

__all__ = [
    "C",
    "DIMS",
    "FX",
    "FY",
    "INPUT",
    "MAX_LOOPS",
    "OPERANDS",
    "OUTPUT",
    "RELEVANCE",
    "RELEVANT",
    "REUSED",
    "WEIGHT",
    "layer_sizes",
    "next_order",
    "split_loops",
    "tensor",
    "unroll",
]

DIMS = 8
"""Loops of a layer: batch, groups, K, C, output rows and columns, filter rows and columns."""
B, G, K, C, OY, OX, FY, FX = range(DIMS)
OPERANDS = 3
OUTPUT, WEIGHT, INPUT = range(OPERANDS)
MAX_LOOPS = 16
RELEVANT, REUSED, PARTLY = 1, 0, 2
RELEVANCE = np.array(
    [
        [1, 1, 1, 0, 1, 1, 0, 0],
        [0, 1, 1, 1, 0, 0, 1, 1],
        [1, 1, 0, 1, 2, 2, 2, 2],
    ],
    dtype=np.int64,
)
"""Whether an operand depends on a loop, is used again by it, or is so in part (a window)."""
UNROLLED = np.array([[K, C], [OY, OX], [FY, OY], [K, OX]], dtype=np.int64)
"""Loops that rows and columns unroll, by code of the dataflow."""
MAX_FACTORS = 64


@compiled
def layer_sizes(given: Ints, sizes: Ints) -> None:
    """Sizes of the loops of a layer, from a row of ``LayerTable.bounds``."""
    sizes[B] = given[8]
    sizes[G] = given[7]
    sizes[K] = given[0]
    sizes[C] = given[1]
    sizes[OY] = given[4]
    sizes[OX] = given[5]
    sizes[FY] = given[2]
    sizes[FX] = given[3]


@compiled
def unroll(sizes: Ints, hw: Floats, mean: Floats, whole: Floats, turns: Ints) -> int:
    """What the array unrolls of every loop.

    Where a loop does not divide, all turns take equally much, which may be a fraction.

    Args:
        sizes: of the loops.
        hw: as in ``vectors.HARDWARE``.
        mean: becomes how much of a loop a turn takes.
        whole: becomes that, rounded down, with which the time is computed.
        turns: becomes turns of the loops.

    Returns:
        Rows and columns that the last results pass on their way out.
    """
    passed = 0
    for dim in range(DIMS):
        mean[dim] = 1.0
        whole[dim] = 1.0
        turns[dim] = sizes[dim]
    depthwise = False
    for axis in range(2):
        dim = UNROLLED[int(hw[H_DATAFLOW]), axis]
        # Groups take the place of channels of which each group has one.
        if (dim in (K, C)) and sizes[dim] == 1 and sizes[G] > 1 and not depthwise:
            dim = G
            depthwise = True
        side = min(sizes[dim], int(hw[H_ROWS] if axis == 0 else hw[H_COLUMNS]))
        passed += side - 1
        rest = -(-sizes[dim] // side)
        mean[dim] = sizes[dim] / rest
        whole[dim] = np.floor(mean[dim])
        turns[dim] = int(np.ceil(sizes[dim] / mean[dim]))
    return passed


@compiled
def split_loops(turns: Ints, limit: int, dims: Ints, factors: Ints) -> int:
    """Splits loops into at most ``limit`` factors, or one a loop; returns how many there are.

    While there are too many, the two smallest factors of the loop that has most are merged.

    Args:
        turns: of the loops.
        limit: of the number of factors.
        dims: becomes the loop of each factor, in an order that :func:`next_order` starts with.
        factors: becomes the factors.
    """
    found = np.zeros((DIMS, MAX_FACTORS), np.int64)
    counts = np.zeros(DIMS, np.int64)
    for dim in range(DIMS):
        left = turns[dim]
        divisor = 2
        while left > 1:
            if divisor * divisor > left:
                divisor = left
            if left % divisor == 0:
                found[dim, counts[dim]] = divisor
                counts[dim] += 1
                left //= divisor
            else:
                divisor += 1
    most = max(limit, int(np.count_nonzero(counts)))
    while counts.sum() > most:
        dim = int(np.argmax(counts))
        merged = found[dim, 0] * found[dim, 1]
        place = 0
        while place + 2 < counts[dim] and found[dim, place + 2] < merged:
            found[dim, place] = found[dim, place + 2]
            place += 1
        found[dim, place] = merged
        for i in range(place + 1, counts[dim] - 1):
            found[dim, i] = found[dim, i + 1]
        counts[dim] -= 1
    n = 0
    for dim in range(DIMS):
        for i in range(counts[dim]):
            dims[n] = dim
            factors[n] = found[dim, i]
            n += 1
    return n


@compiled
def next_order(dims: Ints, factors: Ints, n: int) -> bool:
    """Turns an order of factors into the next one; false after the last. Equal ones are one."""
    i = n - 2
    while i >= 0 and not before(dims, factors, i, i + 1):
        i -= 1
    if i < 0:
        return False
    j = n - 1
    while not before(dims, factors, i, j):
        j -= 1
    swap(dims, factors, i, j)
    low, high = i + 1, n - 1
    while low < high:
        swap(dims, factors, low, high)
        low += 1
        high -= 1
    return True


@compiled
def before(dims: Ints, factors: Ints, i: int, j: int) -> bool:
    """Whether factor ``i`` sorts before factor ``j``."""
    return bool(dims[i] < dims[j] or (dims[i] == dims[j] and factors[i] < factors[j]))


@compiled
def swap(dims: Ints, factors: Ints, i: int, j: int) -> None:
    """Exchanges two factors."""
    dims[i], dims[j] = dims[j], dims[i]
    factors[i], factors[j] = factors[j], factors[i]


@compiled
def side(outputs: float, taps: float, stride: int) -> float:
    """Inputs along one axis that outputs read through a window, each counted once."""
    a, b = int(outputs), int(taps)
    return float(a * b - max(0, b - stride) * (a - 1))


@compiled
def tensor(operand: int, cover: Floats, sizes: Ints, stride: int) -> float:
    """Elements of an operand that some iterations of the loops touch.

    Args:
        operand: which.
        cover: iterations of every loop, shape (`DIMS`,).
        sizes: of the loops.
        stride: of the layer.
    """
    if operand == OUTPUT:
        return float(cover[B] * cover[G] * cover[K] * cover[OY] * cover[OX])
    if operand == WEIGHT:
        return float(cover[G] * cover[K] * cover[C] * cover[FY] * cover[FX])
    rows = min(side(cover[OY], cover[FY], stride), side(sizes[OY], sizes[FY], stride))
    columns = min(side(cover[OX], cover[FX], stride), side(sizes[OX], sizes[FX], stride))
    return float(cover[B] * cover[G] * cover[C] * rows * columns)
