"""Outcomes of designs: from their metrics to goals, broken limits, reward and feasibility."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from archgym.evaluation.cache import EvaluationCache
from archgym.evaluation.outcome import Outcomes, Row
from archgym.problem.scoring import FAILED_REWARD, Scorer
from archgym.problem.status import Status
from archgym.space import Designs

_OK, _ILLEGAL, _STOPPED = Status.OK, Status.ILLEGAL, Status.STOPPED  # once, which is faster


class OutcomeBuilder:
    """Makes outcomes from the results in a cache.

    One design is scored on plain numbers and many on arrays, with the same bits.

    Args:
        names: of all metrics.
        scorer: the objective, bound to the metrics and the baseline design.
        cache: results of simulations.
    """

    def __init__(self, names: tuple[str, ...], scorer: Scorer, cache: EvaluationCache) -> None:
        self._names, self._scorer, self._cache = names, scorer, cache
        no_goals = [math.inf] * len(scorer.objective.goals)
        no_limits = [math.nan] * len(scorer.objective.limits)
        self._unscored = ([math.nan] * len(names), no_goals, no_goals, no_limits, FAILED_REWARD)

    def one(
        self,
        codes: Sequence[int],
        row: int,
        reason: str,
        cached: bool,
        seconds: float,
        fidelity: float,
    ) -> Row:
        """Outcome of one design.

        Args:
            codes: the design's.
            row: its row in the cache; -1 if it breaks a rule.
            reason: which rule, if one.
            cached: whether it was in the cache before.
            seconds: that its simulation took.
            fidelity: at which it was simulated.
        """
        status = self._cache.status(row) if row >= 0 else _ILLEGAL
        scored, feasible = self._unscored, False
        if status in (_OK, _STOPPED):
            metrics = self._cache.values(row)
            objectives, costs, excess, reward = self._scorer.score(metrics)
            scored = metrics, objectives, costs, excess, reward
        if status == _OK:
            reason = self._broken_limits(excess)
            feasible = not reason
        else:
            reason = reason or self._cache.reason(row)
        return Row(codes, *scored, status, reason, feasible, cached, seconds, fidelity)

    def many(
        self,
        designs: Designs,
        rows: list[int],
        new: list[int],
        reasons: Mapping[int, str],
        seconds: list[float],
        fidelity: float,
    ) -> Outcomes:
        """Outcomes of many designs.

        Args:
            designs: as many as ``rows``.
            rows: of each design in the cache; -1 if it breaks a rule.
            new: positions of those that were not in the cache before.
            reasons: rules that are broken, by position.
            seconds: that the simulation of each of ``new`` took.
            fidelity: at which they were simulated.
        """
        found = np.array(rows, dtype=np.int64)
        legal = found >= 0
        metrics = np.full((len(found), len(self._names)), np.nan)
        status = np.full(len(found), _ILLEGAL, dtype=np.int8)
        metrics[legal] = self._cache.metrics(found[legal])
        status[legal] = self._cache.statuses(found[legal])
        cached = legal.copy()
        cached[new] = False
        simulation_s = np.zeros(len(found))
        simulation_s[new] = seconds
        scorer, ok = self._scorer, status == _OK
        scored = ok | (status == _STOPPED)
        objectives, costs = scorer.values(metrics), scorer.costs(metrics)
        violations = scorer.violations(metrics)
        reward = np.where(scored, scorer.rewards(costs, violations), FAILED_REWARD)
        feasible = ok & ~(violations > 0).any(axis=1)
        texts = [""] * len(found)
        for i in np.flatnonzero(~feasible).tolist():
            texts[i] = (
                self._broken_limits(violations[i].tolist())
                if ok[i]
                else reasons.get(i) or self._cache.reason(rows[i])
            )
        objectives[~scored] = costs[~scored] = np.inf
        violations[~scored] = np.nan
        return Outcomes(
            designs=designs,
            metric_names=self._names,
            metrics=metrics,
            objectives=objectives,
            costs=costs,
            violations=violations,
            reward=reward,
            status=status,
            reason=texts,
            feasible=feasible,
            cached=cached,
            simulation_s=simulation_s,
            fidelity=np.full(len(found), fidelity),
        )

    def _broken_limits(self, excess: Sequence[float]) -> str:
        """Text that names the exceeded limits and by how much; empty if none is."""
        if not any(over > 0 for over in excess):
            return ""
        return ", ".join(
            f"limit {limit} exceeded by {over:.1%}"
            for limit, over in zip(self._scorer.objective.limits, excess, strict=True)
            if over > 0
        )
