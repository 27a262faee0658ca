"""Probability distributions of the integer operands of a tensor engine.

>>> round(OperandDistribution.normal(8, sigma=25.0).standard_deviation, 1)
25.0
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archgym.errors import InvalidValueError

__all__ = ["WIDEST_OPERAND", "OperandDistribution", "operand_values"]

WIDEST_OPERAND = 16
"""Bits of the widest operand whose values are enumerated."""


def operand_values(width: int) -> NDArray[np.int64]:
    """Every two's-complement value of a width, ascending, shape (2**width,).

    Raises:
        InvalidValueError: if the width is not 1 to :data:`WIDEST_OPERAND` bits.
    """
    if isinstance(width, bool) or not 1 <= width <= WIDEST_OPERAND:
        raise InvalidValueError(f"operand width {width!r} must be 1 to {WIDEST_OPERAND} bits")
    half = 1 << (width - 1)
    return np.arange(-half, half, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class OperandDistribution:
    """How often each value of a two's-complement operand occurs; successive ones independent.

    Attributes:
        name: short label, as in ``normal(25)``.
        width: of the operand, bits.
        probability: of each value from ``-2**(width-1)`` up, shape (2**width,); sums to 1.
        key: hash of width and probabilities; equal keys mean equal distributions.

    Raises:
        InvalidValueError: if the probabilities are none, or not of that width.
    """

    name: str
    width: int
    probability: NDArray[np.float64] = field(repr=False)
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n = len(operand_values(self.width))
        given = np.array(self.probability, dtype=np.float64)
        if given.shape != (n,):
            raise InvalidValueError(
                f"operand distribution {self.name!r}: {given.shape} probabilities, but a "
                f"{self.width}-bit operand has {n} values"
            )
        total = float(given.sum())
        if not (np.isfinite(given).all() and (given >= 0).all() and total > 0):
            raise InvalidValueError(
                f"operand distribution {self.name!r}: probabilities must be finite, at least 0 "
                "and not all 0"
            )
        given = given / total
        given.setflags(write=False)
        object.__setattr__(self, "probability", given)
        digest = hashlib.sha256(f"{self.width};".encode() + given.tobytes()).hexdigest()
        object.__setattr__(self, "key", digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OperandDistribution) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @classmethod
    def uniform(cls, width: int) -> OperandDistribution:
        """Every value equally often."""
        n = len(operand_values(width))
        return cls("uniform", width, np.full(n, 1 / n))

    @classmethod
    def normal(cls, width: int, sigma: float) -> OperandDistribution:
        """A normal distribution of mean 0, rounded to integers and cut to the operand's range.

        Args:
            width: of the operand, bits.
            sigma: standard deviation before rounding, in units of the last place.

        Raises:
            InvalidValueError: if sigma is not positive.
        """
        if not (math.isfinite(sigma) and sigma > 0):
            raise InvalidValueError(f"sigma={sigma!r} must be a number above 0")
        size = np.abs(operand_values(width))
        scale = sigma * math.sqrt(2.0)
        # Upper tails alone: differences of the cumulative distribution would lose the far ends.
        tail = np.array([math.erfc((k - 0.5) / scale) for k in range(int(size.max()) + 2)])
        return cls(f"normal({sigma:g})", width, tail[size] - tail[size + 1])

    @classmethod
    def constant(cls, width: int, value: int) -> OperandDistribution:
        """Always the same value.

        Raises:
            InvalidValueError: if the width cannot hold the value.
        """
        return cls.of_values(width, [value], name=f"constant({value})")

    @classmethod
    def of_values(
        cls, width: int, values: ArrayLike | Iterable[int], *, name: str = "observed"
    ) -> OperandDistribution:
        """The empirical distribution of some values.

        Raises:
            InvalidValueError: if there are none, or one does not fit the width.
        """
        seen = np.asarray(values, dtype=np.int64).ravel()
        allowed = operand_values(width)
        if not seen.size:
            raise InvalidValueError(f"operand distribution {name!r}: no values")
        for value in (int(seen.min()), int(seen.max())):
            if not allowed[0] <= value <= allowed[-1]:
                raise InvalidValueError(
                    f"operand distribution {name!r}: value {value} does not fit {width} bits "
                    f"({allowed[0]} to {allowed[-1]})"
                )
        counts = np.bincount(seen - allowed[0], minlength=len(allowed))
        return cls(name, width, counts.astype(np.float64))

    @property
    def values(self) -> NDArray[np.int64]:
        """The values that the probabilities belong to, shape (2**width,)."""
        return operand_values(self.width)

    @cached_property
    def support(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The values that occur, ascending, and the probability of each."""
        there = np.flatnonzero(self.probability)
        return there - (1 << (self.width - 1)), self.probability[there]

    @property
    def mean(self) -> float:
        """Mean value."""
        return float(self.probability @ self.values)

    @cached_property
    def mean_magnitude(self) -> float:
        """Mean absolute value."""
        values, shares = self.support
        return float(shares @ np.abs(values))

    @property
    def standard_deviation(self) -> float:
        """Standard deviation."""
        spread = float(self.probability @ self.values.astype(np.float64) ** 2) - self.mean**2
        return math.sqrt(max(spread, 0.0))

    @property
    def zero_share(self) -> float:
        """Share of operands that are 0."""
        return float(self.probability[len(self.probability) // 2])

    def extended(self, width: int) -> OperandDistribution:
        """The same values in wider operands, their sign extended.

        Raises:
            InvalidValueError: if the width is less than its own.
        """
        return self if width == self.width else _extended(self, width)

    def requantised(self, width: int) -> OperandDistribution:
        """The same signal in operands of another width, full scale kept.

        To fewer bits values are rounded to nearest, ties up, and cut at the range; to more bits a
        value spreads evenly over the finer ones that would round to it, except that zero stays
        zero: exact zeros come from rectifiers and padding.
        """
        shift = width - self.width
        if shift == 0:
            return self
        fine = operand_values(width)
        mass = np.zeros(len(fine))
        if shift < 0:
            step = 1 << -shift
            coarse = np.clip((self.values + step // 2) // step, fine[0], fine[-1])
            np.add.at(mass, coarse - fine[0], self.probability)
            return OperandDistribution(self.name, width, mass)
        step = 1 << shift
        share = np.where(self.values == 0, 0.0, self.probability) / step
        for offset in range(-(step // 2), step - step // 2):
            target = np.clip(self.values * step + offset, fine[0], fine[-1])
            np.add.at(mass, target - fine[0], share)
        mass[-int(fine[0])] += self.zero_share
        return OperandDistribution(self.name, width, mass)


@lru_cache(maxsize=4096)
def _extended(operands: OperandDistribution, width: int) -> OperandDistribution:
    values = operand_values(width)
    if width < operands.width:
        raise InvalidValueError(
            f"operands of {operands.width} bits do not fit a width of {width} bits"
        )
    mass = np.zeros(len(values))
    mass[operands.values - values[0]] = operands.probability
    return OperandDistribution(operands.name, width, mass)
