"""The table of what searches found on workloads that they left out."""

from __future__ import annotations

from collections.abc import Iterator

from archgym.analysis.study import Problem
from archgym.problem.spread import change_of
from archgym.report.table import Table, number_text

__all__ = ["held_out_table"]


def held_out_table(problem: Problem) -> Iterator[Table]:
    """The best design of each searcher on the workload searched on, and on the one held out.

    Nothing if no workload is held out.
    """
    metrics = {name for goal in problem.objective.goals for name, _ in goal.terms}
    metrics |= {limit.metric for limit in problem.objective.limits}
    units = {metric.name: metric.unit for metric in problem.metrics}
    rows, workloads = [], []
    for number, row in problem.best_trials:
        trial, chosen = problem.trials[number], problem.chosen.get(row)
        held = trial.held_out
        if held is None or chosen is None:
            continue
        workloads.append(held.workload)
        name = problem.searchers[int(problem.searcher[number])].name
        for metric in sorted(metrics):
            searched, left_out = chosen.metrics.get(metric), held.metrics.get(metric)
            rows.append(
                [
                    name,
                    f"{metric} ({units[metric]})" if units.get(metric) else metric,
                    _number(searched),
                    change_of(metric, chosen.metrics, problem.baseline_metrics) or "-",
                    _number(left_out),
                    change_of(metric, held.metrics, held.baseline) or "-",
                    "" if held.feasible else f"*{held.reason or 'not feasible'}",
                ]
            )
    if not rows:
        return
    searched_on = problem.workload or "searched on"
    left = " and ".join(dict.fromkeys(workloads))
    columns = ["agent", "metric", f">{searched_on}", ">change", f">{left}", ">change", "remark"]
    yield Table(
        "Workloads searched on and held out",
        columns,
        rows,
        "The best design of each agent over all its trials, on what it was searched on and on what "
        "the search left out; the change is against the baseline design on the same workload.",
    )


def _number(value: float | None) -> str:
    return "-" if value is None else number_text(value)
