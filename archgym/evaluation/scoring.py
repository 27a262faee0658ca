"""Outcomes of designs from what is known of them: values, costs, limits and reward."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from archgym.evaluation.cache import Known
from archgym.evaluation.outcome import Outcomes, Row
from archgym.problem.scorer import FAILED_REWARD, Scorer
from archgym.problem.status import Status
from archgym.space import Designs

__all__ = ["Verdicts"]


class Verdicts:
    """Makes outcomes, of one design from plain numbers or of many from arrays, to the same bits.

    Args:
        names: of all metrics.
        scorer: says what metrics are worth.
        known: what simulations gave.
    """

    def __init__(self, names: tuple[str, ...], scorer: Scorer, known: Known) -> None:
        self._names, self._scorer, self._known = names, scorer, known
        self._no_metrics = [math.nan] * len(names)
        self._no_goals = [math.inf] * len(scorer.objective.goals)
        self._no_limits = [math.nan] * len(scorer.objective.limits)

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
            row: among what is known; -1 if it breaks a rule.
            reason: which rule, if one.
            cached: whether it was known before.
            seconds: that its simulation took.
            fidelity: at which it was simulated.
        """
        status = self._known.status(row) if row >= 0 else Status.ILLEGAL
        if status != Status.OK:
            return Row(
                codes,
                self._no_metrics,
                self._no_goals,
                self._no_goals,
                self._no_limits,
                FAILED_REWARD,
                status,
                reason or self._known.reason(row),
                False,
                cached,
                seconds,
                fidelity,
            )
        values = self._known.values(row)
        objectives, costs, excess, reward = self._scorer.score(values)
        broken = self._broken_limits(excess)
        return Row(
            codes,
            values,
            objectives,
            costs,
            excess,
            reward,
            status,
            broken,
            not broken,
            cached,
            seconds,
            fidelity,
        )

    def many(
        self,
        designs: Designs,
        rows: list[int],
        fresh: list[int],
        reasons: Mapping[int, str],
        seconds: list[float],
        fidelity: float,
    ) -> Outcomes:
        """Outcomes of many designs.

        Args:
            designs: as many as ``rows``.
            rows: of each design among what is known.
            fresh: positions of those that were not known before.
            reasons: rules that are broken, by position.
            seconds: that the simulation of each of ``fresh`` took.
            fidelity: at which they were simulated.
        """
        found = np.array(rows, dtype=np.int64)
        legal = found >= 0
        values = np.full((len(found), len(self._names)), np.nan)
        status = np.full(len(found), Status.ILLEGAL, dtype=np.int8)
        values[legal] = self._known.metrics(found[legal])
        status[legal] = self._known.statuses(found[legal])
        cached = legal.copy()
        cached[fresh] = False
        simulation_s = np.zeros(len(found))
        simulation_s[fresh] = seconds
        scorer, ok = self._scorer, status == Status.OK
        objectives, costs = scorer.values(values), scorer.costs(values)
        violations = scorer.violations(values)
        reward = np.where(ok, scorer.rewards(costs, violations), FAILED_REWARD)
        feasible = ok & ~(violations > 0).any(axis=1)
        texts = [""] * len(found)
        for i in np.flatnonzero(~feasible).tolist():
            texts[i] = (
                self._broken_limits(violations[i].tolist())
                if ok[i]
                else reasons.get(i) or self._known.reason(rows[i])
            )
        objectives[~ok] = costs[~ok] = np.inf
        violations[~ok] = np.nan
        return Outcomes(
            designs=designs,
            metric_names=self._names,
            metrics=values,
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
        """Which limits are exceeded, and by how much; empty if none is."""
        if not any(excess):
            return ""
        return ", ".join(
            f"limit {limit} exceeded by {over:.1%}"
            for limit, over in zip(self._scorer.objective.limits, excess, strict=True)
            if over > 0
        )
