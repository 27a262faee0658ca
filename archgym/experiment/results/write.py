"""Writes the results of a run: ``results.json``, the tables, the comparisons and the picture."""

from __future__ import annotations

import contextlib
import json
import platform
import time
from dataclasses import replace
from importlib import metadata
from typing import Any

from archgym.analysis.comparison import write_comparisons
from archgym.analysis.trials import TrialSummary, stream_trials
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.folder.trial_states import read_ends
from archgym.experiment.results.files import TableWriter, Totals
from archgym.experiment.results.run_result import RunResult
from archgym.experiment.spec.expand import Trial

_LARGE = 2000
"""Number of trials above which summaries keep only what the tables of results lack."""
_VERSIONS_OF = ("archgym", "numpy", "numba", "scikit-learn", "scikit-optimize", "ray")


def write_results(
    folder: RunFolder,
    experiment: str,
    trials: list[Trial],
    began: float,
    *,
    local: bool,
    resumed: bool,
) -> RunResult:
    """Reads the rows of all trials of a run, and writes its results into its folder.

    Args:
        folder: of the run.
        experiment: name of the experiment.
        trials: all trials of the experiment.
        began: when the run began, by :func:`time.perf_counter`, s.
        local: whether it ran without Ray.
        resumed: whether an earlier run in the folder had begun some of its trials.

    Raises:
        ExperimentError: if a file cannot be written.
    """
    from archgym.experiment.results.picture import plot_best_so_far  # slow to import
    from archgym.experiment.results.tables import by_agent

    ends = read_ends(folder.logs)
    summaries: dict[str, TrialSummary] = {}
    failures: dict[str, str] = {}
    early: dict[str, float] = {}
    by_id = {trial.trial_id: trial for trial in trials}
    large = len(trials) > _LARGE
    with TableWriter(folder.tables) as writer:

        def add(trial: Trial, summary: TrialSummary | None) -> None:
            end = ends.get(trial.trial_id)
            state = writer.add(trial, summary, end)
            if state == "failed":
                failures[trial.trial_id] = end.error if end is not None else "it failed"
            elif state == "finished" and summary and _ended_early(trial, summary.spent):
                early[trial.trial_id] = summary.spent

        for dataset in folder.existing_datasets():
            for summary in stream_trials(dataset):
                trial = by_id.pop(summary.trial_id, None)
                if trial is not None:
                    add(trial, summary)
                    summaries[summary.trial_id] = _slim(summary, large)
        for trial in by_id.values():
            add(trial, None)
    in_order = {t.trial_id: failures[t.trial_id] for t in trials if t.trial_id in failures}
    wall_s = time.perf_counter() - began
    result = RunResult(folder, trials, summaries, in_order, early, writer.totals, wall_s)
    head = {
        "experiment": experiment,
        "versions": _versions(),
        "runner": "local" if local else "ray",
        "wall_s": round(wall_s, 3),
        "resumed": resumed,
    }
    of_trials = [_trial_json(result, trial) for trial in trials]
    folder.write_json(folder.results, {**head, "trials": of_trials})
    totals = _with_draws(folder, writer.totals)
    summary_json = {**head, **totals, "failures": _failures_json(result)}
    folder.write_json(folder.tables / "summary.json", summary_json)
    write_comparisons(folder.tables)
    plot_best_so_far(by_agent(result), folder.picture)
    return result


def _ended_early(trial: Trial, spent: float) -> bool:
    """Whether a trial that is finished could have simulated another design."""
    return trial.budget is not None and trial.hours is None and spent <= trial.budget - 1


def _slim(summary: TrialSummary, large: bool) -> TrialSummary:
    """A summary without what is not needed once its rows of the tables are written."""
    single = len(summary.objective.goals) == 1
    return replace(summary, improvements=[], front=[] if large and single else summary.front)


def _with_draws(folder: RunFolder, totals: Totals) -> dict[str, Any]:
    data = totals.to_json()
    with contextlib.suppress(FileNotFoundError):
        draws = json.loads(folder.random_draws.read_text(encoding="utf-8"))
        for setting, held in data["settings"].items():
            held["random_draws"] = draws.get(setting)
    return data


def _failures_json(result: RunResult) -> list[dict[str, Any]]:
    folder = result.folder
    return [
        {
            "trial_id": trial_id,
            "error": error,
            "traceback_file": str(file.relative_to(folder.path)) if file.exists() else None,
        }
        for trial_id, error in result.failures.items()
        for file in [folder.error_file(trial_id)]
    ]


def _trial_json(result: RunResult, trial: Trial) -> dict[str, Any]:
    summary = result.summaries.get(trial.trial_id)
    known = summary.to_json() if summary is not None else {"trial_id": trial.trial_id, "state": ""}
    failure = result.failures.get(trial.trial_id)
    return {
        **known,
        "dataset": f"datasets/{trial.dataset}",
        "setting": trial.setting,
        "agent_label": trial.agent_label,
        "state": "failed" if failure is not None else known["state"],
        "error": failure,
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _VERSIONS_OF:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
