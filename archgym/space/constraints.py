"""Conditions, rules and fixed values of a design space, on one row of codes or on many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError
from archgym.space.expression import Expression

if TYPE_CHECKING:
    from archgym.space.design_space import DesignSpace

__all__ = ["Constraints", "Rule", "check_expressions"]

_FEW = 32
"""Designs up to which rules are faster one by one than on columns."""


@dataclass(frozen=True)
class Rule:
    """A named law that legal designs keep; it holds wherever a parameter in it is inactive.

    Attributes:
        name: short name, shown as the reason when a design breaks it.
        expression: what must hold.
        doc: why, in one line.

    Raises:
        InvalidValueError: if the expression is none of parameters.
    """

    name: str
    expression: Expression
    doc: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.expression, Expression):
            raise InvalidValueError(
                f"the rule {self.name!r} cannot be {self.expression!r}: allowed is an expression "
                'of parameters, such as param("ways") >= 2'
            )


class Constraints:
    """What makes a design of a space canonical and legal.

    One row of codes goes through compiled expressions on plain numbers, many go through columns.
    """

    def __init__(self, space: DesignSpace) -> None:
        self._names, self._parameters = space.names, space.parameters
        self._rules, self._fixed = space.rules, space.fixed
        self._positions = positions = {name: i for i, name in enumerate(space.names)}

        def parents(expression: Expression) -> tuple[int, ...]:
            return tuple(positions[name] for name in expression.names)

        self._tables = [p.table for p in space.parameters]
        held = [positions[name] for name in space.fixed]
        self._held = [(position, int(space.allowed_codes(position)[0])) for position in held]
        self._conditions: list[tuple[int, tuple[int, ...], Callable[[list[Any]], Any]]] = [
            (i, parents(p.when), p.when.compile(positions))
            for i, p in enumerate(space.parameters)
            if p.when is not None
        ]
        self._compiled_rules = [
            (parents(r.expression), r.expression.compile(positions)) for r in space.rules
        ]

    # -- one row of codes ----------------------------------------------------------------------

    def canonical_codes(self, codes: Sequence[int]) -> tuple[int, ...]:
        """Codes with -1 where a parameter is inactive."""
        if not self._conditions:
            return tuple(codes)
        row = list(codes)
        values = [table[code] for table, code in zip(self._tables, row, strict=True)]
        for position, parents, condition in self._conditions:
            for parent in parents:
                if values[parent] is None:
                    break
            else:
                if condition(values):
                    continue
            row[position] = -1
            values[position] = None
        return tuple(row)

    def illegal_reason(self, codes: Sequence[int]) -> str:
        """Name of the first rule that canonical codes break, with its text; empty if legal."""
        number = self._first_broken(codes)
        if number == -1:
            return ""
        if number >= 0:
            return self._reason(self._rules[number])
        name = next(
            self._names[position]
            for position, only in self._held
            if codes[position] not in (only, -1)
        )
        return f"{name} is fixed to {self._fixed[name]!r}"

    def active(self, codes: Sequence[int]) -> list[bool]:
        """Activity of each parameter, also of those whose code is not known (-1)."""
        active = [True] * len(codes)
        values = [table[code] for table, code in zip(self._tables, codes, strict=True)]
        for position, parents, condition in self._conditions:
            if not all(active[p] and values[p] is not None for p in parents):
                active[position] = False
            else:
                active[position] = bool(condition(values))
        return active

    # -- many rows of codes --------------------------------------------------------------------

    def canonicalised(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes with -1 where a parameter is inactive, shape (n, n_parameters)."""
        if self._conditions:
            codes = np.array(codes, dtype=np.int64, order="F")
            for position, _, _ in self._conditions:
                codes[~self.activity(position, codes), position] = -1
        return codes

    def activity(self, position: int, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows have the parameter active, shape (n,); looks only at its parents."""
        when = self._parameters[position].when
        if when is None:
            return np.ones(len(codes), dtype=bool)
        return self._evaluate(when, codes, missing=False)

    def rule_holds(self, rule: Rule, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows of canonical codes keep the rule, shape (n,)."""
        return self._evaluate(rule.expression, codes, missing=True)

    def first_broken_rule(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index of the first rule that each breaks, -1 legal, -2 not as fixed, shape (n,)."""
        given = codes
        if len(codes) <= _FEW:
            return np.array([self._first_broken(row) for row in codes.tolist()], dtype=np.int64)
        broken = np.full(len(codes), -1, dtype=np.int64)
        left = np.arange(len(codes))
        for number, rule in enumerate(self._rules):
            holds = self.rule_holds(rule, codes)
            if not holds.all():
                broken[left[~holds]] = number
                left, codes = left[holds], codes[holds]
        for position, only in self._held:
            column = given[:, position]
            broken[(column != only) & (column >= 0)] = -2
        return broken

    def _evaluate(
        self, expression: Expression, codes: NDArray[np.int64], *, missing: bool
    ) -> NDArray[np.bool_]:
        """A condition or rule on rows of codes; ``missing`` where it looks at an inactive one."""
        positions = [self._positions[name] for name in expression.names]
        if len(positions) == 1 and self._parameters[positions[0]].size <= 65_536:
            (position,) = positions
            parameter = self._parameters[position]
            table = np.empty(parameter.size + 1, dtype=bool)
            holds = expression.evaluate(
                {parameter.name: parameter.values(np.arange(parameter.size))}
            )
            table[:-1], table[-1] = holds, missing
            return np.asarray(table[codes[:, position]])
        values, active = {}, np.ones(len(codes), dtype=bool)
        for position in positions:
            column = codes[:, position]
            active &= column >= 0
            values[self._names[position]] = self._parameters[position].values(np.maximum(column, 0))
        return np.where(active, np.asarray(expression.evaluate(values), dtype=bool), missing)

    def _first_broken(self, codes: Sequence[int]) -> int:
        """As :meth:`first_broken_rule`, for one row of canonical codes."""
        for position, only in self._held:
            if codes[position] not in (only, -1):
                return -2
        if self._compiled_rules:
            values = [table[code] for table, code in zip(self._tables, codes, strict=True)]
            for number, (parents, holds) in enumerate(self._compiled_rules):
                for parent in parents:
                    if values[parent] is None:
                        break
                else:
                    if not holds(values):
                        return number
        return -1

    def _reason(self, rule: Rule) -> str:
        return f"rule {rule.name!r}: {rule.doc or rule.expression}"


def check_expressions(space: DesignSpace) -> None:
    """Refuses conditions and rules that look at what is not there, or that can never match.

    Raises:
        UnknownNameError, InvalidValueError: with the condition or the rule, and what is wrong.
    """
    for position, parameter in enumerate(space.parameters):
        if parameter.when is None:
            continue
        for name in parameter.when.names:
            if space.index(name) >= position:
                raise InvalidValueError(
                    f"the condition of {parameter.name!r} looks at {name!r}, "
                    "which must be listed before it"
                )
    named = [(f"condition of {p.name!r}", p.when) for p in space.parameters if p.when is not None]
    named += [(f"rule {rule.name!r}", rule.expression) for rule in space.rules]
    for where, expression in named:
        if not expression.names:
            raise InvalidValueError(f"the {where} looks at no parameter")
        for name in expression.names:
            space.index(name)
        for name, literal in expression.literals():
            try:
                space[name].code(literal)
            except DesignError as error:
                raise InvalidValueError(f"the {where} can never match: {error}") from None
        for name in expression.numeric_names():
            if not np.issubdtype(space[name].values(np.zeros(1, np.int64)).dtype, np.number):
                raise InvalidValueError(f"the {where} computes with {name!r}, not a number")
