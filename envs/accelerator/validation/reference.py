"""Reference figures for the accelerator environment: other simulators on known layers and designs.

A table is a CSV file with a row for each layer on each design, in one of the forms of
:mod:`archgym.envs.accelerator.validation.table_forms`, recognised by its columns. The rows of a
table are compared more than once: all together, and within groups such as an array size.

The tables that ship are in the folder ``tables``; its ``provenance.json`` says how they came
about.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.model import evaluate
from archgym.envs.accelerator.spaces.template import BASELINE, template_space
from archgym.envs.accelerator.validation.table_forms import FORMS, LABELS, Form
from archgym.envs.accelerator.validation.table_rows import NotComparableError, Run
from archgym.envs.accelerator.workload.layer import LayerTable
from archgym.envs.accelerator.workload.user_layers import read_layer
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.reference import (
    ColumnUse,
    Reference,
    ReferenceRow,
    Skipped,
    TableRow,
    read_table,
    shipped_tables,
)
from archgym.space import DesignSpace

__all__ = ["FOLDER", "read_reference", "shipped_references"]

FOLDER = Path(__file__).parent / "tables"
"""The tables that ship."""
_SHOWN = (
    *("dataflow", "rows", "columns", "input_rf_bytes", "weight_rf_bytes", "output_rf_bytes"),
    *("buffer_kib", "dram_bytes_per_cycle", "word_bits", "double_buffered"),
)
"""Parameters by which a row's design shows its hardware; all of it is set for the environment."""
_MIN_BUFFER_KIB = 8
"""Buffers below this are smaller than the banks of the baseline design, whose rule forbids it."""


def shipped_references(*, counts: bool = False) -> list[Reference]:
    """The references that ship with the package.

    Args:
        counts: see :func:`read_reference`.
    """
    return shipped_tables(FOLDER, lambda path: read_reference(path, counts=counts))


def read_reference(table: Path, *, counts: bool = False) -> list[Reference]:
    """A table as one reference for each way in which its rows are compared.

    Args:
        table: the CSV file, gzipped or not.
        counts: whether to compare accesses of the buffer too, for the environment that counts
            them (:mod:`archgym.envs.accelerator.counted`).

    Raises:
        InvalidValueError: if the table is of no known form or a cell is not possible; names the
            file, the line, the column and the value.
    """
    columns, rows = read_table(table)
    form = _form_of(table, columns)
    runs: list[tuple[TableRow, Run]] = []
    skipped: list[Skipped] = []
    for row in rows:
        try:
            run = _read(form, row)
            _check_mapped(run)
            runs.append((row, run))
        except NotComparableError as reason:
            skipped.append(Skipped(row.line, str(reason)))
    space = _widened([run.hardware for _, run in runs])
    settings: dict[str, int] = {}
    arguments: list[Mapping[str, Any]] = []
    places = []
    for _, run in runs:
        made = _arguments(run)
        key = json.dumps(made, sort_keys=True)
        if key not in settings:
            settings[key] = len(arguments)
            arguments.append({**made, "space": space, "objective": "minimize latency_cycles"})
        places.append(settings[key])
    found = []
    for view in form.views:
        chosen = {
            c: name for c, name in form.metrics.items() if c in columns and name in view.metrics
        }
        if not chosen:
            continue
        kept = [
            ReferenceRow(
                case=run.groups[view.case] if view.case else view.title,
                design=_design(run.hardware),
                metrics=_figures(row, chosen),
                setting=place,
                line=row.line,
            )
            for (row, run), place in zip(runs, places, strict=True)
            if view.only is None or run.groups[view.only[0]] == view.only[1]
        ]
        if kept or not runs:
            title = f"{form.simulator}, {view.title}"
            uses = [_use(form, column, chosen) for column in columns]
            found.append(Reference(title, str(table), arguments, kept, uses, skipped))
    return found


def _form_of(table: Path, columns: Sequence[str]) -> Form:
    lacking = [[name for name in form.needed if name not in columns] for form in FORMS]
    shares = [len(left) / len(form.needed) for left, form in zip(lacking, FORMS, strict=True)]
    nearest = shares.index(min(shares))
    if lacking[nearest]:
        form = FORMS[nearest]
        raise InvalidValueError(
            f"{table}: the header lacks column {lacking[nearest][0]!r}; a table of "
            f"{form.simulator} has the columns {', '.join(form.needed)}. "
            f"The header has: {', '.join(columns)}"
        )
    return FORMS[nearest]


def _read(form: Form, row: TableRow) -> Run:
    """What a row says, with the line in every message."""
    try:
        run = form.read(row)
        read_layer(run.layer)
        return run
    except (InvalidValueError, UnknownNameError) as error:
        if str(row.path) in str(error):
            raise
        raise InvalidValueError(f"{row.path}, line {row.line}: {error}") from None


def _check_mapped(run: Run) -> None:
    """An environment is made for every layer and design, which needs it to have a mapping."""
    layer, _ = read_layer(run.layer)
    mapper = "latency" if run.mapper else "off"
    costs = evaluate(LayerTable.of([(layer, 1)]), [run.hardware], mapper=mapper)
    if costs.unmapped(0):
        raise NotComparableError("no tile of the layer fits the buffers, as we count their bytes")


def _arguments(run: Run) -> dict[str, Any]:
    """Arguments of the environment: the layer, the mapper, and the hardware."""
    shown = {**dict.fromkeys(BASELINE), "buffer_bytes": None, "accumulator_bits": None}
    usual = Hardware("nvdla_ws", 1, 1)
    fixed = {}
    for field in dataclasses.fields(Hardware):
        value = getattr(run.hardware, field.name)
        # A default is left out, unless the design would set another value.
        if field.name in shown or value != getattr(usual, field.name):
            fixed[field.name] = value
    return {
        "workload": {"layers": [dict(run.layer)]},
        "mapper": "latency" if run.mapper else "off",
        "hardware": fixed,
    }


def _design(hardware: Hardware) -> dict[str, Any]:
    """The design of the ``template`` space that shows the most of a row's hardware."""
    shown: dict[str, Any] = {
        name: getattr(hardware, name) for name in _SHOWN if name != "buffer_kib"
    }
    shown["buffer_kib"] = max(_MIN_BUFFER_KIB, round(hardware.buffer_bytes / 1024))
    return {**BASELINE, **shown}


def _widened(hardware: Sequence[Hardware]) -> DesignSpace:
    """The ``template`` space, with the values of the rows."""
    data = template_space().to_json()
    designs = [_design(one) for one in hardware]
    for entry in data["parameters"]:
        if entry["name"] in _SHOWN and entry["kind"] == "ordinal":
            seen = {design[entry["name"]] for design in designs}
            entry["values"] = sorted({*entry["values"], *seen})
    return DesignSpace.from_json(data)


def _figures(row: TableRow, columns: Mapping[str, str]) -> dict[str, float]:
    figures = {}
    for column, metric in columns.items():
        value = row.number(column)
        if value is not None:
            figures[metric] = value
    return figures


def _use(form: Form, column: str, chosen: Mapping[str, str]) -> ColumnUse:
    if column in chosen:
        return ColumnUse(column, "metric", chosen[column])
    if column in form.parameters:
        return ColumnUse(column, "setting", "", "layer or hardware")
    if column in form.checks:
        return ColumnUse(column, "check", note=form.checks[column])
    if form.metrics.get(column, "").endswith("_count"):
        return ColumnUse(
            column,
            "ignored",
            note="archgym.envs.accelerator.counted:CountedAccelerator has it",
        )
    if column in form.metrics:
        return ColumnUse(column, "ignored", note="compared in another group of rows")
    note = form.ignored.get(column) or LABELS.get(column) or "not known"
    return ColumnUse(column, "ignored", note=note)
