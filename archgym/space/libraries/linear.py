"""Rules that bound a sum of parameters, as libraries take them that know no others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from archgym.space.expression import Expression

_SIGNS = {"<=": (1, False), "<": (1, True), ">=": (-1, False), ">": (-1, True)}


@dataclass(frozen=True)
class LinearBound:
    """A sum of parameters, each times a number, that is at most a bound.

    Attributes:
        terms: the number of each parameter; none of them is 0.
        bound: which the sum does not exceed.
        strict: whether it does not reach it either.
    """

    terms: Mapping[str, float]
    bound: float
    strict: bool = False

    def closed(self, whole: bool) -> LinearBound:
        """The bound for a library that knows ``<=`` only.

        Args:
            whole: whether the parameters are integers; then nothing changes in meaning.
        """
        if self.strict and whole and all(value == int(value) for value in self.terms.values()):
            return replace(self, bound=math.ceil(self.bound) - 1, strict=False)
        return replace(self, strict=False)

    def __str__(self) -> str:
        parts = " + ".join(f"{value!r} * {name}" for name, value in self.terms.items())
        return f"{parts} {'<' if self.strict else '<='} {self.bound!r}".replace("+ -", "- ")


def linear_bound(expression: Expression, fixed: Mapping[str, Any]) -> LinearBound | None:
    """The bound that a comparison means; ``None`` if it is not linear.

    >>> from archgym.space import param
    >>> str(linear_bound(2 * param("ways") + 1 < param("sets") * param("banks"), {"banks": 4}))
    '2.0 * ways - 4.0 * sets < -1.0'

    Args:
        expression: a rule.
        fixed: values of parameters that are numbers in it.
    """
    if expression.op not in _SIGNS:
        return None
    sign, strict = _SIGNS[expression.op]
    left, right = (_sum(arg, fixed) for arg in expression.args)
    if left is None or right is None:
        return None
    terms = {name: sign * value for name, value in _added(left, right, -1).items()}
    bound = -terms.pop("", 0.0)
    return LinearBound({name: value for name, value in terms.items() if value}, bound + 0.0, strict)


def _sum(part: Any, fixed: Mapping[str, Any]) -> dict[str, float] | None:
    """The number of each parameter in a sum, and under ``""`` what is added."""
    if not isinstance(part, Expression):
        is_number = isinstance(part, int | float) and not isinstance(part, bool)
        return {"": float(part)} if is_number else None
    if part.op == "param":
        name = part.args[0]
        return _sum(fixed[name], fixed) if name in fixed else {name: 1.0}
    if part.op not in ("+", "-", "*", "/"):
        return None
    left, right = (_sum(arg, fixed) for arg in part.args)
    if left is None or right is None:
        return None
    if part.op in ("+", "-"):
        return _added(left, right, 1 if part.op == "+" else -1)
    if part.op == "*" and set(left) <= {""}:
        left, right = right, left
    if not set(right) <= {""}:
        return None
    factor = right.get("", 0.0)
    if part.op == "/":
        if not factor:
            return None
        factor = 1 / factor
    return {name: value * factor for name, value in left.items()}


def _added(left: dict[str, float], right: dict[str, float], sign: int) -> dict[str, float]:
    names = {**left, **right}
    return {name: left.get(name, 0.0) + sign * right.get(name, 0.0) for name in names}
