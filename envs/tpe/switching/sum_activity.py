"""Switching activity of compressor trees, products and accumulators, many PEs at once.

What stands behind the partial products, of which :mod:`archgym.envs.tpe.switching.activity` says
how often they switch. The inputs of a cell are taken as independent of one another; accumulated
words, which add up many products, have random low bits, and in a carry-propagate accumulator hardly
changing high ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SumActivity", "sum_activity"]

FloatArray = NDArray[np.float64]

_RANDOM = 0.5
"""Switching of a signal that is one half of the time, independently from cycle to cycle."""


class SumActivity(NamedTuple):
    """Mean switching in a working cycle, shape (n,) each.

    Attributes:
        tree_sum: the sum of a full or half adder.
        tree_carry: the carry of a full adder.
        product: a bit of the product.
        accumulator: a bit of an accumulated word.
    """

    tree_sum: FloatArray
    tree_carry: FloatArray
    product: FloatArray
    accumulator: FloatArray


def sum_activity(
    select: FloatArray,
    idle: FloatArray,
    step: FloatArray,
    *,
    pairs: NDArray[np.int64],
    separate: NDArray[np.bool_],
    carry_save: NDArray[np.bool_],
    width: NDArray[np.int64],
    accumulation_length: NDArray[np.int64],
) -> SumActivity:
    """Switching of compressor trees, products and accumulators, every array of shape (n,).

    Args:
        select: switching of a partial product bit.
        idle: probability that the product of a pair of operands is zero.
        step: mean magnitude of what one pair adds in a cycle.
        pairs: operand pairs that a PE works on side by side.
        separate: whether the product is added up by itself first.
        carry_save: whether sum and carry are accumulated.
        width: bits of an accumulated word.
        accumulation_length: products that an accumulator collects.
    """
    one = (1.0 - np.sqrt(np.maximum(0.0, 1.0 - 2.0 * select))) / 2.0
    one = np.where(separate, one, (one + _RANDOM) / 2.0)  # accumulated words are among the inputs
    odd = (1.0 - (1.0 - 2.0 * one) ** 3) / 2.0
    majority = 3.0 * one**2 - 2.0 * one**3
    sign = (1.0 - idle**pairs) / 2.0
    # Sum and carry have no sign: their upper bits settle.
    turns = 2.0 / (math.pi * np.sqrt(np.maximum(1.0, accumulation_length / pairs)))
    turns = np.where(carry_save, 0.0, turns)
    moves = select != 0.0
    return SumActivity(
        np.where(moves, 2.0 * odd * (1.0 - odd), 0.0),
        np.where(moves, 2.0 * majority * (1.0 - majority), 0.0),
        np.where(moves, 2.0 * sign * (1.0 - sign), 0.0),
        np.where(moves, _crossings(step * np.sqrt(pairs), turns, width) / width, 0.0),
    )


def _crossings(step: FloatArray, turns: FloatArray, width: NDArray[np.int64]) -> FloatArray:
    """How many bits of growing sums change in a cycle, shape (n,) like every argument.

    A bit changes when the sum crosses a multiple of its weight, which a step of x does with
    probability abs(x) / weight, one half at most; above the range of the sum all bits change with
    its sign, as often as a random walk of that length crosses zero.

    Args:
        step: mean magnitude of what a cycle adds.
        turns: how often the sign changes.
        width: bits of the sum.
    """
    step = np.maximum(step, 1e-300)
    with np.errstate(divide="ignore"):
        above = np.ceil(np.log2(step) - np.log2(turns))  # bits crossed more often than the sign
    above = np.clip(above, 0, width)
    random = np.clip(np.ceil(np.log2(step / _RANDOM)), 0, above)  # bits crossed in every step
    between = 2.0 * step * (np.exp2(-random) - np.exp2(-above))  # a geometric series
    found: FloatArray = _RANDOM * random + between + turns * (width - above)
    return found
