"""Random design spaces, and what they mean, spelled out slowly."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis.strategies as st

from archgym.space import (
    Boolean,
    Categorical,
    DesignSpace,
    Expression,
    Integer,
    Ordinal,
    Parameter,
    Permutation,
    Real,
    Rule,
    param,
)

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**")


@st.composite
def expressions(draw: st.DrawFn, parameters: list[Parameter], depth: int = 2) -> Expression:
    """A condition or rule over some of the parameters."""
    if depth and draw(st.booleans()):
        left = draw(expressions(parameters, depth - 1))
        kind = draw(st.sampled_from(["and", "or", "not", "implies"]))
        if kind == "not":
            return ~left
        right = draw(expressions(parameters, depth - 1))
        if kind == "implies":
            return left.implies(right)
        return left & right if kind == "and" else left | right
    parameter = draw(st.sampled_from(parameters))
    levels = [parameter.value(code) for code in range(min(parameter.size, 8))]
    numeric = [p for p in parameters if p.kind in ("integer", "ordinal", "real")]
    if parameter not in numeric:
        if draw(st.booleans()):
            return param(parameter.name).isin(draw(st.lists(st.sampled_from(levels), max_size=2)))
        return Expression("==", (param(parameter.name), draw(st.sampled_from(levels))))
    other = draw(st.sampled_from(numeric))
    operand: Any = param(parameter.name)
    if draw(st.booleans()):
        operand = Expression(draw(st.sampled_from(ARITHMETIC)), (operand, param(other.name)))
        return Expression(draw(st.sampled_from(COMPARISONS)), (operand, draw(st.integers(-2, 9))))
    if draw(st.booleans()):
        return Expression(draw(st.sampled_from(COMPARISONS)), (operand, param(other.name)))
    return Expression(draw(st.sampled_from(COMPARISONS)), (operand, draw(st.sampled_from(levels))))


@st.composite
def spaces(draw: st.DrawFn, *, reals: bool = False, fixed: bool = True) -> DesignSpace:
    """A small space with conditions (also on conditions), rules, and perhaps a fixed parameter."""
    kinds = [
        "categorical",
        "ordinal",
        "boolean",
        "integer",
        "permutation",
        *(["real"] if reals else []),
    ]
    parameters: list[Parameter] = []
    for name in NAMES[: draw(st.integers(2, 5))]:
        kind = draw(st.sampled_from(kinds))
        conditional = bool(parameters) and draw(st.booleans())
        when = draw(expressions(list(parameters))) if conditional else None
        if kind == "boolean":
            parameters.append(Boolean(name, when=when))
        elif kind == "permutation":
            items = draw(st.sampled_from([["A"], ["A", "B"], ["A", "B", "C"], ["up", "to", "x"]]))
            parameters.append(Permutation(name, items, when=when))
        elif kind == "categorical":
            parameters.append(
                Categorical(name, ["x", "y", "z"][: draw(st.integers(1, 3))], when=when)
            )
        elif kind == "ordinal":
            values = draw(st.lists(st.integers(-4, 9), min_size=1, max_size=4, unique=True))
            parameters.append(Ordinal(name, sorted(values), when=when))
        elif kind == "integer":
            low, step = draw(st.integers(-2, 2)), draw(st.integers(1, 2))
            high = low + step * draw(st.integers(0, 3))
            parameters.append(Integer(name, low, high, step=step, when=when))
        elif draw(st.booleans()):
            parameters.append(Real(name, -1.5, draw(st.sampled_from([0.25, 7, 1e4])), when=when))
        else:
            parameters.append(
                Real(name, 1e-3, draw(st.sampled_from([2e-3, 1, 1e6])), log=True, when=when)
            )
    rules = [
        Rule(f"rule_{i}", draw(expressions(parameters))) for i in range(draw(st.integers(0, 2)))
    ]
    held = {}
    if fixed and draw(st.booleans()):
        parameter = draw(st.sampled_from(parameters))
        held[parameter.name] = parameter.value(draw(st.integers(0, parameter.size - 1)))
    return DesignSpace(parameters, rules, fixed=held)


def canonical(space: DesignSpace, design: dict[str, Any]) -> dict[str, Any]:
    """The canonical form, by the definition."""
    kept: dict[str, Any] = {}
    for parameter in space.parameters:
        when = parameter.when
        if when is None or (set(when.names) <= set(kept) and bool(when.evaluate(kept))):
            kept[parameter.name] = design[parameter.name]
    return kept


def is_legal(space: DesignSpace, design: dict[str, Any]) -> bool:
    """Whether all rules hold, by the definition."""
    return all(
        not set(rule.expression.names) <= set(design) or bool(rule.expression.evaluate(design))
        for rule in space.rules
    )


def all_designs(space: DesignSpace) -> set[tuple[tuple[str, Any], ...]]:
    """Every canonical legal design of a finite space, one by one."""
    levels = [
        [space.fixed[p.name]]
        if p.name in space.fixed
        else [p.value(code) for code in range(p.size)]
        for p in space.parameters
    ]
    found = set()
    for values in itertools.product(*levels):
        design = canonical(space, dict(zip(space.names, values, strict=True)))
        if is_legal(space, design):
            found.add(tuple(design.items()))
    return found
