"""What the encodings for other libraries have in common: points, that is mappings of names.

A library names the variables of its points after our parameters. A variable has the parameter's
value where the library can hold it; each encoding says which have something else. A permutation
has a variable from 0 to 1 for each item, ``NAME[ITEM]``: sorted by them, the items stand in order.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from archgym.errors import DesignError, InvalidValueError, MissingDependencyError, UnknownNameError
from archgym.space.design_space import DesignSpace
from archgym.space.designs import Designs
from archgym.space.libraries.regions import regions
from archgym.space.numeric import Real
from archgym.space.parameter import Parameter, plain


class Form(enum.Enum):
    """What a variable of a library holds of a parameter."""

    VALUE = "the value"
    TEXT = "the value as text"
    LEVEL = "the number of the level, from 0"
    LOG = "the decimal logarithm of the value"
    KEYS = "a number from 0 to 1 for each item, by which items are sorted"


class PointEncoding(ABC):
    """A two-way map between designs and points of a library.

    A point that lacks a parameter without effect is a design all the same, and what a point says
    of a parameter without effect is left out of the design.

    Args:
        design_space: the space; its fixed parameters are in no point.

    Attributes:
        design_space: the space.
        searched: those that have variables: free, and active in some design.
        conditional: names of those that a point has only where they are active.
        never: names of parameters that are active in no design.
        unexpressed: conditions and rules that the library is not told, each as a line of text.
            Where it is a rule, designs that break it are proposed, and their outcome is
            ``illegal``; where it is a condition, points differ that are one design. Neither costs
            any of the budget.
    """

    package: str
    """What to install, as the message says if it is missing."""

    def __init__(self, design_space: DesignSpace) -> None:
        self.design_space = design_space
        self.conditional: frozenset[str] = frozenset()
        self.unexpressed: tuple[str, ...] = ()
        self.never = _never_active(design_space)
        free = [design_space.parameters[position] for position in design_space.free]
        self.searched: tuple[Parameter, ...] = tuple(p for p in free if p.name not in self.never)
        if not self.searched:
            raise InvalidValueError(
                "every parameter of the design space is fixed: nothing to search"
            )
        self._forms = {p.name: self._form(p) for p in self.searched}
        self._axes = {axis: p for p in self.searched for axis in p.axes}

    @abstractmethod
    def _form(self, parameter: Parameter) -> Form:
        """What the variable of a parameter holds."""

    def _missing(self, library: str) -> MissingDependencyError:
        return MissingDependencyError(f"this encoding needs {library}: pip install {self.package}")

    # -- one design ----------------------------------------------------------------------------

    def point(self, design: Mapping[str, Any]) -> Any:
        """The point that stands for a design.

        Raises:
            UnknownNameError, DesignError: if the mapping is not a design of the space.
        """
        return self._point(self.design_space.codes(design))

    def design(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The canonical design that a point of the library stands for; it need not be legal.

        Raises:
            UnknownNameError: if the point has a variable that the space does not have.
            DesignError: if a value is not allowed, or that of an active parameter is missing.
        """
        values: dict[str, Any] = {}
        keys: dict[str, dict[str, float]] = {}
        for name, value in point.items():
            if name not in self._axes:
                raise UnknownNameError("variable", name, self._axes)
            parameter = self._axes[name]
            if self._forms[parameter.name] is Form.KEYS:
                keys.setdefault(parameter.name, {})[name] = _number(name, value)
            else:
                values[name] = self._value(parameter, plain(value))
        for name, found in keys.items():
            parameter = self.design_space[name]
            if missing := [axis for axis in parameter.axes if axis not in found]:
                raise DesignError(f"the point lacks {missing[0]!r}")
            places = np.array([[found[axis] for axis in parameter.axes]])
            values[name] = parameter.value(int(parameter.from_places(places)[0]))
        return self.design_space.canonical(values)

    # -- many designs --------------------------------------------------------------------------

    def to_points(self, designs: Designs | Iterable[Mapping[str, Any]]) -> list[Any]:
        """The points that stand for some designs."""
        if not isinstance(designs, Designs):
            designs = self.design_space.designs(designs)
        return [self._point(codes) for codes in designs.codes.tolist()]

    def from_points(self, points: Iterable[Mapping[str, Any]]) -> Designs:
        """The inverse of :meth:`to_points`.

        Raises:
            UnknownNameError, DesignError: as :meth:`design`.
        """
        return self.design_space.designs([self.design(point) for point in points])

    # -- inner workings ------------------------------------------------------------------------

    def _point(self, codes: Any) -> Any:
        found: dict[str, Any] = {}
        for parameter in self.searched:
            code = codes[self.design_space.index(parameter.name)]
            if code < 0 and parameter.name in self.conditional:
                continue
            found |= self._variables(parameter, max(code, 0))
        return found

    def _variables(self, parameter: Parameter, code: int) -> dict[str, Any]:
        """The variables of a parameter that stand for a level."""
        match self._forms[parameter.name]:
            case Form.KEYS:
                places = parameter.places(np.array([code]))[0].tolist()
                return dict(zip(parameter.axes, places, strict=True))
            case Form.LEVEL:
                return {parameter.name: code}
            case Form.LOG:
                return {parameter.name: math.log10(parameter.value(code))}
            case Form.TEXT:
                return {parameter.name: str(parameter.value(code))}
        return {parameter.name: plain(parameter.value(code))}

    def _value(self, parameter: Parameter, value: Any) -> Any:
        """The parameter's value that a variable stands for."""
        form = self._forms[parameter.name]
        if form is Form.TEXT:
            return parameter.parse(str(value))
        if form is Form.LEVEL:
            level = _number(parameter.name, value)
            if not 0 <= level < parameter.size or level != int(level):
                raise DesignError(
                    f"variable {parameter.name!r} cannot be {value!r}: allowed is a whole number "
                    f"from 0 to {parameter.size - 1}, the level of the parameter"
                )
            return parameter.value(int(level))
        if isinstance(parameter, Real):
            number = _number(parameter.name, value)
            number = 10.0**number if form is Form.LOG and number < 300 else number
            slack = 1e-9 * (parameter.high - parameter.low)  # arithmetic of the library
            if parameter.low - slack <= number <= parameter.high + slack:
                return min(max(number, parameter.low), parameter.high)
            return number  # refused where the design is made, with what is allowed
        return value


def _never_active(space: DesignSpace) -> set[str]:
    """Parameters that are inactive in every design, as fixed values bring about."""
    never: set[str] = set()
    for parameter in space.parameters:
        if parameter.when is not None and (
            never & set(parameter.when.names) or regions(space, parameter.when) == []
        ):
            never.add(parameter.name)
    return never


def _number(name: str, value: Any) -> float:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DesignError(f"variable {name!r} cannot be {value!r}: allowed is a number")
    return float(value)
