"""Parameters, derived values and rules of a declaration, and the names that templates may have."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from archgym.declared.load import Source
from archgym.declared.schema import PARAMETER_KINDS, ParameterEntry
from archgym.errors import DesignError, InvalidValueError, UnknownNameError
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
from archgym.space.expression import Literal
from archgym.space.formula import parse_formula

__all__ = ["BUILT_IN", "Names", "evaluated"]

BUILT_IN: Final = {
    "here": "folder of the declaration",
    "folder": "folder.STAGE is the folder of a stage, folder.run that of the run",
    "workload": "name of the workload",
    "repeat": "number of the run of a design, from 0",
    "resumed_from": "fidelity whose checkpoint the run goes on from, 0 if it begins anew",
}
"""Names that every template may have."""
_EXACT: Final = 2.0**53


class Names:
    """Everything in a declaration that has a value in a design.

    Args:
        source: the declaration.

    Attributes:
        space: the design space.
        baseline: the baseline design.
        derived: what each derived value is computed from, in their order.

    Raises:
        InvalidValueError, UnknownNameError: for what is not possible, with its line.
    """

    def __init__(self, source: Source) -> None:
        self._source, self._entries = source, source.declaration.parameters
        self._check_distinct()
        self.derived: dict[str, Expression | Literal] = {}
        for name, text in source.declaration.derived.items():
            with source.at("derived", name):
                known = {**{n: param(n) for n in self._given}, **self.derived}
                self.derived[name] = parse_formula(text, known) if isinstance(text, str) else text
        self.space = self._space()
        self.baseline = self._baseline()

    @cached_property
    def fidelity(self) -> tuple[str, ...]:
        """Names of values that a fidelity gives."""
        entries = self._source.declaration.fidelities
        for number, entry in enumerate(entries):
            with self._source.at("fidelities", number, "values"):
                _check_same(entry.values, entries[0].values, "the first fidelity")
        return tuple(entries[0].values) if entries else ()

    @cached_property
    def workload(self) -> tuple[str, ...]:
        """Names of values and files that a workload gives."""
        entries = self._source.declaration.workloads
        first = next(iter(entries.values()), None)
        if first is None:
            return ()
        wanted = {**first.values, **first.files}
        for name, entry in entries.items():
            with self._source.at("workloads", name):
                if twice := sorted(set(entry.values) & set(entry.files)):
                    raise InvalidValueError(f"{twice[0]!r} is among its values and its files")
                _check_same({**entry.values, **entry.files}, wanted, "the first workload")
        return tuple(wanted)

    @property
    def all(self) -> tuple[str, ...]:
        """Names that a template may have."""
        return (*self._given, *self.derived, *BUILT_IN)

    def values(self, design: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
        """The values of parameters and derived names in a design.

        Args:
            design: its active parameters.
            others: values of the fidelity and the workload.
        """
        found = dict(others)
        for name, entry in self._entries.items():
            if name in design:
                found[name] = design[name]
            elif entry.when_inactive is not None:
                found[name] = entry.when_inactive
        for name, expression in self.derived.items():
            if not isinstance(expression, Expression) or set(expression.names) <= found.keys():
                found[name] = evaluated(expression, found)
        return found

    @cached_property
    def _given(self) -> tuple[str, ...]:
        return (*self._entries, *self.fidelity, *self.workload)

    def _check_distinct(self) -> None:
        declaration = self._source.declaration
        owners: dict[str, str] = dict.fromkeys(BUILT_IN, "a name that every declaration has")
        for kind, names in (
            ("parameters", declaration.parameters),
            ("fidelities", self.fidelity),
            ("workloads", self.workload),
            ("derived", declaration.derived),
        ):
            for name in names:
                if name in owners:
                    with self._source.at(kind, name):
                        raise InvalidValueError(f"the name {name!r} is taken: it is {owners[name]}")
                owners[name] = f"one of {kind}"

    def _space(self) -> DesignSpace:
        parameters: list[Parameter] = []
        for name, entry in self._entries.items():
            with self._source.at("parameters", name):
                before = {one.name: param(one.name) for one in parameters}
                parameters.append(_parameter(name, entry, before))
        rules = []
        for name, text in self._source.declaration.rules.items():
            with self._source.at("rules", name):
                rules.append(self._rule(name, text))
        with self._source.at("parameters"):
            return DesignSpace(parameters, rules)

    def _rule(self, name: str, text: str) -> Rule:
        known: dict[str, Expression | Literal] = {n: param(n) for n in self._given}
        found = parse_formula(text, {**known, **self.derived})
        if not isinstance(found, Expression) or not found.names:
            raise InvalidValueError(f"{text!r} looks at no parameter")
        for other in found.names:
            if other not in self._entries:
                raise InvalidValueError(
                    f"{text!r} depends on {other!r}, which is no parameter: a rule holds for every "
                    "workload and fidelity"
                )
        derived = any(re.search(rf"\b{one}\b", text) for one in self.derived)
        return Rule(name, found, text if derived else "")

    def _baseline(self) -> dict[str, Any]:
        design = {}
        for name, entry in self._entries.items():
            with self._source.at("parameters", name, "baseline"):
                parameter = self.space[name]
                design[name] = parameter.value(parameter.code(entry.baseline))
        canonical = self.space.canonical(design)
        if reason := self.space.broken_rule(canonical):
            with self._source.at("rules"):
                raise DesignError(f"the baseline breaks {reason}")
        return canonical


def evaluated(expression: Expression | Literal, values: Mapping[str, Any]) -> Any:
    """The value of an expression; whole numbers are integers."""
    if not isinstance(expression, Expression):
        return expression
    value = expression.evaluate(values)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return value


def _parameter(name: str, entry: ParameterEntry, before: Mapping[str, Expression]) -> Parameter:
    kinds = entry.given(PARAMETER_KINDS)
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        raise InvalidValueError(
            f"it has exactly one of the keys {', '.join(PARAMETER_KINDS)}, not {found}"
        )
    (kind,) = kinds
    if entry.step is not None and kind != "integer":
        raise InvalidValueError(f"step is for an integer, not for {kind}")
    if entry.log and kind != "real":
        raise InvalidValueError(f"log is for a real one, not for {kind}")
    when = None if entry.when is None else parse_formula(entry.when, before)
    if when is not None and not isinstance(when, Expression):
        raise InvalidValueError(f"when: {entry.when!r} looks at no parameter")
    if entry.when_inactive is not None and when is None:
        raise InvalidValueError("when_inactive is for a parameter with 'when'")
    about: Any = {"doc": entry.doc, "unit": entry.unit, "when": when, "group": entry.group}
    given: Any = getattr(entry, kind)
    if kind == "choices":
        return Categorical(name, _scalars(given), **about)
    if kind == "values":
        return Ordinal(name, _scalars(given), **about)
    if kind == "powers_of_two":
        return Ordinal(name, _powers(*given), **about)
    if kind == "integer":
        return Integer(name, *given, step=entry.step or 1, **about)
    if kind == "real":
        return Real(name, *given, log=entry.log, **about)
    return Boolean(name, **about) if kind == "boolean" else Permutation(name, given, **about)


def _scalars(values: Iterable[Any]) -> list[Any]:
    for value in values:
        if isinstance(value, bool):
            raise InvalidValueError(
                f"{str(value).lower()} is among its values: YAML reads yes, no, on and off as "
                "true and false, so put such words in quotes; for a switch write boolean: true"
            )
        if not isinstance(value, str | int | float) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            raise InvalidValueError(
                f"{value!r:.60} is among its values: allowed are numbers, words"
            )
    return list(values)


def _powers(low: int, high: int) -> list[int]:
    for value in (low, high):
        if value < 1 or value & (value - 1):
            raise InvalidValueError(f"powers_of_two: {shortened(value)} is no power of two")
    if low > high:
        raise InvalidValueError(f"powers_of_two: needs low <= high, got {low} and {high}")
    return [1 << n for n in range(low.bit_length() - 1, high.bit_length())]


def shortened(value: int) -> str:
    """A whole number in at most some 20 characters."""
    digits = str(value)
    return digits if len(digits) <= 20 else f"{digits[:12]}... ({len(digits)} digits)"


def _check_same(given: Iterable[str], wanted: Iterable[str], whose: str) -> None:
    given, wanted = list(given), list(wanted)
    for name in given:
        if name not in wanted:
            raise UnknownNameError(f"value (of those of {whose})", name, wanted)
    for name in wanted:
        if name not in given:
            raise InvalidValueError(f"the value {name!r} is missing, which {whose} has")
