"""Conditions, rules and fixed values of a design space, on one row of codes or on many."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError
from archgym.space.definition import Rule, SpaceDefinition
from archgym.space.designs import Designs
from archgym.space.expression import Expression
from archgym.space.parameter import Codes, Parameter

_FEW = 32
"""Up to this many designs, rules are checked faster one by one than on columns."""
_MAX_TABULATED = 1 << 15
"""A rule or condition whose parameters have at most so many combinations, inactive ones included,
is evaluated once for all of them; from then on it is looked up."""


class ConstrainedSpace(SpaceDefinition):
    """Decides which parameters of a design are active, and whether the design is legal.

    One row of codes goes through compiled expressions on plain numbers, many go through columns.
    """

    def __init__(
        self,
        parameters: Iterable[Parameter],
        rules: Iterable[Rule] = (),
        *,
        fixed: Mapping[str, Any] | None = None,
        excluded: Mapping[str, Sequence[Any]] | None = None,
        absent: Mapping[str, str] | None = None,
    ) -> None:
        excluded = {} if excluded is None else excluded
        super().__init__(parameters, rules, fixed or {}, excluded, absent or {})
        held = [self.index(name) for name in self.fixed]
        self._held = [(position, int(self.allowed_codes(position)[0])) for position in held]
        self._conditions = [
            (i, *self._compiled(p.when))
            for i, p in enumerate(self.parameters)
            if p.when is not None
        ]
        self._compiled_rules = [self._compiled(rule.expression) for rule in self.rules]
        self._truths: dict[tuple[int, bool], NDArray[np.bool_]] = {}

    def _compiled(self, expression: Expression) -> tuple[list[int], Callable[[list[Any]], Any]]:
        """Positions of the parameters of an expression, and the expression as a function."""
        parents = [self.index(name) for name in expression.names]
        return parents, expression.compile(self._positions)

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
            rule = self.rules[number]
            return f"rule {rule.name!r}: {rule.doc or rule.expression}"
        name = next(
            self.names[position]
            for position, only in self._held
            if codes[position] not in (only, -1)
        )
        return f"{name} is fixed to {self.fixed[name]!r}"

    def codes(self, design: Mapping[str, Any]) -> tuple[int, ...]:
        """Canonical codes of a design; values of inactive and fixed parameters may be left out.

        Raises:
            UnknownNameError: if a name is not a parameter.
            DesignError: if it is no mapping, a value is not allowed, or an active parameter is
                missing.
        """
        if not isinstance(design, Mapping):
            raise DesignError(f"a design is a mapping of parameters to values, not {design!r}")
        for name in design:
            self.index(name)
        raw: list[int] = []
        for position, parameter in enumerate(self.parameters):
            if parameter.name in design:
                raw.append(self._level(parameter, design[parameter.name]))
            else:
                allowed = self.allowed_codes(position)
                raw.append(int(allowed[0]) if len(allowed) == 1 else -1)
        active = [True] * len(raw)
        values = [table[code] for table, code in zip(self._tables, raw, strict=True)]
        for position, parents, condition in self._conditions:
            known = all(active[p] and values[p] is not None for p in parents)
            active[position] = known and bool(condition(values))
        lacking = [
            f"{parameter.name!r}{_acting(parameter)}: allowed is {parameter.range}"
            for acts, code, parameter in zip(active, raw, self.parameters, strict=True)
            if acts and code < 0
        ]
        if lacking:
            raise DesignError(f"the design lacks parameter {'; and '.join(lacking)}")
        return tuple(code if acts else -1 for acts, code in zip(active, raw, strict=True))

    def _level(self, parameter: Parameter, value: Any) -> int:
        """The level of a value; the message of one that is excluded says so."""
        try:
            return parameter.code(value)
        except DesignError:
            if parameter.name in self.excluded:
                self.check_excluded(parameter.name, value)
            raise

    # -- many rows of codes --------------------------------------------------------------------

    def canonicalise(self, codes: Codes) -> Designs:
        """Designs from any codes within range, shape (n, n_parameters)."""
        if self._conditions:
            codes = np.array(codes, dtype=np.int64, order="F")
            for position, _, _ in self._conditions:
                codes[~self.activity(position, codes), position] = -1
        return Designs(self, codes)

    def activity(self, position: int, codes: Codes) -> NDArray[np.bool_]:
        """Which rows have the parameter active, shape (n,); looks only at its parents."""
        when = self.parameters[position].when
        if when is None:
            return np.ones(len(codes), dtype=bool)
        return self._evaluate(when, codes, missing=False)

    def rule_holds(self, rule: Rule, codes: Codes) -> NDArray[np.bool_]:
        """Which rows of canonical codes keep the rule, shape (n,)."""
        return self._evaluate(rule.expression, codes, missing=True)

    def first_broken_rule(self, designs: Designs) -> NDArray[np.int64]:
        """Index of the first broken of :attr:`rules`, -1 legal, -2 not as fixed, shape (n,)."""
        given = codes = designs.codes
        if len(codes) <= _FEW:
            return np.array([self._first_broken(row) for row in codes.tolist()], dtype=np.int64)
        broken = np.full(len(codes), -1, dtype=np.int64)
        left = np.arange(len(codes))
        for number, rule in enumerate(self.rules):
            holds = self.rule_holds(rule, codes)
            if not holds.all():
                broken[left[~holds]] = number
                left, codes = left[holds], codes[holds]
        for position, only in self._held:
            column = given[:, position]
            broken[(column != only) & (column >= 0)] = -2
        return broken

    def legal(self, designs: Designs) -> NDArray[np.bool_]:
        """Which designs are legal, shape (n,)."""
        codes = designs.codes
        if len(codes) <= _FEW:
            return np.asarray(self.first_broken_rule(designs) == -1)
        legal = np.ones(len(codes), dtype=np.bool_)
        for position, only in self._held:
            legal &= (codes[:, position] == only) | (codes[:, position] < 0)
        computed = []
        for rule in self.rules:  # those that are looked up first: they cost next to nothing
            if self._is_tabulated(rule.expression):
                legal &= self.rule_holds(rule, codes)
            else:
                computed.append(rule)
        left = np.flatnonzero(legal)
        for rule in computed:
            holds = self.rule_holds(rule, codes[left])
            legal[left[~holds]] = False
            left = left[holds]
        return legal

    def _shape(self, expression: Expression) -> tuple[int, ...]:
        """Levels of the parameters of an expression, inactive ones included."""
        return tuple(self[name].size + 1 for name in expression.names)

    def _is_tabulated(self, expression: Expression) -> bool:
        return math.prod(self._shape(expression)) <= _MAX_TABULATED

    def _evaluate(
        self, expression: Expression, codes: Codes, *, missing: bool
    ) -> NDArray[np.bool_]:
        """A condition or rule on rows of codes; ``missing`` where it looks at an inactive one."""
        positions = [self._positions[name] for name in expression.names]
        shape = self._shape(expression)
        if not self._is_tabulated(expression):
            return self._compute(expression, positions, codes, missing)
        key = id(expression), missing  # the space keeps its expressions
        table = self._truths.get(key)
        if table is None:
            levels = np.indices(shape).reshape(len(shape), -1) - 1
            every = np.zeros((levels.shape[1], codes.shape[1]), dtype=np.int64)
            every[:, positions] = levels.T
            table = self._truths[key] = self._compute(expression, positions, every, missing)
        place = np.zeros(len(codes), dtype=np.int64)
        for position, size in zip(positions, shape, strict=True):
            place = place * size + (codes[:, position] + 1)
        return table[place]

    def _compute(
        self, expression: Expression, positions: list[int], codes: Codes, missing: bool
    ) -> NDArray[np.bool_]:
        """As :meth:`_evaluate`, by evaluating the expression on columns of values."""
        values, active = {}, np.ones(len(codes), dtype=bool)
        for position in positions:
            column = codes[:, position]
            active &= column >= 0
            values[self.names[position]] = self.parameters[position].values(np.maximum(column, 0))
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


def _acting(parameter: Parameter) -> str:
    """Why a parameter needs a value, where it does not always act."""
    return "" if parameter.when is None else f", which acts when {parameter.when}"
