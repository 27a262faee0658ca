"""Parameters without some of their values, and designs of spaces that exclude different ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archgym.errors import InvalidValueError
from archgym.space.listed import Categorical, Ordinal
from archgym.space.numeric import Integer
from archgym.space.parameter import About, Codes, Parameter
from archgym.space.permutation import Permutation

if TYPE_CHECKING:
    from archgym.space.definition import SpaceDefinition
    from archgym.space.designs import Designs

MISSING = -2
"""The code of a value that a space excludes."""
_MAX_LISTED = 1 << 16
"""Most levels of a parameter of which values in the middle can be excluded."""


def without(parameter: Parameter, values: Collection[Any]) -> Parameter:
    """A parameter without some of its values.

    Args:
        parameter: with them.
        values: some of its values.

    Raises:
        InvalidValueError: if no value is left, or single values cannot be excluded.
    """
    if parameter.continuous or isinstance(parameter, Permutation):
        kind = "real" if parameter.continuous else "a permutation"
        raise InvalidValueError(
            f"exclude: parameter {parameter.name!r} is {kind}, of which single values cannot be "
            "excluded; limit a metric in the objective, or give a design space of your own"
        )
    out = {parameter.code(value) for value in values}
    if len(out) == parameter.size:
        raise InvalidValueError(
            f"exclude: no value of {parameter.name!r} is left: it has {parameter.range}"
        )
    about = About(
        doc=parameter.doc, unit=parameter.unit, when=parameter.when, group=parameter.group
    )
    if isinstance(parameter, Integer):
        first, last = 0, parameter.size - 1
        while first in out:
            first += 1
        while last in out:
            last -= 1
        if all(code < first or code > last for code in out):
            low, high = parameter.value(first), parameter.value(last)
            return Integer(parameter.name, low, high, step=parameter.step, **about)
    if parameter.size > _MAX_LISTED:
        raise InvalidValueError(
            f"exclude: parameter {parameter.name!r} has {parameter.size:,} values; only the lowest "
            "and the highest can be excluded"
        )
    left = [parameter.value(code) for code in range(parameter.size) if code not in out]
    return (Ordinal if parameter.ordered else Categorical)(parameter.name, left, **about)


def replacement(space: SpaceDefinition, name: str, value: Any) -> Any:
    """The value that takes the place of one that a space excludes.

    Of an ordered parameter it is the nearest one that is left, of another one the first.
    """
    declared, left = space.declared[space.index(name)], space[name]
    codes = [declared.code(left.value(code)) for code in range(left.size)]
    wanted = declared.code(value)
    if not declared.ordered:
        return left.value(0)
    return declared.value(min(codes, key=lambda code: (abs(code - wanted), code)))


def recoded(designs: Designs, space: SpaceDefinition) -> Codes:
    """Codes of designs in a space with the same parameters, of which it may exclude other values.

    Returns:
        Shape (n_designs, n_parameters), :data:`MISSING` for a value that the space excludes.
    """
    own = designs.space
    differing = [n for n in own.names if own.excluded.get(n) != space.excluded.get(n)]
    if not differing:
        return designs.codes
    codes = np.array(designs.codes, dtype=np.int64, order="F")
    for name in differing:
        position = own.index(name)
        levels = _levels(own[name], space, name)
        codes[:, position] = np.append(levels, -1)[codes[:, position]]
    return codes


def _levels(parameter: Parameter, space: SpaceDefinition, name: str) -> Sequence[int]:
    out = space.excluded.get(name, [])
    values = [parameter.value(code) for code in range(parameter.size)]
    return [MISSING if value in out else space[name].code(value) for value in values]


def search_arguments(
    space: SpaceDefinition, fixed: Mapping[str, Any], offered: SpaceDefinition
) -> dict[str, Any]:
    """Arguments ``fixed``, ``exclude`` and ``include`` that make one space of another.

    Args:
        space: the wanted one; what it holds fixed does not count.
        fixed: parameters that the wanted one holds at a value.
        offered: the one that an environment offers.

    Returns:
        Those of the arguments that are needed.
    """
    released = [name for name in offered.fixed if name not in fixed]
    released += [
        name
        for name, values in offered.excluded.items()
        if name not in released and any(v not in space.excluded.get(name, ()) for v in values)
    ]
    exclude: dict[str, list[Any]] = {}
    for name, values in space.excluded.items():
        already = () if name in released else offered.excluded.get(name, ())
        if more := [value for value in values if value not in already]:
            exclude[name] = more
    given = {
        name: value
        for name, value in fixed.items()
        if name not in offered.fixed or offered.fixed[name] != value
    }
    found = {"fixed": given, "exclude": exclude, "include": released}
    return {name: value for name, value in found.items() if value}
