"""Energy of switching, from a Liberty file.

The internal energy of a cell is the mean of its tables at the second smallest slew and a load of
two NAND gates; what it charges outside is half C V^2 of the pins that it drives. A flip-flop with
two outputs pays for both, since both change.
"""

from __future__ import annotations

from archgym.envs.tpe.eda.boolean_functions import parse
from archgym.envs.tpe.eda.cell_library import CellLibrary, LibraryCell, Pin
from archgym.errors import InvalidValueError

__all__ = ["basic_energies", "data_pin", "internal_energy_fj", "nand2"]

_FJ_PER_PF_V2 = 1e3


def basic_energies(library: CellLibrary) -> dict[str, float]:
    """The figures that :meth:`archgym.envs.tpe.technology.energies.Energies.of_cells` needs.

    Returns:
        ``gate``, ``register_clock`` and ``register_data`` in fJ, ``leakage_nw_per_um2`` in
        nW/um2: of the smallest NAND gate of two inputs, driving two of its kind, and the smallest
        flip-flop without set and reset (or else the smallest).

    Raises:
        InvalidValueError: if the library lacks such a cell.
    """
    gate, flop = nand2(library), _flip_flop(library)
    volts2 = library.voltage_v**2 * _FJ_PER_PF_V2
    inputs = [pin.capacitance_pf for pin in gate.pins.values() if pin.direction == "input"]
    load = 2.0 * sum(inputs) / len(inputs)
    (out,) = (name for name, pin in gate.pins.items() if pin.direction == "output")
    clock = next(name for name, pin in flop.pins.items() if pin.clock)
    outputs = [name for name, pin in flop.pins.items() if pin.direction == "output"]
    data = data_pin(flop)
    charge = load * volts2 / 2.0
    turn = flop.pins[clock].capacitance_pf * volts2
    gate_inside = internal_energy_fj(gate, out, load)
    clock_inside = 2.0 * internal_energy_fj(flop, clock, load)
    data_inside = sum(internal_energy_fj(flop, output, load) for output in outputs)
    data_inside += internal_energy_fj(flop, data, load)
    if not any(pin.energies for cell in (gate, flop) for pin in cell.pins.values()):
        # The library gives none: about what the load takes goes into inner nodes and short
        # circuits (J. M. Rabaey and others, "Digital Integrated Circuits", 2003, section 5.5).
        gate_inside, clock_inside, data_inside = charge, turn, 2.0 * charge
    return {
        "gate": gate_inside + charge,
        "register_clock": clock_inside + turn,
        "register_data": data_inside + charge,
        "leakage_nw_per_um2": (flop.leakage_nw + 4.0 * gate.leakage_nw)
        / (flop.area + 4.0 * gate.area),
    }


def internal_energy_fj(cell: LibraryCell, pin: str, load_pf: float) -> float:
    """Mean internal energy of a change at a pin, fJ; 0 if the library does not give it.

    Energies below zero are a matter of how a library accounts for loads; their mean counts as
    nothing then.
    """
    tables = [table for _, table in cell.pins[pin].energies]
    if not tables:
        return 0.0
    values = [table(table.rows[min(1, len(table.rows) - 1)], load_pf) for table in tables]
    return max(0.0, sum(values) / len(values))


def data_pin(cell: LibraryCell) -> str:
    """The data input of a flip-flop: the one whose change must come a time before the clock.

    Raises:
        InvalidValueError: if it has none.
    """
    for name, pin in cell.pins.items():
        if pin.direction == "input" and any("setup" in arc.kind for arc in pin.arcs):
            return name
    raise InvalidValueError("a flip-flop has no input with a setup time")


def nand2(library: CellLibrary) -> LibraryCell:
    """The smallest NAND gate of two inputs.

    Raises:
        InvalidValueError: if there is none.
    """
    found = [cell for cell in library.cells.values() if _is_nand2(cell)]
    if not found:
        raise InvalidValueError(f"cell library {library.name} has no NAND gate of two inputs")
    return min(found, key=lambda cell: cell.area)


def _is_nand2(cell: LibraryCell) -> bool:
    inputs = [name for name, pin in cell.pins.items() if pin.direction == "input"]
    outputs = [pin for pin in cell.pins.values() if pin.direction == "output"]
    if cell.sequential or len(inputs) != 2 or len(outputs) != 1 or not outputs[0].function:
        return False
    function = parse(outputs[0].function)
    try:
        return function(dict(zip(inputs, (0b0011, 0b0101), strict=True)), 0b1111) == 0b1110
    except KeyError:  # it depends on a state
        return False


def _flip_flop(library: CellLibrary) -> LibraryCell:
    """The smallest flip-flop, one without set, reset and scan if there is one."""
    found = [
        cell
        for cell in library.cells.values()
        if cell.sequential
        and any(pin.clock for pin in cell.pins.values())
        and any("setup" in arc.kind for pin in cell.pins.values() for arc in pin.arcs)
        and all(_follows_an_edge(pin) for pin in cell.pins.values() if pin.direction == "output")
    ]
    if not found:
        raise InvalidValueError(f"cell library {library.name} has no flip-flop")

    def inputs(cell: LibraryCell) -> int:
        return sum(pin.direction == "input" for pin in cell.pins.values())

    def rising(cell: LibraryCell) -> bool:
        return any(arc.kind == "rising_edge" for pin in cell.pins.values() for arc in pin.arcs)

    return min(found, key=lambda cell: (inputs(cell), cell.area, not rising(cell)))


def _follows_an_edge(pin: Pin) -> bool:
    """Whether an output changes with a clock edge only, other than a latch's or a clock gate's."""
    kinds = {arc.kind for arc in pin.arcs}
    return bool(kinds & {"rising_edge", "falling_edge"}) and "combinational" not in kinds
