"""Reads the cells of a Liberty library: pins, timing arcs, energies, wire loads."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from archgym.envs.tpe.eda.cell_library import Arc, CellLibrary, LibraryCell, Pin, Table, WireLoad
from archgym.envs.tpe.eda.liberty_parser import Group, parse_liberty, read_liberty_text
from archgym.errors import InvalidValueError

__all__ = ["cell_library", "load_library"]

_LIMIT_TABLE = 4096
"""Entries of a table beyond which it is refused."""
_PREFIXES = {"k": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12, "f": 1e-15, "a": 1e-18}
_DELAYS = ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
_CONSTRAINTS = ("rise_constraint", "fall_constraint")


def load_library(path: str | os.PathLike[str]) -> CellLibrary:
    """Reads a Liberty file; cached until the file changes.

    Raises:
        InvalidValueError: if there is none, or it is not one.
    """
    resolved = Path(path).resolve()
    if not resolved.is_file():
        raise InvalidValueError(f"there is no Liberty file {path}")
    stat = resolved.stat()
    return _load(str(resolved), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _load(path: str, _changed: int, _size: int) -> CellLibrary:
    return cell_library(read_liberty_text(path))


def cell_library(text: str) -> CellLibrary:
    """The cells of a Liberty text.

    Raises:
        InvalidValueError: if it is not Liberty, or holds no flip-flop.
    """
    library = parse_liberty(text)
    reader = _Reader(library)
    cells = {group.name: reader.cell(group) for group in library.all("cell")}
    if not any(cell.sequential for cell in cells.values()):
        raise InvalidValueError(f"Liberty library {library.name!r} has no flip-flop")
    voltage = library.number("nom_voltage", 1.0)
    return CellLibrary(library.name, voltage, cells, reader.wire_loads(library))


class _Reader:
    def __init__(self, library: Group) -> None:
        self._time = _unit(library.text("time_unit", "1ns"), "s") * 1e9
        load = library.attributes.get("capacitive_load_unit", ["1", "pf"])
        self._load = float(load[0]) * _unit(f"1{load[-1]}", "F") * 1e12
        volt = _unit(library.text("voltage_unit", "1V"), "V")
        self._leakage = _unit(library.text("leakage_power_unit", "1nW"), "W") * 1e9
        # Internal energy has the unit of load times voltage squared (pF V2 = pJ).
        self._energy = self._load * volt * volt * 1e3
        self._templates = {
            group.name: group
            for group in library.groups
            if group.kind in ("lu_table_template", "power_lut_template")
        }
        self._default = library.number("default_input_pin_cap", 0.0)
        self._resistance = _unit(library.text("pulling_resistance_unit", "1kohm"), "ohm") * 1e-3

    def cell(self, group: Group) -> LibraryCell:
        pins = {name: self._pin(pin) for pin in group.all("pin") for name in pin.arguments}
        for bundle in ("bus", "bundle"):
            for outer in group.all(bundle):
                pins |= {name: self._pin(pin) for pin in outer.all("pin") for name in pin.arguments}
        leakage = group.number("cell_leakage_power", 0.0)
        states = [part.number("value", 0.0) for part in group.all("leakage_power")]
        if not leakage and states:
            leakage = sum(states) / len(states)
        sequential = any(part.kind in ("ff", "latch", "statetable") for part in group.groups)
        area = group.number("area", 0.0)
        pad = group.text("pad_cell") == "true"
        return LibraryCell(area, pins, sequential, leakage * self._leakage, pad)

    def wire_loads(self, library: Group) -> tuple[tuple[float, WireLoad], ...]:
        """The wire load that the library selects by default."""
        models = {group.name: self._wire_load(group) for group in library.all("wire_load")}
        chosen = library.text("default_wire_load_selection")
        for group in library.all("wire_load_selection"):
            if group.name == chosen:
                rows = [
                    (float(words[0]), models[words[2]])
                    for name, words in group.repeated
                    if name == "wire_load_from_area" and len(words) == 3 and words[2] in models
                ]
                return tuple(sorted(rows, key=lambda row: row[0]))
        model = models.get(library.text("default_wire_load"))
        return ((0.0, model),) if model else ()

    def _wire_load(self, group: Group) -> WireLoad:
        lengths = sorted(
            (int(float(words[0])), float(words[1]))
            for name, words in group.repeated
            if name == "fanout_length" and len(words) >= 2
        )
        return WireLoad(
            group.number("capacitance", 0.0) * self._load,
            group.number("resistance", 0.0) * self._resistance,
            group.number("slope", 0.0),
            tuple(lengths),
        )

    def _pin(self, group: Group) -> Pin:
        rise = group.number("rise_capacitance", 0.0)
        fall = group.number("fall_capacitance", 0.0)
        capacitance = group.number("capacitance", max(rise, fall) or self._default)
        arcs = [arc for timing in group.all("timing") for arc in self._arcs(timing)]
        energies = [
            (related, self._table(part, 1.0, self._energy))
            for power in group.all("internal_power")
            for related in power.text("related_pin").split() or [""]
            for part in power.groups
            if part.kind in ("rise_power", "fall_power", "power")
        ]
        return Pin(
            group.text("direction", "input"),
            capacitance * self._load,
            group.text("function"),
            group.text("clock") == "true",
            tuple(arcs),
            tuple(energies),
        )

    def _arcs(self, group: Group) -> list[Arc]:
        kind = group.text("timing_type", "combinational")
        tables = {
            part.kind: self._table(part, self._time, self._time)
            for part in group.groups
            if part.kind in _DELAYS + _CONSTRAINTS
        }
        sense = group.text("timing_sense", "non_unate")
        return [Arc(pin, kind, sense, tables) for pin in group.text("related_pin").split()]

    def _table(self, group: Group, row_unit: float, unit: float) -> Table:
        """A table; delays and energies over (slew, load), constraints over two slews."""
        template = self._templates.get(group.name, Group("", []))
        words = group.attributes.get("values", [])
        values = [[float(v) * unit for v in row.replace(",", " ").split()] for row in words]
        if sum(map(len, values)) > _LIMIT_TABLE or not values:
            raise InvalidValueError(f"Liberty: a table of {group.kind} has no values, or too many")
        axes = []
        for which in ("1", "2"):
            points = group.attributes.get(
                f"index_{which}", template.attributes.get(f"index_{which}", [])
            )
            numbers = [float(v) for word in points for v in word.replace(",", " ").split()]
            variable = template.text(f"variable_{which}")
            scale = self._load if "capacitance" in variable else self._time
            axes.append((variable, tuple(v * scale for v in numbers)))
        flat = [value for row in values for value in row]
        if len(flat) == 1:
            return Table((0.0,), (0.0,), ((flat[0],),))
        (first, rows), (_, columns) = axes
        if not columns:
            columns, rows = (rows, (0.0,)) if "capacitance" in first else ((0.0,), rows)
        elif "capacitance" in first or first == "constrained_pin_transition":
            grid = [flat[i * len(columns) : (i + 1) * len(columns)] for i in range(len(rows))]
            flat = [row[j] for j in range(len(columns)) for row in grid]
            rows, columns = columns, rows
        if len(flat) != len(rows) * len(columns) or not rows:
            raise InvalidValueError(
                f"Liberty: a table of {group.kind} has {len(flat)} values, but {len(rows)} x "
                f"{len(columns)} points"
            )
        n = len(columns)
        return Table(rows, columns, tuple(tuple(flat[i * n : i * n + n]) for i in range(len(rows))))


def _unit(text: str, base: str) -> float:
    match = re.fullmatch(r"\s*([\d.]+)\s*([a-zA-Z]*?)" + base + r"\s*", text, re.IGNORECASE)
    if match is None or match.group(2).lower() not in _PREFIXES:
        raise InvalidValueError(f"Liberty: {text!r} is no unit of {base}")
    return float(match.group(1)) * _PREFIXES[match.group(2).lower()]
