"""The kinds of parameters of a design space.

Every parameter numbers its levels: *codes* run from 0 to ``size - 1``. A real parameter is
searched on a decimal grid of at least 10**5 points (linear: steps of a power of ten; log: five
significant digits), so that values print well, equal designs are recognised, and every encoding
round-trips exactly, through float32 too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError, UnknownNameError, did_you_mean
from archgym.space.expression import Expression, Literal

__all__ = ["Boolean", "Categorical", "Integer", "Ordinal", "Parameter", "Real"]

MAX_LEVELS = 1 << 22
"""Most levels of an integer or ordinal parameter: float32 views must tell them apart."""


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
        codes = np.floor(position * self.size).astype(np.int64)
        return np.clip(codes, 0, self.size - 1)

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
        return DesignError(f"parameter {self.name!r} cannot be {value!r}: allowed is {self.range}{unit}")

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
        self.levels: tuple[Literal, ...] = tuple(_plain(value) for value in values)
        super().__init__(name, len(self.levels), doc, unit, when, group)
        if not self.levels:
            raise InvalidValueError(f"parameter {name!r} has no values")
        if self.size > MAX_LEVELS:
            raise InvalidValueError(f"parameter {name!r}: at most {MAX_LEVELS} values are allowed")
        self._codes = {(type(v) is bool, v): code for code, v in enumerate(self.levels)}
        if len(self._codes) != self.size:
            raise InvalidValueError(f"parameter {name!r} lists a value twice: {list(self.levels)}")
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
            if str(level) == text or (isinstance(level, bool) and str(level).lower() == text.lower()):
                return level
        try:
            number = float(text)
        except ValueError:
            raise self._refuse(text) from None
        return self.levels[self.code(number)]

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
            raise InvalidValueError(f"parameter {name!r}: low, high and step must be integers")
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
            return self.value(self.code(float(text)))
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
        if log:
            self._first = int(_log_index(np.array([low]))[0])
            last = int(_log_index(np.array([high]))[0])
        else:
            self._digits = -math.floor(math.log10((high - low) / 1e5))
            self._first = math.floor(self._to_grid(low))
            last = math.ceil(self._to_grid(high))
        super().__init__(name, last - self._first + 1, doc, unit, when, group)

    def value(self, code: int) -> float:
        return float(self.values(np.array([code]))[0])

    def code(self, value: Any) -> int:
        value = _plain(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refuse(value)
        if not self.low <= value <= self.high:
            raise self._refuse(value)
        return int(self._codes(np.array([float(value)]))[0])

    def values(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        if self.log:
            grid = _log_value(codes + self._first)
        else:
            grid = self._from_grid((codes + self._first).astype(np.float64))
        return np.clip(grid, self.low, self.high)

    def unit_interval(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        values = self.values(codes)
        if self.log:
            return np.asarray(np.log(values / self.low) / math.log(self.high / self.low))
        return np.asarray((values - self.low) / (self.high - self.low))

    def from_unit_interval(self, position: NDArray[np.float64]) -> NDArray[np.int64]:
        position = np.clip(position, 0.0, 1.0)
        if self.log:
            return self._codes(self.low * np.exp(position * math.log(self.high / self.low)))
        return self._codes(self.low + position * (self.high - self.low))

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
        index = _log_index(values) if self.log else np.rint(self._to_grid(values)).astype(np.int64)
        codes = np.asarray(index - self._first)
        # The ends of the range need not lie on the grid: they are levels of their own.
        codes = np.where(values == self.low, 0, codes)
        codes = np.where(values == self.high, self.size - 1, codes)
        return np.clip(codes, 0, self.size - 1)

    def _to_grid(self, value: Any) -> Any:
        return value * 10.0**self._digits if self._digits >= 0 else value / 10.0**-self._digits

    def _from_grid(self, index: NDArray[np.float64]) -> NDArray[np.float64]:
        # A division by a power of ten is correctly rounded, so 85/100 is the float 0.85.
        return index / 10.0**self._digits if self._digits >= 0 else index * 10.0**-self._digits

    def _json_fields(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "log": self.log}


_MANTISSAS = 90_000  # five significant digits: 10000 to 99999 in each decade


def _log_index(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Index of the nearest number of five significant digits; 1.0 has index 0."""
    exponent = np.floor(np.log10(values) + 1e-12).astype(np.int64)
    mantissa = np.rint(values / 10.0 ** exponent.astype(np.float64) * 1e4).astype(np.int64)
    return np.asarray(exponent * _MANTISSAS + mantissa - 10_000)


def _log_value(index: NDArray[np.int64]) -> NDArray[np.float64]:
    exponent, mantissa = np.divmod(index, _MANTISSAS)
    mantissa = (mantissa + 10_000).astype(np.float64)
    power = (exponent - 4).astype(np.float64)
    return np.where(power < 0, mantissa / 10.0 ** np.abs(power), mantissa * 10.0 ** np.abs(power))


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


def level_values(parameters: Sequence[Parameter], codes: Sequence[int]) -> list[Any]:
    """Values of one design's codes; ``None`` where the code is -1 (inactive)."""
    return [
        None if code < 0 else parameter.value(code)
        for parameter, code in zip(parameters, codes, strict=True)
    ]
