"""How far runs of one design lie apart, and what that means for goals.

An environment that runs a design several times gives the medians, and for a metric ``time_ms`` a
metric ``time_ms_spread_share``: the standard deviation of the runs over their median.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.problem.metrics import Metric, change_text
from archgym.problem.objective import Goal, Objective

__all__ = [
    "SPREAD",
    "WITHIN",
    "GoalSpread",
    "change_of",
    "median_error",
    "plus_minus",
    "spread_of_goal",
    "within_spread",
]

SPREAD: Final = "_spread_share"
"""Ending of a metric's name that makes the name of its spread."""
WITHIN: Final = "within the spread"
"""What stands in place of a change that is no larger than runs of one design differ."""
_OF_A_MEDIAN: Final = math.sqrt(math.pi / 2.0)
"""Standard error of a median over that of a mean, of normally distributed runs."""


@dataclass(frozen=True)
class GoalSpread:
    """Turns the spreads of metrics into the standard errors of goals.

    Attributes:
        weights: power of each metric's spread in each goal, shape (n_metrics, n_goals).
        repeats: runs of a design, of which metrics are the medians.
    """

    weights: NDArray[np.float64]
    repeats: int

    @classmethod
    def of(cls, objective: Objective, metrics: Sequence[Metric], repeats: int) -> GoalSpread | None:
        """Of an objective; ``None`` if no goal has a metric with a spread."""
        names = [metric.name for metric in metrics]
        weights = np.zeros((len(names), len(objective.goals)))
        for column, goal in enumerate(objective.goals):
            for metric, power in _powers(goal).items():
                if metric + SPREAD in names:
                    weights[names.index(metric + SPREAD), column] = power
        return cls(weights, repeats) if weights.any() else None

    def errors(self, metrics: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standard errors of the log ratios of goals, shape (n, n_goals).

        Args:
            metrics: NaN where there is no value, shape (n, n_metrics).
        """
        squares = np.nan_to_num(metrics, nan=0.0) ** 2 @ self.weights**2
        return np.asarray(np.sqrt(squares) * median_error(self.repeats))


def median_error(repeats: int) -> float:
    """Standard error of the median of some runs, over the standard deviation of a run.

    >>> round(median_error(5), 3)
    0.56
    """
    return _OF_A_MEDIAN / math.sqrt(repeats) if repeats > 2 else 1.0 / math.sqrt(repeats)


def within_spread(one: float, two: float, spread_one: float, spread_two: float) -> bool:
    """Whether two values differ by no more than runs of their designs do.

    >>> within_spread(10.0, 10.5, 0.05, 0.05), within_spread(10.0, 12.0, 0.05, 0.05)
    (True, False)

    Args:
        one: a value.
        two: another one.
        spread_one: standard deviation of the first one's runs, over the value; 0 if not known.
        spread_two: of the second one's.
    """
    deviation = math.hypot(one * spread_one, two * spread_two)
    return 0.0 < abs(one - two) <= deviation


def plus_minus(name: str, metrics: Mapping[str, float | None]) -> float | None:
    """Standard deviation of a metric between runs, in its unit; ``None`` if it is not known."""
    value, share = metrics.get(name), metrics.get(name + SPREAD)
    return None if value is None or share is None else abs(value) * share


def change_of(
    name: str,
    metrics: Mapping[str, float | None],
    baseline: Mapping[str, float | None],
    digits: int = 1,
) -> str:
    """How a metric of a design differs from the baseline's, as people read it.

    >>> known = {"time_ms": 10.0, "time_ms_spread_share": 0.05}
    >>> change_of("time_ms", known, {**known, "time_ms": 10.4})
    'within the spread'
    >>> change_of("time_ms", known, {**known, "time_ms": 20.0})
    '-50.0%'

    Args:
        name: of the metric.
        metrics: of the design.
        baseline: of the baseline design.
        digits: of the percentage.
    """
    one, two = metrics.get(name), baseline.get(name)
    spreads = [some.get(name + SPREAD) or 0.0 for some in (metrics, baseline)]
    if one is not None and two is not None and within_spread(one, two, *spreads):
        return WITHIN
    return change_text(one, two, digits)


def spread_of_goal(goal: Goal, metrics: Mapping[str, float | None]) -> float:
    """Standard deviation of a goal between runs of a design, over its value; 0 if not known."""
    squares = sum(
        (power * (metrics.get(name + SPREAD) or 0.0)) ** 2 for name, power in _powers(goal).items()
    )
    return math.sqrt(squares)


def _powers(goal: Goal) -> dict[str, float]:
    """Powers of metrics in a goal; a distance to targets has none."""
    if goal.kind == "target":
        return {}
    return {name: power if goal.kind == "product" else 1.0 for name, power in goal.terms}
