"""Reference figures for the NAS environment: the published solutions of NASAIC (DAC 2020).

A table is a CSV file with a row for each chip of two sub-accelerators: ``workload`` (``W1`` to
``W3``), ``dataflow_1``, ``pes_1``, ``bandwidth_gbps_1``, the same with 2, and ``area_um2``. Area
depends on the chip alone. Other columns are shown and not compared: the networks behind the
published latencies and energies are not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from archgym.envs.nas.baseline import baseline_design
from archgym.envs.nas.hardware.chip import MAX_SUB_ACCELERATORS, TEMPLATES, Chip
from archgym.envs.nas.space import GRIDS, chip_design
from archgym.envs.nas.workloads import load_workload
from archgym.errors import ArchgymError, InvalidValueError
from archgym.problem.reference import (
    ColumnUse,
    Reference,
    ReferenceRow,
    TableRow,
    read_table,
    shipped_tables,
)

__all__ = ["FOLDER", "TITLE", "read_reference", "read_solution", "shipped_references"]

FOLDER: Final = Path(__file__).parent / "tables"
"""The table that ships, and ``provenance.json``, which says how it came about."""
TITLE: Final = "NASAIC, published solutions"
_WORKLOADS: Final = {name: name for name in ("W1", "W2", "W3")}
_KNOBS: Final = ("dataflow", "pes", "bandwidth_gbps")
_FORM: Final = "heterogeneous"


def shipped_references() -> list[Reference]:
    """The reference that ships with the package."""
    return shipped_tables(FOLDER, read_reference)


def read_reference(table: Path) -> list[Reference]:
    """A table of solutions as a reference; the networks are those of the baseline design.

    Raises:
        InvalidValueError: if the table lacks a column or a cell is not possible; names the file,
            the line, the column and the value.
    """
    columns, rows = read_table(table)
    for name in ("workload", "area_um2", *(f"{knob}_1" for knob in _KNOBS)):
        if name not in columns:
            raise InvalidValueError(
                f"{table}: the header lacks column {name!r}. The header has: {', '.join(columns)}"
            )
    settings: list[Mapping[str, Any]] = []
    found: list[ReferenceRow] = []
    for row in rows:
        workload, chip = read_solution(row)
        setting = {"workload": workload, "space": _FORM}
        if setting not in settings:
            settings.append(setting)
        area = row.number("area_um2")
        if area is None:
            raise row.error("area_um2", "It must be a number.")
        found.append(
            ReferenceRow(
                case=TITLE,
                design={**_networks(workload), **chip_design(chip, _FORM, GRIDS["paper"])},
                metrics={"area_um2": area},
                setting=settings.index(setting),
                line=row.line,
            )
        )
    return [Reference(TITLE, str(table), settings, found, _uses(columns))]


def read_solution(row: TableRow) -> tuple[str, Chip]:
    """Workload and chip of a row.

    Raises:
        InvalidValueError: if a cell is not possible.
    """
    parts = []
    names = {**TEMPLATES, **{name: name for name in TEMPLATES.values()}}
    for number in range(1, MAX_SUB_ACCELERATORS + 1):
        if row.text(f"dataflow_{number}"):
            dataflow = row.choice(f"dataflow_{number}", names)
            sizes = [row.whole(f"{knob}_{number}") for knob in _KNOBS[1:]]
            parts.append((dataflow, *sizes))
    try:
        chip = Chip.of(parts)
    except ArchgymError as error:
        raise InvalidValueError(f"{row.path}, line {row.line}: {error}") from None
    return row.choice("workload", _WORKLOADS), chip


def _networks(workload: str) -> dict[str, Any]:
    """Parameters of the baseline's networks."""
    design = baseline_design(load_workload(workload), _FORM)
    return {name: value for name, value in design.items() if not name.startswith("sub_")}


def _uses(columns: Sequence[str]) -> list[ColumnUse]:
    uses = []
    for column in columns:
        knob, _, number = column.rpartition("_")
        if column == "workload":
            uses.append(ColumnUse(column, "setting", "workload"))
        elif knob in _KNOBS and number.isdigit():
            uses.append(ColumnUse(column, "parameter", f"sub_{number}_{knob}"))
        elif column == "area_um2":
            uses.append(ColumnUse(column, "metric", column))
        else:
            note = "the networks are not published" if column != "approach" else "a label"
            uses.append(ColumnUse(column, "ignored", note=note))
    return uses
