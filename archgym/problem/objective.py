"""Objectives: what is sought. How designs are scored by one: :mod:`archgym.problem.scoring`.

An objective has one or several *goals* (minimise or maximise a metric, a weighted product of
metrics, a target) and any number of *limits* (``read_latency_mean_ns <= 60``). Each goal has a
*value*, which is always minimised and in the metric's own unit, and a *cost*, its log ratio to
the baseline design: 0 for the baseline, below 0 for better.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.metrics import Metric, metric_named

ObjectiveSpec = "Objective | str | Mapping[str, Any]"

_SEVERAL: Final = ("goals", "metrics", "objectives", "pareto")
"""Keys that other tools have for several goals."""


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
        if match is not None:
            with contextlib.suppress(ValueError):
                return Limit(match[1], match[2][0] + "=", float(match[3]))
        raise InvalidValueError(
            f"limits: {text!r} is not of the form 'METRIC <= NUMBER' or 'METRIC >= NUMBER'; "
            "the number is in the metric's own unit, which is not written"
        )

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
            if key in _SEVERAL:
                raise InvalidValueError(
                    f"objective: there is no key {key!r}: several goals, of which a search finds "
                    "the Pareto front, are a list, as in {minimize: [METRIC, METRIC]}"
                )
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
        """Refuses an objective that these metrics cannot have, whatever the baseline design gives.

        Args:
            metrics: all metrics of the environment.

        Raises:
            UnknownNameError: if it names an unknown metric.
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

    def check_directions(self, directions: Sequence[str]) -> None:
        """Refuses an agent that was made for another number of goals.

        Raises:
            InvalidValueError: with what to give the agent.
        """
        if len(directions) != len(self.goals):
            raise InvalidValueError(
                f"the objective has {len(self.goals)} goal{'s'[: len(self.goals) > 1]}, and the "
                f"agent was made for {len(directions)}: make it with "
                f"directions={['minimize'] * len(self.goals)}"
            )


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


def _weigh(goals: Sequence[Goal], weights: Mapping[str, float]) -> tuple[Goal, ...]:
    by_name, names = dict(_terms(weights, "weights")), [goal.name for goal in goals]
    for name, weight in by_name.items():
        if name not in names:
            raise UnknownNameError("goal", name, names, "objective.weights")
        if not 0 < weight < math.inf:
            raise InvalidValueError(
                f"objective.weights: {name!r} needs a number > 0, got {weight:g}"
            )
    return tuple(Goal(g.kind, g.terms, by_name.get(g.name, 1.0)) for g in goals)
