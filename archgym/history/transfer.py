"""Scores what was recorded for an earlier problem by the objective of another one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.environment.environment import Environment
from archgym.evaluation.outcome import Outcomes
from archgym.problem.scoring import FAILED_REWARD, Scorer
from archgym.problem.status import Status
from archgym.space import Designs


def transferred(
    designs: Designs,
    metrics: NDArray[np.float64],
    status: NDArray[np.int8],
    baseline: NDArray[np.float64],
    environment: Environment,
) -> Outcomes:
    """Outcomes of earlier evaluations, as if the new problem had given them.

    What transfers is the ratio of a metric to that of the baseline design: a design that took half
    of the baseline's time on one workload is expected to do so on another. So metrics are scaled by
    the ratio of the two baselines, and goals, limits and rewards are those of the new problem.
    Metrics that may be negative, or are not positive for a baseline, stay as they are.

    Args:
        designs: of the environment's design space, n of them.
        metrics: as recorded, in the order of the environment's metrics, NaN where there are none,
            shape (n, n_metrics).
        status: codes of :class:`~archgym.problem.status.Status`, shape (n,).
        baseline: recorded metrics of the baseline design, NaN where there are none, shape
            (n_metrics,).
        environment: of the problem that is searched now.

    """
    now = environment.baseline_metrics
    signed = np.array([metric.signed for metric in environment.metrics])
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.where((now > 0) & (baseline > 0) & ~signed, now / baseline, 1.0)
    metrics = metrics * np.where(np.isfinite(scale), scale, 1.0)
    scorer = Scorer(environment.objective, environment.metrics, now)
    values, costs, violations = (
        score(metrics) for score in (scorer.values, scorer.costs, scorer.violations)
    )
    lacking = np.isnan(costs).any(axis=1) | np.isnan(violations).any(axis=1)
    ok = (status == Status.OK) & ~lacking
    rewards = np.where(ok, scorer.rewards(costs, violations), FAILED_REWARD)
    values[~ok] = costs[~ok] = np.inf
    violations[~ok] = np.nan
    n = len(designs)
    return Outcomes(
        designs=designs,
        metric_names=scorer.metric_names,
        metrics=metrics,
        objectives=values,
        costs=costs,
        violations=violations,
        reward=rewards,
        status=np.where(lacking & (status == Status.OK), Status.FAILED, status).astype(np.int8),
        reason=[""] * n,
        feasible=ok & ~(violations > 0).any(axis=1),
        cached=np.zeros(n, dtype=np.bool_),
        simulation_s=np.zeros(n),
        fidelity=np.ones(n),
    )
