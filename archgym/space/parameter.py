"""What every parameter of a design space is: a named knob with numbered levels.

Levels are numbered by *codes* from 0 to ``size - 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypedDict

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError
from archgym.space.expression import Expression

Codes = NDArray[np.int64]
"""Levels of one parameter, or of each parameter (columns) of each design (rows)."""
MAX_LEVELS = 1 << 22
"""Most levels of an integer or ordinal parameter: float32 views must tell them apart."""
TABLE_LEVELS = 4096
"""Most levels of a parameter whose values are kept in a table."""


class About(TypedDict, total=False):
    """Keywords of every parameter, see the attributes of :class:`Parameter`."""

    doc: str
    unit: str
    when: Expression | None
    group: str


class Parameter:
    """One named knob of a design; use one of the subclasses.

    Each of them takes ``doc``, ``unit``, ``when`` and ``group`` as keywords.

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
        self,
        name: str,
        size: int,
        *,
        doc: str = "",
        unit: str = "",
        when: Expression | None = None,
        group: str = "",
    ) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidValueError(f"a parameter's name must be an identifier, not {name!r}")
        if when is not None and not isinstance(when, Expression):
            raise InvalidValueError(f"parameter {name!r}: when={when!r} is not an expression")
        for field, text in (("doc", doc), ("unit", unit), ("group", group)):
            if not isinstance(text, str):
                raise InvalidValueError(
                    f"parameter {name!r}: {field} must be a text, not {text!r:.80}"
                )
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

    # -- columns in the views that need more than one number ------------------------------------

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the parameter's coordinates in continuous views: one for most kinds."""
        return (self.name,)

    def places(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Coordinates of levels in [0, 1], shape (n, n_axes)."""
        return self.unit_interval(codes)[:, None]

    def from_places(self, places: NDArray[np.float64]) -> NDArray[np.int64]:
        """Levels of coordinates, shape (n,); the inverse of :meth:`places`."""
        return self.from_unit_interval(places[:, 0])

    @property
    def choices(self) -> tuple[int, ...]:
        """How many alternatives each of the choices has that together give a level."""
        return (self.size,)

    def digits(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """What was chosen to give these levels, shape (n, n_choices)."""
        return codes[:, None]

    def from_digits(self, digits: NDArray[np.int64]) -> NDArray[np.int64]:
        """Levels of choices, shape (n,); the inverse of :meth:`digits`."""
        return digits[:, 0]

    # -- look-up of single levels ---------------------------------------------------------------

    @cached_property
    def table(self) -> Sequence[Any]:
        """Value of each level, and ``None`` at -1 (inactive): the fast way for one design."""
        if self.size <= TABLE_LEVELS:
            return [*(self.value(code) for code in range(self.size)), None]
        return _Computed(self.value, self.size)

    @cached_property
    def middles(self) -> Sequence[list[float]]:
        """Coordinates of each level, as :meth:`places`, and 0 level's at -1."""
        if self.size <= TABLE_LEVELS:
            middles = self.places(np.arange(self.size)).tolist()
            return [*middles, middles[0]]
        return _Computed(self._middle, self.size, 0)

    def _middle(self, code: int) -> list[float]:
        places: list[float] = self.places(np.array([code]))[0].tolist()
        return places

    def parse(self, text: str) -> Any:
        """The value that a text on a command line means."""
        try:
            return self.value(self.code(float(text)))
        except ValueError:
            raise self._refuse(text) from None

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


def plain(value: Any) -> Any:
    """A Python scalar from a numpy one."""
    return value.item() if isinstance(value, np.generic) else value


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
