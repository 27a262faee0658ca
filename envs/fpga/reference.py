"""Reference figures for FPGAs: designs that were synthesised, placed and routed.

A table is a CSV file, gzipped or not, or a Parquet file with a row for each design and placement
seed:

| column | meaning |
|---|---|
| `workload` | name of a network |
| `device` ... `tree_registers` | the design; empty where a parameter does not apply |
| `lut_count`, `ff_count`, `dsp_count`, `bram_count`, `clock_mhz` | what was measured |
| `seed` | rows that differ in nothing else count as one, with the median of the clock |
| `status` | rows with another one than `ok` are skipped |

``datasets/fpga/measured.parquet`` is such a table; ``datasets/fpga/README.md`` says how it was
made. Of it only the networks count that the model was not fitted to.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection
from importlib import resources
from pathlib import Path
from typing import Any, Final

from archgym.envs.fpga.network.named import WORKLOADS
from archgym.envs.fpga.space import design_space
from archgym.envs.fpga.tabulate import HELD_OUT_WORKLOADS
from archgym.errors import InvalidValueError
from archgym.problem.reference import (
    ColumnUse,
    Reference,
    ReferenceRow,
    Skipped,
    TableRow,
    read_table,
)
from archgym.space import Boolean, Categorical

__all__ = ["read_reference", "shipped_references"]

_METRICS: Final = ("lut_count", "ff_count", "dsp_count", "bram_count", "clock_mhz")
_TITLE: Final = "yosys 0.70 and nextpnr 0.11, networks held out"


def shipped_references() -> list[Reference]:
    """The networks that the model was not fitted to."""
    file = resources.files("archgym").joinpath("datasets", "fpga", "measured.parquet")
    with resources.as_file(file) as path:
        source = "shipped datasets/fpga/measured.parquet"
        return read_reference(path, title=_TITLE, source=source, only=HELD_OUT_WORKLOADS)


def read_reference(
    table: Path, *, title: str = "", source: str = "", only: Collection[str] = tuple(WORKLOADS)
) -> list[Reference]:
    """A table as one reference, a case for each network and device.

    Args:
        table: the file.
        title: of the reference; by default the name of the file.
        source: where it comes from; by default the path.
        only: networks that count.

    Raises:
        InvalidValueError: if the table has not these columns or a cell is not possible; names the
            file, the line, the column and the value.
    """
    columns, rows = read_table(table)
    names = design_space().names
    missing = [name for name in ("workload", *names) if name not in columns]
    if missing or not set(_METRICS) & set(columns):
        wanted = ", ".join(missing) or f"one of {', '.join(_METRICS)}"
        raise InvalidValueError(
            f"{table}: the header has no {wanted}. The header has: {', '.join(columns)}"
        )
    settings = [{"workload": name} for name in only]
    places = {name: place for place, name in enumerate(only)}
    found: dict[str, list[TableRow]] = {}
    skipped: list[Skipped] = []
    for row in rows:
        workload = row.choice("workload", {name: name for name in WORKLOADS})
        if row.text("status", "ok") != "ok" or workload not in places:
            skipped.append(Skipped(row.line, "no placed design of a network that counts"))
            continue
        design = _design(row)
        found.setdefault(json.dumps([workload, design], sort_keys=True), []).append(row)
    made = []
    for key, same in found.items():
        workload, design = json.loads(key)
        metrics: dict[str, float] = {}
        for name in _METRICS:
            numbers = [n for row in same if (n := row.number(name)) is not None]
            if numbers:
                metrics[name] = statistics.median(numbers)
        case = f"{workload} on {design['device']}"
        made.append(ReferenceRow(case, design, metrics, places[workload], same[0].line))
    uses = [ColumnUse(name, *_use(name)) for name in columns]
    return [Reference(title or table.stem, source or str(table), settings, made, uses, skipped)]


def _design(row: TableRow) -> dict[str, Any]:
    """The design of a row; parameters that do not apply are left out."""
    design: dict[str, Any] = {}
    for parameter in design_space().parameters:
        name = parameter.name
        if not row.text(name):
            continue
        if isinstance(parameter, Boolean):
            design[name] = row.choice(name, {"True": True, "False": False})
        elif isinstance(parameter, Categorical):
            design[name] = row.text(name)
        else:
            design[name] = row.whole(name)
    return design


def _use(column: str) -> tuple[Any, str]:
    if column in _METRICS:
        return "metric", column
    if column in design_space().names:
        return "parameter", column
    return ("setting", "workload") if column == "workload" else ("ignored", "")
