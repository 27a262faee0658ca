"""The kinds of parameters of a design space.

Every parameter numbers its levels: *codes* run from 0 to ``size - 1``. A real parameter is
searched on a decimal grid of at least 10**5 points (linear: steps of a power of ten; log: five
significant digits), so that values print well, equal designs are recognised, and every encoding
round-trips exactly, through float32 too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError, UnknownNameError, did_you_mean
from archgym.space.expression import Expression, Literal

__all__ = ["Boolean", "Categorical", "Integer", "Ordinal", "Parameter", "Real"]

MAX_LEVELS = 1 << 22
"""Most levels of an integer or ordinal parameter: float32 views must tell them apart."""
TABLE_LEVELS = 4096
"""Most levels of a parameter whose values are kept in a table."""


class _Computed(Sequence[Any]):
    """What a table of levels would hold, computed when asked; at -1 that of ``last``."""

    def __init__(self, function: Callable[[int], Any], size: int, last: int | None = None) -> None:
        self._function, self._size, self._last = function, size, last

    def __len__(self) -> int:
        return self._size + 1

    def __getitem__(self, code: Any) -> Any:
        if code >= 0:
            return self._function(code)
        return None if self._last is None else self._function(self._last)


class Parameter:
    """One named knob of a design; use one of the subclasses.

    Attributes:
        name: identifier, as in ``request_buffer_size``.
        doc: one line that says what it does.
        unit: unit of the value, empty for none.
        when: condition under which the parameter acts; without one it always does.
        group: name of the group it belongs to (one agent a group in multi-agent search).
        size: number of levels.
    """

    kind: ClassVar[str]
    ordered: ClassVar[bool] = True
    continuous: ClassVar[bool] = False

    def __init__(
        self, name: str, size: int, doc: str, unit: str, when: Expression | None, group: str
    ) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidValueError(f"a parameter's name must be an identifier, not {name!r}")
        if when is not None and not isinstance(when, Expression):
            raise InvalidValueError(f"parameter {name!r}: when={when!r} is not an expression")
        self.name = name
        self.size = size
        self.doc = doc
        self.unit = unit
        self.when = when
        self.group = group

    def value(self, code: int) -> Any:
        """The value of a level."""
        raise NotImplementedError

    def code(self, value: Any) -> int:
        """The level of a value.

        Raises:
            DesignError: if the value is of the wrong type or not allowed.
        """
        raise NotImplementedError

    def values(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """Values of many levels, shape (n,): numbers where the values are numbers."""
        raise NotImplementedError

    def unit_interval(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Position of levels in [0, 1], shape (n,): the middle of each level's equal share."""
        return (codes + 0.5) / self.size

    def from_unit_interval(self, position: NDArray[np.float64]) -> NDArray[np.int64]:
        """Levels of positions in [0, 1], shape (n,); the inverse of :meth:`unit_interval`."""
        codes = (np.clip(position, 0.0, 1.0) * self.size).astype(np.int64)
        return np.minimum(codes, self.size - 1)

    @cached_property
    def table(self) -> Sequence[Any]:
        """Value of each level, and ``None`` at -1 (inactive): the fast way for one design."""
        if self.size <= TABLE_LEVELS:
            return [*(self.value(code) for code in range(self.size)), None]
        return _Computed(self.value, self.size)

    @cached_property
    def middles(self) -> Sequence[float]:
        """Position of each level in [0, 1], as :meth:`unit_interval`, and 0 level's at -1."""
        if self.size <= TABLE_LEVELS:
            middles = self.unit_interval(np.arange(self.size)).tolist()
            return [*middles, middles[0]]
        return _Computed(self._middle, self.size, 0)

    def _middle(self, code: int) -> float:
        return float(self.unit_interval(np.array([code]))[0])

    def parse(self, text: str) -> Any:
        """The value that a text on a command line means."""
        raise NotImplementedError

    @property
    def range(self) -> str:
        """What is allowed, in words."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which :func:`parameter_from_json` builds the same parameter."""
        data: dict[str, Any] = {"kind": self.kind, "name": self.name, **self._json_fields()}
        for field in ("doc", "unit", "group"):
            if getattr(self, field):
                data[field] = getattr(self, field)
        if self.when is not None:
            data["when"] = self.when.to_json()
        return data

    def _json_fields(self) -> dict[str, Any]:
        raise NotImplementedError

    def _refuse(self, value: Any) -> DesignError:
        unit = f" {self.unit}" if self.unit else ""
        return DesignError(
            f"parameter {self.name!r} cannot be {value!r}: allowed is {self.range}{unit}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.range})"


class _Listed(Parameter):
    """A parameter whose values are listed."""

    def __init__(
        self,
        name: str,
        values: Iterable[Literal],
        *,
        doc: str = "",
        unit: str = "",
        when: Expression | None = None,
        group: str = "",
    ) -> None:
        if isinstance(values, str):
            raise InvalidValueError(f"parameter {name!r}: values are a list, not {values!r}")
        self.levels: tuple[Literal, ...] = tuple(_plain(value) for value in values)
        super().__init__(name, len(self.levels), doc, unit, when, group)
        if not self.levels:
            raise InvalidValueError(f"parameter {name!r} has no values")
        if self.size > MAX_LEVELS:
            raise InvalidValueError(f"parameter {name!r}: at most {MAX_LEVELS} values are allowed")
        self._codes = {(type(v) is bool, v): code for code, v in enumerate(self.levels)}
        if len({str(value) for value in self.levels}) != self.size:
            raise InvalidValueError(
                f"parameter {name!r} lists a value twice, or two that read alike: "
                f"{list(self.levels)}"
            )
        numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.levels)
        self._array = np.array(self.levels, dtype=None if numeric else object)

    def value(self, code: int) -> Literal:
        return self.levels[code]

    def code(self, value: Any) -> int:
        value = _plain(value)
        try:
            return self._codes[type(value) is bool, value]
        except (KeyError, TypeError):
            raise self._refuse(value) from None

    def values(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        return np.asarray(self._array[codes])

    def parse(self, text: str) -> Literal:
        for level in self.levels:
            if str(level) == text or (
                isinstance(level, bool) and str(level).lower() == text.lower()
            ):
                return level
        try:
            number = float(text)
        except ValueError:
            raise self._refuse(text) from None
        return self.levels[self.code(int(number) if number.is_integer() else number)]

    @property
    def range(self) -> str:
        shown = [str(level) for level in self.levels[:24]]
        return ", ".join(shown) + (", ..." if self.size > 24 else "")

    def _refuse(self, value: Any) -> DesignError:
        near = did_you_mean(str(value), [str(level) for level in self.levels[:1000]])
        unit = f" (unit: {self.unit})" if self.unit else ""
        return DesignError(f"parameter {self.name!r} cannot be {value!r}{unit}. {near}")

    def _json_fields(self) -> dict[str, Any]:
        return {"values": list(self.levels)}


class Categorical(_Listed):
    """Unordered values.

    >>> Categorical("policy", ["open", "closed"], doc="page policy").code("closed")
    1
    """

    kind = "categorical"
    ordered = False


class Ordinal(_Listed):
    """Ordered values, such as powers of two.

    >>> Ordinal("size", [1, 2, 4, 8], unit="kB").value(3)
    8
    """

    kind = "ordinal"


class Boolean(_Listed):
    """False or true.

    >>> Boolean("prefetch").code(True)
    1
    """

    kind = "boolean"
    ordered = False

    def __init__(
        self,
        name: str,
        *,
        doc: str = "",
        unit: str = "",
        when: Expression | None = None,
        group: str = "",
    ) -> None:
        super().__init__(name, (False, True), doc=doc, unit=unit, when=when, group=group)

    def _json_fields(self) -> dict[str, Any]:
        return {}


class Integer(Parameter):
    """Whole numbers from ``low`` to ``high``, both included, in steps of ``step``.

    >>> Integer("ways", 2, 16, step=2).size
    8
    """

    kind = "integer"

    def __init__(
        self,
        name: str,
        low: int,
        high: int,
        *,
        step: int = 1,
        doc: str = "",
        unit: str = "",
        when: Expression | None = None,
        group: str = "",
    ) -> None:
        if any(not isinstance(_plain(v), int) or isinstance(v, bool) for v in (low, high, step)):
            raise InvalidValueError(
                f"parameter {name!r}: low, high and step must be integers, "
                f"got low={low!r}, high={high!r}, step={step!r}"
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
        super().__init__(name, size, doc, unit, when, group)

    def value(self, code: int) -> int:
        return self.low + code * self.step

    def code(self, value: Any) -> int:
        value = _plain(value)
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

    def parse(self, text: str) -> int:
        try:
            number = float(text)
            return self.value(self.code(int(number) if number.is_integer() else number))
        except ValueError:
            raise self._refuse(text) from None

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
        self,
        name: str,
        low: float,
        high: float,
        *,
        log: bool = False,
        doc: str = "",
        unit: str = "",
        when: Expression | None = None,
        group: str = "",
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
        super().__init__(name, last - self._first + 1, doc, unit, when, group)

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
        value = _plain(value)
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

    def parse(self, text: str) -> float:
        try:
            return self.value(self.code(float(text)))
        except ValueError:
            raise self._refuse(text) from None

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
        """Index of the nearest number on the grid."""
        if self.log:
            return _log_index(values)
        ten = _TENS[abs(self._digits)]
        return np.rint(values * ten if self._digits >= 0 else values / ten).astype(np.int64)

    def _grid(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """Numbers on the grid."""
        if self.log:
            return _log_value(index)
        # A division by a power of ten is correctly rounded, so 85/100 is the float 0.85.
        ten = _TENS[abs(self._digits)]
        return np.asarray(index / ten if self._digits >= 0 else index * ten)

    def _json_fields(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "log": self.log}


_TENS = [float(f"1e{exponent}") for exponent in range(309)]
_TENS_ARRAY = np.array(_TENS)
_MANTISSAS = 90_000  # five significant digits: 10000 to 99999 in each decade


def _log_index(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Index of the nearest number of five significant digits; 1.0 has index 0."""
    exponent = np.floor(np.log10(values) + 1e-12).astype(np.int64)
    mantissa = np.rint(values / 10.0 ** exponent.astype(np.float64) * 1e4).astype(np.int64)
    return np.asarray(exponent * _MANTISSAS + mantissa - 10_000)


def _log_value(index: NDArray[np.int64]) -> NDArray[np.float64]:
    exponent, mantissa = np.divmod(index, _MANTISSAS)
    mantissa = (mantissa + 10_000).astype(np.float64)
    ten = _TENS_ARRAY[np.abs(exponent - 4)]
    return np.where(exponent < 4, mantissa / ten, mantissa * ten)


def parameter_from_json(data: dict[str, Any]) -> Parameter:
    """The inverse of :meth:`Parameter.to_json`.

    Raises:
        UnknownNameError: if the kind does not exist.
        InvalidValueError: if a field is missing, unknown or out of range.
    """
    kinds: dict[str, type[Parameter]] = {
        cls.kind: cls for cls in (Categorical, Ordinal, Boolean, Integer, Real)
    }
    fields = dict(data)
    kind = fields.pop("kind", None)
    if kind not in kinds:
        raise UnknownNameError("kind of parameter", kind, kinds)
    if "when" in fields:
        fields["when"] = Expression.from_json(fields["when"])
    try:
        return kinds[kind](**fields)
    except TypeError as error:
        raise InvalidValueError(f"parameter {data.get('name')!r}: {error}") from None


def _plain(value: Any) -> Any:
    """A Python scalar from a numpy one."""
    return value.item() if isinstance(value, np.generic) else value
