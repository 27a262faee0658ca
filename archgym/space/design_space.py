"""The design space: parameters, conditions and rules, and everything derived from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError, UnknownNameError
from archgym.space.constraints import Constraints, Rule, check_expressions
from archgym.space.counting import (
    Ranking,
    count_canonical,
    enumerate_codes,
    raw_cardinality,
)
from archgym.space.designs import Designs
from archgym.space.expression import Expression
from archgym.space.keys import Keys
from archgym.space.kinds import parameter_from_json
from archgym.space.parameter import Parameter
from archgym.space.sampling import neighbours, sample

__all__ = ["DesignSpace"]


class DesignSpace:
    """Named, typed parameters with conditions and rules.

    A design is a mapping from the names of its *active* parameters to values. It is *canonical*
    when inactive parameters are left out, and *legal* when all rules hold.

    >>> from archgym.space import Categorical, Integer, param
    >>> space = DesignSpace([
    ...     Categorical("refresh", ["none", "all_bank"]),
    ...     Integer("postponed", 0, 8, when=param("refresh") == "all_bank"),
    ... ])
    >>> space.raw_cardinality, space.canonical_cardinality
    (18, 10)
    >>> space.canonical({"refresh": "none", "postponed": 3})
    {'refresh': 'none'}

    Args:
        parameters: in order; a condition looks only at parameters before its own.
        rules: what legal designs must keep.
        fixed: parameters that are not searched, with their values.

    Raises:
        InvalidValueError: if names repeat, a condition looks ahead, or a condition or rule
            compares a parameter with a value that it never has.
    """

    def __init__(
        self,
        parameters: Iterable[Parameter],
        rules: Iterable[Rule] = (),
        *,
        fixed: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(parameters, Parameter):
            raise InvalidValueError(f"parameters are a list, not {parameters.name!r} alone")
        self.parameters: tuple[Parameter, ...] = tuple(parameters)
        for parameter in self.parameters:
            if not isinstance(parameter, Parameter):
                raise InvalidValueError(
                    f"a parameter cannot be {parameter!r}: allowed are Boolean, Categorical, "
                    "Integer, Ordinal and Real"
                )
        self.rules: tuple[Rule, ...] = tuple(rules)
        self.names: tuple[str, ...] = tuple(p.name for p in self.parameters)
        self._positions = {name: i for i, name in enumerate(self.names)}
        if not self.parameters:
            raise InvalidValueError("a design space needs at least one parameter")
        if len(self._positions) != len(self.names):
            twice = sorted({n for n in self.names if self.names.count(n) > 1})
            raise InvalidValueError(f"parameters named twice: {', '.join(twice)}")
        check_expressions(self)
        self.fixed: dict[str, Any] = {}
        self._allowed: list[NDArray[np.int64]] = [np.arange(p.size) for p in self.parameters]
        for name, value in (fixed or {}).items():
            position = self.index(name)
            code = self.parameters[position].code(value)
            self.fixed[name] = self.parameters[position].value(code)
            self._allowed[position] = np.array([code])
        self._completed: list[list[Rule]] = [[] for _ in self.parameters]
        for rule in self.rules:
            last = max(self._positions[name] for name in rule.expression.names)
            self._completed[last].append(rule)
        self._tables = [p.table for p in self.parameters]
        self._keys = Keys([p.size for p in self.parameters])
        self._constraints = Constraints(self)

    # -- what it consists of -------------------------------------------------------------------

    def index(self, name: str) -> int:
        """Position of a parameter.

        Raises:
            UnknownNameError: if there is none of that name.
        """
        try:
            return self._positions[name]
        except KeyError:
            raise UnknownNameError("parameter", name, self.names) from None

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
        """Names of the free parameters of each group; one without a group is its own."""
        found: dict[str, list[str]] = {}
        for position in self.free:
            parameter = self.parameters[position]
            found.setdefault(parameter.group or parameter.name, []).append(parameter.name)
        return {group: tuple(names) for group, names in found.items()}

    @property
    def raw_cardinality(self) -> float:
        """Exact number of combinations of all levels; ``inf`` with a free real parameter."""
        return raw_cardinality(self)

    @cached_property
    def canonical_cardinality(self) -> float:
        """Exact number of distinct legal designs; ``inf`` with a free real parameter.

        Raises:
            SpaceTooLargeError: if it cannot be counted exactly.
        """
        return count_canonical(self) if self.raw_cardinality < math.inf else math.inf

    def fix(self, values: Mapping[str, Any]) -> DesignSpace:
        """The same space with some parameters held at a value and the rest to search.

        Raises:
            UnknownNameError: if a parameter does not exist.
            DesignError: if a value is not allowed.
        """
        return DesignSpace(self.parameters, self.rules, fixed={**self.fixed, **values})

    # -- designs as mappings -------------------------------------------------------------------

    def design(self, codes: Sequence[int]) -> dict[str, Any]:
        """The mapping of one row of codes; inactive parameters (-1) are left out."""
        return {
            name: table[code]
            for name, table, code in zip(self.names, self._tables, codes, strict=True)
            if code >= 0
        }

    def codes(self, design: Mapping[str, Any]) -> tuple[int, ...]:
        """Canonical codes of a design; values of inactive and fixed parameters may be left out.

        Raises:
            UnknownNameError: if a name is not a parameter.
            DesignError: if a value is not allowed, or an active parameter is missing.
        """
        for name in design:
            self.index(name)
        raw: list[int] = []
        for position, parameter in enumerate(self.parameters):
            if parameter.name in design:
                raw.append(parameter.code(design[parameter.name]))
            else:
                allowed = self._allowed[position]
                raw.append(int(allowed[0]) if len(allowed) == 1 else -1)
        codes = self.canonical_codes(raw)
        for position, active in enumerate(self._constraints.active(raw)):
            if active and codes[position] < 0:
                missing = self.parameters[position]
                raise DesignError(
                    f"the design lacks parameter {missing.name!r}: allowed is {missing.range}"
                )
        return codes

    def canonical(self, design: Mapping[str, Any]) -> dict[str, Any]:
        """The design with inactive parameters left out, in the order of the space.

        Raises:
            UnknownNameError, DesignError: as :meth:`codes`.
        """
        return self.design(self.codes(design))

    def designs(self, designs: Iterable[Mapping[str, Any]]) -> Designs:
        """A batch from mappings.

        Raises:
            UnknownNameError, DesignError: as :meth:`codes`.
        """
        rows = [self.codes(design) for design in designs]
        return Designs(self, np.array(rows, dtype=np.int64).reshape(len(rows), len(self.names)))

    def broken_rule(self, design: Mapping[str, Any]) -> str:
        """Why a design is not legal; empty if it is."""
        return self.illegal_reason(self.codes(design))

    # -- one row of codes: the fast path of step() ---------------------------------------------

    def canonical_codes(self, codes: Sequence[int]) -> tuple[int, ...]:
        """Codes with -1 where a parameter is inactive."""
        return self._constraints.canonical_codes(codes)

    def illegal_reason(self, codes: Sequence[int]) -> str:
        """Name of the first rule that canonical codes break, with its text; empty if legal."""
        return self._constraints.illegal_reason(codes)

    @property
    def largest_key(self) -> int:
        """No design's :meth:`key` is larger."""
        return self._keys.largest

    def key(self, codes: Sequence[int]) -> int:
        """An integer that is equal exactly for equal canonical codes."""
        return self._keys.one(codes)

    # -- many rows of codes --------------------------------------------------------------------

    def canonicalise(self, codes: NDArray[np.int64]) -> Designs:
        """Designs from any codes within range, shape (n, n_parameters)."""
        return Designs(self, self._constraints.canonicalised(codes))

    def activity(self, position: int, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows have the parameter active, shape (n,); looks only at its parents."""
        return self._constraints.activity(position, codes)

    def rule_holds(self, rule: Rule, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows of canonical codes keep the rule, shape (n,)."""
        return self._constraints.rule_holds(rule, codes)

    def first_broken_rule(self, designs: Designs) -> NDArray[np.int64]:
        """Index of the first broken of :attr:`rules`, -1 legal, -2 not as fixed, shape (n,)."""
        return self._constraints.first_broken_rule(designs.codes)

    def illegal_reasons(self, designs: Designs) -> dict[int, str]:
        """:meth:`illegal_reason` of each design that is not legal, by its index."""
        return {
            i: self.illegal_reason(designs.codes[i].tolist())
            for i in np.flatnonzero(~self.legal(designs)).tolist()
        }

    def legal(self, designs: Designs) -> NDArray[np.bool_]:
        """Which designs are legal, shape (n,)."""
        return np.asarray(self.first_broken_rule(designs) == -1)

    def keys(self, codes: NDArray[np.int64]) -> list[int]:
        """:meth:`key` of many rows."""
        return self._keys.many(codes)

    def sample(self, n: int, rng: np.random.Generator) -> Designs:
        """Random legal designs: every level of a parameter is equally likely, then rules sift.

        Args:
            n: how many; repeats are possible.
            rng: the only source of randomness; integers are drawn, so that every machine
                gives the same.

        Raises:
            DesignError: if next to no design is legal (one in 10,000 at most).
        """
        return sample(self, n, rng)

    def neighbours(self, design: Mapping[str, Any]) -> Designs:
        """All legal designs that differ by one step of one active, free parameter.

        One step is the next or previous level of an ordered parameter, any other level of an
        unordered one, and a hundredth of the range of a real one. A parameter that a step
        makes active takes its first level.
        """
        return neighbours(self, design)

    def enumerate(self, chunk: int = 65_536) -> Iterator[Designs]:
        """All canonical legal designs, each once, in chunks.

        Raises:
            InvalidValueError: if a free parameter is real.
        """
        self._check_finite()
        for codes in enumerate_codes(self, chunk):
            yield Designs(self, codes)

    def rank(self, designs: Designs) -> NDArray[np.int64]:
        """Position of each design in :meth:`enumerate`, -1 if it is not there, shape (n,).

        The designs may be of another space with the same parameters, as one with other fixed
        values.

        >>> from archgym.space import DesignSpace, Integer
        >>> space = DesignSpace([Integer("ways", 1, 4), Integer("sets", 1, 8)])
        >>> space.rank(space.designs([{"ways": 1, "sets": 3}, {"ways": 4, "sets": 8}])).tolist()
        [2, 31]

        Raises:
            InvalidValueError: if a free parameter is real.
            SpaceTooLargeError: if too many parameters depend on each other.
        """
        return self._ranking.rank(designs.codes)

    def unrank(self, positions: NDArray[np.int64]) -> Designs:
        """The designs at positions in :meth:`enumerate`; the inverse of :meth:`rank`.

        Raises:
            InvalidValueError: if there is no such position, or a free parameter is real.
            SpaceTooLargeError: if too many parameters depend on each other.
        """
        return Designs(self, self._ranking.unrank(np.asarray(positions, dtype=np.int64)))

    @cached_property
    def _ranking(self) -> Ranking:
        self._check_finite()
        return Ranking(self)

    def _check_finite(self) -> None:
        for position in self.free:
            if self.parameters[position].continuous:
                raise InvalidValueError(
                    f"parameter {self.names[position]!r} is real: fix it, or make it an Ordinal"
                )

    # -- JSON ----------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which :meth:`from_json` builds the same space."""
        return {
            "parameters": [parameter.to_json() for parameter in self.parameters],
            "rules": [
                {"name": r.name, "expression": r.expression.to_json(), "doc": r.doc}
                for r in self.rules
            ],
            "fixed": dict(self.fixed),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> DesignSpace:
        """The inverse of :meth:`to_json`.

        Raises:
            InvalidValueError, UnknownNameError: if the data do not describe a space.
        """
        if not isinstance(data, Mapping) or "parameters" not in data:
            raise InvalidValueError("not a design space: 'parameters' is missing")
        return DesignSpace(
            [parameter_from_json(p) for p in data["parameters"]],
            [
                Rule(r["name"], Expression.from_json(r["expression"]), r.get("doc", ""))
                for r in data.get("rules", ())
            ],
            fixed=data.get("fixed"),
        )

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.to_json(), sort_keys=True)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DesignSpace) and self._text == other._text)

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return DesignSpace.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        raw = self.raw_cardinality
        size = "infinitely many" if raw == math.inf else f"{raw:,}"
        return f"DesignSpace({len(self.parameters)} parameters, {size} combinations)"

    # -- for counting and enumeration ----------------------------------------------------------

    def allowed_codes(self, position: int) -> NDArray[np.int64]:
        """Levels that a parameter may take: all, or the fixed one."""
        return self._allowed[position]

    def rules_completed_by(self, position: int) -> list[Rule]:
        """Rules whose last parameter this is."""
        return self._completed[position]

    def is_referenced_after(self, position: int, after: int) -> bool:
        """Whether a condition or rule of a parameter past ``after`` looks at this one."""
        name = self.names[position]
        return any(
            name in rule.expression.names
            for rules in self._completed[after + 1 :]
            for rule in rules
        ) or any(p.when is not None and name in p.when.names for p in self.parameters[after + 1 :])
