"""Designs that the embedded simulator likes best: where searches of a slower one begin."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from archgym.environment.evaluated_problem import EvaluatedProblem
from archgym.errors import InvalidValueError
from archgym.evaluation.baseline import simulated_metrics
from archgym.problem import DesignProblem, Status
from archgym.problem.scoring import Scorer
from archgym.simulators.resolve import Embedded
from archgym.simulators.result import read_result

__all__ = ["predicted_designs"]

_EVALUATED: Final = 20_000
"""Designs that the model evaluates: all of a smaller space, else so many random ones."""
_SEED: Final = 0
"""Of the random ones."""
_SIMULATES: Final = ("simulate", "simulate_batch", "simulate_batch_at")
"""Of which an environment with an embedded simulator overrides one."""


def predicted_designs(environment: EvaluatedProblem, count: int) -> list[dict[str, Any]]:
    """The legal designs with the highest reward by the embedded simulator, best first.

    Args:
        environment: whose simulator is another one.
        count: number of designs at most.

    Raises:
        InvalidValueError: if the embedded simulator is the one that is searched, there is none, or
            it does not give a metric of the objective.
        SimulationError: if it cannot simulate the baseline design.
    """
    if environment.simulator.name == "embedded":
        raise InvalidValueError("the embedded simulator is the one that is searched already")
    kind = type(environment)
    if all(getattr(kind, name) is getattr(DesignProblem, name) for name in _SIMULATES):
        raise InvalidValueError(f"{environment.name} has no embedded simulator")
    environment.load_workload(environment.workload)  # a table in its place does without
    model, space = Embedded(environment), environment.design_space
    for name in environment.objective.metric_names():
        if name not in model.metric_names:
            raise InvalidValueError(
                f"objective: the embedded simulator does not give metric {name!r}; "
                f"it gives {', '.join(model.metric_names)}"
            )
    if space.canonical_cardinality <= _EVALUATED:
        designs = space.unrank(np.arange(int(space.canonical_cardinality)))
    else:
        designs = space.sample(_EVALUATED, np.random.default_rng(_SEED))
    metrics = environment.metrics
    results = model.simulate(designs)
    baseline = space.designs([environment.baseline_design])
    scorer = Scorer(environment.objective, metrics, simulated_metrics(baseline, model, metrics))
    rewards: dict[int, float] = {}
    for place, (result, _) in enumerate(results):
        status, values, _ = read_result(result, metrics, model.metric_names)
        if status == Status.OK:
            rewards[place] = scorer.score(values)[3]
    best = sorted(rewards, key=lambda place: (-rewards[place], place))[:count]
    return [designs[place] for place in best]
