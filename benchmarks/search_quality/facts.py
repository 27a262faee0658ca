"""What is known of a problem before anything is searched: optimum, median, how rare it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import moocore
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COUNTS_FROM",
    "WITHIN",
    "Facts",
    "Volume",
    "pareto_facts",
    "sampled_facts",
    "weighted_facts",
    "weighted_quantile",
]

WITHIN = 0.01
"""Normalised regret up to which a design is within 1 % of the optimum."""
COUNTS_FROM = 1000
"""Evaluations that random search must need, on average, for a problem to count."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Facts:
    """What is known of a problem.

    Attributes:
        optimum: the best value; ``None`` if it is the best that was ever found.
        median: median value of uniform random designs that keep the limits.
        random_evaluations: how many uniform draws it takes, on average, to come within 1 %
            (``inf``: not one in the sample did); ``None`` if it is not known.
        exact: whether the optimum and the draws are counted exactly, not sampled.
        feasible: share of uniform draws that keep the limits.
        optimal: share of uniform draws that are optimal; ``None`` if it is not known.
        dead: parameters whose value never changes a metric.
        notes: what else belongs to the problem, such as limits that were chosen for it.
    """

    optimum: float | None
    median: float
    random_evaluations: float | None
    exact: bool
    feasible: float = 1.0
    optimal: float | None = None
    dead: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether it is hard enough to count; unknown is taken as yes."""
        return self.random_evaluations is None or self.random_evaluations >= COUNTS_FROM

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which :meth:`from_json` makes the same."""
        data = asdict(self)
        if self.random_evaluations is not None and math.isinf(self.random_evaluations):
            data["random_evaluations"] = "inf"
        return data

    @staticmethod
    def from_json(data: dict[str, Any]) -> Facts:
        """The inverse of :meth:`to_json`."""
        data = {**data, "dead": tuple(data["dead"])}
        if data["random_evaluations"] == "inf":
            data["random_evaluations"] = math.inf
        return Facts(**data)


def weighted_quantile(values: Array, weights: Array, share: float) -> float:
    """The least value that, with all smaller ones, has at least that share of the weight."""
    order = np.argsort(values, kind="stable")
    heap = np.cumsum(weights[order])
    place = int(np.searchsorted(heap, share * heap[-1], "left"))
    return float(values[order[min(place, len(order) - 1)]])


def weighted_facts(values: Array, weights: Array, feasible: NDArray[np.bool_]) -> Facts:
    """Facts of a whole space.

    Args:
        values: what is minimised, shape (n_designs,).
        weights: how often a uniform draw gives each design; any scale, shape (n_designs,).
        feasible: which designs keep the limits, at least one, shape (n_designs,).
    """
    kept, shares = values[feasible], weights[feasible] / weights.sum()
    best, median = float(kept.min()), weighted_quantile(kept, shares, 0.5)
    near = float(shares[kept <= best + WITHIN * (median - best)].sum())
    hits = float(shares[kept == best].sum())
    return Facts(best, median, 1.0 / near, True, float(shares.sum()), hits)


def sampled_facts(values: Array, optimum: float | None) -> Facts:
    """Facts from uniform draws, NaN for those that break a limit, and perhaps a known optimum.

    Raises:
        ValueError: if all draws break a limit.
    """
    kept = values[~np.isnan(values)]
    if not len(kept):
        raise ValueError(f"none of {len(values):,} random designs keeps the limits: loosen them")
    median = float(np.median(kept))
    needed = None
    if optimum is not None:
        near = int((kept <= optimum + WITHIN * (median - optimum)).sum())
        needed = len(values) / near if near else math.inf
    return Facts(optimum, median, needed, False, len(kept) / len(values))


class Volume:
    """Minus the hypervolume of goals, each scaled so that ``low`` is 0 and ``high`` is 1.

    Args:
        low: the best value of each goal.
        high: the reference point, in the goals' own units.
    """

    def __init__(self, low: Sequence[float], high: Sequence[float]) -> None:
        self.low, self.high = np.array(low), np.array(high)

    def __call__(self, goals: Array) -> float:
        """Of the designs with these goals, shape (n, n_goals); 0 if there is none."""
        scaled = (goals - self.low) / (self.high - self.low)
        scaled = scaled[(scaled < 1).all(axis=1)]
        return (
            -float(moocore.hypervolume(scaled, ref=np.ones(len(self.low)))) if len(scaled) else 0.0
        )


DRAWS = 1 << 16
"""Draws after which a simulated random search gives up."""


def pareto_facts(goals: Array, weights: Array) -> Facts:
    """Facts of a problem with several goals, whose value is minus the hypervolume.

    The best value of each goal and the value that nine tenths of uniform draws beat span the
    volume. Evaluations of random search are simulated, 20 times, up to :data:`DRAWS` draws.

    Args:
        goals: all minimised, shape (n_designs, n_goals).
        weights: how often a uniform draw gives each design, shape (n_designs,).
    """
    low = goals.min(axis=0)
    high = np.array([weighted_quantile(column, weights, 0.9) for column in goals.T])
    volume = Volume(low.tolist(), high.tolist())
    front = goals[moocore.is_nondominated(goals, keep_weakly=False)]
    best = volume(front)
    scaled = np.clip(1.0 - (goals - low) / (high - low), 0.0, None).prod(axis=1)
    median = -weighted_quantile(scaled, weights, 0.5)
    rng = np.random.default_rng(0)
    chances = weights / weights.sum()
    needed = []
    for _ in range(20):
        drawn = goals[rng.choice(len(goals), DRAWS, p=chances)]
        needed.append(_first(drawn, volume, best + WITHIN * (median - best)))
    notes = {"low": low.tolist(), "high": high.tolist(), "front": len(front)}
    mean = float(np.mean(needed))
    return Facts(best, median, mean, True, notes=notes)


def _first(drawn: Array, volume: Volume, bar: float) -> float:
    """The least number of draws whose volume, which only falls, is at most the bar."""
    if volume(drawn) > bar:
        return math.inf
    low, high = 0, len(drawn)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if volume(drawn[:middle]) <= bar else (middle, high)
    return float(high)
