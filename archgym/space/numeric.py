"""Parameters that are numbers of a range: integers and reals.

A real parameter is searched on a decimal grid of at least 10**5 points (linear: steps of a power
of ten; log: five significant digits), so that values print well, equal designs are recognised,
and every encoding round-trips exactly, through float32 too.
"""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.space.parameter import MAX_LEVELS, About, Parameter, plain


class Integer(Parameter):
    """Whole numbers from ``low`` to ``high``, both included, in steps of ``step``.

    >>> Integer("ways", 2, 16, step=2).size
    8
    """

    kind = "integer"

    def __init__(
        self, name: str, low: int, high: int, *, step: int = 1, **about: Unpack[About]
    ) -> None:
        if any(not isinstance(plain(v), int) or isinstance(v, bool) for v in (low, high, step)):
            raise InvalidValueError(
                f"parameter {name!r}: low, high and step must be integers, "
                f"got low={low!r}, high={high!r}, step={step!r}"
            )
        if max(abs(low), abs(high), abs(step)) >= 1 << 62:
            raise InvalidValueError(
                f"parameter {name!r}: low, high and step must be below 2^62 in magnitude"
            )
        self.low, self.step = int(low), int(step)
        if self.step < 1 or high < low:
            raise InvalidValueError(
                f"parameter {name!r}: needs low <= high and step >= 1, "
                f"got low={low}, high={high}, step={step}"
            )
        size = (int(high) - self.low) // self.step + 1
        self.high = self.low + (size - 1) * self.step
        if size > MAX_LEVELS:
            raise InvalidValueError(
                f"parameter {name!r} has {size} levels, at most {MAX_LEVELS} are allowed: "
                "use a larger step, an Ordinal or a Real"
            )
        super().__init__(name, size, **about)

    def value(self, code: int) -> int:
        return self.low + code * self.step

    def code(self, value: Any) -> int:
        value = plain(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._refuse(value)
        code, rest = divmod(value - self.low, self.step)
        if rest or not 0 <= code < self.size:
            raise self._refuse(value)
        return code

    def values(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        return self.low + codes * self.step

    @property
    def range(self) -> str:
        stride = f" in steps of {self.step}" if self.step > 1 else ""
        return f"an integer from {self.low} to {self.high}{stride}"

    def _json_fields(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "step": self.step}


class Real(Parameter):
    """Real numbers from ``low`` to ``high``, on a linear or a logarithmic scale.

    >>> voltage = Real("voltage", 0.6, 1.1, unit="V")
    >>> voltage.value(voltage.code(0.8500001))
    0.85
    """

    kind = "real"
    continuous = True

    def __init__(
        self, name: str, low: float, high: float, *, log: bool = False, **about: Unpack[About]
    ) -> None:
        low, high = float(low), float(high)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InvalidValueError(
                f"parameter {name!r}: needs finite low < high, got low={low}, high={high}"
            )
        if log and low <= 0:
            raise InvalidValueError(f"parameter {name!r}: a log scale needs low > 0, got {low}")
        self.low, self.high, self.log = low, high, bool(log)
        if log and high / low > 1e60:
            raise InvalidValueError(
                f"parameter {name!r}: {low:g} to {high:g} is more than 60 decades"
            )
        if max(abs(low), abs(high)) / 1e9 > high - low or not 1e-290 < high - low < 1e290:
            raise InvalidValueError(
                f"parameter {name!r}: {low!r} to {high!r} is too narrow or too wide for its size"
            )
        self._digits = -math.floor(math.log10((high - low) / 1e5))
        # The ends of the range need not lie on the grid: they are levels of their own.
        first, last = self._index(np.array([low, high])).tolist()
        ends = self._grid(np.array([first, last])).tolist()
        self._first = first if ends[0] <= low else first - 1
        last = last if ends[1] >= high else last + 1
        super().__init__(name, last - self._first + 1, **about)

    def value(self, code: int) -> float:
        index = code + self._first
        if self.log:
            exponent, mantissa = divmod(index, _MANTISSAS)
            index, digits = mantissa + 10_000, 4 - exponent
        else:
            digits = self._digits
        value = index / _TENS[digits] if digits >= 0 else index * _TENS[-digits]
        return float(min(max(value, self.low), self.high))

    def code(self, value: Any) -> int:
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refuse(value)
        if not self.low <= value <= self.high:
            raise self._refuse(value)
        return int(self._codes(np.array([float(value)]))[0])

    def values(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        return np.clip(self._grid(codes + self._first), self.low, self.high)

    def unit_interval(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        values = self.values(codes)
        if self.log:
            positions = np.log(values / self.low) / math.log(self.high / self.low)
        else:
            positions = (values - self.low) / (self.high - self.low)
        positions[values == self.high] = 1.0
        return np.minimum(positions, 1.0)

    def from_unit_interval(self, position: NDArray[np.float64]) -> NDArray[np.int64]:
        position = np.clip(position, 0.0, 1.0)
        if self.log:
            values = self.low * np.exp(position * math.log(self.high / self.low))
        else:
            values = self.low + position * (self.high - self.low)
        values[position == 1.0] = self.high
        return self._codes(values)

    @property
    def range(self) -> str:
        return f"a number from {self.low:g} to {self.high:g}"

    def _codes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        values = np.clip(values, self.low, self.high)
        codes: NDArray[np.int64] = self._index(values) - self._first
        codes[values == self.low] = 0
        codes[values == self.high] = self.size - 1
        return np.asarray(np.clip(codes, 0, self.size - 1))

    def _index(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Index of the nearest number on the grid; of a log scale, 1.0 has index 0."""
        if self.log:
            exponent = np.floor(np.log10(values) + 1e-12).astype(np.int64)
            mantissa = np.rint(values / 10.0 ** exponent.astype(np.float64) * 1e4).astype(np.int64)
            return np.asarray(exponent * _MANTISSAS + mantissa - 10_000)
        ten = _TENS[abs(self._digits)]
        return np.rint(values * ten if self._digits >= 0 else values / ten).astype(np.int64)

    def _grid(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """Numbers on the grid."""
        if self.log:
            exponent, mantissa = np.divmod(index, _MANTISSAS)
            mantissa = (mantissa + 10_000).astype(np.float64)
            ten = _TENS_ARRAY[np.abs(exponent - 4)]
            return np.where(exponent < 4, mantissa / ten, mantissa * ten)
        # A division by a power of ten is correctly rounded, so 85/100 is the float 0.85.
        ten = _TENS[abs(self._digits)]
        return np.asarray(index / ten if self._digits >= 0 else index * ten)

    def _json_fields(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "log": self.log}


_TENS = [float(f"1e{exponent}") for exponent in range(309)]
_TENS_ARRAY = np.array(_TENS)
_MANTISSAS = 90_000  # five significant digits: 10000 to 99999 in each decade
