"""Reference figures for the TPE environment: synthesised processing elements.

A table is a CSV file with a row for each synthesised PE:

| column | meaning |
|---|---|
| `arch` | `trad` (product adder, then accumulate adder), `fused` (one adder), `csacc` (carry-save), `pipe` (two stages), `serial` (one digit a cycle), `group` (lanes), `bwred` (one accumulator a bit weight) |
| `encoding`, `encoder_location` | digits of A, and where they are made |
| `width_a`, `width_b`, `acc_width` | bits |
| `tree`, `final_adder`, `lanes` | compressor, carry-propagate adder, operand pairs |
| `liberty`, `abc_target_ps` | cell library, and the delay that synthesis aimed at: as fast as it gets (up to 1000 ps), or relaxed (from 50000 ps) where that is calibrated too |
| `area_um2`, `min_period_ns` | figures of the PE alone |

The table that ships is in the folder ``tables``; its ``provenance.json`` says how it came
about.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.envs.tpe.space.design_space import design_space
from archgym.envs.tpe.technology.technology import load_technology, technology_names
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
from archgym.space import DesignSpace

__all__ = ["read_reference", "shipped_references"]

_FOLDER = Path(__file__).parent / "tables"
_METRICS = ("area_um2", "min_period_ns")
_FASTEST_PS = 1000
"""Synthesis that aims at less than this, which no PE here reaches, makes it as fast as it can."""
_RELAXED_PS = 50_000
"""Synthesis that aims at more than this, which every PE reaches, sizes no gate for speed."""
_RELAXED = "_relaxed"
"""What the name of a library calibrated to relaxed synthesis ends with."""

_ARCHITECTURES: Mapping[str, Mapping[str, Any]] = {
    "trad": {"accumulator": "separate"},
    "fused": {"accumulator": "merged"},
    "pipe": {"accumulator": "separate", "pipeline_depth": 2},
    "csacc": {"accumulator": "carry_save"},
    "bwred": {"accumulator": "carry_save", "shift_place": "simd"},
    "serial": {"array": "bit_serial_column", "accumulator": "carry_save", "shift_place": "simd"},
    "group": {"array": "bit_serial_column", "accumulator": "carry_save", "shift_place": "simd"},
}
_ENCODINGS = {
    "radix-2 Baugh-Wooley": "radix2",
    "radix-4 Booth (MBE)": "booth",
    "EN-T": "ent",
    "CSD": "csd",
    **{
        name: name
        for name in ("booth", "ent", "csd", "radix2", "serial_twos", "serial_sign_magnitude")
    },
}
_PLACES = {"n/a": "", "in PE": "pe", "outside (digits are inputs)": "edge", "pe": "pe"}
_TREES = {"dadda": "dadda", "wallace": "wallace", "42": "4to2", "4to2": "4to2", "linear": "linear"}
_ADDERS = {
    "auto": "auto",
    "none": "auto",
    "ripple": "ripple",
    "bk": "brent_kung",
    "brent_kung": "brent_kung",
    "ks": "kogge_stone",
    "kogge_stone": "kogge_stone",
    "sk": "sklansky",
    "sklansky": "sklansky",
}
_NEEDED = [
    "arch",
    "encoding",
    "encoder_location",
    "width_a",
    "width_b",
    "acc_width",
    "tree",
    "final_adder",
    "lanes",
    "liberty",
]
_USES = {
    "arch": ColumnUse("arch", "parameter", "array, accumulator, shift_place, pipeline_depth"),
    "encoding": ColumnUse("encoding", "parameter", "encoding"),
    "encoder_location": ColumnUse("encoder_location", "parameter", "encoder_place"),
    "width_a": ColumnUse("width_a", "parameter", "width_a"),
    "width_b": ColumnUse("width_b", "parameter", "width_b"),
    "acc_width": ColumnUse("acc_width", "parameter", "accumulator_width"),
    "tree": ColumnUse("tree", "parameter", "compressor"),
    "final_adder": ColumnUse("final_adder", "parameter", "final_adder"),
    "lanes": ColumnUse("lanes", "parameter", "lanes or depth"),
    "liberty": ColumnUse("liberty", "case", "technology"),
    "process": ColumnUse("process", "ignored", note="the library says it"),
    "abc_target_ps": ColumnUse(
        "abc_target_ps", "case", "technology", "as fast as possible or relaxed; others are skipped"
    ),
    "synth_option": ColumnUse("synth_option", "check", note="rows with an option are skipped"),
    "functional_check": ColumnUse("functional_check", "check", note="rows that failed are skipped"),
    **{name: ColumnUse(name, "metric", name) for name in _METRICS},
    **{
        name: ColumnUse(name, "ignored", note="structure, which follows from the parameters")
        for name in [
            "structure",
            "fa_levels",
            "full_adders",
            "half_adders",
            "pp_mux_bits",
            "and_bits",
            "booth_digits_encoded",
            "register_bits_declared",
            "cells",
            "flipflops",
        ]
    },
    "sequential_area_um2": ColumnUse("sequential_area_um2", "ignored", note="part of the area"),
    "max_clock_mhz": ColumnUse("max_clock_mhz", "ignored", note="the period says it"),
    "design_id": ColumnUse("design_id", "ignored", note="a label"),
    "set": ColumnUse("set", "ignored", note="a label"),
    "tool": ColumnUse("tool", "ignored", note="calibrated for yosys 0.70"),
}


class _NotComparable(Exception):
    """Why a row is skipped."""


def shipped_references() -> list[Reference]:
    """The references that ship with the package."""
    return shipped_tables(_FOLDER, read_reference)


def read_reference(table: Path, hardware: str | None = None) -> list[Reference]:
    """A table as one reference.

    Args:
        table: the CSV file, gzipped or not.
        hardware: cell library of the rows, a name or a calibrated file. A table of several
            libraries takes it for the rows of those that do not ship.

    Raises:
        InvalidValueError: if the table is of another form or a cell is not possible; names the
            file, the line, the column and the value.
        UnknownNameError: for a cell library that is not there.
    """
    columns, rows = read_table(table)
    for name in _NEEDED:
        if name not in columns:
            raise InvalidValueError(
                f"{table}: the header lacks column {name!r}; a table of synthesised PEs has the "
                f"columns {', '.join(_NEEDED)}. The header has: {', '.join(columns)}"
            )
    if not any(name in columns for name in _METRICS):
        raise InvalidValueError(
            f"{table}: the header has no column with figures to compare: {' or '.join(_METRICS)}"
        )
    if hardware is not None:
        load_technology(hardware)  # refuses one that is not there
    kept: list[tuple[TableRow, str, dict[str, Any]]] = []
    skipped: list[Skipped] = []
    libraries = {row.text("liberty") for row in rows}
    for row in rows:
        try:
            kept.append((row, _technology(row, libraries, hardware), _design(row)))
        except _NotComparable as reason:
            skipped.append(Skipped(row.line, str(reason)))
    found = []
    designs = [design for *_, design in kept]
    space = _space_of(designs) if kept else None
    names = list(dict.fromkeys(technology for _, technology, _ in kept))
    settings: list[Mapping[str, Any]] = [
        {
            "technology": technology,
            "scope": "pe",
            "space": space,
            "workload": _workload(designs),
            "objective": "minimize area_um2",
        }
        for technology in names
    ]
    for row, technology, design in kept:
        figures = {name: row.number(name) for name in _METRICS if name in columns}
        found.append(
            ReferenceRow(
                case=f"{Path(technology).stem}, PE alone",
                design=design,
                metrics={name: value for name, value in figures.items() if value is not None},
                setting=names.index(technology),
                line=row.line,
            )
        )
    uses = [_USES.get(c) or ColumnUse(c, "ignored", note="not known") for c in columns]
    title = rows[0].text("tool", "yosys 0.70").split(" default")[0] + ", static timing"
    return [Reference(title, str(table), settings, found, uses, skipped)]


def _technology(row: TableRow, libraries: set[str], hardware: str | None) -> str:
    """The calibrated library of a row."""
    fastest = _library(row, libraries, hardware)
    target = row.number("abc_target_ps")
    if target is None or target <= _FASTEST_PS or fastest.endswith(_RELAXED):
        return fastest
    if target >= _RELAXED_PS and fastest + _RELAXED in technology_names():
        return fastest + _RELAXED
    raise _NotComparable("synthesised for a relaxed target, not as fast as it gets")


def _library(row: TableRow, libraries: set[str], hardware: str | None) -> str:
    """The calibrated library of a row that was synthesised for the highest speed."""
    named = row.text("liberty").lower()
    if hardware is not None and len(libraries) == 1:
        return hardware
    for name in technology_names():
        if name.rstrip("0123456789") in named or name in named:
            return name
    if hardware is None:
        raise _NotComparable(
            f"no calibrated library {row.text('liberty')!r} ships; --memory FILE names one"
        )
    return hardware


def _design(row: TableRow) -> dict[str, Any]:
    """The design of a row: the smallest array of its PE."""
    _check(row)
    arch = row.text("arch")
    if arch not in _ARCHITECTURES:
        raise _NotComparable(f"architecture {arch!r} is not in the design space")
    chosen = dict(_ARCHITECTURES[arch])
    encoding = row.text("encoding")
    if encoding not in _ENCODINGS:
        raise _NotComparable(f"encoding {encoding!r} is not in the design space")
    tree = row.text("tree")
    if tree not in _TREES:
        raise _NotComparable(f"tree {tree!r} is not in the design space")
    lanes = row.whole("lanes", "1")
    serial = chosen.pop("array", "") == "bit_serial_column"
    carry_save = chosen["accumulator"] == "carry_save"
    design: dict[str, Any] = {
        "array": "bit_serial_column" if serial else "systolic_ws",
        "rows": 1,
        "columns": 4,
        "width_a": row.whole("width_a"),
        "width_b": row.whole("width_b"),
        "encoding": _ENCODINGS[encoding],
        "accumulator": chosen["accumulator"],
        "shift_place": chosen.get("shift_place", "pe"),
        "compressor": _TREES[tree],
        "pipeline_depth": chosen.get("pipeline_depth", 1),
        "accumulator_width": row.whole("acc_width"),
        "final_adder": row.choice("final_adder", _ADDERS, "auto"),
        "clock": "fastest",
    }
    if serial:
        # A serial PE does not skip zero digits: it takes every digit.
        design |= {"lanes": lanes, "bit_weights": "temporal_dense", "accumulation_length": 16}
    else:
        design |= {"depth": lanes}
    place = row.choice("encoder_location", _PLACES, "n/a")
    if design["encoding"] != "radix2":
        design["encoder_place"] = place or "pe"
        if place == "edge":
            design["columns_per_encoder"] = 4
    if carry_save:
        design["final_adder_place"] = "simd"
        design["final_adder"] = "auto"
    return design


def _check(row: TableRow) -> None:
    if row.text("synth_option"):
        raise _NotComparable(f"synthesised with the option {row.text('synth_option')!r}")
    if "fail" in row.text("functional_check").lower():
        raise _NotComparable("its function is wrong")


def _workload(designs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A small product whose operands fit every design."""
    bits = [min(design[name] for design in designs) for name in ("width_a", "width_b")]
    return {"gemm": [4, 16, 4], "bits": bits}


def _space_of(designs: Sequence[Mapping[str, Any]]) -> DesignSpace:
    """The design space, its numbers widened to those of some designs."""
    widths = tuple(min(design[name] for design in designs) for name in ("width_a", "width_b"))
    data = design_space((widths[0], widths[1])).to_json()
    for entry in data["parameters"]:
        if entry["kind"] == "ordinal":
            seen = {design[entry["name"]] for design in designs if entry["name"] in design}
            entry["values"] = sorted({*entry["values"], *seen})
    return DesignSpace.from_json(data)
