"""Ending a simulation whose metrics so far show that its design is clearly worse than the best.

A search sends a *rule* with each design: the best goals so far, and by how much metrics have grown
from each milestone of progress to the end in its runs that were finished. Whoever simulates the
design holds the metrics so far against the rule, so no message is needed while it runs, and the
same rule and the same output give the same decision on every machine, at any speed.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from archgym.errors import ArchgymError, StoppedEarly
from archgym.problem.metrics import Metric
from archgym.problem.objective import Goal, Objective
from archgym.problem.scoring import Scorer

__all__ = [
    "MIN_FINISHED",
    "SoFar",
    "Watch",
    "WatchedMetrics",
    "current_watch",
    "grown",
    "growth_of",
    "is_so_far",
    "is_stop",
    "watching",
]

SoFar = Mapping[str, Mapping[str, float]]
"""Metrics by the progress at which they were looked at; see :func:`milestone`."""
Growth = tuple[str, float, float, float]
"""How a metric goes on from a milestone: ``times`` or ``plus``; the least, the median and the most
that is expected."""
MIN_FINISHED: Final = 5
"""Finished runs with a milestone from which on a run is judged there."""
_SLACK: Final = 0.25
"""By which share of their distance to the median the least and the most growth are widened."""


class WatchedMetrics(dict[str, float]):
    """Metrics of a run to its end, with those that it had on the way.

    Attributes:
        so_far: metrics by progress.
    """

    def __init__(self, metrics: Mapping[str, float], so_far: SoFar) -> None:
        super().__init__(metrics)
        self.so_far = so_far


class Watch:
    """Looks at one run while it goes on.

    Args:
        rule: as :meth:`archgym.evaluation.early_stopping.EarlyStopping.rule` gives it.

    Attributes:
        so_far: metrics by progress.
        looked_at: when each look was, s of :func:`time.monotonic`.
    """

    def __init__(self, rule: Mapping[str, Any]) -> None:
        self.so_far: dict[str, dict[str, float]] = {}
        self.looked_at: list[float] = []
        self._growth: Mapping[str, Mapping[str, Any]] = rule.get("growth", {})
        self._best: Sequence[Sequence[float]] = rule.get("best", ())
        self._finished = rule.get("finished", 0)
        if self._best and self._growth:
            metrics = [Metric.from_json(one) for one in rule["metrics"]]
            self._names = [metric.name for metric in metrics]
            self._signs = {metric.name: metric.sign for metric in metrics}
            self._objective = Objective.parse(rule["objective"])
            baseline = [math.nan if one is None else one for one in rule["baseline"]]
            self._scorer = Scorer(self._objective, metrics, np.array(baseline))

    def look(self, progress: float, metrics: Mapping[str, float]) -> None:
        """Takes the metrics that a run has so far.

        Args:
            progress: how far it is, in (0, 1).
            metrics: that are known so far, in their units.

        Raises:
            StoppedEarly: if the design is clearly worse than the best.
        """
        key = milestone(progress)
        found = {name: float(v) for name, v in metrics.items() if math.isfinite(v)}
        self.so_far[key] = found
        self.looked_at.append(time.monotonic())
        growth = self._growth.get(key, {})
        if not self._best or not growth:
            return
        needed = self._objective.metric_names()
        if any(name not in growth or name not in found for name in needed):
            return
        span = {name: grown(found[name], growth[name]) for name in needed}
        why = self._worse(span)
        if why:
            record = {
                "progress": progress,
                "so_far": self.so_far,
                "predicted": {name: span[name][1] for name in needed},
                "expected": {name: [span[name][0], span[name][2]] for name in needed},
                "finished": self._finished,
            }
            raise StoppedEarly(f"stopped at {progress:.0%}: {why}", record)

    def _worse(self, span: Mapping[str, tuple[float, float, float]]) -> str:
        """Why not even the best that can be expected is good enough; empty if it may be."""
        for limit in self._objective.limits:
            low, _, high = span[limit.metric]
            best = low if limit.op == "<=" else high
            if limit.broken_by(best):
                return f"{limit.metric} of {best:.4g} at best, beyond the limit {limit}"
        costs = []
        for goal in self._objective.goals:
            row = [
                self._optimistic(goal, name, span[name]) if name in span else math.nan
                for name in self._names
            ]
            costs.append(self._scorer.score(row)[1][self._objective.goals.index(goal)])
        for kept in self._best:
            pairs = list(zip(kept, costs, strict=True))
            if all(b <= c for b, c in pairs) and any(b < c for b, c in pairs):
                return "at best it is worse than the best design by " + ", ".join(
                    f"{math.expm1(cost - best):.2%} in {goal.name}"
                    for goal, best, cost in zip(self._objective.goals, kept, costs, strict=True)
                    if best < cost
                )
        return ""

    def _optimistic(self, goal: Goal, name: str, span: tuple[float, float, float]) -> float:
        low, _, high = span
        if goal.kind == "target":
            return min(max(dict(goal.terms).get(name, low), low), high)
        if goal.kind == "product":
            return low if self._signs[name] > 0 else high
        return low if goal.kind == "minimize" else high


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


def current_watch() -> Watch | None:
    """What looks at the simulation of this thread; ``None`` if nothing does."""
    return _watch.get()


@contextlib.contextmanager
def watching(rule: Mapping[str, Any]) -> Iterator[Watch]:
    """Has simulations of this thread looked at, in the block.

    Raises:
        ArchgymError: if the rule is none.
    """
    try:
        watch = Watch(rule)
    except (ArchgymError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise ArchgymError(f"the rule of early stopping cannot be read: {error}") from None
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)


def milestone(progress: float) -> str:
    """The name of a progress, equal for progresses that are the same."""
    return f"{progress:.6g}"


def growth_of(pairs: Sequence[tuple[float, float]]) -> Growth | None:
    """How a metric goes on from a milestone, from runs that were finished.

    Args:
        pairs: the metric at the milestone and at the end.

    Returns:
        The least, the median and the most; ``None`` if the runs are too few. The least and the
        most that were seen are widened by a quarter of their distance to the median.
    """
    if len(pairs) < MIN_FINISHED:
        return None
    if all(then > 0 and end > 0 for then, end in pairs):
        low, middle, high = _widened(sorted(math.log(end / then) for then, end in pairs))
        return "times", math.exp(low), math.exp(middle), math.exp(high)
    return "plus", *_widened(sorted(end - then for then, end in pairs))


def grown(value: float, growth: Sequence[Any]) -> tuple[float, float, float]:
    """The least, the likely and the most value at the end, from the value at a milestone."""
    how, *numbers = growth
    low, middle, high = (value * n if how == "times" else value + n for n in numbers)
    return min(low, high), middle, max(low, high)


def _widened(ordered: Sequence[float]) -> tuple[float, float, float]:
    n = len(ordered)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    low, high = ordered[0], ordered[-1]
    return low - _SLACK * (middle - low), middle, high + _SLACK * (high - middle)


def is_so_far(data: object) -> bool:
    """Whether something that was received has the form of metrics by progress."""
    return isinstance(data, dict) and all(
        isinstance(one, dict) and all(map(_is_number, one.values())) for one in data.values()
    )


def is_stop(data: object) -> bool:
    """Whether something that was received has the form of the record of a run that was stopped."""
    return (
        isinstance(data, dict)
        and _is_number(data.get("progress"))
        and 0 < data["progress"] < 1
        and is_so_far(data.get("so_far"))
        and is_so_far({"": data.get("predicted")})
    )


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -math.inf < value < math.inf
    )
