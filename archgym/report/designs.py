"""The designs of a study that are shown one by one: the best, and those of the Pareto set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archgym.analysis.study import Problem
from archgym.experiment.results.reproduce import evaluate_command

_MAX_OF_FRONT = 16


@dataclass(frozen=True)
class ShownDesign:
    """A design that somebody may want to evaluate again.

    Attributes:
        searcher: index of the searcher that found it.
        name: of the searcher.
        seed: of the agent; ``None`` if it is not known.
        design: its active parameters.
        metrics: in their units, ``None`` for one that the simulator does not give.
        command: that evaluates it again.
        at: budget spent when it was found; ``None`` if that is not shown.
        regret: against the optimum, or the best design of the report; ``None`` with several goals.
    """

    searcher: int
    name: str
    seed: int | None
    design: dict[str, Any]
    metrics: dict[str, float | None]
    command: str
    at: float | None = None
    regret: float | None = None


def best_designs(problem: Problem) -> list[ShownDesign]:
    """The best feasible design of each searcher, the best one first."""
    measures = problem.measures
    shown = []
    for number, row in sorted(problem.best_trials, key=lambda pair: measures.best_cost[pair[0]]):
        if row in problem.chosen:
            cost = measures.best_cost[number : number + 1]
            regret = None if problem.several else float(problem.regret(cost)[0])
            shown.append(_shown(problem, number, row, float(measures.best_at[number]), regret))
    return shown


def front_designs(problem: Problem, most: int = _MAX_OF_FRONT) -> list[ShownDesign]:
    """Designs that no other of any trial beats in every goal, ordered by the first goal.

    Args:
        problem: nothing is found if it has one goal.
        most: of a larger set, the best in each goal, the best compromise, and others whose places
            in that order are evenly spread.
    """
    rows, values = problem.pareto_set
    if not len(rows):
        return []
    order = np.lexsort(values.T[::-1])
    if len(rows) > most:
        compromise = problem.measures.best_row[int(problem.measures.best_cost.argmin())]
        best = [*values[order].argmin(axis=0), *np.flatnonzero(rows[order] == compromise)]
        left = max(0, most - len(set(best)))
        spread = np.linspace(0, len(rows) - 1, left).astype(np.int64)
        order = order[np.unique([*best, *spread])]
    trial_of = {
        row: number
        for number, front in enumerate(problem.measures.fronts)
        for row in front.tolist()
    }
    return [
        _shown(problem, trial_of[row], row) for row in rows[order].tolist() if row in problem.chosen
    ]


def _shown(
    problem: Problem,
    number: int,
    row: int,
    at: float | None = None,
    regret: float | None = None,
) -> ShownDesign:
    trial, chosen = problem.trials[number], problem.chosen[row]
    design = problem.space.design(chosen.codes.tolist())
    return ShownDesign(
        searcher=int(problem.searcher[number]),
        name=problem.searchers[problem.searcher[number]].name,
        seed=trial.seed if trial.seed >= 0 else None,
        design=design,
        metrics=chosen.metrics,
        command=evaluate_command(trial, design),
        at=at,
        regret=regret,
    )
