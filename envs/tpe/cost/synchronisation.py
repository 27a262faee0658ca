"""Cycles that streams of non-zero digits take when they must wait for one another.

A bit-serial array spends a cycle on every non-zero digit of operand A, so the rows of the array,
each with different operands, finish at different times and meet only when the products of one
tile are complete. The tile takes as long as its slowest stream. Wu and others (HPCA 2025) measure
this loss; here it is computed: the number of non-zero digits of independent operands has the
distribution of one operand convolved with itself, and the slowest of independent streams the
product of their distribution functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture.pe import Encoding
from archgym.envs.tpe.workload.digit_statistics import (
    digit_count_distribution,
    digit_covariance,
    mean_digits,
    nonzero_shares,
)
from archgym.envs.tpe.workload.operands import OperandDistribution
from archgym.errors import InvalidValueError

__all__ = ["busy_ratio", "tile_cycles"]

FloatArray = NDArray[np.float64]


def tile_cycles(
    operands: OperandDistribution, encoding: Encoding, length: int, streams: int, lanes: int = 1
) -> float:
    """Mean cycles until every stream has worked off its non-zero digits.

    Exact for independent operands with one lane. With several, the lanes of a stream share a
    compressor and so work on one bit weight at a time; the stream goes on to the next bit weight
    when its slowest lane is done. The mean of one stream is exact then too; of the spread, on
    which waiting for other streams depends, the correlation between bit weights is taken to first
    order: within 0.3 % of simulation from 30 operands up, and for two's complement bits, whose
    upper ones are all the sign, within about 1 % from 64 up (3 % at 9).

    Args:
        operands: distribution of operand A.
        encoding: how an operand becomes digits.
        length: operands of one stream, shared out evenly to its lanes.
        streams: streams that wait for one another.
        lanes: operands that a stream works on side by side.

    Raises:
        InvalidValueError: if length is negative, or streams or lanes are less than 1.
    """
    if length < 0 or streams < 1 or lanes < 1:
        raise InvalidValueError(
            f"length={length!r} must be at least 0, streams={streams!r} and lanes={lanes!r} at "
            "least 1"
        )
    return _tile_cycles(operands, encoding, length, streams, lanes)


def busy_ratio(
    operands: OperandDistribution, encoding: Encoding, length: int, streams: int, lanes: int = 1
) -> float:
    """Share of the lanes' cycles in which they work on a digit; 1 if there are no digits."""
    cycles = tile_cycles(operands, encoding, length, streams, lanes)
    return mean_digits(operands, encoding) * length / (lanes * cycles) if cycles else 1.0


@dataclass(frozen=True, eq=False)
class _Sum:
    """Distribution of a sum: it is ``first + i`` with probability ``shares[i]``."""

    first: int
    shares: FloatArray

    @property
    def mean(self) -> float:
        return self.first + float(self.shares @ np.arange(len(self.shares)))

    @property
    def variance(self) -> float:
        steps = np.arange(len(self.shares), dtype=np.float64)
        steps -= float(self.shares @ steps)
        return float(self.shares @ (steps * steps))

    @cached_property
    def below(self) -> FloatArray:
        """Probability of at most ``first + i``, shape (len(shares),)."""
        return np.minimum(np.cumsum(self.shares), 1.0)

    def mean_of_slowest(self, streams: int) -> float:
        """Mean of the greatest of some independent such sums."""
        return self.first + float(np.sum(1.0 - self.below[:-1] ** streams))


@lru_cache(maxsize=262144)
def _tile_cycles(
    operands: OperandDistribution, encoding: Encoding, length: int, streams: int, lanes: int
) -> float:
    if length == 0:
        return 0.0
    stream, spread = _stream_cycles(operands, encoding, length, lanes)
    mean = stream.mean
    return mean if streams == 1 else mean + (stream.mean_of_slowest(streams) - mean) * spread


@lru_cache(maxsize=16384)
def _stream_cycles(
    operands: OperandDistribution, encoding: Encoding, length: int, lanes: int
) -> tuple[_Sum, float]:
    """How long one stream takes, and a factor on its spread.

    With several lanes the distribution is that of independent bit weights; the factor is the
    ratio of the true standard deviation to its own.
    """
    if lanes == 1:
        return _repeated(digit_count_distribution(operands, encoding), length), 1.0
    stages = [
        _slowest_lane(share, length, lanes) for share in nonzero_shares(operands, encoding).tolist()
    ]
    total = stages[0]
    for stage in stages[1:]:
        if len(stage.shares) == 1:  # a digit that is never there, or always
            total = _Sum(total.first + stage.first, total.shares * stage.shares)
            continue
        total = _Sum(
            total.first + stage.first, np.convolve(total.shares, stage.shares).astype(float)
        )
    independent = total.variance
    if independent <= 0.0:
        return total, 1.0
    # Cov(max X, max Y) of normal pairs with a small correlation r is r sigma sigma / lanes, by
    # Price's theorem: the slowest lane of both is the same one with probability 1 / lanes.
    covariance = digit_covariance(operands, encoding) * length / lanes**2
    between = float(covariance.sum() - np.trace(covariance))
    return total, math.sqrt(max(independent + between, 0.0) / independent)


@lru_cache(maxsize=16384)
def _slowest_lane(share: float, length: int, lanes: int) -> _Sum:
    """The most non-zero digits of one bit weight that any lane has."""
    maximum = -(-length // lanes)
    full = length - lanes * (maximum - 1)  # lanes with one operand more than the others
    longer, shorter = (_repeated(np.array([1.0 - share, share]), n) for n in (maximum, maximum - 1))
    first = min(longer.first, shorter.first)
    size = longer.first + len(longer.shares) - first
    slowest = np.ones(size)
    for one, times in ((longer, full), (shorter, lanes - full)):
        lead = one.first - first
        slowest[:lead] *= 0.0**times
        there = slowest[lead : lead + len(one.below)]
        there *= one.below[: len(there)] ** times
    shares = slowest.copy()
    shares[1:] -= slowest[:-1]
    return _Sum(first, np.maximum(shares, 0.0))


@lru_cache(maxsize=16384)
def _repeated_of(shares: bytes, times: int) -> _Sum:
    one = np.frombuffer(shares)
    size = (len(one) - 1) * times + 1
    single = _Sum(0, one)
    # All but 1e-20 lies within ten standard deviations of the mean (Bernstein's inequality adds
    # a few digits for short sums): a transform of that many points folds the rest onto it.
    reach = 10.0 * math.sqrt(single.variance * times) + 10.0 * len(one)
    points = 1 << math.ceil(math.log2(min(size, 2.0 * reach + 2.0)))
    folded = np.fft.irfft(np.fft.rfft(one, points) ** times, points) if points > 1 else np.ones(1)
    middle = single.mean * times
    first = max(0, min(round(middle) - points // 2, size - points))
    turn = first % points
    there = np.concatenate((folded[turn:], folded[:turn]))[: size - first]
    np.maximum(there, 0.0, out=there)
    return _Sum(first, there / there.sum())


def _repeated(shares: FloatArray, times: int) -> _Sum:
    """The sum of independent numbers, each 0, 1, ... with these shares."""
    return _repeated_of(np.ascontiguousarray(shares).tobytes(), times)
