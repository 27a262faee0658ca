"""Cells of a Liberty library in the form that timing analysis needs."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass

from archgym.errors import InvalidValueError

__all__ = [
    "Arc",
    "CellLibrary",
    "LibraryCell",
    "Pin",
    "Table",
    "WireLoad",
]


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
        leakage_nw: leakage, nW; 0 if the library does not give it.
        pad: whether it connects the chip to the outside, so that no logic may use it.
    """

    area: float
    pins: Mapping[str, Pin]
    sequential: bool
    leakage_nw: float
    pad: bool = False


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
        for i, (minimum, load) in enumerate(self.wire_loads):
            if area >= minimum or i == 0:
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


def _place(axis: tuple[float, ...], value: float) -> tuple[int, float]:
    """The interval that a value is in, or the nearest, and how far along it is."""
    if len(axis) == 1:
        return 0, 0.0
    i = min(max(bisect.bisect_right(axis, value) - 1, 0), len(axis) - 2)
    return i, (value - axis[i]) / (axis[i + 1] - axis[i])


def _between(row: tuple[float, ...], j: int, share: float) -> float:
    return row[j] + share * (row[j + 1] - row[j]) if share else row[j]
