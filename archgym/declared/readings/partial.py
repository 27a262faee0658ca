"""Reads metrics out of what a program prints or writes while it runs.

Lines are taken in their order, and metrics are looked at when a line says that the run has got to
a share of ``at``. So what is seen depends on what the program wrote, and never on when it was
looked at. Each byte is read once, and a bounded text is held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from archgym.declared.names import evaluated
from archgym.declared.readings.at_end import RunRecord, metrics_of, one_file
from archgym.declared.readings.extract import Output, found_at, found_in, read_number
from archgym.declared.readings.partial_plan import Partial, Reading
from archgym.errors import ArchgymError

__all__ = ["Look", "PartialReader"]

Look = Callable[[float, Mapping[str, float]], None]
"""Takes the share of a run that is over, and the metrics so far; may end the run by an error."""
_HELD_CHARACTERS: Final = 1 << 22
"""How much of the text between two shares is searched for metrics: its end."""
_LINE_BYTES: Final = 1 << 16
"""Longer lines are cut."""
_BEYOND: Final = 1.05
"""A run that is further than its end by more than this is not looked at any more."""
_CHUNK_BYTES: Final = 1 << 22


class PartialReader:
    """Looks at one stage of one run.

    Args:
        partial: how it is looked at.
        run: the run.
        look: takes metrics.
    """

    def __init__(self, partial: Partial, run: RunRecord, look: Look) -> None:
        self._partial, self._run, self._look = partial, run, look
        whole = _number(partial.whole, run.values)
        self._whole = whole if whole is not None and whole > 0 else None
        self._left = list(partial.at)
        self._offset = self._steps = 0
        self._rest = b""
        self._lines: list[str] = []
        self._held = 0
        self._numbers: dict[str, _Numbers] = {}

    def read(self, outputs: Sequence[bytes]) -> None:
        """Takes what is new.

        Args:
            outputs: all that was printed so far, to both outputs.
        """
        if not self._left or self._whole is None:
            return
        source = self._partial.source
        if source in ("stdout", "stderr"):
            output = outputs[source == "stderr"]
            new, self._offset = output[self._offset :], len(output)
            self._take(new)
            return
        path = one_file(self._run.folder_of(self._partial.stage), source)
        while path is not None and self._left:
            new = _read_from(path, self._offset)
            if not new:
                return
            self._offset += len(new)
            self._take(new)

    def _take(self, new: bytes) -> None:
        *lines, rest = (self._rest + new).split(b"\n")
        self._rest = rest[:_LINE_BYTES]
        for raw in lines:
            line = raw[:_LINE_BYTES].decode("utf-8", errors="replace")
            self._lines.append(line)
            self._held += len(line) + 1
            if self._held > 2 * _HELD_CHARACTERS:
                self._lines = ["\n".join(self._lines)[-_HELD_CHARACTERS:]]
                self._held = len(self._lines[0]) + 1
            share = self._share(line)
            if share is not None and share > _BEYOND:
                self._left = []  # ``of`` is not the number at the end
            if share is not None and self._left and share >= self._left[0] * (1 - 1e-9):
                passed = [at for at in self._left if share >= at * (1 - 1e-9)]
                self._left = self._left[len(passed) :]
                self._look(passed[-1], self._metrics())
            if not self._left:
                return

    def _share(self, line: str) -> float | None:
        """The share of the run that is over, if a line says it."""
        pattern, where = self._partial.pattern, f"{self._partial.source} while it runs"
        if found_at(pattern, line, where) is None:
            return None
        if self._partial.counts:
            self._steps += 1
            number = float(self._steps)
        else:
            try:
                found = found_in(Output(line, where), "regex", pattern, None)
                number = read_number(found, "last")
            except (ArchgymError, ValueError):
                return None
        assert self._whole is not None
        return number / self._whole

    def _metrics(self) -> dict[str, float]:
        """The metrics so far; those that are not there yet are left out."""
        text = "\n".join(self._lines)[-_HELD_CHARACTERS:]
        self._lines, self._held = [], 0
        output = Output(text, f"{self._partial.source} while it runs")
        found: dict[str, float] = {}
        for reading in self._partial.readings:
            value = self._value(reading, output, found)
            if value is not None and math.isfinite(value):
                found[reading.name] = value
        return found

    def _value(self, reading: Reading, output: Output, found: Mapping[str, float]) -> float | None:
        try:
            if reading.kind == "formula":
                return _number(reading.what, {**self._run.values, **found})
            if reading.stage != self._partial.stage:  # an earlier one, which has ended
                return metrics_of([reading], self._run).get(reading.name)
            numbers = self._numbers.setdefault(reading.name, _Numbers())
            for value in found_in(output, reading.kind, reading.what, reading.entry):
                numbers.add(read_number([value], "last"))
        except (ArchgymError, ValueError):
            return None
        value = numbers.get(reading.entry.take)
        return None if value is None else value * reading.factor


class _Numbers:
    """The numbers that a reading has found so far."""

    def __init__(self) -> None:
        self._n = 0
        self._known: dict[str, float] = {}

    def add(self, number: float) -> None:
        known = self._known
        self._n += 1
        known["first"] = known.get("first", number)
        known["last"] = number
        known["sum"] = known.get("sum", 0.0) + number
        known["mean"] = known["sum"] / self._n
        known["min"] = min(known.get("min", number), number)
        known["max"] = max(known.get("max", number), number)

    def get(self, take: str) -> float | None:
        return self._known.get(take)


def _number(expression: Any, values: Mapping[str, Any]) -> float | None:
    """The value of an expression; ``None`` if it has none here."""
    if any(name not in values for name in getattr(expression, "names", ())):
        return None
    try:
        value = evaluated(expression, values)
    except (ArchgymError, ArithmeticError, TypeError, ValueError):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _read_from(path: Path, offset: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(_CHUNK_BYTES)
    except OSError:
        return b""
