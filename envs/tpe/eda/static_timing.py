"""Static timing analysis of a mapped netlist: the least clock period, register to register.

Non-linear delay model: delay and output slew of an arc are looked up over input slew and load; the
load is the sum of the pins that a net drives and of its wire, as the wire load model that the
library selects by default has it (most libraries have none or a small one). Every net has a latest
arrival and a greatest slew for its rising and its falling edge. The clock is ideal with slew zero;
the period is the greatest sum of clock-to-output, logic and setup time. That is what OpenSTA
computes with one clock and no parasitics.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from archgym.envs.tpe.eda.cell_library import Arc, CellLibrary, LibraryCell
from archgym.errors import SimulationError

__all__ = ["Netlist", "Timing", "analyse", "read_netlist"]

RISE, FALL = 0, 1
_NEVER = float("-inf")
EDGES = {
    "positive_unate": ((RISE, RISE), (FALL, FALL)),
    "negative_unate": ((RISE, FALL), (FALL, RISE)),
    "non_unate": ((RISE, RISE), (FALL, FALL), (RISE, FALL), (FALL, RISE)),
}
DELAY = ("cell_rise", "cell_fall")
SLEW = ("rise_transition", "fall_transition")
_SETUP = ("rise_constraint", "fall_constraint")
_COMBINATIONAL = ("combinational", "combinational_rise", "combinational_fall")


@dataclass(frozen=True)
class Netlist:
    """A mapped netlist.

    Attributes:
        cells: (cell type, net of each pin) of each instance; nets are numbers, a constant is a
            negative one.
        outputs: how many output ports each net drives, for those that drive one.
    """

    cells: tuple[tuple[str, Mapping[str, int]], ...]
    outputs: Mapping[int, int]


@dataclass(frozen=True)
class Timing:
    """Results of the analysis.

    Attributes:
        min_period_ns: least clock period, ns.
        area: of all cells, in the unit of the library.
        sequential_area: of flip-flops and latches.
        cells: instances.
        flip_flops: instances that hold a state.
        path: cell types on the slowest path, from the launching flip-flop on.
    """

    min_period_ns: float
    area: float
    sequential_area: float
    cells: int
    flip_flops: int
    path: tuple[str, ...]


def read_netlist(text: str, top: str) -> Netlist:
    """A netlist that yosys wrote with `write_json`.

    Raises:
        SimulationError: if the module is not in it, or has no cells.
    """
    modules: dict[str, Any] = json.loads(text).get("modules", {})
    if top not in modules:
        raise SimulationError(f"the netlist has no module {top!r}")
    cells = []
    for cell in modules[top]["cells"].values():
        if cell["type"] == "$scopeinfo":
            continue
        nets = {
            pin: bits[0] if isinstance(bits[0], int) else -1
            for pin, bits in cell["connections"].items()
            if bits
        }
        cells.append((str(cell["type"]), nets))
    if not cells:
        raise SimulationError(f"module {top!r} of the netlist is empty")
    outputs = Counter(
        bit
        for port in modules[top].get("ports", {}).values()
        if port["direction"] == "output"
        for bit in port["bits"]
        if isinstance(bit, int)
    )
    return Netlist(tuple(cells), outputs)


def analyse(netlist: Netlist, library: CellLibrary) -> Timing:
    """Times a netlist.

    Raises:
        InvalidValueError: if a cell is not in the library.
        SimulationError: if there is no path between registers, or the logic has a loop.
    """
    return _Analysis(netlist, library).run()


class _Analysis:
    def __init__(self, netlist: Netlist, library: CellLibrary) -> None:
        self._cells = [(library.cell(kind), kind, nets) for kind, nets in netlist.cells]
        self._load: defaultdict[int, float] = defaultdict(float)
        self._pins: Counter[int] = Counter()
        for cell, _, nets in self._cells:
            for pin, net in nets.items():
                if net >= 0 and pin in cell.pins and cell.pins[pin].direction == "input":
                    self._load[net] += cell.pins[pin].capacitance_pf
                    self._pins[net] += 1
        self._wire = library.wire_load(sum(cell.area for cell, _, _ in self._cells))
        for net in self._load:
            self._pins[net] += netlist.outputs.get(net, 0)
            self._load[net] += self._wire.capacitance(self._pins[net])
        self._arrival: dict[int, list[float]] = {}
        self._slew: dict[int, list[float]] = {}
        self._before: dict[tuple[int, int], tuple[int, int, str]] = {}

    def run(self) -> Timing:  # noqa: C901  (one pass over the netlist)
        waiting: dict[int, int] = {}
        users: defaultdict[int, list[int]] = defaultdict(list)
        drivers = {
            net
            for cell, _, nets in self._cells
            for pin, net in nets.items()
            if net >= 0 and pin in cell.pins and cell.pins[pin].direction == "output"
        }
        ready: list[int] = []
        for i, (cell, _, nets) in enumerate(self._cells):
            if cell.sequential:
                continue
            inputs = {
                net
                for pin, net in nets.items()
                if pin in cell.pins and cell.pins[pin].direction == "input" and net in drivers
            }
            waiting[i] = len(inputs)
            for net in inputs:
                users[net].append(i)
            if not inputs:
                ready.append(i)
        done: list[int] = []
        for cell, kind, nets in self._cells:
            if cell.sequential:
                done += self._launch(cell, kind, nets)
        left = len(waiting)
        while ready or done:
            while done:
                for i in users[done.pop()]:
                    waiting[i] -= 1
                    if not waiting[i]:
                        ready.append(i)
            if ready:
                cell, kind, nets = self._cells[ready.pop()]
                done += self._pass(cell, kind, nets)
                left -= 1
        if left:
            raise SimulationError(f"{left} cells of the netlist are in a combinational loop")
        return self._result()

    def _launch(self, cell: LibraryCell, kind: str, nets: Mapping[str, int]) -> list[int]:
        found = []
        for pin, net in nets.items():
            if net < 0 or cell.pins[pin].direction != "output":
                continue
            for arc in cell.pins[pin].arcs:
                if arc.kind not in ("rising_edge", "falling_edge"):
                    continue
                for edge in (RISE, FALL):
                    if DELAY[edge] in arc.tables:
                        self._arrive(net, edge, 0.0, 0.0, arc, (-1, edge, kind))
            found.append(net)
        return found

    def _pass(self, cell: LibraryCell, kind: str, nets: Mapping[str, int]) -> list[int]:
        found = []
        for pin, net in nets.items():
            if net < 0 or pin not in cell.pins or cell.pins[pin].direction != "output":
                continue
            for arc in cell.pins[pin].arcs:
                source = nets.get(arc.related, -1)
                if source < 0 or arc.kind not in _COMBINATIONAL:
                    continue
                arrival = self._arrival.get(source, [_NEVER, _NEVER])
                slew = self._slew.get(source, [0.0, 0.0])
                wire = self._wire.delay_ns(
                    self._pins[source], cell.pins[arc.related].capacitance_pf
                )
                for start, edge in EDGES[arc.sense]:
                    if DELAY[edge] in arc.tables:
                        self._arrive(
                            net,
                            edge,
                            arrival[start] + wire,
                            slew[start],
                            arc,
                            (source, start, kind),
                        )
            found.append(net)
        return found

    def _arrive(
        self,
        net: int,
        edge: int,
        arrival: float,
        slew: float,
        arc: Arc,
        origin: tuple[int, int, str],
    ) -> None:
        load = self._load[net]
        at = arrival + arc.tables[DELAY[edge]](slew, load)
        arrivals = self._arrival.setdefault(net, [_NEVER, _NEVER])
        slews = self._slew.setdefault(net, [0.0, 0.0])
        if at > arrivals[edge]:
            arrivals[edge] = at
            self._before[net, edge] = origin
        if SLEW[edge] in arc.tables:
            slews[edge] = max(slews[edge], arc.tables[SLEW[edge]](slew, load))

    def _result(self) -> Timing:
        worst, end = _NEVER, (-1, RISE)
        for cell, _, nets in self._cells:
            if not cell.sequential:
                continue
            for pin, net in nets.items():
                if net not in self._arrival or cell.pins[pin].direction != "input":
                    continue
                for arc in cell.pins[pin].arcs:
                    if not arc.kind.startswith("setup"):
                        continue
                    for edge in (RISE, FALL):
                        if _SETUP[edge] not in arc.tables:
                            continue
                        setup = arc.tables[_SETUP[edge]](0.0, self._slew[net][edge])
                        if self._arrival[net][edge] + setup > worst:
                            worst, end = self._arrival[net][edge] + setup, (net, edge)
        if worst == _NEVER:
            raise SimulationError("the netlist has no path from a register to a register")
        path: list[str] = []
        while end[0] >= 0:
            net, edge, kind = self._before[end]
            path.append(kind)
            end = (net, edge)
        sequential = [cell for cell, _, _ in self._cells if cell.sequential]
        return Timing(
            worst,
            sum(cell.area for cell, _, _ in self._cells),
            sum(cell.area for cell in sequential),
            len(self._cells),
            len(sequential),
            tuple(reversed(path)),
        )
