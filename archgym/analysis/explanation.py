"""Why a design is the best: which limits bind, and what each difference to the baseline is worth.

One difference at a time is put back to the baseline's value, and one at a time is tried alone on
the baseline. Both are needed: differences that only help together lose when either is put back,
and gain nothing alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.problem.goals import natural
from archgym.problem.metrics import Metric
from archgym.problem.scoring import Scorer
from archgym.space import Designs, DesignSpace

NOTHING = 1e-3
"""Share of a goal up to which a difference counts as worth nothing."""
UNKNOWN = "unknown"
"""Status of a design that was not evaluated."""


@dataclass(frozen=True)
class Step:
    """A design between the baseline and the best, or one of these.

    Attributes:
        design: its active parameters.
        status: ``ok``, ``illegal``, ``failed``, ``timeout``, or ``unknown`` if it was not
            evaluated.
        reason: why it is illegal, failed, or not feasible.
        feasible: whether it keeps the limits.
        breaks: the limits that it breaks and the design that it is compared with keeps.
        goals: value of each goal in its natural sign; empty unless it was simulated.
        worse: by which share each goal is worse than that of the design that it is compared with
            (negative: better); empty unless it was simulated.
        metrics: by name.
        recorded: whether the run had simulated it, so that it cost nothing.
    """

    design: dict[str, Any]
    status: str = UNKNOWN
    reason: str = ""
    feasible: bool = False
    breaks: list[str] = field(default_factory=list)
    goals: list[float] = field(default_factory=list)
    worse: list[float] = field(default_factory=list)
    metrics: dict[str, float | None] = field(default_factory=dict)
    recorded: bool = False


@dataclass(frozen=True)
class Difference:
    """A difference of the best design to the baseline.

    Attributes:
        parameters: those that differ; several where one alone would break a rule.
        baseline: their values in the baseline.
        best: in the best design.
        along: parameters that only one of the two has, since another of these makes them active,
            with their values.
        back: the best design with the baseline's values, compared with the best design.
        alone: the baseline with the best design's values, compared with the baseline.
    """

    parameters: list[str]
    baseline: dict[str, Any]
    best: dict[str, Any]
    along: dict[str, Any]
    back: Step
    alone: Step


@dataclass(frozen=True)
class Margin:
    """How far the best design is from a limit, and what the limit costs.

    Attributes:
        limit: as in ``power_mw <= 900``.
        metric: its metric.
        unit: of the metric.
        value: of the best design.
        baseline: of the baseline.
        margin: share of the bound that is left; negative if the limit is broken.
        keeps: parameters of the differences that keep the limit: put back, they break it.
        without: the best recorded design that breaks this limit only, compared with the best
            design; ``None`` if the run has none that is better.
    """

    limit: str
    metric: str
    unit: str
    value: float | None
    baseline: float | None
    margin: float | None
    keeps: list[str]
    without: Step | None


@dataclass(frozen=True)
class Explanation:
    """Why the best design of a problem is the best.

    Attributes:
        environment: its name.
        workload: its name.
        objective: what is sought, as a JSON value.
        trial_id: trial that found the best design.
        agent: of that trial.
        seed: of that trial.
        goals: name of each goal with its unit.
        baseline: the baseline design.
        best: the best design, compared with the baseline.
        limits: each limit of the objective.
        differences: the one whose return costs most first; those that were not evaluated last.
        simpler: the best design with all differences put back that are worth nothing, compared
            with the best design; ``None`` if there are none.
        simulations: designs that were simulated for this.
        left: designs that were not, since the budget was spent.
    """

    environment: str
    workload: str
    objective: Any
    trial_id: str
    agent: str
    seed: int | None
    goals: list[str]
    baseline: Step
    best: Step
    limits: list[Margin]
    differences: list[Difference]
    simpler: Step | None
    simulations: int
    left: int

    def to_json(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite are null."""
        found: dict[str, Any] = _finite(asdict(self))
        return found


class Ladder:
    """The designs between the baseline and the best one.

    Args:
        space: as it was searched.
        scorer: the objective, bound to the baseline.
        metrics: of the environment, the scorer's columns.
        baseline: the baseline design.
        best: the best design.

    Attributes:
        wanted: canonical codes of the legal designs to evaluate, the most telling first.
    """

    def __init__(
        self,
        space: DesignSpace,
        scorer: Scorer,
        metrics: Sequence[Metric],
        baseline: Mapping[str, Any],
        best: Mapping[str, Any],
    ) -> None:
        self._space, self._scorer, self._metrics = space, scorer, tuple(metrics)
        self.ends = space.codes(baseline), space.codes(best)
        both = [n for n in space.names if n in baseline and n in best]
        self._differing = [name for name in both if baseline[name] != best[name]]
        self._baseline, self._best = dict(baseline), dict(best)
        groups: dict[tuple[str, ...], None] = {}
        for name in self._differing:
            groups[self._legal_group(name)] = None
        self._groups = list(groups)
        backs = [self._mixed(1, group) for group in self._groups]
        alone = [self._mixed(0, group) for group in self._groups]
        wanted = [*self.ends[::-1], *backs, *alone]
        self.wanted = [c for c in dict.fromkeys(wanted) if not space.illegal_reason(c)]

    def _mixed(self, start: int, names: Iterable[str]) -> tuple[int, ...]:
        """One of the ends, with some parameters as in the other: canonical codes."""
        own, other = self.ends[start], self.ends[1 - start]
        codes = [a if a >= 0 else max(b, 0) for a, b in zip(own, other, strict=True)]
        for name in names:
            position = self._space.index(name)
            codes[position] = max(other[position], 0)
        return self._space.canonical_codes(codes)

    def _legal_group(self, name: str) -> tuple[str, ...]:
        """A differing parameter, with others that a rule ties to it, if it is illegal without."""
        group = {name}
        for _ in self._differing:
            broken = ""
            for start in (1, 0):
                broken = broken or self._space.illegal_reason(self._mixed(start, group))
            tied = {
                one
                for rule in self._space.rules
                if broken.startswith(f"rule {rule.name!r}")
                for one in rule.expression.names
                if one in self._differing
            }
            if not tied - group:
                break
            group |= tied
        return tuple(one for one in self._differing if one in group)

    def explain(
        self,
        known: Mapping[tuple[int, ...], NDArray[np.float64]],
        without: Sequence[tuple[tuple[int, ...], NDArray[np.float64]] | None],
        simulate: Callable[[Designs], Iterable[tuple[str, str, NDArray[np.float64]]]],
        budget: int,
    ) -> dict[str, Any]:
        """The fields of :class:`Explanation` that follow from designs and their metrics.

        Args:
            known: metrics of recorded designs by their codes, in the scorer's order.
            without: for each limit, the codes and metrics of the best recorded design that breaks
                it only; ``None`` if there is none.
            simulate: status, reason and metrics of each of some designs, or of the first of
                them, where it was interrupted.
            budget: designs that may be simulated.
        """
        found: dict[tuple[int, ...], Step] = {
            codes: self._simulated(codes, "ok", "", known[codes], recorded=True)
            for codes in self.wanted
            if codes in known
        }
        missing = [codes for codes in self.wanted if codes not in found]
        spent = self._evaluate(missing[:budget], simulate, found)
        differences = [self._difference(group, found) for group in self._groups]
        differences.sort(key=_rank)
        simpler = None
        idle = [d for d in differences if _is_nothing(d.back)]
        if len(idle) > 1 or (idle and len(differences) > 1):
            codes = self._mixed(1, [name for one in idle for name in one.parameters])
            if codes not in found and not self._space.illegal_reason(codes) and spent < budget:
                spent += self._evaluate([codes], simulate, found)
            if codes in found:
                simpler = self._against(found[codes], self._step(self.ends[1], found))
        baseline, best = (self._step(codes, found) for codes in self.ends)
        return {
            "baseline": self._against(baseline, baseline),
            "best": self._against(best, baseline),
            "limits": self._margins(baseline, best, without, differences),
            "differences": differences,
            "simpler": simpler if simpler and simpler.status == "ok" else None,
            "simulations": spent,
            "left": sum(codes not in found for codes in missing),
        }

    def _evaluate(
        self,
        some: Sequence[tuple[int, ...]],
        simulate: Callable[[Designs], Iterable[tuple[str, str, NDArray[np.float64]]]],
        found: dict[tuple[int, ...], Step],
    ) -> int:
        """Gives the number of designs that were simulated."""
        done = 0
        if some:
            designs = Designs(self._space, np.array(some, dtype=np.int64))
            for codes, (status, reason, values) in zip(some, simulate(designs), strict=False):
                found[codes] = self._simulated(codes, status, reason, values)
                done += 1
        return done

    def _simulated(
        self,
        codes: tuple[int, ...],
        status: str,
        reason: str,
        values: NDArray[np.float64],
        recorded: bool = False,
    ) -> Step:
        step = Step(self._space.design(codes), status, reason, recorded=recorded)
        if status != "ok":
            return step
        row = values[None]
        objective = self._scorer.objective
        goals = self._scorer.values(row)[0]
        if not np.isfinite(goals).all():
            return replace(step, status="failed", reason="a goal has no value")
        excess = self._scorer.violations(row)[0]
        broken = [str(limit) for limit, e in zip(objective.limits, excess, strict=True) if e > 0]
        names = self._scorer.metric_names
        return replace(
            step,
            feasible=not broken,
            breaks=broken,
            reason=f"breaks {' and '.join(broken)}" if broken else "",
            goals=[
                float(natural(goal, self._metrics, np.array([value]))[0])
                for goal, value in zip(objective.goals, goals.tolist(), strict=True)
            ],
            metrics={n: None if v != v else v for n, v in zip(names, values.tolist(), strict=True)},
        )

    def _step(self, codes: tuple[int, ...], found: Mapping[tuple[int, ...], Step]) -> Step:
        if codes in found:
            return found[codes]
        illegal = self._space.illegal_reason(codes)
        return Step(self._space.design(codes), "illegal" if illegal else UNKNOWN, illegal)

    def _against(self, step: Step, other: Step) -> Step:
        """The step, compared with another one."""
        if step.status != "ok" or other.status != "ok":
            return step
        names = self._scorer.metric_names
        rows = [
            [np.nan if (v := one.metrics[n]) is None else v for n in names] for one in (step, other)
        ]
        mine, theirs = self._scorer.costs(np.array(rows, dtype=np.float64))
        worse = [math.expm1(a - b) for a, b in zip(mine, theirs, strict=True)]
        # What the two have in common says nothing of the difference, unless they are the same.
        breaks = [limit for limit in step.breaks if step is other or limit not in other.breaks]
        return replace(step, worse=worse, breaks=breaks)

    def _difference(
        self, group: Sequence[str], found: Mapping[tuple[int, ...], Step]
    ) -> Difference:
        baseline, best = (self._step(codes, found) for codes in self.ends)
        back, alone = (self._step(self._mixed(start, group), found) for start in (1, 0))
        gone = {n: v for n, v in self._best.items() if n not in back.design}
        come = {n: v for n, v in back.design.items() if n not in self._best}
        return Difference(
            parameters=list(group),
            baseline={name: self._baseline[name] for name in group},
            best={name: self._best[name] for name in group},
            along={**gone, **come},
            back=self._against(back, best),
            alone=self._against(alone, baseline),
        )

    def _margins(
        self,
        baseline: Step,
        best: Step,
        without: Sequence[tuple[tuple[int, ...], NDArray[np.float64]] | None],
        differences: Sequence[Difference],
    ) -> list[Margin]:
        units = {metric.name: metric.unit for metric in self._metrics}
        margins = []
        for limit, other in zip(self._scorer.objective.limits, without, strict=True):
            value = best.metrics.get(limit.metric)
            margin = None
            if value is not None:
                left = limit.value - value if limit.op == "<=" else value - limit.value
                margin = left / (abs(limit.value) or 1.0)
            freed = None
            if other is not None:
                step = self._simulated(other[0], "ok", "", other[1], recorded=True)
                freed = self._against(step, best)
            of_baseline = baseline.metrics.get(limit.metric)
            unit, text = units[limit.metric], str(limit)
            keeps = [n for one in differences if text in one.back.breaks for n in one.parameters]
            margins.append(
                Margin(text, limit.metric, unit, value, of_baseline, margin, keeps, freed)
            )
        return margins


def _rank(difference: Difference) -> tuple[bool, float]:
    """The place of a difference: the one whose return costs most first, unknown ones last."""
    back = difference.back
    if back.status != "ok":
        return True, 0.0
    return False, -max(back.worse) - (0 if back.feasible else 1e9)


def _is_nothing(step: Step) -> bool:
    """Whether a design is as good as the one that it is compared with."""
    return step.status == "ok" and step.feasible and max(step.worse) <= NOTHING


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
