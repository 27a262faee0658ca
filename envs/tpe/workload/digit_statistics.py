"""Exact statistics of the digits into which an operand is encoded.

Everything follows from going through all values of an operand, so it is exact for any
distribution of the operand up to 16 bits. The averages drive the time of a bit-serial array: one
non-zero digit is one cycle (Wu and others, "Exploring the Performance Improvement of Tensor
Processing Engines through Transformation in the Bit-weight Dimension of MACs", HPCA 2025).

>>> mean_digits(OperandDistribution.uniform(8), "booth")
3.0
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture.encodings import digits
from archgym.envs.tpe.microarchitecture.pe import Encoding
from archgym.envs.tpe.workload.operands import OperandDistribution, operand_values

__all__ = [
    "digit_count_distribution",
    "digit_covariance",
    "digit_table",
    "digit_value_shares",
    "mean_digits",
    "nonzero_shares",
]

LARGEST_DIGIT = 2
"""Digits lie between minus and plus this number."""


@lru_cache(maxsize=64)
def digit_table(width: int, encoding: Encoding) -> NDArray[np.int8]:
    """The digits of every operand value, ascending, lowest bit weight first; read-only.

    Returns:
        Digits, shape (2**width, digits of an operand).

    Raises:
        UnknownNameError: for an unknown encoding.
        InvalidValueError: for a width whose values are too many to enumerate.
    """
    table = digits(operand_values(width), width, encoding)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=4096)
def digit_count_distribution(
    operands: OperandDistribution, encoding: Encoding
) -> NDArray[np.float64]:
    """Probability that an operand has 0, 1, ... non-zero digits, shape (digits + 1,)."""
    table, probability = _digits_that_occur(operands, encoding)
    counts = np.count_nonzero(table, axis=1)
    found = np.bincount(counts, probability, minlength=table.shape[1] + 1)
    shares = found.astype(np.float64)
    shares.setflags(write=False)
    return shares


def mean_digits(operands: OperandDistribution, encoding: Encoding) -> float:
    """Mean number of non-zero digits of an operand."""
    shares = digit_count_distribution(operands, encoding)
    return float(shares @ np.arange(len(shares)))


@lru_cache(maxsize=4096)
def nonzero_shares(operands: OperandDistribution, encoding: Encoding) -> NDArray[np.float64]:
    """Probability that each digit is not zero, lowest bit weight first, shape (digits,)."""
    table, probability = _digits_that_occur(operands, encoding)
    shares = probability @ (table != 0)
    shares.setflags(write=False)
    return np.asarray(shares)


@lru_cache(maxsize=4096)
def digit_covariance(operands: OperandDistribution, encoding: Encoding) -> NDArray[np.float64]:
    """Covariance of "this digit is not zero" between bit weights, shape (digits, digits)."""
    table, probability = _digits_that_occur(operands, encoding)
    nonzero = (table != 0).astype(np.float64)
    both = (nonzero * probability[:, None]).T @ nonzero
    shares = nonzero_shares(operands, encoding)
    covariance = both - np.outer(shares, shares)
    covariance.setflags(write=False)
    return np.asarray(covariance)


@lru_cache(maxsize=4096)
def digit_value_shares(operands: OperandDistribution, encoding: Encoding) -> NDArray[np.float64]:
    """Probability of each value of each digit.

    Returns:
        Shares of the values -2, -1, 0, 1, 2, shape (digits, 5), lowest bit weight first.
    """
    table, probability = _digits_that_occur(operands, encoding)
    values = np.arange(-LARGEST_DIGIT, LARGEST_DIGIT + 1)
    shares = np.stack([probability @ (table == value) for value in values], axis=1)
    shares.setflags(write=False)
    return np.asarray(shares)


@lru_cache(maxsize=1024)
def _digits_that_occur(
    operands: OperandDistribution, encoding: Encoding
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Digits of the values that occur, shape (values, digits), and the probability of each.

    An operand of 8 bits in an engine of 16 takes few of its values.
    """
    values, probability = operands.support
    return digits(values, operands.width, encoding), probability
