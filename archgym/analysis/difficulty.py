"""How hard a problem is: how many random draws it takes to come near its optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from archgym.analysis.measures import reaches, regret
from archgym.analysis.trial_rows import metric_vector
from archgym.environment.environment import Environment
from archgym.problem.scorer import Scorer

_DRAWS = 1 << 17
_AT_ONCE = 1 << 14


def expected_draws(environment: Environment, draws: int = _DRAWS) -> float:
    """Mean number of random draws until one is within 1 % of the optimum.

    It is estimated from designs that are drawn as random search draws them, with a fixed seed;
    ``inf`` if none of them is near enough.

    Args:
        environment: on a table, with one goal.
        draws: designs to draw.
    """
    optimum = environment.optimum
    assert optimum is not None
    names = [metric.name for metric in environment.metrics]
    scorer = Scorer(environment.objective, environment.metrics, environment.baseline_metrics)
    best = scorer.costs(metric_vector(optimum.metrics, names)[None])[0, 0]
    rng = np.random.default_rng(0)
    near = 0
    table = getattr(environment.simulator, "table", None)
    for start in range(0, draws, _AT_ONCE):
        designs = environment.design_space.sample(min(_AT_ONCE, draws - start), rng)
        if table is not None:
            positions = table.header.space.rank(designs)
            values = table.values(positions, names)
            values[table.failure[positions] != 0] = np.nan
        else:
            results = [result for result, _ in environment.simulator.simulate(designs)]
            known = [result if isinstance(result, Mapping) else {} for result in results]
            values = np.array([metric_vector(metrics, names) for metrics in known])
        feasible = ~(scorer.violations(values) > 0).any(axis=1)
        near += int((feasible & reaches(regret(scorer.costs(values)[:, 0], best))).sum())
    return draws / near if near else math.inf
