"""Reads results for an assistant: best designs, reports."""

from __future__ import annotations

from pathlib import Path

from archgym.analysis.trials import TrialSummary, read_trials
from archgym.assistant.evaluations import metric_values
from archgym.assistant.models import BestDesign, BestDesigns, Report
from archgym.data import find_datasets
from archgym.experiment.results.best_design import best_of
from archgym.experiment.results.reproduce import evaluate_command, trials_in

__all__ = ["best_designs", "made_report"]

_MAX_FRONT = 50


def best_designs(name: str, folder: Path) -> BestDesigns:
    """The best design of each problem of a run, or of evaluations.

    Raises:
        ArchgymError: if the folder holds none.
    """
    datasets = find_datasets(folder)
    trials = trials_in(folder, [(one, one.trials().to_pylist()) for one in datasets])
    problems: dict[tuple[str, ...], list[TrialSummary]] = {}
    for dataset in datasets:
        for summary in read_trials(dataset):
            problems.setdefault(summary.problem, []).append(summary)
    found = []
    for summaries in problems.values():
        one = best_of(summaries)
        if one is None or one.best is None:
            continue
        design, base = one.best.design, one.baseline_design
        several = len(one.objective.goals) > 1
        found.append(
            BestDesign(
                environment=one.environment,
                workload=one.workload,
                objective=one.objective.to_json(),
                agent=one.agent,
                seed=one.seed,
                trials=len(summaries),
                simulations=sum(summary.simulations for summary in summaries),
                design=design,
                feasible=one.best.feasible,
                metrics=metric_values(one.metrics, one.best.metrics, one.baseline_metrics),
                changes={k: v for k, v in design.items() if base and base.get(k) != v},
                front=[one.outcome_json(o) for o in one.front[:_MAX_FRONT]] if several else [],
                command=evaluate_command(trials[one.trial_id], design),
            )
        )
    return BestDesigns(name=name, problems=found)


def made_report(folder: Path) -> Report:
    """Writes the report of a run or of evaluations beside its data.

    Raises:
        ArchgymError: if it cannot be made.
    """
    from archgym import report  # heavy

    study = report.read_study([folder])
    trials = sum(len(problem.ids) for problem in study.problems)
    path = report.write_report(study, folder / "report.html", f"archgym report {folder.name}")
    return Report(path=str(path), trials=trials)
