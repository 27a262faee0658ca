"""Switching activity of a processing element, from the distribution of its operands.

Successive operands are independent, so that a signal that is one with probability p switches in a
share 2 p (1 - p) of the cycles; where an operand stays for several cycles, p is conditional on it.
For operand, digit and partial product bits the probabilities come from going through all values
of the operands and are exact. Inside the compressor tree and the adders the inputs of a cell are
taken as independent of one another; accumulated words, which add up many products, have random low
bits, and in a carry-propagate accumulator hardly changing high ones.

Signals settle once a cycle here: the hazards of unequal path delays, which are many in deep trees
and carry chains, are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture.pe import PE, BitWeights, Encoding
from archgym.envs.tpe.switching.sum_activity import sum_activity
from archgym.envs.tpe.workload.digit_statistics import digit_value_shares, mean_digits
from archgym.envs.tpe.workload.operands import OperandDistribution

__all__ = [
    "Activity",
    "OperandActivity",
    "activity",
    "operand_activity",
    "word_toggles",
]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Activity:
    """Mean switching in a cycle in which the PE works, of one bit or one output of a cell.

    Attributes:
        operand_a: a bit of operand A.
        operand_b: a bit of operand B.
        digit: a line of a digit (negate, two, one).
        select: a partial product bit.
        tree_sum: the sum of a full or half adder.
        tree_carry: the carry of a full adder.
        product: a bit of the product.
        accumulator: a bit of an accumulated word.
    """

    operand_a: float
    operand_b: float
    digit: float
    select: float
    tree_sum: float
    tree_carry: float
    product: float
    accumulator: float


class OperandActivity(NamedTuple):
    """Mean switching in front of the compressor tree, which few fields of a PE decide.

    Attributes:
        operand_a, operand_b, digit, select: as in :class:`Activity`.
        idle: probability that the product of a pair of operands is zero.
        step: mean magnitude of what one pair adds in a cycle, before the sum over pairs.
    """

    operand_a: float
    operand_b: float
    digit: float
    select: float
    idle: float
    step: float


def activity(
    pe: PE,
    a: OperandDistribution,
    b: OperandDistribution,
    *,
    stationary: bool = False,
    accumulation_length: int = 256,
) -> Activity:
    """Switching in a processing element.

    Args:
        pe: the processing element.
        a: operand A, at most as wide as the PE's.
        b: operand B, likewise.
        stationary: whether B stays while operands A stream past.
        accumulation_length: products that an accumulator collects.

    Raises:
        InvalidValueError: if an operand does not fit the PE.
    """
    front = operand_activity(pe, a, b, stationary=stationary)
    back = sum_activity(
        np.array([front.select]),
        np.array([front.idle]),
        np.array([front.step]),
        pairs=np.array([pe.operand_pairs]),
        separate=np.array([pe.accumulator == "separate"]),
        carry_save=np.array([pe.accumulator == "carry_save"]),
        width=np.array([pe.accumulator_width]),
        accumulation_length=np.array([accumulation_length]),
    )
    return Activity(*front[:4], *(float(column[0]) for column in back))


def operand_activity(
    pe: PE, a: OperandDistribution, b: OperandDistribution, *, stationary: bool = False
) -> OperandActivity:
    """Switching of operands, digits and partial products.

    It depends only on the PE's operand widths, encoding, bit weights and whether
    the shift has left it.

    Args:
        pe: the processing element.
        a: operand A, at most as wide as the PE's.
        b: operand B, likewise.
        stationary: whether B stays while operands A stream past.

    Raises:
        InvalidValueError: if an operand does not fit the PE.
    """
    hoisted = pe.temporal and pe.shift_hoisted
    a, b = a.extended(pe.width_a), b.extended(pe.width_b)
    front = _front(a, b, pe.encoding, pe.bit_weights, hoisted, stationary)
    if pe.shift_hoisted:
        step = _mean_digit(a, pe.encoding, pe.bit_weights == "temporal_sparse")
    else:
        step = a.mean_magnitude
    idle = 1.0 - (1.0 - a.zero_share) * (1.0 - b.zero_share)
    return OperandActivity(*front, idle, step * b.mean_magnitude)


@lru_cache(maxsize=4096)
def word_toggles(operands: OperandDistribution) -> float:
    """Mean share of a word's bits that switch from one operand to the next."""
    values, shares = operands.support
    ones = shares @ ((values[:, None] >> np.arange(operands.width)) & 1)
    return float(np.mean(2.0 * ones * (1.0 - ones)))


class _Front(NamedTuple):
    operand_a: float
    operand_b: float
    digit: float
    select: float


@lru_cache(maxsize=16384)
def _front(
    a: OperandDistribution,
    b: OperandDistribution,
    encoding: Encoding,
    bit_weights: BitWeights,
    hoisted: bool,
    stationary: bool,
) -> _Front:
    """Operands, digits and partial products."""
    shares = digit_value_shares(a, encoding)
    stay = 1.0  # cycles for which an operand stays
    if bit_weights == "temporal_dense":
        # One digit after the other, or one bit weight after the other.
        stay = 1.0 if hoisted else float(len(shares))
        shares = shares.mean(axis=0, keepdims=True)
    elif bit_weights == "temporal_sparse":
        stay = 1.0 if hoisted else max(1.0, mean_digits(a, encoding))
        shares = shares.mean(axis=0, keepdims=True)
        shares = shares * np.array([1.0, 1.0, 0.0, 1.0, 1.0])
        shares = shares / max(float(shares.sum()), 1e-300)
    moves = 0.0 if stationary else 1.0 / stay
    wide = encoding in ("booth", "ent", "csd")
    select = sum(
        share * _select_toggles(shares, b, wide=wide, held=held)
        for held, share in ((False, moves), (True, 1.0 - moves))
        if share
    )
    lines = np.stack(
        [
            shares[:, :2].sum(axis=1),
            shares[:, [0, 4]].sum(axis=1),
            shares[:, [1, 3]].sum(axis=1),
        ]
    )
    return _Front(
        word_toggles(a) / stay,
        word_toggles(b) * moves,
        float(np.mean(2.0 * lines * (1.0 - lines))),
        select,
    )


def _select_toggles(shares: FloatArray, b: OperandDistribution, *, wide: bool, held: bool) -> float:
    """Mean switching of a partial product bit.

    Bit i is bit i of B for a digit of magnitude 1 and bit i - 1 for magnitude 2, inverted for a
    negative digit; a digit 0 gives zeros.

    Args:
        shares: probability of the digit values -2 to 2, shape (digits, 5).
        b: operand B.
        wide: whether there are digits of magnitude 2, and one more bit for them.
        held: whether B stays from one digit to the next.
    """
    joint = _bit_pairs(b)[..., : b.width + wide]
    x = np.array([[0.0, 0.0], [1.0, 1.0]])[..., None]
    y = np.array([[0.0, 1.0], [0.0, 1.0]])[..., None]
    minus_two, minus_one, _, one, two = shares.T[:, :, None, None, None]
    ones = minus_two * (1 - y) + minus_one * (1 - x) + one * x + two * y
    toggles = 2.0 * ones * (1.0 - ones)
    if not held:
        mean = (ones * joint).sum(axis=(1, 2))
        return float(np.mean(2.0 * mean * (1.0 - mean)))
    return float(np.mean((toggles * joint).sum(axis=(1, 2))))


@lru_cache(maxsize=4096)
def _bit_pairs(b: OperandDistribution) -> FloatArray:
    """Joint probability of a bit and the one below it, shape (2, 2, width + 1).

    The last pair is two copies of the sign; below the lowest bit is a zero.
    """
    values, shares = b.support
    bits = ((values[:, None] >> np.arange(b.width)) & 1).astype(np.float64)
    ones = shares @ bits
    here = np.append(ones, ones[-1])
    below = np.append(0.0, ones)
    both = np.append(0.0, shares @ (bits[:, 1:] * bits[:, :-1]))
    both = np.append(both, ones[-1])
    return np.array([[1.0 - here - below + both, below - both], [here - both, both]])


@lru_cache(maxsize=4096)
def _mean_digit(a: OperandDistribution, encoding: Encoding, sparse: bool) -> float:
    """Mean magnitude of a digit, of the non-zero ones if zeros are skipped."""
    shares = digit_value_shares(a, encoding)
    size = float((shares @ np.abs(np.arange(-2, 3))).mean())
    return size / max(1.0 - float(shares[:, 2].mean()), 1e-300) if sparse else size
