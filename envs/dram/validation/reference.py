"""Reference figures for the DRAM environment: DRAMSys, Ramulator and DRAMsim3 on known designs.

A table is a CSV or Parquet file with a row for each controller setting and trace, in one of the
forms of :mod:`archgym.envs.dram.validation.table_forms`, which are recognised by their columns.

The tables that ship are in the folder ``tables``; its ``provenance.json`` says how they came
about.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.device.data_sheets import device_names, load_device
from archgym.envs.dram.device.device import Device
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.space import design_space
from archgym.envs.dram.traces.trace_files import trace_name
from archgym.envs.dram.validation.table_forms import FOLDER, FORMS, NOT_MODELLED, Form
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
from archgym.space import Categorical, DesignSpace

__all__ = ["read_reference", "shipped_references"]

_ENDINGS = ("", ".trace.gz", ".trace", ".stl.gz", ".stl", ".npz", ".parquet", ".gz", ".txt")
_PLAYER_MHZ = 1000.0
"""Clock of DRAMSys's STL player in the reference runs: STL times are ns."""
_CLOCK_TOLERANCE = 0.005
_LABELS = {"design": "how the design was drawn", "sample": "how the design was drawn"}


def shipped_references(metrics: Iterable[str]) -> list[Reference]:
    """The references that ship with the package.

    Args:
        metrics: names of the environment's metrics; others are not compared.
    """
    names = list(metrics)
    return shipped_tables(FOLDER, lambda path: read_reference(path, names))


def read_reference(
    table: Path,
    metrics: Iterable[str],
    *,
    traces: Path | None = None,
    memory: str | None = None,
) -> list[Reference]:
    """A table as one reference for each simulator in it.

    Args:
        table: the CSV or Parquet file.
        metrics: names of the environment's metrics; others are not compared.
        traces: folder that holds the traces of the rows; ``None`` for the shipped ones.
        memory: device of the rows, a name or a file. A table of several devices takes it for
            the rows of its name and for those of a device that does not ship.

    Raises:
        InvalidValueError: if the table is of no known form or a cell is not possible; names the
            file, the line, the column and the value.
        UnknownNameError: for a memory that is not there. Rows whose trace is not there are skipped.
    """
    columns, rows = read_table(table)
    reader = _Reader(_form_of(table, columns), rows, list(metrics), traces, memory)
    found = []
    for simulator in dict.fromkeys(row.text("simulator") for row in rows):
        mine = [row for row in rows if row.text("simulator") == simulator]
        found.append(reader.reference(simulator, mine, columns))
    return found


def _form_of(table: Path, columns: Sequence[str]) -> Form:
    lacking = [[name for name in form.needed if name not in columns] for form in FORMS]
    shares = [len(left) / len(form.needed) for left, form in zip(lacking, FORMS, strict=True)]
    nearest = shares.index(min(shares))
    form = FORMS[nearest]
    if lacking[nearest]:
        raise InvalidValueError(
            f"{table}: the header lacks column {lacking[nearest][0]!r}; a table of this form has "
            f"the columns {', '.join(form.needed)}. The header has: {', '.join(columns)}"
        )
    if not any(name in columns for name in form.metrics):
        raise InvalidValueError(
            f"{table}: the header has no column with figures to compare: "
            f"one of {', '.join(form.metrics)}"
        )
    return form


class _NotComparable(Exception):
    """Why a row is skipped."""


class _Reader:
    """Turns the rows of one table into designs, figures and environments to make."""

    def __init__(
        self,
        form: Form,
        rows: Sequence[TableRow],
        metrics: list[str],
        traces: Path | None,
        memory: str | None,
    ) -> None:
        self._form = form
        self._metrics = {c: name for c, name in form.metrics.items() if name in metrics}
        self._traces = FOLDER / "traces" if traces is None else traces
        if not self._traces.is_dir():
            raise InvalidValueError(f"{self._traces} is no folder with traces")
        self._memory = memory
        self._standards = {row.text("standard") for row in rows}
        self._files: dict[str, Path] = {}
        self._devices: dict[str, Device] = {}
        self._spaces: dict[str, DesignSpace] = {}
        self._defaults = dataclasses.asdict(ControllerConfig())
        if memory is not None:
            self._device(memory)

    def reference(
        self, simulator: str, rows: Sequence[TableRow], columns: Sequence[str]
    ) -> Reference:
        """The reference of one simulator's rows."""
        title = simulator or self._form.simulator
        kept: list[tuple[TableRow, str, dict[str, Any]]] = []
        skipped: list[Skipped] = []
        for row in rows:
            try:
                kept.append((row, *self._settings_of(row, title)))
            except _NotComparable as reason:
                skipped.append(Skipped(row.line, str(reason)))
        spaces = {
            memory: _space_with(
                self._space(memory),
                [settings for _, other, settings in kept if other == memory],
            )
            for memory in dict.fromkeys(memory for _, memory, _ in kept)
        }
        settings: dict[str, int] = {}
        arguments: list[Mapping[str, Any]] = []
        found = []
        for row, memory, values in kept:
            space = spaces[memory]
            made = {
                "memory": memory,
                "workload": self._workload(row, memory),
                "controller": self._apart(values, space),
            }
            key = json.dumps(made, sort_keys=True)
            if key not in settings:
                settings[key] = len(arguments)
                arguments.append({**made, "space": space, "objective": "minimize time_ns"})
            found.append(
                ReferenceRow(
                    case=f"{row.text('standard')} {trace_name(row.text('trace'))}".strip(),
                    design={name: values[name] for name in space.names},
                    metrics=self._figures(row),
                    setting=settings[key],
                    line=row.line,
                )
            )
        uses = [self._use(column, arguments) for column in columns]
        return Reference(title, str(rows[0].path), arguments, found, uses, skipped)

    def _settings_of(self, row: TableRow, simulator: str) -> tuple[str, dict[str, Any]]:
        """Memory and controller of a row."""
        status = row.text("status", "ok")
        if status != "ok":
            raise _NotComparable(f"status {status!r}")
        memory = self._memory_of(row)
        device = self._device(memory)
        clock_ns = row.number("tCK_ns")
        if clock_ns and abs(clock_ns * 1000 / device.t_ck_ps - 1) > _CLOCK_TOLERANCE:
            raise _NotComparable(
                f"ran at tCK {clock_ns:g} ns, memory {device.name} has {device.t_ck_ps / 1000:g}"
            )
        values = {**self._defaults, **_front_end(simulator), **self._form.fixed}
        for column, knob in self._form.knobs.items():
            if not row.text(column):
                if column in self._form.needed:
                    raise row.error(column, "It must not be empty.")
                continue
            value = row.choice(column, knob.choices) if knob.choices else row.whole(column)
            if value is NOT_MODELLED:
                raise _NotComparable(f"{column} {row.text(column)} is not modelled")
            values[knob.field] = value
        for parameter in self._space(memory).parameters:
            # What there is to choose from depends on the memory; sizes are widened later.
            value = values[parameter.name]
            if isinstance(parameter, Categorical) and value not in parameter.levels:
                raise _NotComparable(f"{device.name} has no {parameter.name} {value!r}")
        self._workload(row, memory)  # a row without its trace is skipped
        try:
            ControllerConfig(**values)
        except (InvalidValueError, UnknownNameError) as error:
            raise _NotComparable(str(error)) from None
        return memory, values

    def _memory_of(self, row: TableRow) -> str:
        standard = row.text("standard")
        given = self._memory
        if not standard:
            return given or self._form.memory
        if given is not None:
            unknown = self._standards - set(device_names())
            names = {self._device(given).name, self._device(given).part}
            if (
                len(self._standards) == 1
                or {standard, row.text("device")} & names
                or unknown == {standard}
            ):
                return given
        if standard in device_names():
            return standard
        raise _NotComparable(
            f"no memory {standard!r} ships with the package; --memory FILE gives one"
        )

    def _device(self, memory: str) -> Device:
        if memory not in self._devices:
            self._devices[memory] = load_device(memory)
        return self._devices[memory]

    def _space(self, memory: str) -> DesignSpace:
        if memory not in self._spaces:
            space = design_space("default", load_memory(memory))
            self._spaces[memory] = space.release(space.excluded)  # others simulate that too
        return self._spaces[memory]

    def _workload(self, row: TableRow, memory: str) -> dict[str, Any]:
        name = row.text("trace")
        if name not in self._files:
            self._files[name] = self._trace_file(row, name)
        path = self._files[name]
        # ArchGym's traces have virtual addresses, which DRAMSys folds into the memory.
        folds = load_memory(memory).capacity_bytes
        if not path.name.removesuffix(".gz").endswith(".stl"):
            return {"file": str(path), "fold_bytes": folds}
        # ArchGym's traces count clocks of the memory.
        clocks = self._form.memory and 1e6 / self._device(memory).t_ck_ps
        return {
            "file": str(path),
            "format": "stl",
            "clock_mhz": clocks or _PLAYER_MHZ,
            "fold_bytes": folds,
        }

    def _trace_file(self, row: TableRow, name: str) -> Path:
        stems = [name, trace_name(name)] if Path(name).name == name else []
        for stem in stems:
            for ending in _ENDINGS:
                path = self._traces / f"{stem}{ending}"
                if path.is_file():
                    return path
        there = {trace_name(path) for path in self._traces.iterdir() if path.is_file()}
        where = f"column 'trace', folder {self._traces}"
        raise _NotComparable(str(UnknownNameError("trace", name, there, where)))

    def _apart(self, values: Mapping[str, Any], space: DesignSpace) -> dict[str, Any]:
        """Settings of the controller that are not searched."""
        return {
            name: value
            for name, value in values.items()
            if name not in space and value != self._defaults[name]
        }

    def _figures(self, row: TableRow) -> dict[str, float]:
        figures = {}
        for column, metric in self._metrics.items():
            value = row.number(column)
            # A latency of 0 means that there is no request of that kind.
            if value is not None and not (value == 0 and "latency" in metric):
                figures[metric] = value
        return figures

    def _use(self, column: str, arguments: Sequence[Mapping[str, Any]]) -> ColumnUse:
        form = self._form
        if column in form.knobs:
            name = form.knobs[column].field
            searched = all(name in setting["space"] for setting in arguments)
            return ColumnUse(column, "parameter" if searched else "setting", name)
        if column in self._metrics:
            return ColumnUse(column, "metric", self._metrics[column])
        if column in form.metrics:
            note = f"the environment has no metric {form.metrics[column]}"
            return ColumnUse(column, "ignored", note=note)
        return {
            "simulator": ColumnUse(column, "case", "simulator"),
            "standard": ColumnUse(column, "case", "memory"),
            "trace": ColumnUse(column, "case", "workload"),
            "device": ColumnUse(column, "check", note="the part that memory FILE may name"),
            "status": ColumnUse(column, "check", note="rows other than ok are skipped"),
            "tCK_ns": ColumnUse(column, "check", note="the clock of the memory"),
            "config_id": ColumnUse(column, "ignored", note="a label"),
        }.get(column) or ColumnUse(
            column,
            "ignored",
            note=form.ignored.get(column) or _LABELS.get(column, "not known"),
        )


def _front_end(simulator: str) -> dict[str, Any]:
    """Settings of a simulator that differ from our defaults."""
    if simulator == "DRAMSys5.1":
        return {"timing_rules": "dramsys51"}
    if simulator == "DRAMSys4.0":
        # It has no think delay, and its trace player is done with a response at once.
        return {
            "timing_rules": "dramsys51",
            "think_delay_fw_cycles": 0,
            "end_response_delay_cycles": 0,
        }
    return {}


def _space_with(space: DesignSpace, designs: Sequence[Mapping[str, Any]]) -> DesignSpace:
    """The space, its numbers widened to those of some designs."""
    data = space.to_json()
    for entry in data["parameters"]:
        seen = {design[entry["name"]] for design in designs}
        if entry["kind"] == "integer":
            entry["low"] = min({entry["low"], *seen})
            entry["high"] = max({entry["high"], *seen})
        elif entry["kind"] == "ordinal":
            entry["values"] = sorted({*entry["values"], *seen})
    return DesignSpace.from_json(data)
