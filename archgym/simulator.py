"""What turns designs into metrics."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from archgym.errors import NotCoveredError, SimulationError
from archgym.space import Designs

__all__ = ["Simulator", "Simulation", "simulate_each"]

Simulation = Mapping[str, float] | SimulationError | NotCoveredError | TimeoutError
"""Metrics of one design, or why there are none."""


@runtime_checkable
class Simulator(Protocol):
    """Designs in, metrics out.

    Attributes:
        name: short name, for example ``embedded``.
        version: changes whenever the same design may give other metrics.
        metric_names: the metrics that it gives; others are null in the dataset.
    """

    name: str
    version: str
    metric_names: tuple[str, ...]

    def simulate(self, designs: Designs) -> Sequence[tuple[Simulation, float]]:
        """One result a design, with the seconds that it took.

        A design that fails, is not covered or takes too long gives a
        :class:`~archgym.errors.SimulationError`, a :class:`~archgym.errors.NotCoveredError` or
        a :class:`TimeoutError` in its place; the others are not touched by it.
        """
        ...


class _OneByOne(Protocol):
    def simulate(self, design: dict[str, object]) -> Mapping[str, float]: ...


def simulate_each(simulator: _OneByOne, designs: Designs) -> list[tuple[Simulation, float]]:
    """Calls ``simulator.simulate(design)`` for each design, and times it."""
    results: list[tuple[Simulation, float]] = []
    for design in designs:
        start = time.perf_counter()
        result: Simulation
        try:
            result = simulator.simulate(design)
        except (SimulationError, NotCoveredError, TimeoutError) as error:
            result = error
        results.append((result, time.perf_counter() - start))
    return results
