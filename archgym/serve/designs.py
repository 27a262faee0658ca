"""Designs in a request: as mappings, as levels, or as points of the unit cube."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np

from archgym.errors import DesignError
from archgym.reading.suggestions import nearest_name
from archgym.serve.messages import Fields, RequestError, finite
from archgym.space import Designs, DesignSpace, Parameter
from archgym.space.level_encodings import MultiDiscreteEncoding
from archgym.space.number_encodings import UnitCubeEncoding

__all__ = ["FORMS", "MAX_DESIGNS", "DesignReader"]

MAX_DESIGNS: Final = 10_000
"""Designs in a request at most."""
FORMS: Final = ("design", "designs", "levels", "unit")
_FORM_TEXT: Final = (
    "one of design (an object), designs (a list), levels and unit (lists of numbers)"
)


class DesignReader:
    """Reads designs of a design space out of requests.

    Args:
        space: the design space.
    """

    def __init__(self, space: DesignSpace) -> None:
        self._space = space

    def read(self, fields: Fields) -> tuple[Designs, bool]:
        """The designs of a request, and whether it gives one alone.

        Raises:
            RequestError: with the field, its value and what is allowed.
        """
        given = [form for form in FORMS if form in fields]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise RequestError(
                "bad_request",
                f"the request has {found}: it must have {_FORM_TEXT}",
                field=given[0] if given else "design",
                allowed=_FORM_TEXT,
            )
        (form,) = given
        if form == "design":
            return self._mappings([fields.get("design")], ["design"]), True
        given_rows = fields.several(form, MAX_DESIGNS)
        if form == "designs":
            places = [f"designs[{i}]" for i in range(len(given_rows))]
            return self._mappings(given_rows, places), False
        several = isinstance(given_rows[0], list)
        rows = given_rows if several else [given_rows]
        read = self._unit if form == "unit" else self._levels
        places = [f"{form}[{i}]" if several else form for i in range(len(rows))]
        return read(rows, places), not several

    def _mappings(self, designs: list[Any], places: list[str]) -> Designs:
        rows = [self._codes(one, place) for one, place in zip(designs, places, strict=True)]
        return Designs(self._space, np.array(rows, dtype=np.int64))

    def _codes(self, design: Any, place: str) -> Any:
        if not isinstance(design, Mapping):
            raise RequestError.wrong(place, design, "an object: parameter names and values")
        for name, value in design.items():
            where = f"{place}.{name}"
            if name not in self._space:
                raise RequestError.unknown("parameter", name, self._space.names, where)
            parameter = self._space[name]
            try:
                parameter.code(value)
            except (DesignError, OverflowError):
                raise _refused(parameter, value, where) from None
        try:
            return self._space.codes(design)
        except DesignError as error:  # one is missing, or another than the value that is held
            raise RequestError("invalid_value", str(error), field=place) from None

    def _levels(self, rows: list[Any], places: list[str]) -> Designs:
        sizes = self._level_sizes
        allowed = f"{len(sizes)} integers, each from 0 to below its number of levels: {sizes}"
        for row, place in zip(rows, places, strict=True):
            if not isinstance(row, list) or len(row) != len(sizes):
                raise RequestError.wrong(place, row, allowed)
            for i, (level, size) in enumerate(zip(row, sizes, strict=True)):
                if type(level) is not int or not 0 <= level < size:
                    raise RequestError.wrong(
                        f"{place}[{i}]", level, f"an integer from 0 to {size - 1}"
                    )
        return self._discrete.decode(np.array(rows, dtype=np.int64))

    def _unit(self, rows: list[Any], places: list[str]) -> Designs:
        width = self._cube.width
        for row, place in zip(rows, places, strict=True):
            if not isinstance(row, list) or len(row) != width:
                raise RequestError.wrong(place, row, f"{width} numbers from 0 to 1")
            for i, position in enumerate(row):
                if not finite(position) or not 0 <= position <= 1:
                    raise RequestError.wrong(f"{place}[{i}]", position, "a number from 0 to 1")
        return self._cube.decode(np.array(rows, dtype=np.float64))

    @cached_property
    def _cube(self) -> UnitCubeEncoding:
        self._check_free()
        return UnitCubeEncoding(self._space)

    @cached_property
    def _discrete(self) -> MultiDiscreteEncoding:
        real = [p.name for i in self._space.free if (p := self._space.parameters[i]).continuous]
        if real:
            raise RequestError(
                "invalid_value",
                f"parameter {real[0]!r} is real and has no levels: use design or unit",
                field="levels",
                allowed="design, designs or unit",
            )
        self._check_free()
        return MultiDiscreteEncoding(self._space)

    @property
    def _level_sizes(self) -> list[int]:
        sizes: list[int] = self._discrete.nvec.tolist()
        return sizes

    def _check_free(self) -> None:
        if not self._space.free:
            raise RequestError("invalid_value", "every parameter is held: use design")


def _refused(parameter: Parameter, value: Any, where: str) -> RequestError:
    """Why a parameter cannot have a value, with all its values where they are listed."""
    levels = getattr(parameter, "levels", None)
    near = None
    if levels is not None and isinstance(value, str):
        near = nearest_name(value[:200], [str(level) for level in levels[:1000]])
    unit = f" {parameter.unit}" if parameter.unit else ""
    error = RequestError.wrong(where, value, f"{parameter.range}{unit}")
    return RequestError(
        "invalid_value",
        f"{error}{f'. Did you mean {near!r}?' if near else ''}",
        field=where,
        value=value,
        allowed=parameter.range if levels is None else levels,
        nearest=near,
    )
