"""The kinds of parameters by name, as they stand in files."""

from __future__ import annotations

from typing import Any

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space.expression import Expression
from archgym.space.listed import Boolean, Categorical, Ordinal
from archgym.space.numeric import Integer, Real
from archgym.space.parameter import Parameter
from archgym.space.permutation import Permutation


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
