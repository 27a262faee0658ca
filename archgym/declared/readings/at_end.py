"""Reads the metrics of a run out of what its stages printed and wrote."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archgym.declared.advice import nearest_lines
from archgym.declared.names import evaluated
from archgym.declared.readings.extract import (
    READ_LIMIT_BYTES,
    Output,
    found_in,
    near_hint,
    read_number,
)
from archgym.declared.readings.partial_plan import Reading
from archgym.errors import SimulationError
from archgym.reading.files import read_bytes
from archgym.simulators.external import ProgramOutput

__all__ = ["RunRecord", "metrics_of", "one_file"]


@dataclass
class RunRecord:
    """One run in progress.

    Attributes:
        folder: of the run.
        values: of every name that templates may have.
        ran: what was run, for people.
        printed: outputs of stages that have ended, also badly.
        outputs: texts that were read, by stage and source.
        looks: of stages that are looked at while they run, what makes a reader of their outputs.
    """

    folder: Path
    values: dict[str, Any]
    ran: list[str] = field(default_factory=list)
    printed: dict[str, ProgramOutput] = field(default_factory=dict)
    outputs: dict[tuple[str, str], Output] = field(default_factory=dict)
    looks: dict[str, Callable[[], Callable[[Sequence[bytes]], None]]] = field(default_factory=dict)

    def folder_of(self, stage: str) -> Path:
        """Where a stage ran."""
        return Path(self.values["folder"].get(stage, self.folder))


def metrics_of(readings: Sequence[Reading], run: RunRecord) -> dict[str, float]:
    """Metrics of a run that has ended; optional ones that are not there are left out.

    Raises:
        SimulationError: if one cannot be read.
    """
    found: dict[str, float] = {}
    for reading in readings:
        value = _value(reading, run, found)
        if value is not None:
            found[reading.name] = value * reading.factor
    return found


def _value(reading: Reading, run: RunRecord, found: Mapping[str, float]) -> float | None:
    entry = reading.entry
    if reading.kind == "formula":
        return _computed(reading, {**run.values, **found})
    if reading.kind == "seconds":
        return run.printed[reading.what].seconds
    if reading.kind == "file_size":
        path = run.folder_of(reading.stage) / reading.what
        if not path.is_file() and not entry.optional:
            raise SimulationError(f"{reading.name}: there is no file {reading.what}")
        return float(path.stat().st_size) if path.is_file() else None
    output = _output(reading, run)
    if output is None:
        return None
    try:
        values = found_in(output, reading.kind, reading.what, entry)
        if values:
            return read_number(values, entry.take)
    except (SimulationError, ValueError) as error:
        raise SimulationError(f"{reading.name}: {error} ({_look(reading)})") from None
    if entry.optional:
        return None
    hint = near_hint(output, reading.kind, reading.what)
    raise SimulationError(
        f"{reading.name}: nothing in {output.name} matches{hint} ({_look(reading)})"
        f"{_near(reading, output)}"
    )


def _computed(reading: Reading, values: Mapping[str, Any]) -> float | None:
    missing = [name for name in getattr(reading.what, "names", ()) if name not in values]
    if missing and reading.entry.optional:
        return None
    if missing:
        raise SimulationError(f"{reading.name}: {missing[0]} has no value in this design")
    value = evaluated(reading.what, values)
    if isinstance(value, float) and not math.isfinite(value):
        shown = [f"{name} = {values[name]:g}" for name in reading.what.names if _real(values[name])]
        given = f" (with {', '.join(shown)})" if shown else ""
        raise SimulationError(
            f"{reading.name}: {reading.entry.formula} has no value: it divides by zero, or is too "
            f"large{given}"
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SimulationError(f"{reading.name}: the formula gives {value!r:.60}, not a number")
    return value


def _real(value: Any) -> bool:
    return isinstance(value, int | float)


def _output(reading: Reading, run: RunRecord) -> Output | None:
    """What a metric is read from; ``None`` if an optional one's file is not there."""
    source, stage = reading.entry.source, reading.stage
    if (stage, source) not in run.outputs:
        if source in ("stdout", "stderr"):
            text, name = getattr(run.printed[stage], source), f"{source} of stage {stage}"
        else:
            path = one_file(run.folder_of(stage), source)
            if path is None:
                if reading.entry.optional:
                    return None
                raise SimulationError(f"{reading.name}: stage {stage} left no file {source!r}")
            try:
                text = read_bytes(path, READ_LIMIT_BYTES).decode("utf-8", errors="replace")
            except OSError as error:
                raise SimulationError(f"{reading.name}: {source}: {error.strerror}") from None
            name = path.name
        run.outputs[stage, source] = Output(text, name)
    return run.outputs[stage, source]


def one_file(folder: Path, name: str) -> Path | None:
    """The file of a name, in which ``*`` stands for any text."""
    if "*" not in name:
        path = folder / name
        return path if path.is_file() else None
    found = sorted(folder.glob(name))
    if len(found) > 1:
        shown = ", ".join(one.name for one in found[:4])
        raise SimulationError(f"{len(found)} files are called {name!r}: {shown}")
    return found[0] if found else None


def _near(reading: Reading, output: Output) -> str:
    """Lines in which people see what the output has instead."""
    if not output.text.strip():
        return f"; {output.name} is empty"
    if reading.kind not in ("regex", "key"):
        return ""
    what = reading.what.pattern if reading.kind == "regex" else reading.what
    return f"; nearest lines: {nearest_lines(what, output.text)}"


def _look(reading: Reading) -> str:
    what = reading.what.pattern if reading.kind == "regex" else reading.what
    return f"{reading.kind}: {what}"
