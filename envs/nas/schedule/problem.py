"""The scheduling problem, and a schedule that solves it.

Layers of one network are a chain: each starts when the one before it has finished. Networks run at
the same time; a sub-accelerator works on one layer at a time and does not interrupt it (the
heterogeneous assignment problem of NASAIC, Jiang et al., DAC 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from archgym.envs.nas.schedule.arrays import Floats, Ints, Layers, Plan
from archgym.errors import InvalidValueError

__all__ = ["Schedule", "SchedulingProblem"]


@dataclass(frozen=True, eq=False)
class SchedulingProblem:
    """Layers, their latency and energy on each sub-accelerator, and which follow each other.

    Examples:
        >>> problem = SchedulingProblem([[2, 5], [3, 1]], [[1, 4], [2, 9]], [2])
        >>> problem.chains
        (range(0, 2),)
    """

    latency: Floats
    """Cycles, shape (n_layers, n_sub_accelerators); infinite where a layer cannot run."""
    energy: Floats
    """Any one unit, same shape; infinite exactly where the latency is."""
    lengths: Sequence[int]
    """Layers of each network; networks follow each other in ``latency`` and ``energy``."""

    def __post_init__(self) -> None:
        for field in ("latency", "energy"):
            array = np.ascontiguousarray(getattr(self, field), dtype=np.float64)
            object.__setattr__(self, field, array)
        object.__setattr__(self, "lengths", tuple(int(length) for length in self.lengths))
        latency, energy = self.latency, self.energy
        if latency.ndim != 2 or not latency.size or latency.shape != energy.shape:
            raise InvalidValueError(
                f"latency has shape {latency.shape} and energy {energy.shape}; both are "
                "(layers, sub-accelerators), at least one of each"
            )
        if not self.lengths or min(self.lengths) < 1 or sum(self.lengths) != len(latency):
            raise InvalidValueError(
                f"lengths is {self.lengths}; layers of each network, at least 1, "
                f"{len(latency)} together"
            )
        if not (latency > 0).all():
            raise InvalidValueError("latency holds values that are not above 0")
        if not (energy >= 0).all():
            raise InvalidValueError("energy holds values that are not at least 0")
        runs = np.isfinite(latency)
        if (runs != np.isfinite(energy)).any():
            raise InvalidValueError("latency and energy are not infinite in the same places")
        if not runs.any(axis=1).all():
            raise InvalidValueError(
                f"layer {int(np.argmin(runs.any(axis=1)))} runs on no sub-accelerator"
            )

    @property
    def chains(self) -> tuple[range, ...]:
        """Layers of each network, by their rows."""
        cuts = self.starts.tolist()
        return tuple(range(a, b) for a, b in pairwise(cuts))

    @property
    def starts(self) -> Ints:
        """First layer of each network, and the number of layers, shape (n_networks + 1,)."""
        return np.cumsum((0, *self.lengths), dtype=np.int64)

    @cached_property
    def layers(self) -> Layers:
        """The problem in the form that the schedulers take."""
        chain = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return Layers(self.latency, self.energy, self.starts, chain)

    def empty_plan(self) -> Plan:
        """An empty plan, into which a scheduler writes a schedule of this problem."""
        layers = len(self.latency)
        return Plan(np.empty(layers, np.int64), np.empty(layers), np.empty(layers))

    def violations(self, schedule: Schedule) -> list[str]:
        """Violated rules of a schedule, a sentence each; empty for a valid one."""
        layers = np.arange(len(self.latency))
        chosen = schedule.assignment
        if chosen.shape != layers.shape or ((chosen < 0) | (chosen >= self.latency.shape[1])).any():
            return ["not every layer has a sub-accelerator"]
        found = []
        took = self.latency[layers, chosen]
        if not np.isfinite(took).all():
            found.append("a layer is on a sub-accelerator that cannot run it")
        if not np.allclose(schedule.finish, schedule.start + took, rtol=1e-12, atol=0):
            found.append("a layer does not take its latency")
        if (schedule.start < 0).any():
            found.append("a layer starts before 0")
        found += [
            f"layer {b} starts before layer {a} has finished"
            for chain in self.chains
            for a, b in pairwise(chain)
            if schedule.start[b] < schedule.finish[a]
        ]
        for sub in range(self.latency.shape[1]):
            on_it = layers[chosen == sub]
            in_order = on_it[np.argsort(schedule.start[on_it], kind="stable")].tolist()
            found += [
                f"layers {a} and {b} overlap on sub-accelerator {sub}"
                for a, b in pairwise(in_order)
                if schedule.start[b] < schedule.finish[a]
            ]
        if schedule.makespan != schedule.finish.max():
            found.append("the makespan is not the last finish")
        if not np.isclose(schedule.energy, self.energy[layers, chosen].sum(), rtol=1e-9):
            found.append("the energy is not the sum of the layers'")
        if schedule.meets_limit != (schedule.makespan <= schedule.latency_limit):
            found.append("meets_limit does not say whether the limit is met")
        return found

    def check(self, schedule: Schedule) -> None:
        """Refuse a schedule that breaks a rule.

        Raises:
            InvalidValueError: with the first violation.
        """
        found = self.violations(schedule)
        if found:
            raise InvalidValueError(f"not a schedule of this problem: {found[0]}")

    def scheduled(
        self, assignment: Ints, start: Floats, finish: Floats, latency_limit: float
    ) -> Schedule:
        """Return the schedule with these times; makespan and energy follow from them."""
        makespan = float(finish.max())
        energy = float(self.energy[np.arange(len(assignment)), assignment].sum())
        return Schedule(
            assignment, start, finish, makespan, energy, latency_limit, makespan <= latency_limit
        )


@dataclass(frozen=True, eq=False)
class Schedule:
    """Where and when each layer runs."""

    assignment: Ints
    """Sub-accelerator of each layer, shape (n_layers,)."""
    start: Floats
    """Cycle in which each layer starts, shape (n_layers,)."""
    finish: Floats
    """Cycle in which each layer has finished, shape (n_layers,)."""
    makespan: float
    """Cycles until the last layer has finished."""
    energy: float
    """Sum over the layers, in the problem's unit."""
    latency_limit: float
    """Cycles that were allowed; infinite if none were named."""
    meets_limit: bool
    """Whether the makespan is within the limit; else this is the fastest schedule found."""
