"""The kinds of parameters: by name, as they stand in files, and without some of their values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space.expression import Expression
from archgym.space.listed import Boolean, Categorical, Ordinal
from archgym.space.numeric import Integer, Real
from archgym.space.parameter import About, Parameter
from archgym.space.permutation import Permutation

_MAX_LISTED = 1 << 16
"""Most levels of a parameter of which values in the middle can be excluded."""


def parameter_from_json(data: dict[str, Any]) -> Parameter:
    """The inverse of :meth:`Parameter.to_json`.

    Raises:
        UnknownNameError: if the kind does not exist.
        InvalidValueError: if a field is missing, unknown or out of range.
    """
    kinds: dict[str, type[Parameter]] = {
        cls.kind: cls for cls in (Categorical, Ordinal, Boolean, Integer, Real, Permutation)
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
