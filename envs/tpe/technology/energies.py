"""Energy of switching in a cell library.

Energies per switching signal come from gate-level simulations of synthesised PEs and are kept with
their source and their error in ``energies.json``; for other libraries they follow from
three of its cells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["Energies", "energy_names", "load_energies"]

_CELLS = ("gate", "register_clock", "register_data", "leakage_nw_per_um2")
"""What has to be known of a library at least."""


@dataclass(frozen=True)
class Energies:
    """Energies of switching in a cell library.

    Attributes:
        library: name of the library and its operating point.
        register_clock: a register in one clock cycle, its data at rest, fJ.
        register_data: a register whose bit changes, fJ.
        select: a changing partial product bit of a selector, fJ.
        gate: a changing output of a simple gate, fJ.
        full_adder: a full adder, by mean switching of its two outputs, fJ.
        half_adder: a half adder, by switching of its sum, fJ.
        adder: a bit of a carry-propagate adder, by switching of its sum, fJ.
        encoder: an encoder of one digit, by mean switching of its lines, fJ.
        multiplexer: a changing output of a 2:1 multiplexer, fJ.
        line: a gate input that a changing signal drives beyond the first, fJ.
        drive: the same input on an operand line that limits the clock, for each unit of
            :func:`archgym.envs.tpe.switching.line_drive.line_drive`, fJ.
        leakage_nw_per_um2: leakage by area of cells, nW/um2.
    """

    library: str
    register_clock: float
    register_data: float
    select: float
    gate: float
    full_adder: float
    half_adder: float
    adder: float
    encoder: float
    multiplexer: float
    line: float
    drive: float
    leakage_nw_per_um2: float

    @classmethod
    def of(cls, library: str, given: Mapping[str, float]) -> Energies:
        """Energies of a library from its known figures.

        Args:
            library: its name.
            given: every field by its name; or those that :meth:`of_cells` takes; or none, if the
                energies of that library ship.

        Raises:
            InvalidValueError: if that is not enough.
        """
        if not given and library in energy_names():
            return load_energies(library)
        every = [field.name for field in fields(cls) if field.name != "library"]
        chosen = _CELLS if set(given) <= set(_CELLS) else every
        for name in chosen:
            if name not in given:
                raise InvalidValueError(
                    f"energies of cell library {library!r}: {name} is missing; needed are "
                    f"{', '.join(_CELLS)}, or {', '.join(every)}"
                )
        if chosen is every:
            return cls(library, **{name: given[name] for name in every})
        return cls.of_cells(library, **{name: given[name] for name in _CELLS})

    @classmethod
    def of_cells(
        cls,
        library: str,
        *,
        gate: float,
        register_clock: float,
        register_data: float,
        leakage_nw_per_um2: float,
    ) -> Energies:
        """Energies of a library of which only some cells are known.

        A logic class keeps the ratio to a NAND gate that it has in the shipped libraries (the
        geometric mean); gate-level simulation of PEs is more exact.

        Args:
            library: its name.
            gate: a two-input gate that drives two others, a change of its output, fJ.
            register_clock: a flip-flop in one clock cycle, fJ.
            register_data: a flip-flop whose bit changes, fJ.
            leakage_nw_per_um2: leakage by area of cells, nW/um2.
        """
        known = _shipped().values()
        logic = {
            name: gate * float(np.exp(np.mean([np.log(e[name] / e["nand2"]) for e in known])))
            for name in (f.name for f in fields(cls))
            if name not in ("library", *_CELLS[1:])
        }
        return cls(
            library=library,
            register_clock=register_clock,
            register_data=register_data,
            leakage_nw_per_um2=leakage_nw_per_um2,
            **logic,
        )


def energy_names() -> tuple[str, ...]:
    """The libraries whose energies ship."""
    return tuple(_shipped())


def load_energies(name: str) -> Energies:
    """Energies of a shipped library.

    Raises:
        UnknownNameError: if there is none of that name.
    """
    if name not in _shipped():
        raise UnknownNameError("cell library", name, _shipped())
    chosen = _shipped()[name]
    return Energies(**{field.name: chosen[field.name] for field in fields(Energies)})


@cache
def _shipped() -> dict[str, dict[str, Any]]:
    file = resources.files("archgym.envs.tpe.technology").joinpath("energies.json")
    libraries: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["libraries"]
    return libraries
