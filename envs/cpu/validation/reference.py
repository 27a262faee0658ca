"""Reference figures of the processor environment: counts of cachegrind and ChampSim.

Two forms of tables are known by their columns:

- cachegrind: ``program``, ``I1_size``, ``I1_ways``, ``I1_line``, the same of ``D1`` and ``LL``, and
  the counts under cachegrind's names (``Ir``, ``I1mr`` ...), for whole programs;
- ChampSim: ``trace``, ``requested_instructions``, sets and ways of each cache, prefetchers and
  policies of data caches, and the counts of each cache, or the core, ``ipc`` and ``branch_mpki``;
  a table with both is compared twice: the caches in the order of the program, and the core, with
  its caches, in time.

The tables that ship are in the folder ``tables``; its ``provenance.json`` says how they came about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from archgym.envs.cpu.validation.champsim_rows import (
    CORE_COLUMNS,
    NotComparable,
    champsim_core_row,
    champsim_design,
    champsim_misses,
    champsim_stream,
    stream_file,
)
from archgym.errors import InvalidValueError
from archgym.problem.reference import (
    ColumnUse,
    Reference,
    ReferenceRow,
    Skipped,
    TableRow,
    read_table,
    shipped_tables,
)
from archgym.space import Categorical, DesignSpace, Ordinal, Parameter

__all__ = ["read_reference", "shipped_references"]

FOLDER: Final = Path(__file__).parent / "tables"
_LEVELS: Final = {"I1": "l1i", "D1": "l1d", "LL": "llc"}
_COUNTS: Final = ("I1mr", "ILmr", "D1mr", "DLmr", "D1mw", "DLmw")
_PARAMETER_ENDINGS: Final = (
    "_size",
    "_ways",
    "_line",
    "_sets",
    "_repl",
    "_pf",
    "_lat",
    "_mshr",
)
_LOOKAHEAD: Final = 500
"""Instructions behind the last one that ChampSim has fetched by its end."""


def shipped_references() -> list[Reference]:
    """The references that ship with the package."""
    return shipped_tables(FOLDER, lambda path: read_reference(path, None))


def read_reference(table: Path, programs: Path | None) -> list[Reference]:
    """A table as a reference.

    Args:
        table: the CSV or Parquet file.
        programs: folder with the instruction streams of the rows; ``None`` for the shipped ones.

    Raises:
        InvalidValueError: if the table is of no known form or a cell is not possible.
    """
    columns, rows = read_table(table)
    folder = FOLDER if programs is None else programs
    if not folder.is_dir():
        raise InvalidValueError(f"{folder} is no folder with instruction streams")
    if {"program", "I1_size", "D1_size", "LL_size", "I1mr"} <= set(columns):
        return [_reference("cachegrind 3.19", rows, columns, folder, _cachegrind_row)]
    found = []
    if {"trace", "requested_instructions", "l1d_sets", "l1d_repl", "l1d_miss"} <= set(columns):
        found.append(_reference("ChampSim 2ff2501", rows, columns, folder, _champsim_row))
    if {"trace", "requested_instructions", "l1d_sets", *CORE_COLUMNS, "ipc"} <= set(columns):
        title = "core of ChampSim 2ff2501"
        found.append(_reference(title, rows, columns, folder, champsim_core_row))
    if found:
        return found
    raise InvalidValueError(
        f"{table}: the header is of no known form: a table of cachegrind has the columns program, "
        "I1_size, D1_size, LL_size, I1mr; one of ChampSim trace, requested_instructions, l1d_sets, "
        "l1d_repl, and l1d_miss, or rob_size and ipc"
    )


def _reference(
    title: str, rows: Sequence[TableRow], columns: Sequence[str], folder: Path, read: Any
) -> Reference:
    kept: list[tuple[TableRow, str, dict[str, Any], dict[str, Any], dict[str, float]]] = []
    skipped = []
    for row in rows:
        try:
            case, setting, design, figures = read(row, folder)
        except NotComparable as reason:
            skipped.append(Skipped(row.line, str(reason)))
        else:
            kept.append((row, case, setting, design, figures))
    space = _space([design for _, _, _, design, _ in kept]) if kept else None
    settings: dict[str, int] = {}
    arguments: list[Mapping[str, Any]] = []
    found = []
    for row, case, setting, design, figures in kept:
        key = json.dumps(setting, sort_keys=True)
        if key not in settings:
            settings[key] = len(arguments)
            arguments.append({**setting, "space": space, "objective": "minimize llc_mpki"})
        found.append(ReferenceRow(case, design, figures, settings[key], row.line))
    return Reference(
        title, str(rows[0].path), arguments, found, [_use(column) for column in columns], skipped
    )


def _use(column: str) -> ColumnUse:
    if column in ("program", "trace"):
        return ColumnUse(column, "case")
    if column == "requested_instructions":
        return ColumnUse(column, "setting", "workload")
    if column in ("ipc", "branch_mpki"):
        return ColumnUse(column, "metric", "ipc_rate" if column == "ipc" else column)
    if column in (*CORE_COLUMNS, "branch") or column.endswith(_PARAMETER_ENDINGS):
        return ColumnUse(column, "parameter", column)
    if column in (*_COUNTS, "Ir") or column.endswith(("_miss", "_merge")):
        return ColumnUse(column, "metric", "mpki")
    return ColumnUse(column, "ignored", note="not a count of misses")


def _cachegrind_row(row: TableRow, folder: Path) -> tuple[str, Any, Any, dict[str, float]]:
    design: dict[str, Any] = {"l2_kib": 0}
    for column, level in _LEVELS.items():
        design[f"{level}_kib"] = row.whole(f"{column}_size") / 1024
        design[f"{level}_ways"] = row.whole(f"{column}_ways")
        design[f"{level}_line_bytes"] = row.whole(f"{column}_line")
    if design["llc_line_bytes"] < max(design["l1i_line_bytes"], design["l1d_line_bytes"]):
        raise NotComparable("the last level has shorter lines than a first level")
    kilo = row.whole("Ir") / 1000
    count = {name: row.whole(name) for name in _COUNTS}
    figures = {
        "l1i_mpki": count["I1mr"] / kilo,
        "l1d_mpki": (count["D1mr"] + count["D1mw"]) / kilo,
        "llc_mpki": (count["ILmr"] + count["DLmr"] + count["DLmw"]) / kilo,
    }
    design["llc_inclusion"] = "non_inclusive"
    name = row.text("program")
    file = str(stream_file(folder, name, whole=True))
    setting = {"workload": {"file": file}, "counting": "cachegrind"}
    return name, setting, design, figures


def _champsim_row(row: TableRow, folder: Path) -> tuple[str, Any, Any, dict[str, float]]:
    design = champsim_design(row)
    fetched = row.whole("requested_instructions") + _LOOKAHEAD
    figures = champsim_misses(row, fetched)
    case = row.text("trace")
    file = {"file": str(champsim_stream(row, folder)), "instructions": fetched}
    return case, {"workload": file, "counting": "champsim"}, design, figures


def _space(designs: Sequence[Mapping[str, Any]]) -> DesignSpace:
    """A space that holds all the designs."""
    parameters: list[Parameter] = []
    for name in designs[0]:
        values = {design[name] for design in designs}
        if all(isinstance(value, str) for value in values):
            parameters.append(Categorical(name, sorted(values)))
        else:
            parameters.append(Ordinal(name, sorted(values)))
    return DesignSpace(parameters)
