"""Objectives: how metrics become a goal, one definition for every agent.

An objective has one or several *goals* (minimise or maximise a metric, a weighted product of
metrics, a target) and any number of *limits* (``read_latency_mean_ns <= 60``). Each goal has a
*value*, which is always minimised and in the metric's own unit, and a *cost*, its log ratio to
the baseline design: 0 for the baseline, below 0 for better.

The reward is bounded and strictly monotone:

====================================  ==================================================
feasible                              ``1 / (1 + exp(cost))``, in (0, 1); 1/2 = baseline
a limit is broken                     ``-v / (1 + v)``, in (-1, 0), v = sum of the relative excesses
illegal, failed or timed out          -1
====================================  ==================================================

With several goals the cost behind the reward is their weighted mean, so the reward follows the
weighted geometric mean of the metrics' ratios to the baseline.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.metrics import Metric, metric_named

__all__ = ["Goal", "Limit", "Objective", "Scorer"]

FAILED_REWARD = -1.0
_COST_BOUND = 50.0  # exp(50) is 10**21: no two real designs differ by more
_LEAST_RATIO = math.exp(-_COST_BOUND)
_VIOLATION_BOUND = 1e9
_TARGET_FLOOR = 0.01  # a target is met well enough within 1 %

ObjectiveSpec = "Objective | str | Mapping[str, Any]"
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Goal:
    """One thing to minimise.

    Attributes:
        kind: ``minimize``, ``maximize``, ``product`` or ``target``.
        terms: metric name and number: the weight in a product, the value of a target.
        weight: share in the reward when there are several goals.
    """

    kind: str
    terms: tuple[tuple[str, float], ...]
    weight: float = 1.0

    @property
    def name(self) -> str:
        """What tables call it, for example ``energy_pj`` or ``energy_pj*time_ns``."""
        if self.kind == "product":
            return "*".join(m if w == 1 else f"{m}^{w:g}" for m, w in self.terms)
        if self.kind == "target":
            return f"{self.terms[0][0]}~{self.terms[0][1]:g}"
        return self.terms[0][0]


@dataclass(frozen=True)
class Limit:
    """A bound that feasible designs keep.

    Attributes:
        metric: name of the metric.
        op: ``<=`` or ``>=``.
        value: the bound, in the metric's unit.
    """

    metric: str
    op: str
    value: float

    _FORM = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*([-+]?[\d_.]+(?:[eE][-+]?\d+)?)\s*")

    @staticmethod
    def parse(text: str) -> Limit:
        """A limit from a text such as ``"power_mw <= 900"``.

        Raises:
            InvalidValueError: if the text has another form.
        """
        match = Limit._FORM.fullmatch(text) if isinstance(text, str) else None
        number = _number(match[3]) if match is not None else None
        if match is None or number is None:
            raise InvalidValueError(
                f"limits: {text!r} is not of the form 'METRIC <= NUMBER' or 'METRIC >= NUMBER'; "
                "the number is in the metric's own unit, which is not written"
            )
        return Limit(match[1], match[2][0] + "=", number)

    def broken_by(self, value: float | None) -> bool:
        """Whether a value of the metric is beyond the bound; one that is not known is not."""
        if value is None:
            return False
        return value > self.value if self.op == "<=" else value < self.value

    def __str__(self) -> str:
        short = f"{self.value:g}"
        return f"{self.metric} {self.op} {short if float(short) == self.value else self.value}"


@dataclass(frozen=True)
class Objective:
    """Goals and limits; make one with :meth:`parse`.

    >>> Objective.parse("minimize energy_pj").goals[0].name
    'energy_pj'
    >>> edp = Objective.parse({"product": {"energy_pj": 1, "time_ns": 1},
    ...                        "limits": ["power_mw <= 900"]})
    >>> edp.names
    ('energy_pj*time_ns',)
    """

    goals: tuple[Goal, ...]
    limits: tuple[Limit, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each goal."""
        return tuple(goal.name for goal in self.goals)

    @staticmethod
    def parse(spec: Objective | str | Mapping[str, Any]) -> Objective:
        """An objective from what a user writes.

        Args:
            spec: ``"minimize METRIC"``, ``"maximize METRIC"``, or a mapping with any of
                ``minimize`` and ``maximize`` (a metric or a list of them), ``product``
                (metric: weight), ``target`` (metric: value), ``limits`` (a list of texts), and
                ``weights`` (name of a goal: share in the reward).

        Raises:
            InvalidValueError, UnknownNameError: if the spec has another form.
        """
        if isinstance(spec, Objective):
            return spec
        if isinstance(spec, str):
            spec = _from_text(spec)
        if not isinstance(spec, Mapping):
            raise InvalidValueError(f"objective: {spec!r} is neither a text nor a mapping")
        allowed = ("minimize", "maximize", "product", "target", "limits", "weights")
        for key in spec:
            if key not in allowed:
                raise UnknownNameError("key", key, allowed, "objective")
        goals: list[Goal] = []
        for kind in ("minimize", "maximize"):
            goals += [Goal(kind, ((name, 1.0),)) for name in _texts(spec.get(kind, ()), kind)]
        if spec.get("product"):
            goals.append(Goal("product", _terms(spec["product"], "product")))
        goals += [Goal("target", (term,)) for term in _terms(spec.get("target", {}), "target")]
        if not goals:
            raise InvalidValueError("objective: name at least one metric to minimize or maximize")
        names = [goal.name for goal in goals]
        for name in names:
            if names.count(name) > 1:
                raise InvalidValueError(f"objective: {name!r} is named twice")
        limits = _texts(spec.get("limits", ()), "limits")
        weighted = _weigh(goals, spec.get("weights", {}))
        return Objective(weighted, tuple(Limit.parse(text) for text in limits))

    def to_json(self) -> dict[str, Any]:
        """A mapping that :meth:`parse` reads."""
        data: dict[str, Any] = {}
        for kind in ("minimize", "maximize"):
            names = [goal.terms[0][0] for goal in self.goals if goal.kind == kind]
            if names:
                data[kind] = names
        for goal in self.goals:
            if goal.kind in ("product", "target"):
                data.setdefault(goal.kind, {}).update(dict(goal.terms))
        if any(goal.weight != 1 for goal in self.goals):
            data["weights"] = {goal.name: goal.weight for goal in self.goals}
        if self.limits:
            data["limits"] = [str(limit) for limit in self.limits]
        return data

    def metric_names(self) -> list[str]:
        """Every metric that a goal or a limit looks at."""
        names = [name for goal in self.goals for name, _ in goal.terms]
        return list(dict.fromkeys(names + [limit.metric for limit in self.limits]))

    def check(self, metrics: Sequence[Metric]) -> None:
        """Refuses what cannot be sought, whatever the baseline design comes to.

        Args:
            metrics: all metrics of the environment.

        Raises:
            UnknownNameError: if it names a metric that is not there.
            InvalidValueError: if a product or target uses a metric that can be negative, or a
                target or weight is not positive.
        """
        by_name = {name: metric_named(name, metrics, "objective") for name in self.metric_names()}
        for goal in self.goals:
            for name, number in goal.terms:
                if goal.kind in ("product", "target") and by_name[name].signed:
                    raise InvalidValueError(
                        f"objective: {goal.kind} of {name!r}, which can be negative"
                    )
                if not 0 < number < math.inf:
                    raise InvalidValueError(
                        f"objective: {goal.kind} of {name!r} needs a number > 0, got {number:g}"
                    )


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
        for name in (
            name for goal in objective.goals if goal.kind == "product" for name, _ in goal.terms
        ):
            if self._baseline[name] == 0:
                raise InvalidValueError(
                    f"objective: product of {name!r}, which is 0 at the baseline design"
                )
        total = sum(goal.weight for goal in objective.goals)
        self._weights = [goal.weight / total for goal in objective.goals]

    def score(self, row: Sequence[float]) -> tuple[list[float], list[float], list[float], float]:
        """Value and cost of each goal, excess over each limit, and reward of one design.

        Args:
            row: its metrics, in the order of the columns.
        """
        goals = self.objective.goals
        costs = [self._cost(goal, row) for goal in goals]
        excess = [self._excess(limit, row) for limit in self.objective.limits]
        return (
            [self._value(goal, row) for goal in goals],
            costs,
            excess,
            self._reward(costs, excess),
        )

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
        """Relative excess over each limit, 0 where it is kept, shape (n, n_limits)."""
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
            # Zero would make nonsense of a product: it counts as next to nothing, as in the cost.
            factor = _most(row[self._columns[name]], self._baseline[name] * _LEAST_RATIO)
            product = product * _power(factor, self._metrics[name].sign * weight)
        return product

    def _cost(self, goal: Goal, row: Any) -> Any:
        cost: Any
        if goal.kind == "target":
            (name, target), *_ = goal.terms
            at_baseline = _least(abs(_log(self._baseline[name] / target)), _COST_BOUND)
            distance = _least(self._value(goal, row), _COST_BOUND)
            cost = _log((distance + _TARGET_FLOOR) / (at_baseline + _TARGET_FLOOR))
        elif goal.kind == "product":
            cost = 0.0
            for name, weight in goal.terms:
                cost = cost + self._metrics[name].sign * weight * self._log_ratio(name, row)
        else:
            cost = self._log_ratio(goal.terms[0][0], row)
            if goal.kind == "maximize":
                cost = -cost
        return _least(_most(cost, -_COST_BOUND), _COST_BOUND)

    def _log_ratio(self, name: str, row: Any) -> Any:
        """Log of a metric over the baseline's; where that has no meaning, a monotone stand-in."""
        value, baseline = row[self._columns[name]], self._baseline[name]
        if self._metrics[name].signed or baseline == 0:
            return _asinh((value - baseline) / (abs(baseline) or 1.0))
        return _log(_most(value / baseline, _LEAST_RATIO))

    def _excess(self, limit: Limit, row: Any) -> Any:
        over = row[self._columns[limit.metric]] - limit.value  # in the metric's unit
        return _most(over if limit.op == "<=" else -over, 0.0) / (abs(limit.value) or 1.0)

    def _reward(self, costs: Sequence[Any], excess: Sequence[Any]) -> Any:
        cost = costs[0]
        if len(costs) > 1:
            cost = sum(w * c for w, c in zip(self._weights, costs, strict=True))
        reward = 1.0 / (1.0 + _exp(cost))
        if not excess:
            return reward
        total = _least(sum(excess), _VIOLATION_BOUND)
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


def _least(a: Any, b: float) -> Any:
    return min(a, b) if isinstance(a, float) else np.minimum(a, b)


def _most(a: Any, b: float) -> Any:
    return max(a, b) if isinstance(a, float) else np.maximum(a, b)


def _stack(columns: Sequence[Array], metrics: Array) -> Array:
    return np.stack(columns, axis=1) if columns else np.empty((len(metrics), 0))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _texts(data: Any, where: str) -> list[str]:
    texts = [data] if isinstance(data, str) else data
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise InvalidValueError(f"objective: {where} is a text or a list of texts, not {data!r}")
    return list(texts)


def _from_text(text: str) -> dict[str, str]:
    words = text.replace(":", " ").split()
    if len(words) != 2:
        raise InvalidValueError(
            f"objective {text!r} is not of the form 'minimize METRIC' or 'maximize METRIC'; "
            "limits need a mapping, as in {minimize: METRIC, limits: ['METRIC <= NUMBER']}"
        )
    if words[0] not in ("minimize", "maximize"):
        raise UnknownNameError("verb", words[0], ("minimize", "maximize"), "objective")
    return {words[0]: words[1]}


def _terms(data: Any, where: str) -> tuple[tuple[str, float], ...]:
    if not isinstance(data, Mapping):
        raise InvalidValueError(f"objective: {where} maps metrics to numbers, got {data!r}")
    for name, number in data.items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise InvalidValueError(f"objective: {where} of {name!r} is not a number: {number!r}")
    return tuple((str(name), float(number)) for name, number in data.items())


def _weigh(goals: Iterable[Goal], weights: Mapping[str, float]) -> tuple[Goal, ...]:
    goals = tuple(goals)
    by_name = dict(_terms(weights, "weights"))
    for name, weight in by_name.items():
        if name not in [goal.name for goal in goals]:
            raise UnknownNameError("goal", name, [goal.name for goal in goals], "objective.weights")
        if not 0 < weight < math.inf:
            raise InvalidValueError(
                f"objective.weights: {name!r} needs a number > 0, got {weight:g}"
            )
    return tuple(Goal(g.kind, g.terms, by_name.get(g.name, 1.0)) for g in goals)
