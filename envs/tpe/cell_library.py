"""Cells of a Liberty library as a timing analysis needs them."""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from archgym.envs.tpe.liberty import Group, parse_liberty, read_liberty_text
from archgym.errors import InvalidValueError

__all__ = [
    "Arc",
    "CellLibrary",
    "LibraryCell",
    "Pin",
    "Table",
    "WireLoad",
    "cell_library",
    "load_library",
]

_LIMIT_TABLE = 4096
"""Entries of a table beyond which it is refused."""
_PREFIXES = {"k": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12, "f": 1e-15, "a": 1e-18}
_DELAYS = ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
_CONSTRAINTS = ("rise_constraint", "fall_constraint")


@dataclass(frozen=True)
class Table:
    """A lookup table over one or two axes, linear between its points and beyond them.

    Attributes:
        rows: points of the first axis; one point for a constant.
        columns: points of the second axis; one point for a table over one axis.
        values: value at each point, row after row.
    """

    rows: tuple[float, ...]
    columns: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]

    def __call__(self, row: float, column: float) -> float:
        """The value at a point."""
        i, share = _place(self.rows, row)
        j, rest = _place(self.columns, column)
        low = _between(self.values[i], j, rest)
        if not share:
            return low
        return low + share * (_between(self.values[i + 1], j, rest) - low)


@dataclass(frozen=True)
class Arc:
    """A timing arc to an output pin, or a setup check of an input pin.

    Attributes:
        related: the input pin that it starts at, or the clock pin.
        kind: `timing_type`: `combinational`, `rising_edge`, `setup_rising`, ...
        sense: `positive_unate`, `negative_unate` or `non_unate`.
        tables: by Liberty name; of a delay over (input slew, load), of a constraint over (clock
            slew, data slew); ns and pF.
    """

    related: str
    kind: str
    sense: str
    tables: Mapping[str, Table]


@dataclass(frozen=True)
class Pin:
    """A pin of a cell.

    Attributes:
        direction: `input`, `output`, `internal` or `inout`.
        capacitance_pf: load that it is to what drives it, pF.
        function: Boolean function of an output, as Liberty has it.
        clock: whether it is a clock input.
        arcs: timing arcs that end here.
        energies: energy tables by related pin, fJ over (input slew ns, load pF).
    """

    direction: str
    capacitance_pf: float
    function: str
    clock: bool
    arcs: tuple[Arc, ...]
    energies: tuple[tuple[str, Table], ...] = ()


@dataclass(frozen=True)
class LibraryCell:
    """A cell.

    Attributes:
        area: in the unit of the library, um2 by custom.
        pins: by name.
        sequential: whether it holds a state (flip-flop or latch).
        leakage_nw: leakage, nW; 0 if not told.
    """

    area: float
    pins: Mapping[str, Pin]
    sequential: bool
    leakage_nw: float


@dataclass(frozen=True)
class WireLoad:
    """Wires as a library estimates them from the pins that a net drives.

    Attributes:
        capacitance_pf: of a wire of unit length, pF.
        resistance_kohm: likewise, kohm.
        slope: length for each pin beyond the table.
        lengths: (pins, length), ascending.
    """

    capacitance_pf: float
    resistance_kohm: float
    slope: float
    lengths: tuple[tuple[int, float], ...]

    def length(self, pins: int) -> float:
        """Length of a net that drives some pins, in the library's unit of length."""
        if not self.lengths or not pins:
            return self.slope * pins
        count, length = self.lengths[-1]
        if pins >= count:
            return length + self.slope * (pins - count)
        before = (0, 0.0)
        for point in self.lengths:
            if pins <= point[0]:
                share = (pins - before[0]) / (point[0] - before[0])
                return before[1] + share * (point[1] - before[1])
            before = point
        return length

    def capacitance(self, pins: int) -> float:
        """Capacitance of such a net's wire, pF."""
        return self.capacitance_pf * self.length(pins)

    def delay_ns(self, pins: int, pin_capacitance_pf: float) -> float:
        """Delay from the driver to one of its pins along equal branches (kohm times pF), ns."""
        length = self.length(pins) / max(pins, 1)
        wire = self.capacitance_pf * length
        return self.resistance_kohm * length * (wire + pin_capacitance_pf)


NO_WIRES = WireLoad(0.0, 0.0, 0.0, ())


@dataclass(frozen=True)
class CellLibrary:
    """A cell library at one operating point.

    Attributes:
        name: as the file calls it.
        voltage_v: nominal supply voltage, V.
        cells: by name.
        wire_loads: (least cell area, wire load) of the wire load model that it selects by default,
            ascending; none if it has no default.
    """

    name: str
    voltage_v: float
    cells: Mapping[str, LibraryCell]
    wire_loads: tuple[tuple[float, WireLoad], ...] = ()

    def wire_load(self, area: float) -> WireLoad:
        """The wire load model for a block of that cell area."""
        chosen = NO_WIRES
        for i, (least, load) in enumerate(self.wire_loads):
            if area >= least or i == 0:
                chosen = load
        return chosen

    def cell(self, name: str) -> LibraryCell:
        """A cell by name.

        Raises:
            InvalidValueError: if the library has none of that name.
        """
        if name not in self.cells:
            raise InvalidValueError(f"cell library {self.name} has no cell {name!r}")
        return self.cells[name]


def load_library(path: str | os.PathLike[str]) -> CellLibrary:
    """Reads a Liberty file; kept until the file changes.

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
        return LibraryCell(area, pins, sequential, leakage * self._leakage)

    def wire_loads(self, library: Group) -> tuple[tuple[float, WireLoad], ...]:
        """The wire load that the library selects when nobody says which."""
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


def _place(axis: tuple[float, ...], value: float) -> tuple[int, float]:
    """The interval that a value is in, or the nearest, and how far along it is."""
    if len(axis) == 1:
        return 0, 0.0
    i = min(max(bisect.bisect_right(axis, value) - 1, 0), len(axis) - 2)
    return i, (value - axis[i]) / (axis[i + 1] - axis[i])


def _between(row: tuple[float, ...], j: int, share: float) -> float:
    return row[j] + share * (row[j + 1] - row[j]) if share else row[j]
