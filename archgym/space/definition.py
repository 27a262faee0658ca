"""The definition of a design space: its parameters, rules and fixed values."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archgym.errors import DesignError, InvalidValueError, UnknownNameError
from archgym.space.expression import Expression
from archgym.space.keys import DesignKeys
from archgym.space.kinds import without
from archgym.space.parameter import Parameter


@dataclass(frozen=True)
class Rule:
    """A named law that legal designs keep; it holds wherever a parameter in it is inactive.

    Attributes:
        name: short name, shown as the reason when a design breaks it.
        expression: what must hold.
        doc: why, in one line.

    Raises:
        InvalidValueError: if the expression is not an expression of parameters.
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


class SpaceDefinition(DesignKeys):
    """The base of :class:`archgym.space.DesignSpace`: the parts, and codes as mappings.

    Attributes:
        parameters: in order.
        rules: laws that legal designs keep.
        names: names of the parameters.
        fixed: parameters that are not searched, with their values.
        excluded: values that parameters were declared with and that no design has, by parameter.
        declared: the parameters with the excluded values; conditions and rules may name these.
        absent: why it lacks parameters that like spaces have, by name.
    """

    def __init__(
        self,
        parameters: Iterable[Parameter],
        rules: Iterable[Rule],
        fixed: Mapping[str, Any],
        excluded: Mapping[str, Sequence[Any]],
        absent: Mapping[str, str],
    ) -> None:
        self.absent: dict[str, str] = dict(absent)
        if isinstance(parameters, Parameter):
            raise InvalidValueError(f"parameters are a list, not {parameters.name!r} alone")
        self.declared: tuple[Parameter, ...] = tuple(parameters)
        for parameter in self.declared:
            if not isinstance(parameter, Parameter):
                raise InvalidValueError(
                    f"a parameter cannot be {parameter!r}: allowed are Boolean, Categorical, "
                    "Integer, Ordinal, Permutation and Real"
                )
        self.rules: tuple[Rule, ...] = tuple(rules)
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise InvalidValueError(f"a rule must be a Rule, not {rule!r:.80}")
        self.names: tuple[str, ...] = tuple(p.name for p in self.declared)
        self._positions = {name: i for i, name in enumerate(self.names)}
        if not self.declared:
            raise InvalidValueError("a design space needs at least one parameter")
        if len(self._positions) != len(self.names):
            twice = sorted(n for n, count in Counter(self.names).items() if count > 1)
            raise InvalidValueError(f"parameters named twice: {', '.join(twice)}")
        self._check_expressions()
        self.excluded = self._read_excluded(excluded)
        self.parameters: tuple[Parameter, ...] = tuple(
            without(p, self.excluded[p.name]) if p.name in self.excluded else p
            for p in self.declared
        )
        self.fixed: dict[str, Any] = {}
        self._allowed = [range(p.size) for p in self.parameters]
        for name, value in fixed.items():
            position = self.index(name)
            self.check_excluded(name, value)
            code = self.parameters[position].code(value)
            self.fixed[name] = self.parameters[position].value(code)
            self._allowed[position] = range(code, code + 1)
        self._completed: list[list[Rule]] = [[] for _ in self.parameters]
        for rule in self.rules:
            last = max(self._positions[name] for name in rule.expression.names)
            self._completed[last].append(rule)
        self._tables = [p.table for p in self.parameters]
        super().__init__([p.size for p in self.parameters])

    def _read_excluded(self, excluded: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """The excluded values in the order of their levels, without parameters that lose none.

        Raises:
            UnknownNameError, DesignError, InvalidValueError: as :meth:`DesignSpace.exclude`.
        """
        if not isinstance(excluded, Mapping):
            raise InvalidValueError(
                f"exclude must be a mapping of parameters to lists of values, not {excluded!r:.80}"
            )
        found: dict[str, list[Any]] = {}
        for name, values in excluded.items():
            parameter = self.declared[self.index(name)]
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise InvalidValueError(
                    f"exclude: {name} is {values!r:.80}; it must be a list of values, as in "
                    f"{{{name}: [{values!s:.40}]}}"
                )
            codes = sorted({parameter.code(value) for value in values})
            if codes:
                found[name] = [parameter.value(code) for code in codes]
        return {name: found[name] for name in self.names if name in found}

    def _check_expressions(self) -> None:
        """Refuses conditions and rules that look at an unknown name, or that can never match.

        Raises:
            UnknownNameError, InvalidValueError: with the condition or the rule, and what is wrong.
        """
        named = [(f"rule {rule.name!r}", rule.expression) for rule in self.rules]
        for position, parameter in enumerate(self.declared):
            if parameter.when is None:
                continue
            named.append((f"condition of {parameter.name!r}", parameter.when))
            for name in parameter.when.names:
                if self.index(name) >= position:
                    raise InvalidValueError(
                        f"the condition of {parameter.name!r} looks at {name!r}, "
                        "which must be listed before it"
                    )
        for where, expression in named:
            if not expression.names:
                raise InvalidValueError(f"the {where} looks at no parameter")
            for name in expression.names:
                self.index(name)
            for name, literal in expression.literals():
                try:
                    self.declared[self.index(name)].code(literal)
                except DesignError as error:
                    raise InvalidValueError(f"the {where} can never match: {error}") from None
            for name in expression.numeric_names():
                levels = self.declared[self.index(name)].values(np.zeros(1, np.int64))
                if not np.issubdtype(levels.dtype, np.number):
                    raise InvalidValueError(f"the {where} computes with {name!r}, not a number")

    def check_excluded(self, name: str, value: Any) -> None:
        """Refuses a value that is excluded, with a message of its own.

        Raises:
            DesignError: if it is.
        """
        if value in self.excluded.get(name, ()):
            raise DesignError(
                f"parameter {name!r} cannot be {value!r}, which is excluded from the search "
                f"(include: [{name}] brings it back); allowed is {self[name].range}"
            )

    def index(self, name: str) -> int:
        """Position of a parameter.

        Raises:
            UnknownNameError: if no parameter has that name.
        """
        try:
            return self._positions[name]
        except KeyError:
            reason = self.absent.get(name, "")
            raise UnknownNameError("parameter", name, self.names, reason=reason) from None

    def __getitem__(self, name: str) -> Parameter:
        return self.parameters[self.index(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    @property
    def free(self) -> tuple[int, ...]:
        """Positions of the parameters that are searched (not fixed, more than one level)."""
        return tuple(i for i, allowed in enumerate(self._allowed) if len(allowed) > 1)

    @cached_property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Names of the free parameters of each group; one without a group is its own group."""
        found: dict[str, list[str]] = {}
        for position in self.free:
            parameter = self.parameters[position]
            found.setdefault(parameter.group or parameter.name, []).append(parameter.name)
        return {group: tuple(names) for group, names in found.items()}

    @property
    def raw_cardinality(self) -> float:
        """Exact number of combinations of all levels; ``inf`` with a free real parameter."""
        if any(p.continuous and p.name not in self.fixed for p in self.parameters):
            return math.inf
        return math.prod(map(len, self._allowed))

    # -- codes ---------------------------------------------------------------------------------

    def allowed_codes(self, position: int) -> Sequence[int]:
        """Levels that a parameter may take: all, or the fixed one."""
        return self._allowed[position]

    def design(self, codes: Sequence[int]) -> dict[str, Any]:
        """The mapping of one row of codes; inactive parameters (-1) are left out."""
        return {
            name: table[code]
            for name, table, code in zip(self.names, self._tables, codes, strict=True)
            if code >= 0
        }

    # -- which rules and conditions look at what -----------------------------------------------

    def rules_completed_by(self, position: int) -> list[Rule]:
        """Rules whose last parameter this is."""
        return self._completed[position]

    def is_referenced_after(self, position: int, after: int) -> bool:
        """Whether a condition or rule of a parameter past ``after`` looks at this one."""
        name = self.names[position]
        later = [rule.expression for rules in self._completed[after + 1 :] for rule in rules]
        later += [p.when for p in self.parameters[after + 1 :] if p.when is not None]
        return any(name in expression.names for expression in later)

    # -- JSON and equality ---------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which :meth:`archgym.space.DesignSpace.from_json` builds it again."""
        return {
            "parameters": [parameter.to_json() for parameter in self.declared],
            "rules": [
                {"name": r.name, "expression": r.expression.to_json(), "doc": r.doc}
                for r in self.rules
            ],
            "fixed": dict(self.fixed),
            **(
                {"excluded": {n: list(v) for n, v in self.excluded.items()}}
                if self.excluded
                else {}
            ),
        }

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.to_json(), sort_keys=True)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, SpaceDefinition) and self._text == other._text)

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        raw = self.raw_cardinality
        size = "infinitely many" if raw == math.inf else f"{raw:,}"
        return f"DesignSpace({len(self.parameters)} parameters, {size} combinations)"
