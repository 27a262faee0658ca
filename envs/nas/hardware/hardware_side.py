"""The hardware side of a co-design: networks and chips in; latency, energy and area out.

>>> from archgym.envs.accelerator.workload.layer import Layer, Network
>>> from archgym.envs.nas.hardware.chip import Chip
>>> conv = Layer("conv", "conv", K=64, C=32, R=3, S=3, P=16, Q=16)
>>> network = Network("two", (conv, Layer.from_gemm("fc", 1, 10, 64)), (1, 1))
>>> chip = Chip.of([("nvdla_ws", 256, 32), ("shidiannao_os", 64, 8)])
>>> found = HardwareSide().evaluate([[network, network]], [chip])
>>> found.latency_cycles.shape, bool(found.energy_nj[0] > 0), found.reasons
((1,), True, ('',))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.nas.hardware.chip import DEFAULT_TECHNOLOGY, Chip, area_um2, clock_mhz
from archgym.envs.nas.hardware.layer_costs import LayerCosts
from archgym.envs.nas.schedule import SCHEDULERS, Schedule, SchedulingProblem, solve
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["HardwareCosts", "HardwareSide", "chain_of"]

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HardwareCosts:
    """Latency, energy and area of designs, shape (n_designs,); NaN where a layer has no mapping."""

    latency_cycles: _Floats
    """Makespan of all networks, cycles."""
    latency_ns: _Floats
    """The same, ns."""
    energy_nj: _Floats
    """Sum over all layers, nJ."""
    area_um2: _Floats
    """Sum over the sub-accelerators, um2; known for every design."""
    meets_limit: npt.NDArray[np.bool_]
    """Whether the latency is within the limit given."""
    reasons: tuple[str, ...]
    """Why a design has no figures; empty for those that have."""


class HardwareSide:
    """Evaluates networks on chips: costs of layers, then mapping and scheduling.

    Latency is the makespan of all networks, which start together; energy and area are sums. Data
    that go from one sub-accelerator to another take no extra time and energy: in mode ``own`` all
    activations pass through the memory anyhow, in mode ``paper`` they are not modelled (as in
    NASAIC).

    Args:
        mode: ``own`` or ``paper``, see :class:`LayerCosts`.
        scheduler: one of `SCHEDULERS`.
        technology: of mode ``own``.
        mapper: of mode ``own``, see :class:`LayerCosts`.
        **memory: further arguments of :class:`LayerCosts`.

    Raises:
        UnknownNameError, InvalidValueError: for arguments that are not possible.
    """

    def __init__(
        self,
        mode: str = "own",
        *,
        scheduler: str = "hap",
        technology: str = DEFAULT_TECHNOLOGY,
        mapper: str = "latency",
        **memory: Any,
    ) -> None:
        if scheduler not in SCHEDULERS:
            raise UnknownNameError("scheduler", scheduler, SCHEDULERS)
        self.scheduler = scheduler
        self.costs = LayerCosts(mode, technology=technology, mapper=mapper, **memory)

    def evaluate(
        self,
        networks: Sequence[Sequence[Network]],
        chips: Sequence[Chip],
        *,
        latency_limit: float | None = None,
    ) -> HardwareCosts:
        """Return latency, energy and area of each design.

        Args:
            networks: those of each design, at least one each.
            chips: that of each design.
            latency_limit: cycles within which the scheduler saves energy; without one the ``hap``
                and ``exact`` schedulers give the least energy there is. Where it cannot be met the
                fastest schedule found counts.

        Raises:
            InvalidValueError: for designs without networks, other lengths, or a limit of 0 or less.
            SpaceTooLargeError: for a design that is too large for scheduler ``exact``.
        """
        if len(networks) != len(chips):
            raise InvalidValueError(
                f"networks of {len(networks)} designs and {len(chips)} chips; one each"
            )
        problems = self._problems(networks, chips)
        count = len(chips)
        cycles, energy = np.full(count, np.nan), np.full(count, np.nan)
        meets = np.zeros(count, np.bool_)
        reasons = []
        for i, problem in enumerate(problems):
            if isinstance(problem, str):
                reasons.append(problem)
                continue
            schedule = solve(problem, self.scheduler, latency_limit)
            cycles[i], energy[i] = schedule.makespan, schedule.energy
            meets[i] = schedule.meets_limit
            reasons.append("")
        mode, technology = self.costs.mode, self.costs.technology
        return HardwareCosts(
            latency_cycles=cycles,
            latency_ns=cycles * 1000 / clock_mhz(mode, technology),
            energy_nj=energy,
            area_um2=np.array([area_um2(chip, mode, technology) for chip in chips], np.float64),
            meets_limit=meets,
            reasons=tuple(reasons),
        )

    def schedule(
        self, networks: Sequence[Network], chip: Chip, *, latency_limit: float | None = None
    ) -> Schedule:
        """Return the schedule of one design's networks; energy in nJ, times in cycles.

        Raises:
            InvalidValueError: if a layer has no mapping on any sub-accelerator, and as `evaluate`.
        """
        (problem,) = self._problems([networks], [chip])
        if isinstance(problem, str):
            raise InvalidValueError(problem)
        return solve(problem, self.scheduler, latency_limit)

    def _problems(
        self, networks: Sequence[Sequence[Network]], chips: Sequence[Chip]
    ) -> list[SchedulingProblem | str]:
        """The scheduling problem of each design, or why it has none."""
        chains = [[chain_of(network) for network in those] for those in networks]
        if not all(chains):
            raise InvalidValueError("a design has no networks; it has at least one")
        layers = [[layer for chain in those for layer in chain] for those in chains]
        tables = self.costs.tables(
            [(those, chip.sub_accelerators) for those, chip in zip(layers, chips, strict=True)]
        )
        found: list[SchedulingProblem | str] = []
        for those, each, (latency, energy) in zip(layers, chains, tables, strict=True):
            runs = np.isfinite(latency).any(axis=1)
            if runs.all():
                found.append(SchedulingProblem(latency, energy, [len(chain) for chain in each]))
            else:
                name = those[int(np.argmin(runs))].name
                found.append(f"layer {name!r} has no mapping on any sub-accelerator")
        return found


def chain_of(network: Network) -> list[Layer]:
    """Return the layers in execution order; those with a count follow one another."""
    return [
        layer
        for layer, count in zip(network.layers, network.counts, strict=True)
        for _ in range(count)
    ]
