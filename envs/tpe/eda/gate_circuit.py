"""A synthesised netlist as a circuit of gates and flip-flops, in the form that simulation needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from archgym.envs.tpe.eda.boolean_functions import Function, parse
from archgym.envs.tpe.eda.cell_library import CellLibrary, LibraryCell
from archgym.envs.tpe.eda.liberty_energy import data_pin
from archgym.errors import SimulationError

__all__ = ["ONE", "ZERO", "Circuit", "FlipFlop", "Gate", "read_circuit"]

ZERO, ONE = -1, -2
"""Numbers of the nets that never change."""


@dataclass(frozen=True)
class Gate:
    """A gate without state.

    Attributes:
        cell: what it is in the library.
        nets: net of each pin.
        functions: of each output that is used.
    """

    cell: LibraryCell
    nets: Mapping[str, int]
    functions: Mapping[str, Function]


@dataclass(frozen=True)
class FlipFlop:
    """A flip-flop.

    Attributes:
        cell: what it is in the library.
        data: net that it takes over.
        clock: name of its clock pin.
        outputs: net of each output; the first is the state, the second its inverse.
    """

    cell: LibraryCell
    data: int
    clock: str
    outputs: Mapping[str, int]


@dataclass(frozen=True)
class Circuit:
    """Gates and flip-flops of a netlist.

    Attributes:
        inputs: nets of each input port but the clock, lowest bit first.
        gates: each behind those that drive it.
        flip_flops: in the order of the netlist.
        readers: numbers of the gates that have a net as an input.
        loads_pf: sum of the pins on a net, pF; wires weigh nothing.
    """

    inputs: Mapping[str, tuple[int, ...]]
    gates: tuple[Gate, ...]
    flip_flops: tuple[FlipFlop, ...]
    readers: Mapping[int, tuple[int, ...]]
    loads_pf: Mapping[int, float]


def read_circuit(text: str, top: str, library: CellLibrary) -> Circuit:
    """The circuit of a netlist that yosys wrote with `write_json`; its clock is the port `clk`.

    Raises:
        InvalidValueError: if a cell is not in the library.
        SimulationError: if the module is not there, or its logic has a loop.
    """
    modules: dict[str, Any] = json.loads(text).get("modules", {})
    if top not in modules:
        raise SimulationError(f"the netlist has no module {top!r}")
    module = modules[top]
    inputs = {
        name: tuple(int(bit) for bit in port["bits"])
        for name, port in module["ports"].items()
        if port["direction"] == "input" and name != "clk"
    }
    loads: dict[int, float] = {}
    flops: list[FlipFlop] = []
    gates: list[Gate] = []
    for instance in module["cells"].values():
        if instance["type"] == "$scopeinfo":
            continue
        cell = library.cell(str(instance["type"]))
        nets = {pin: _net(bits[0]) for pin, bits in instance["connections"].items() if bits}
        for name, net in nets.items():
            if cell.pins[name].direction == "input":
                loads[net] = loads.get(net, 0.0) + cell.pins[name].capacitance_pf
        if cell.sequential:
            flops.append(_flip_flop(cell, nets))
        else:
            gates.append(Gate(cell, nets, _functions(cell, nets)))
    ordered = _ordered(gates)
    readers: dict[int, list[int]] = {}
    for i, gate in enumerate(ordered):
        for net in {net for pin, net in gate.nets.items() if pin not in gate.functions}:
            readers.setdefault(net, []).append(i)
    return Circuit(
        inputs, tuple(ordered), tuple(flops), {k: tuple(v) for k, v in readers.items()}, loads
    )


def _ordered(gates: list[Gate]) -> list[Gate]:
    """The gates, each behind those that drive it."""
    driver = {gate.nets[pin]: i for i, gate in enumerate(gates) for pin in gate.functions}
    missing = []
    readers: dict[int, list[int]] = {}
    for i, gate in enumerate(gates):
        sources = {
            driver[net]
            for pin, net in gate.nets.items()
            if net in driver and pin not in gate.functions
        }
        missing.append(len(sources))
        for source in sources:
            readers.setdefault(source, []).append(i)
    ready = [i for i, n in enumerate(missing) if n == 0]
    for i in ready:  # grows while it is gone through
        for reader in readers.get(i, ()):
            missing[reader] -= 1
            if missing[reader] == 0:
                ready.append(reader)
    if len(ready) < len(gates):
        raise SimulationError("the logic of the netlist has a loop")
    return [gates[i] for i in ready]


def _net(bit: int | str) -> int:
    """Number of a net; a constant is a negative one, and what is unknown is zero."""
    if isinstance(bit, int):
        return bit
    return ONE if bit == "1" else ZERO


def _functions(cell: LibraryCell, nets: Mapping[str, int]) -> dict[str, Function]:
    return {
        name: parse(pin.function)
        for name, pin in cell.pins.items()
        if pin.direction == "output" and name in nets
    }


def _flip_flop(cell: LibraryCell, nets: Mapping[str, int]) -> FlipFlop:
    # Where there are two outputs, the first by name (Q before QN) is the state, the other its
    # inverse, as in every library that we know.
    names = sorted(name for name, pin in cell.pins.items() if pin.direction == "output")
    clock = next(name for name, pin in cell.pins.items() if pin.clock)
    outputs = {name: nets.get(name, -3 - i) for i, name in enumerate(names)}
    return FlipFlop(cell, nets[data_pin(cell)], clock, outputs)
