"""Reference figures for GPU kernels: designs that were measured, which no model was fitted to.

A table is a CSV file, gzipped or not, or a Parquet file with a row for each design:

| column | meaning |
|---|---|
| `shape` | name of a workload; or instead `m`, `n`, `k` and, if wanted, `dtype` of a product |
| `block_m` ... `split_k` | the parameters of the kernel; without `copy_engine`, it is 0 |
| `time_us`, or `time_1_us`, `time_2_us`, `time_3_us` | time, or times of which the median counts |
| `power_w` | power while the kernel runs without pause, if it was measured |
| `status` | rows with another one than `ok` are skipped |

``datasets/gpu/held_out.parquet`` is such a table; ``datasets/gpu/README.md`` says how it was made.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

from archgym.envs.gpu.parameters import PARAMETERS, Shape
from archgym.envs.gpu.workload import shape_of
from archgym.errors import ArchgymError, InvalidValueError
from archgym.problem.reference import (
    ColumnUse,
    Reference,
    ReferenceRow,
    Skipped,
    TableRow,
    read_table,
)

_TIMES: Final = ("time_us", "time_1_us", "time_2_us", "time_3_us")
_POWER: Final = "power_w"
_NEW: Final = "copy_engine"
"""A parameter that tables may lack: threads then load the tiles."""
_TITLE: Final = "measured on an H200, shapes held out"


def shipped_references() -> list[Reference]:
    """The shapes that the models were not fitted to."""
    file = resources.files("archgym").joinpath("datasets", "gpu", "held_out.parquet")
    with resources.as_file(file) as path:
        return read_reference(path, title=_TITLE, source="shipped datasets/gpu/held_out.parquet")


def read_reference(table: Path, *, title: str = "", source: str = "") -> list[Reference]:
    """A table as one reference, a case for each shape.

    Args:
        table: the file.
        title: of the reference; by default the name of the file.
        source: where it comes from; by default the path.

    Raises:
        InvalidValueError: if the table has not these columns or a cell is not possible; names the
            file, the line, the column and the value.
    """
    columns, rows = read_table(table)
    if "shape" not in columns and not {"m", "n", "k"} <= set(columns):
        raise InvalidValueError(
            f"{table}: the header must have the column shape, or m, n and k. The header has: "
            f"{', '.join(columns)}"
        )
    if not set(_TIMES) & set(columns):
        raise InvalidValueError(f"{table}: the header has no time: {', '.join(_TIMES)}")
    places: dict[str, int] = {}
    settings: list[Mapping[str, Any]] = []
    found: list[ReferenceRow] = []
    skipped: list[Skipped] = []
    for row in rows:
        shape, spec = _shape(row)
        metrics = _metrics(row)
        if row.text("status", "ok") != "ok" or not metrics or not row.text("warps"):
            skipped.append(Skipped(row.line, "no design that ran, with a time"))
            continue
        if shape.name not in places:
            places[shape.name] = len(settings)
            settings.append({"workload": spec, "objective": "minimize time_us"})
        design = {name: _value(row, name) for name in PARAMETERS[shape.kernel]}
        found.append(ReferenceRow(shape.name, design, metrics, places[shape.name], row.line))
    uses = [ColumnUse(name, *_use(name)) for name in columns]
    return [Reference(title or table.stem, source or str(table), settings, found, uses, skipped)]


def _value(row: TableRow, name: str) -> int:
    if name == _NEW and not row.text(name):
        return 0
    return row.whole(name)


def _shape(row: TableRow) -> tuple[Shape, Any]:
    column, spec = "shape", row.text("shape") or None
    try:
        if spec is not None:
            return shape_of(spec), spec
        column = "m"
        made = {"gemm": [row.whole(name) for name in "mnk"], "dtype": row.text("dtype", "fp16")}
        return shape_of(made), made
    except ArchgymError as error:
        raise row.error(column, str(error)) from None


def _metrics(row: TableRow) -> dict[str, float]:
    times: Sequence[float] = [t for name in _TIMES if (t := row.number(name)) is not None]
    power = row.number(_POWER)
    found = {"time_us": statistics.median(times)} if times else {}
    return found | ({_POWER: power} if found and power is not None else {})


def _use(column: str) -> tuple[Any, str]:
    if column in _TIMES:
        return "metric", "time_us"
    if column == _POWER:
        return "metric", _POWER
    if any(column in names for names in PARAMETERS.values()):
        return "parameter", column
    if column in ("shape", "m", "n", "k", "dtype"):
        return "setting", "workload"
    return "ignored", ""
