"""How designs are scored: goals, limits and rewards from metrics.

The reward is bounded and strictly monotone:

====================================  ==================================================
feasible                              ``1 / (1 + exp(cost))``, in (0, 1); 1/2 = baseline
a limit is broken                     ``-v / (1 + v)``, in (-1, 0), v = sum of the excesses above 0
illegal, failed or timed out          -1
====================================  ==================================================

With several goals the cost behind the reward is their weighted mean, so the reward follows the
weighted geometric mean of the metrics' ratios to the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.problem.metrics import Metric
from archgym.problem.objective import Goal, Limit, Objective

FAILED_REWARD = -1.0
_MAX_COST = 50.0  # exp(50) is 10**21: no two real designs differ by more
_MIN_RATIO = math.exp(-_MAX_COST)
_MAX_VIOLATION = 1e9
_TARGET_FLOOR = 0.01  # a target is met well enough within 1 %

Array = NDArray[np.float64]


class Scorer:
    """An objective bound to the metrics of an environment and its baseline design.

    Args:
        objective: what is sought.
        metrics: all metrics, in the order of the columns to score.
        baseline: metric values of the baseline design, shape (n_metrics,).

    Raises:
        UnknownNameError, InvalidValueError: as :meth:`Objective.check`, and if a product uses a
            metric that is 0 at the baseline design.
    """

    def __init__(self, objective: Objective, metrics: Sequence[Metric], baseline: Array) -> None:
        objective.check(metrics)
        self.objective = objective
        self._columns = {metric.name: i for i, metric in enumerate(metrics)}
        self._metrics = {metric.name: metric for metric in metrics}
        self._baseline = {m.name: float(baseline[i]) for i, m in enumerate(metrics)}
        products = [goal for goal in objective.goals if goal.kind == "product"]
        for name in (name for goal in products for name, _ in goal.terms):
            if self._baseline[name] == 0:
                raise InvalidValueError(
                    f"objective: product of {name!r}, which is 0 at the baseline design"
                )
        total = sum(goal.weight for goal in objective.goals)
        self._weights = [goal.weight / total for goal in objective.goals]

    def score(self, row: Sequence[float]) -> tuple[list[float], list[float], list[float], float]:
        """Value and cost of each goal, excess over each limit, and reward of one design.

        The excess is negative where a limit is kept: how far the metric is from it.

        Args:
            row: its metrics, in the order of the columns.
        """
        goals = self.objective.goals
        costs = [self._cost(goal, row) for goal in goals]
        excess = [self._excess(limit, row) for limit in self.objective.limits]
        values = [self._value(goal, row) for goal in goals]
        return values, costs, excess, self._reward(costs, excess)

    @property
    def baseline(self) -> list[float]:
        """Metrics of the baseline design, in the order of the columns."""
        return list(self._baseline.values())

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of the columns to score."""
        return tuple(self._columns)

    def regret(
        self, found: Mapping[str, float | None], optimum: Mapping[str, float | None]
    ) -> float:
        """How much worse a design is than the best one, as a share: 0.1 is a tenth.

        It is ``exp(cost found - cost of the optimum) - 1``: for a minimised metric or a product
        ``found / optimum - 1``, for a maximised metric ``optimum / found - 1``. Only for
        objectives with one goal.

        Args:
            found: metrics of the design.
            optimum: metrics of the best design.
        """
        costs = [
            self.score([math.nan if (v := m.get(n)) is None else v for n in self._columns])[1][0]
            for m in (found, optimum)
        ]
        return max(0.0, math.expm1(costs[0] - costs[1]))

    def values(self, metrics: Array) -> Array:
        """Value of each goal, minimised, shape (n, n_goals), from metrics (n, n_metrics)."""
        return _stack([self._value(goal, metrics.T) for goal in self.objective.goals], metrics)

    def costs(self, metrics: Array) -> Array:
        """Log ratio of each goal to the baseline, shape (n, n_goals); 0 is the baseline."""
        return _stack([self._cost(goal, metrics.T) for goal in self.objective.goals], metrics)

    def violations(self, metrics: Array) -> Array:
        """Relative excess over each limit, at most 0 where it is kept, shape (n, n_limits)."""
        return _stack([self._excess(limit, metrics.T) for limit in self.objective.limits], metrics)

    def rewards(self, costs: Array, violations: Array) -> Array:
        """Reward of legal, simulated designs, shape (n,)."""
        return np.asarray(self._reward(list(costs.T), list(violations.T)))

    # -- one formula for a number (one design) and for a column (many) ---------------------------

    def _value(self, goal: Goal, row: Any) -> Any:
        name, number = goal.terms[0]
        value = row[self._columns[name]]
        if goal.kind == "minimize":
            return value
        if goal.kind == "maximize":
            return -value
        if goal.kind == "target":
            return abs(_log(value / number))
        product: Any = 1.0
        for name, weight in goal.terms:
            # A zero would make every product zero: it counts as a tiny ratio, as in the cost.
            factor = _larger(row[self._columns[name]], self._baseline[name] * _MIN_RATIO)
            product = product * _power(factor, self._metrics[name].sign * weight)
        return product

    def _cost(self, goal: Goal, row: Any) -> Any:
        cost: Any
        if goal.kind == "target":
            (name, target), *_ = goal.terms
            at_baseline = _smaller(abs(_log(self._baseline[name] / target)), _MAX_COST)
            distance = _smaller(self._value(goal, row), _MAX_COST)
            cost = _log((distance + _TARGET_FLOOR) / (at_baseline + _TARGET_FLOOR))
        elif goal.kind == "product":
            cost = 0.0
            for name, weight in goal.terms:
                cost = cost + self._metrics[name].sign * weight * self._log_ratio(name, row)
        else:
            cost = self._log_ratio(goal.terms[0][0], row)
            if goal.kind == "maximize":
                cost = -cost
        return _smaller(_larger(cost, -_MAX_COST), _MAX_COST)

    def _log_ratio(self, name: str, row: Any) -> Any:
        """Log of a metric over the baseline's; where that is undefined, a monotone substitute."""
        value, baseline = row[self._columns[name]], self._baseline[name]
        if self._metrics[name].signed or baseline == 0:
            return _asinh((value - baseline) / (abs(baseline) or 1.0))
        return _log(_larger(value / baseline, _MIN_RATIO))

    def _excess(self, limit: Limit, row: Any) -> Any:
        over = row[self._columns[limit.metric]] - limit.value  # in the metric's unit
        return (over if limit.op == "<=" else -over) / (abs(limit.value) or 1.0)

    def _reward(self, costs: Sequence[Any], excess: Sequence[Any]) -> Any:
        cost = costs[0]
        if len(costs) > 1:
            cost = sum(w * c for w, c in zip(self._weights, costs, strict=True))
        reward = 1.0 / (1.0 + _exp(cost))
        if not excess:
            return reward
        total = _smaller(sum(_larger(over, 0.0) for over in excess), _MAX_VIOLATION)
        broken = -total / (1.0 + total)
        if isinstance(total, float):
            return broken if total > 0 else reward
        return np.where(total > 0, broken, reward)


def _elementwise(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """For a number or a column, with the C library's bits: numpy's depend on the processor."""

    def apply(x: Any) -> Any:
        return function(x) if isinstance(x, float) else np.array([function(v) for v in x.tolist()])

    return apply


_exp = _elementwise(math.exp)
_asinh = _elementwise(math.asinh)
_log = _elementwise(lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan)


def _power(x: Any, power: float) -> Any:
    def of_one(x: float) -> float:
        try:
            return float(x**power)
        except ArithmeticError:  # beyond the range of a float
            return math.inf

    return _elementwise(of_one)(x)


def _smaller(a: Any, b: float) -> Any:
    return min(a, b) if isinstance(a, float) else np.minimum(a, b)


def _larger(a: Any, b: float) -> Any:
    return max(a, b) if isinstance(a, float) else np.maximum(a, b)


def _stack(columns: Sequence[Array], metrics: Array) -> Array:
    return np.stack(columns, axis=1) if columns else np.empty((len(metrics), 0))
