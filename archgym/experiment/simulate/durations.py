"""How long designs take on a simulated clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.fidelity import Fidelity
from archgym.problem.simulator import SimulationResult

__all__ = ["Durations"]


class Durations:
    """Seconds that the simulation of a design takes on a simulated clock.

    A drawn duration depends on the design and the seed alone, so that every search meets the same
    ones. At a lower fidelity a design takes the share of its time that is its share of the cost.

    >>> from archgym.problem.fidelity import FULL
    >>> durations = Durations({"log_normal": {"median": 60, "seed": 1}}, [FULL], {})
    >>> first = durations.of([0, 3], 1.0, {})
    >>> first == durations.of([0, 3], 1.0, {}) != durations.of([0, 4], 1.0, {})
    True

    Args:
        form: seconds, the name of a metric, or a mapping; see
            :class:`archgym.experiment.spec.simulation.SimulationSettings`.
        fidelities: of the environment.
        baseline: metrics of the baseline design by name, for designs that have none.

    Raises:
        UnknownNameError: if there is no such metric.
        InvalidValueError: if the metric of the baseline design is no duration.
    """

    def __init__(
        self, form: Any, fidelities: Sequence[Fidelity], baseline: Mapping[str, float]
    ) -> None:
        self._costs = {one.value: one.cost / fidelities[-1].cost for one in fidelities}
        self._full = _draw(form, baseline)

    def of(self, codes: Sequence[int], fidelity: float, result: SimulationResult) -> float:
        """Seconds that a design takes.

        Args:
            codes: canonical codes of the design.
            fidelity: at which it is simulated.
            result: of its simulation.
        """
        return self._full(codes, result) * self._costs[fidelity]


def _draw(
    form: Any, baseline: Mapping[str, float]
) -> Callable[[Sequence[int], SimulationResult], float]:
    """A function that gives seconds at full fidelity from codes and a result."""
    if isinstance(form, int | float):
        return lambda codes, result: float(form)
    if isinstance(form, str):
        form = {"metric": {"name": form}}
    ((kind, given),) = form.items()
    if kind == "metric":
        name, times = given["name"], float(given.get("times", 1.0))
        if name not in baseline:
            raise UnknownNameError("metric", name, baseline, "simulation.duration")
        usual = baseline[name] * times
        if not 0 <= usual < math.inf:
            raise InvalidValueError(
                f"simulation.duration: metric {name!r} of the baseline design is {baseline[name]}, "
                "which is no duration"
            )

        def look_up(codes: Sequence[int], result: SimulationResult) -> float:
            value = result.get(name, math.nan) if isinstance(result, Mapping) else math.nan
            return value * times if 0 <= value < math.inf else usual

        return look_up
    seed = given.get("seed", 0)

    def generator(codes: Sequence[int]) -> np.random.Generator:
        return np.random.default_rng([seed, *(int(code) + 1 for code in codes)])

    if kind == "uniform":
        low, high = float(given["low"]), float(given["high"])
        return lambda codes, result: low + (high - low) * float(generator(codes).random())
    median, sigma = float(given["median"]), float(given.get("sigma", 1.0))
    return lambda codes, result: median * math.exp(sigma * float(generator(codes).normal()))
