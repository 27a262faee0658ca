"""Tables of cases: each row, or group of rows, says model, hardware, design and figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.errors import InvalidValueError
from archgym.problem.reference import (
    ColumnUse,
    Reference,
    ReferenceRow,
    Skipped,
    TableRow,
    read_table,
)
from archgym.space import Boolean, Categorical, DesignSpace, Ordinal, Parameter

__all__ = ["Form", "read_cases"]


class Form(NamedTuple):
    """One form of a table.

    Attributes:
        title: of the reference.
        read: reads the rows of a case.
        metrics: the environment's metric by column.
        by: a column: rows with equal values in it are one case; empty if each row is one.
    """

    title: str
    read: Callable[[Sequence[TableRow]], Case]
    metrics: Mapping[str, str]
    by: str = ""


def read_cases(
    table: Path,
    hardware: str | None,
    forms: Mapping[str, Form],
    what: str,
    objective: str,
    doubled: Collection[str] = (),
) -> list[Reference]:
    """A table as one reference; rows that one environment can compare share a setting.

    Args:
        table: the CSV file, gzipped or not.
        hardware: must be ``None``; every row says what it ran on.
        forms: each form by a column that only it has.
        what: what the rows are, for messages.
        objective: of the environments that simulate the rows.
        doubled: parameters whose largest value is offered doubled too, as a space has to leave a
            choice.

    Raises:
        InvalidValueError: if the table is of no known form or a cell is not possible; names the
            file, the line, the column and the value.
    """
    if hardware is not None:
        raise InvalidValueError(f"hardware is {hardware!r}; rows of these tables name their own")
    columns, rows = read_table(table)
    form = next((forms[name] for name in forms if name in columns), None)
    if form is None:
        raise InvalidValueError(
            f"{table}: the header has none of the columns {', '.join(forms)}, which tell the "
            f"form of a table of {what}. The header has: {', '.join(columns)}"
        )
    cases: list[tuple[TableRow, Case]] = []
    skipped: list[Skipped] = []
    for group in _groups(rows, form.by):
        try:
            cases.append((group[0], form.read(group)))
        except NotComparable as reason:
            skipped.append(Skipped(group[0].line, str(reason)))
    designs: dict[str, list[Mapping[str, Any]]] = {}
    for _, case in cases:
        designs.setdefault(_key(case), []).append(case.design)
    settings: list[Mapping[str, Any]] = []
    numbers: dict[str, int] = {}
    found = []
    for row, case in cases:
        key = _key(case)
        if key not in numbers:
            numbers[key] = len(settings)
            space = _space(designs[key], doubled)
            settings.append({"workload": case.workload, "space": space, "objective": objective})
        found.append(ReferenceRow(case.label, case.design, case.metrics, numbers[key], row.line))
    uses = [
        ColumnUse(name, "metric", form.metrics[name])
        if name in form.metrics
        else ColumnUse(name, "setting", "workload")
        for name in columns
    ]
    return [Reference(form.title, str(table), settings, found, uses, skipped)]


def _groups(rows: Sequence[TableRow], by: str) -> Iterator[list[TableRow]]:
    if not by:
        yield from ([row] for row in rows)
        return
    found: dict[str, list[TableRow]] = {}
    for row in rows:
        found.setdefault(row.text(by), []).append(row)
    yield from found.values()


def _key(case: Case) -> str:
    """Equal for rows that one environment can compare."""
    return json.dumps([case.workload, sorted(case.design)], sort_keys=True)


def _space(designs: Sequence[Mapping[str, Any]], doubled: Collection[str]) -> DesignSpace:
    """The values that occur, without conditions and rules: what was measured was possible."""
    parameters: list[Parameter] = []
    for name in designs[0]:
        values = {design[name] for design in designs}
        if name in doubled:
            values |= {2 * max(values)}
        if all(isinstance(value, bool) for value in values):
            parameters.append(Boolean(name))
        elif all(isinstance(value, str) for value in values):
            parameters.append(Categorical(name, sorted(values)))
        else:
            parameters.append(Ordinal(name, sorted(values)))
    return DesignSpace(parameters)
