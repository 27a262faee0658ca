"""The table of a problem's Pareto set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archgym.analysis.study import Problem
from archgym.analysis.trial_rows import metric_vector
from archgym.experiment.results.texts import common_values, design_text
from archgym.problem.goals import goal_label
from archgym.report.designs import ShownDesign
from archgym.report.table import Table, number_text

__all__ = ["front_table"]


def front_table(problem: Problem, shown: Sequence[ShownDesign]) -> Table:
    """Goals of the designs of the Pareto set, and the parameters in which they differ.

    Args:
        problem: one with several goals.
        shown: of its Pareto set; at least one.
    """
    names = problem.scorer.metric_names
    values = problem.scorer.values(np.array([metric_vector(one.metrics, names) for one in shown]))
    alike = common_values([one.design for one in shown])
    goals = range(len(problem.objective.goals))
    shown_values = np.column_stack([problem.natural(i, values[:, i]) for i in goals])
    rows = []
    for one, found in zip(shown, shown_values.tolist(), strict=True):
        own = {name: value for name, value in one.design.items() if name not in alike}
        rows.append([*map(number_text, found), f"{one.name}, seed {one.seed}", design_text(own)])
    size = len(problem.pareto_set[0])
    count = f"{len(shown):,} of its {size:,} designs" if size > len(shown) else f"{size:,} designs"
    labels = [goal_label(goal, problem.metrics) for goal in problem.objective.goals]
    return Table(
        "Pareto set of all trials",
        [*(f">{label}" for label in labels), "found by", "design"],
        rows,
        f"Designs that keep all limits and that no other beats in every goal: {count}, by the "
        "first goal. Below, each with its metrics and the command that evaluates it again."
        + (f" All of them: {design_text(alike)}." if alike else ""),
    )
