"""Parameters whose values are listed: categorical, ordinal and boolean ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Set
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError
from archgym.reading.suggestions import did_you_mean
from archgym.space.expression import Literal
from archgym.space.parameter import MAX_LEVELS, About, Parameter, plain

_INT64 = range(-(1 << 63), 1 << 63)
_SURROGATES = re.compile("[\ud800-\udfff]")


class _Listed(Parameter):
    """A parameter whose values are listed."""

    def __init__(self, name: str, values: Iterable[Literal], **about: Unpack[About]) -> None:
        if isinstance(values, str | Set | Mapping) or not isinstance(values, Iterable):
            raise InvalidValueError(  # the order of a set may be another one in each process
                f"parameter {name!r}: values are a list, not {values!r:.80}"
            )
        self.levels: tuple[Literal, ...] = tuple(plain(value) for value in values)
        super().__init__(name, len(self.levels), **about)
        if not self.levels:
            raise InvalidValueError(f"parameter {name!r} has no values")
        if self.size > MAX_LEVELS:
            raise InvalidValueError(f"parameter {name!r}: at most {MAX_LEVELS} values are allowed")
        for level in self.levels:
            self._check_level(level)
        self._codes = {(type(v) is bool, v): code for code, v in enumerate(self.levels)}
        alike = len(self._codes) != self.size  # such as 1 and 1.0
        if alike or len({str(value) for value in self.levels}) != self.size:
            raise InvalidValueError(
                f"parameter {name!r} lists a value twice, or two that read alike: "
                f"{list(self.levels)}"
            )
        if self.of_several_kinds:  # as recorded: a column of a table holds texts or numbers
            self._codes |= {(False, str(v)): code for code, v in enumerate(self.levels)}
        numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.levels)
        self._array = np.array(self.levels, dtype=None if numeric else object)

    def _check_level(self, level: object) -> None:
        """Refuses a value that no dataset holds, or that is equal to no other."""
        if isinstance(level, str):
            possible = not _SURROGATES.search(level)
        elif isinstance(level, int):
            possible = level in _INT64
        else:
            possible = isinstance(level, float) and not math.isnan(level)
        if not possible:
            raise InvalidValueError(
                f"parameter {self.name!r}: a value cannot be {level!r:.80}: allowed are texts, "
                "booleans, numbers, and integers of 64 bits; give anything else a name, and look "
                "it up where the design is simulated"
            )

    @property
    def of_several_kinds(self) -> bool:
        """Whether texts, booleans and numbers are mixed; datasets then hold the values as texts."""
        return len({float if type(v) is int else type(v) for v in self.levels}) > 1

    def value(self, code: int) -> Literal:
        return self.levels[code]

    def code(self, value: Any) -> int:
        value = plain(value)
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
        meant = [one for one in self.levels if isinstance(value, str) and str(one) == value]
        if meant:
            near = f"It is a text: write {meant[0]!r} without quotes"
        else:
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

    def __init__(self, name: str, **about: Unpack[About]) -> None:
        super().__init__(name, (False, True), **about)

    def _json_fields(self) -> dict[str, Any]:
        return {}
