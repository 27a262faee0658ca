"""Fits the energies of a cell library to gate-level simulations of synthesised PEs.

Least squares of relative errors with coefficients that cannot be negative, drawn weakly towards
the energy of a textbook circuit of the library's gates, since some classes of signals always
occur together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from archgym.envs.tpe.eda.netlist_energy import NetlistEnergy
from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.microarchitecture.structure import counts
from archgym.envs.tpe.switching.array_energy import switching, work_energy_fj
from archgym.envs.tpe.technology.energies import Energies
from archgym.envs.tpe.workload.operands import OperandDistribution
from archgym.errors import InvalidValueError

__all__ = ["EnergySample", "energy_error", "fit_energies"]

_TEXTBOOK: Mapping[str, float] = {
    "select": 2.4,  # AND-OR, exclusive or
    "gate": 1.0,
    "full_adder": 4.9,  # two exclusive ors, majority of two levels
    "half_adder": 2.1,  # exclusive or, AND
    "adder": 5.9,  # two exclusive ors, some three gates of a prefix network
    "encoder": 5.4,  # exclusive or, four gates
    "multiplexer": 2.0,
    "line": 0.3,  # a gate's input alone
    "drive": 1.0,  # of a buffer and of the gate that it drives, all larger
}
"""Simple gates that a class of signals amounts to; an exclusive or is 1.4 of them."""
_PULL = 0.3
"""Weight of a doubling of a coefficient against a relative error of one sample."""


@dataclass(frozen=True)
class EnergySample:
    """A PE and the energy of a cycle of its netlist on independent operands.

    Attributes:
        pe: the processing element.
        a: operand A.
        b: operand B.
        cycles: that the simulation ran: accumulators were never cleared.
        energy: by gate-level simulation.
    """

    pe: PE
    a: OperandDistribution
    b: OperandDistribution
    cycles: int
    energy: NetlistEnergy

    @property
    def signals(self) -> dict[str, float]:
        """The switching signals of the model, without glitches."""
        length = self.cycles * self.pe.operand_pairs
        return switching(self.pe, self.a, self.b, accumulation_length=length, with_glitches=False)


def fit_energies(
    library: str, samples: Sequence[EnergySample], basic: Mapping[str, float]
) -> Energies:
    """The energies of a library.

    Args:
        library: its name.
        samples: some ten PEs of different kinds at least.
        basic: what :func:`archgym.envs.tpe.eda.liberty_energy.basic_energies` found.

    Raises:
        InvalidValueError: if there are fewer samples than coefficients.
    """
    from scipy.optimize import nnls

    if len(samples) < len(_TEXTBOOK):
        raise InvalidValueError(
            f"energies of {library}: {len(samples)} samples are too few for {len(_TEXTBOOK)} "
            "coefficients"
        )
    signals = [sample.signals for sample in samples]
    registers = np.array([counts(sample.pe).register_bits for sample in samples])
    clock = float(np.mean([s.energy.clock for s in samples] / registers))
    changed = np.array([found["register"] for found in signals])
    paid = np.array([sample.energy.registers for sample in samples])
    logic = np.array([sample.energy.logic + sample.energy.inputs for sample in samples])
    table = np.array([[found[name] for name in _TEXTBOOK] for found in signals])
    expected = np.array(list(_TEXTBOOK.values())) * basic["gate"]
    rows = np.vstack([table / logic[:, None], np.diag(_PULL / expected)])
    aims = np.concatenate([np.ones(len(logic)), np.full(len(expected), _PULL)])
    fitted, _ = nnls(rows, aims)
    return Energies(
        library=library,
        register_clock=clock,
        register_data=float(changed @ paid / (changed @ changed)),
        leakage_nw_per_um2=basic["leakage_nw_per_um2"],
        **dict(zip(_TEXTBOOK, fitted.tolist(), strict=True)),
    )


def energy_error(energies: Energies, samples: Sequence[EnergySample]) -> tuple[float, float]:
    """Mean and greatest relative error of the energy of a cycle."""
    errors = []
    for sample in samples:
        found = work_energy_fj(energies, sample.signals)
        found += counts(sample.pe).register_bits * energies.register_clock
        errors.append(abs(found / sample.energy.total - 1.0))
    return float(np.mean(errors)), float(np.max(errors))
