"""The best designs of a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archgym.experiment.reproduce import evaluate_command
from archgym.report.study import Problem, Study

__all__ = ["BestDesign", "best_designs"]


@dataclass(frozen=True)
class BestDesign:
    """The best design of a searcher on a problem.

    Attributes:
        searcher: number of the searcher.
        trial_id: the trial that found it.
        seed: of the agent.
        at: budget spent when it was found.
        regret: against the optimum, or the best design of the report.
        design: its active parameters.
        metrics: in their units, ``None`` for one that the simulator does not give.
        command: that evaluates it again.
    """

    searcher: int
    trial_id: str
    seed: int
    at: float
    regret: float
    design: dict[str, Any]
    metrics: dict[str, float | None]
    command: str


def best_designs(study: Study, problem: Problem) -> list[BestDesign]:
    """The best feasible design of each searcher, the best one first."""
    measures = problem.measures
    found = []
    for searcher in np.unique(problem.searcher).tolist():
        mine = problem.trials_of(searcher)
        number = int(mine[int(measures.best_cost[mine].argmin())])
        chosen = problem.chosen.get(int(measures.best_row[number]))
        if chosen is None:
            continue
        trial, design = problem.trials[number], problem.space.design(chosen.codes.tolist())
        regret = problem.regret(measures.best_cost[number : number + 1])
        best = BestDesign(
            searcher=searcher,
            trial_id=problem.ids[number],
            seed=trial.seed,
            at=float(measures.best_at[number]),
            regret=float(regret[0]),
            design=design,
            metrics=chosen.metrics,
            command=evaluate_command(trial, design),
        )
        found.append((float(measures.best_cost[number]), best))
    return [best for _, best in sorted(found, key=lambda pair: pair[0])]
