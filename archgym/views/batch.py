"""The designs of one step of a vector view, evaluated together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.environment.environment import Environment
from archgym.evaluation.outcome import Row
from archgym.space import Designs


def evaluated(
    env: Environment, designs: Designs
) -> tuple[NDArray[np.float32], NDArray[np.float64], list[Row]]:
    """The environment's observations, rewards and rows of all designs.

    The evaluator may take fewer designs than it is given without the search being over (new
    ones that the simulator then did not cover cost nothing), so the rest is offered again.

    Raises:
        BudgetExhausted: if the trial has a budget and it is spent before the last design.
    """
    seen = np.empty((len(designs), *(env.observation_space.shape or ())), np.float32)
    rewards = np.empty(len(designs))
    rows: list[Row] = []
    while len(rows) < len(designs):
        outcomes = env.evaluate_batch(designs[len(rows) :])
        part = slice(len(rows), len(rows) + len(outcomes))
        seen[part] = env.observe(outcomes)
        rewards[part] = outcomes.reward
        rows += outcomes.rows()
    return seen, rewards, rows
