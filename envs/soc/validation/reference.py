"""Reference figures of systems on chip: what FARSI gives for known designs.

A table is a CSV file, gzipped or not, or a Parquet file with a row for each design:

| column | meaning |
|---|---|
| `graph` | name of a graph, or path of one relative to the folder of workloads |
| names of parameters of the space `full` | the design; empty where a parameter is inactive |
| `latency_ms`, `power_mw`, `energy_mj`, `area_mm2` | the figures, of which some may be missing |
| `status` | rows with another one than `ok` are skipped |

They are compared with ``accounting="farsi"``. The tables that ship are in the folder ``tables``;
its ``provenance.json`` says how they came about.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from archgym.envs.soc.embedded import FARSI
from archgym.envs.soc.graphs.workload import Workload, load_workload
from archgym.envs.soc.space import spaces
from archgym.errors import ArchgymError, InvalidValueError
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

__all__ = ["read_reference", "shipped_references"]

FOLDER: Final = Path(__file__).parent / "tables"
_METRICS: Final = ("latency_ms", "power_mw", "energy_mj", "area_mm2")


def shipped_references() -> list[Reference]:
    """The references that ship with the package."""
    found = shipped_tables(FOLDER, lambda path: read_reference(path, None))
    return [replace(one, title=one.provenance["title"]) for one in found]


def read_reference(table: Path, folder: Path | None, *, title: str = "") -> list[Reference]:
    """A table as one reference, a case for each graph.

    Args:
        table: the file.
        folder: of graphs that the table names by path; by default that of the table.
        title: of the reference; by default the name of the file.

    Raises:
        InvalidValueError: if the table has not these columns or a cell is not possible; names the
            file, the line, the column and the value.
    """
    columns, rows = read_table(table)
    if "graph" not in columns or not set(_METRICS) & set(columns):
        raise InvalidValueError(
            f"{table}: the header must have the column graph and one of {', '.join(_METRICS)}. "
            f"The header has: {', '.join(columns)[:400]}"
        )
    known: dict[str, tuple[Workload, DesignSpace, int]] = {}
    settings: list[dict[str, Any]] = []
    found: list[ReferenceRow] = []
    skipped: list[Skipped] = []
    for row in rows:
        if row.text("status", "ok") != "ok":
            skipped.append(Skipped(row.line, f"status {row.text('status')!r}"))
            continue
        graph = row.text("graph")
        if graph not in known:
            spec = _spec(row, table.parent if folder is None else folder)
            workload = load_workload(spec)
            known[graph] = workload, spaces(workload)["full"], len(settings)
            settings.append(
                {"workload": spec, "accounting": FARSI, "objective": "minimize latency_ms"}
            )
        workload, space, setting = known[graph]
        design = _design(row, space, columns)
        metrics = {name: v for name in _METRICS if (v := row.number(name)) is not None}
        found.append(ReferenceRow(workload.name, design, metrics, setting, row.line))
    parameters = {name for _, space, _ in known.values() for name in space.names}
    uses = [_use(name, parameters) for name in columns]
    return [Reference(title or table.stem, str(table), settings, found, uses, skipped)]


def _spec(row: TableRow, folder: Path) -> str:
    graph = row.text("graph")
    spec = str(folder / graph) if graph.endswith(".json") else graph
    try:
        load_workload(spec)
    except ArchgymError as error:
        raise row.error("graph", str(error)) from None
    return spec


def _design(row: TableRow, space: DesignSpace, columns: Any) -> dict[str, Any]:
    design = {}
    for name in space.names:
        if name in columns and row.text(name):
            try:
                design[name] = space.parse(name, row.text(name))
            except ArchgymError as error:
                raise row.error(name, str(error)) from None
    try:
        return space.canonical(design)
    except ArchgymError as error:
        raise row.error("graph", str(error)) from None


def _use(column: str, parameters: set[str]) -> ColumnUse:
    if column == "graph":
        return ColumnUse(column, "setting", "workload")
    if column in _METRICS:
        return ColumnUse(column, "metric", column)
    if column in parameters:
        return ColumnUse(column, "parameter", column)
    if column == "status":
        return ColumnUse(column, "check", "", "must be ok")
    return ColumnUse(column, "ignored")
