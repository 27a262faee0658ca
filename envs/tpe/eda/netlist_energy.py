"""Energy of a synthesised netlist, from simulating it gate by gate.

Many independent streams of operands run at once, a bit of a machine word each; wires weigh nothing.
Either signals settle at once, so that glitches are not counted, or every gate takes the same time
and passes on the shortest pulse, which counts too many. The truth lies between. A change of a net
costs half C V^2 of the pins on it and the mean internal energy of what drives it; a flip-flop pays
for its clock pin in every cycle. The energies of :mod:`archgym.envs.tpe.technology.energies` were
fitted to the simulation without glitches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from archgym.envs.tpe.eda.boolean_functions import Function, parse
from archgym.envs.tpe.eda.cell_library import CellLibrary, LibraryCell
from archgym.envs.tpe.eda.liberty_energy import data_pin, internal_energy_fj
from archgym.envs.tpe.eda.operand_drive import Drive
from archgym.errors import SimulationError

__all__ = ["NetlistEnergy", "netlist_energy"]

_WARM_UP = 8
"""Cycles before switching counts: registers start at zero."""
_FJ_PER_PF_V2 = 1e3


@dataclass(frozen=True)
class NetlistEnergy:
    """Mean energy of a cycle by where it goes, fJ.

    Attributes:
        clock: clock pins of flip-flops.
        registers: flip-flops whose bit changes, and what they drive.
        logic: gates that change, and what they drive.
        inputs: pins on the input ports.
    """

    clock: float
    registers: float
    logic: float
    inputs: float

    @property
    def total(self) -> float:
        """All of it, fJ."""
        return self.clock + self.registers + self.logic + self.inputs


def netlist_energy(
    text: str,
    top: str,
    library: CellLibrary,
    drive: Drive,
    *,
    streams: int = 256,
    cycles: int = 48,
    glitches: bool = False,
) -> NetlistEnergy:
    """Simulates a netlist and adds up the energy of its switching.

    Args:
        text: netlist that yosys wrote with `write_json`; its clock is the port `clk`.
        top: name of the module.
        library: the cells that it is mapped to.
        drive: the inputs in each cycle.
        streams: independent streams.
        cycles: to simulate; the first few do not count.
        glitches: whether every gate takes the same time, rather than none.

    Raises:
        InvalidValueError: if a cell is not in the library.
        SimulationError: if the module is not there, or its logic has a loop.
    """
    modules: dict[str, Any] = json.loads(text).get("modules", {})
    if top not in modules:
        raise SimulationError(f"the netlist has no module {top!r}")
    circuit = _Circuit(modules[top], library)
    changes = circuit.run(drive, streams, max(cycles, _WARM_UP + 2), glitches)
    return circuit.energy(changes)


@dataclass
class _Gate:
    cell: LibraryCell
    nets: Mapping[str, int]
    functions: Mapping[str, Function]


@dataclass
class _FlipFlop:
    cell: LibraryCell
    data: int
    clock: str
    outputs: Mapping[str, int]


@dataclass
class _Changes:
    """How often each net changes in a cycle and a stream."""

    of: dict[int, float] = field(default_factory=dict)


class _Circuit:
    def __init__(self, module: Mapping[str, Any], library: CellLibrary) -> None:
        self._volts2 = library.voltage_v**2 * _FJ_PER_PF_V2
        self._inputs = {
            name: [int(bit) for bit in port["bits"]]
            for name, port in module["ports"].items()
            if port["direction"] == "input" and name != "clk"
        }
        self._loads: dict[int, float] = {}
        self._flops: list[_FlipFlop] = []
        gates: list[_Gate] = []
        for instance in module["cells"].values():
            if instance["type"] == "$scopeinfo":
                continue
            cell = library.cell(str(instance["type"]))
            nets = {pin: _net(bits[0]) for pin, bits in instance["connections"].items() if bits}
            for name, net in nets.items():
                if cell.pins[name].direction == "input":
                    load = cell.pins[name].capacitance_pf
                    self._loads[net] = self._loads.get(net, 0.0) + load
            if cell.sequential:
                self._flops.append(_flip_flop(cell, nets))
            else:
                gates.append(_Gate(cell, nets, _functions(cell, nets)))
        self._gates = self._ordered(gates)
        self._readers: dict[int, list[int]] = {}
        for i, gate in enumerate(self._gates):
            for pin, net in gate.nets.items():
                if pin not in gate.functions:
                    self._readers.setdefault(net, []).append(i)

    def run(self, drive: Drive, streams: int, cycles: int, glitches: bool) -> _Changes:
        """Simulates; how often each net changes in a cycle and a stream."""
        ones = (1 << streams) - 1
        values: dict[int, int] = {_ZERO: 0, _ONE: ones}
        state = [0] * len(self._flops)
        counted: dict[int, int] = {}
        settle = self._settle_gate_by_gate if glitches else self._settle_at_once
        for cycle in range(cycles):
            new: dict[int, int] = {}
            for flop, bits in zip(self._flops, state, strict=True):
                for position, net in enumerate(flop.outputs.values()):
                    new[net] = ones ^ bits if position else bits
            for name, given in drive(cycle).items():
                new.update(zip(self._inputs.get(name, ()), given, strict=True))
            for changes in settle(values, new, ones, first=cycle == 0):
                for net, value in changes.items():
                    if cycle > _WARM_UP:
                        changed = (value ^ values.get(net, 0)).bit_count()
                        counted[net] = counted.get(net, 0) + changed
                    values[net] = value
            state = [values.get(flop.data, 0) for flop in self._flops]
        seen = (cycles - 1 - _WARM_UP) * streams
        return _Changes({net: n / seen for net, n in counted.items()})

    def _settle_at_once(
        self, values: Mapping[int, int], new: dict[int, int], ones: int, *, first: bool
    ) -> Iterator[dict[int, int]]:
        """What the nets become in a cycle that starts with some new values."""
        after = {**values, **new}
        for gate in self._gates:
            pins = {pin: after.get(net, 0) for pin, net in gate.nets.items()}
            for pin, function in gate.functions.items():
                after[gate.nets[pin]] = function(pins, ones)
        yield after

    def _settle_gate_by_gate(
        self, values: Mapping[int, int], new: dict[int, int], ones: int, *, first: bool
    ) -> Iterator[dict[int, int]]:
        """What changes at each step of one gate's delay; the caller updates the values between."""
        now = {net: value for net, value in new.items() if value != values.get(net, 0)}
        gates: Iterable[int] = range(len(self._gates)) if first else self._read_by(now)
        yield now
        while True:
            now = {}
            for i in gates:
                gate = self._gates[i]
                pins = {pin: values.get(net, 0) for pin, net in gate.nets.items()}
                for pin, function in gate.functions.items():
                    value = function(pins, ones)
                    if value != values.get(gate.nets[pin], 0):
                        now[gate.nets[pin]] = value
            if not now:
                return
            yield now
            gates = self._read_by(now)

    def _read_by(self, nets: Iterable[int]) -> set[int]:
        """The gates that have one of some nets as an input."""
        return {i for net in nets for i in self._readers.get(net, ())}

    def energy(self, changes: _Changes) -> NetlistEnergy:
        """What the changes cost."""
        clock = registers = logic = inputs = 0.0
        for gate in self._gates:
            for pin in gate.functions:
                logic += self._driven(gate.cell, pin, gate.nets[pin], changes)
            logic += self._received(gate.cell, gate.nets, changes)
        for flop in self._flops:
            clock += 2.0 * internal_energy_fj(flop.cell, flop.clock, 0.0)
            clock += flop.cell.pins[flop.clock].capacitance_pf * self._volts2
            for pin, net in flop.outputs.items():
                registers += self._driven(flop.cell, pin, net, changes)
            registers += self._received(flop.cell, {data_pin(flop.cell): flop.data}, changes)
        for nets in self._inputs.values():
            for net in nets:
                charge = self._loads.get(net, 0.0) * self._volts2 / 2.0
                inputs += changes.of.get(net, 0.0) * charge
        return NetlistEnergy(clock, registers, logic, inputs)

    def _driven(self, cell: LibraryCell, pin: str, net: int, changes: _Changes) -> float:
        load = self._loads.get(net, 0.0)
        each = internal_energy_fj(cell, pin, load) + load * self._volts2 / 2.0
        return changes.of.get(net, 0.0) * each

    @staticmethod
    def _received(cell: LibraryCell, nets: Mapping[str, int], changes: _Changes) -> float:
        """Internal energy of changing inputs, without a change of the output."""
        return sum(
            changes.of.get(net, 0.0) * internal_energy_fj(cell, pin, 0.0)
            for pin, net in nets.items()
            if cell.pins[pin].direction == "input"
        )

    def _ordered(self, gates: list[_Gate]) -> list[_Gate]:
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


_ZERO, _ONE = -1, -2


def _net(bit: int | str) -> int:
    """Number of a net; a constant is a negative one, and what is unknown is zero."""
    if isinstance(bit, int):
        return bit
    return _ONE if bit == "1" else _ZERO


def _functions(cell: LibraryCell, nets: Mapping[str, int]) -> dict[str, Function]:
    return {
        name: parse(pin.function)
        for name, pin in cell.pins.items()
        if pin.direction == "output" and name in nets
    }


def _flip_flop(cell: LibraryCell, nets: Mapping[str, int]) -> _FlipFlop:
    # Where there are two outputs, the first by name (Q before QN) is the state, the other its
    # inverse, as in every library that we know.
    names = sorted(name for name, pin in cell.pins.items() if pin.direction == "output")
    clock = next(name for name, pin in cell.pins.items() if pin.clock)
    outputs = {name: nets.get(name, -3 - i) for i, name in enumerate(names)}
    return _FlipFlop(cell, nets[data_pin(cell)], clock, outputs)
