"""Energy of a synthesised netlist, from simulating it gate by gate.

Wires weigh nothing. A change of a net costs half C V^2 of the pins on it and the mean internal
energy of what drives it; a flip-flop pays for its clock pin in every cycle. The energies of
:mod:`archgym.envs.tpe.technology.energies` were fitted to it with signals that
settle at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archgym.envs.tpe.eda.cell_library import CellLibrary, LibraryCell
from archgym.envs.tpe.eda.gate_circuit import Circuit, read_circuit
from archgym.envs.tpe.eda.gate_simulation import SETTLING, Settling, switching_of
from archgym.envs.tpe.eda.liberty_energy import data_pin, internal_energy_fj
from archgym.envs.tpe.eda.operand_drive import Drive
from archgym.errors import UnknownNameError

__all__ = ["NetlistEnergy", "netlist_energy"]

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
    settling: Settling = "gate_delays",
) -> NetlistEnergy:
    """Simulates a netlist and adds up the energy of its switching.

    Args:
        text: netlist that yosys wrote with `write_json`; its clock is the port `clk`.
        top: name of the module.
        library: the cells that it is mapped to.
        drive: the inputs in each cycle.
        streams: independent streams.
        cycles: to simulate; the first few do not count.
        settling: how signals settle: `at_once` (no glitches), by the `gate_delays` of the library,
            or with `equal_delays` (too many glitches).

    Raises:
        InvalidValueError: if a cell is not in the library.
        SimulationError: if the module is not there, or its logic has a loop.
        UnknownNameError: if there is no such way of settling.
    """
    if settling not in SETTLING:
        raise UnknownNameError("settling", settling, SETTLING)
    circuit = read_circuit(text, top, library)
    changes = switching_of(circuit, drive, streams=streams, cycles=cycles, settling=settling)
    return _energy(circuit, library.voltage_v**2 * _FJ_PER_PF_V2, changes)


def _energy(circuit: Circuit, volts2: float, changes: Mapping[int, float]) -> NetlistEnergy:
    """What the changes cost."""

    def driven(cell: LibraryCell, pin: str, net: int) -> float:
        load = circuit.loads_pf.get(net, 0.0)
        each = internal_energy_fj(cell, pin, load) + load * volts2 / 2.0
        return changes.get(net, 0.0) * each

    def received(cell: LibraryCell, nets: Mapping[str, int]) -> float:
        """Internal energy of changing inputs, without a change of the output."""
        return sum(
            changes.get(net, 0.0) * internal_energy_fj(cell, pin, 0.0)
            for pin, net in nets.items()
            if cell.pins[pin].direction == "input"
        )

    clock = registers = logic = inputs = 0.0
    for gate in circuit.gates:
        logic += sum(driven(gate.cell, pin, gate.nets[pin]) for pin in gate.functions)
        logic += received(gate.cell, gate.nets)
    for flop in circuit.flip_flops:
        clock += 2.0 * internal_energy_fj(flop.cell, flop.clock, 0.0)
        clock += flop.cell.pins[flop.clock].capacitance_pf * volts2
        registers += sum(driven(flop.cell, pin, net) for pin, net in flop.outputs.items())
        registers += received(flop.cell, {data_pin(flop.cell): flop.data})
    for nets in circuit.inputs.values():
        for net in nets:
            inputs += changes.get(net, 0.0) * circuit.loads_pf.get(net, 0.0) * volts2 / 2.0
    return NetlistEnergy(clock, registers, logic, inputs)
