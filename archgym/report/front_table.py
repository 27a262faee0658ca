"""The table of a problem's Pareto set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archgym.analysis.study import Problem, Study
from archgym.experiment.results.tables import common_values, design_text
from archgym.problem.goals import goal_label, natural
from archgym.report.designs import ShownDesign
from archgym.report.table import Table, number_text

__all__ = ["front_table"]


def front_table(study: Study, problem: Problem, shown: Sequence[ShownDesign]) -> Table:
    """What the designs of the Pareto set reach, and in what they differ.

    Args:
        study: the study.
        problem: one with several goals.
        shown: of its Pareto set; at least one.
    """
    goals, names = problem.objective.goals, problem.scorer.metric_names
    metrics = [[np.nan if (v := one.metrics[n]) is None else v for n in names] for one in shown]
    values = problem.scorer.values(np.array(metrics))
    alike = common_values([one.design for one in shown])
    rows = []
    for one, found in zip(shown, values.tolist(), strict=True):
        told = (natural(goal, problem.metrics, v) for goal, v in zip(goals, found, strict=True))
        own = {name: value for name, value in one.design.items() if name not in alike}
        name = study.searchers[one.searcher].name
        rows.append([*map(number_text, told), f"{name}, seed {one.seed}", design_text(own)])
    size = len(problem.pareto_set[0])
    count = f"{len(shown):,} of its {size:,} designs" if size > len(shown) else f"{size:,} designs"
    return Table(
        "Pareto set of all trials",
        [*(f">{goal_label(goal, problem.metrics)}" for goal in goals), "found by", "design"],
        rows,
        f"Designs that keep all limits and that no other beats in every goal: {count}, by the "
        "first goal. Below, each with its metrics and the command that evaluates it again."
        + (f" All of them: {design_text(alike)}." if alike else ""),
    )
