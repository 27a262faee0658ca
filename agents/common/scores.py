"""What agents minimise: one number a design."""

from __future__ import annotations

import numpy as np

from archgym.agents.common.arrays import Floats
from archgym.evaluation.outcome import Outcomes
from archgym.problem.status import Status

BROKEN_LIMIT_COST = 60.0
"""Least cost of a design that breaks a limit; a feasible one costs at most 50."""
FAILED_COST = 80.0
"""Cost of a design that is illegal, failed or timed out."""


def costs(outcomes: Outcomes) -> Floats:
    """Cost of each design, always finite, shape (n,); smaller is better, 0 is the baseline.

    A feasible design costs the log ratio of its goal to the baseline. With several goals that
    is the weighted mean that also stands behind the reward: agents that need one number search
    the weighted geometric mean of the goals. A broken limit costs 60 to 70, growing with the
    excess, and a failure 80, so the order is that of the reward.
    """
    if outcomes.costs.shape[1] == 1:
        scalar = outcomes.costs[:, 0]
    else:
        share = np.clip(outcomes.reward, 1e-22, 1.0 - 2.0**-53)
        scalar = np.log((1.0 - share) / share)
    broken = BROKEN_LIMIT_COST - 10.0 * outcomes.reward
    scalar = np.where(outcomes.feasible, scalar, broken)
    return np.where(outcomes.status == Status.OK, scalar, FAILED_COST)


def total_excess(outcomes: Outcomes) -> Floats:
    """Relative excess over all limits together, infinite for a failure, shape (n,)."""
    excess = np.maximum(outcomes.violations, 0.0).sum(axis=1)
    return np.where(outcomes.status == Status.OK, excess, np.inf)
