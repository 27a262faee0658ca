"""Runs an experiment: checks it, runs its trials, and sums them up."""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from archgym.data import Dataset
from archgym.experiment.expand import Trial, expand
from archgym.experiment.folder import RunFolder
from archgym.experiment.local import run_locally
from archgym.experiment.progress import Progress, show_progress
from archgym.experiment.run_trial import TrialEnd
from archgym.experiment.schema import Experiment
from archgym.experiment.summary import TrialSummary, read_trials
from archgym.experiment.validate import check_experiment, check_workloads

__all__ = ["RunOptions", "RunResult", "run_experiment"]

_VERSIONS_OF = ("archgym", "numpy", "numba", "scikit-learn", "scikit-optimize", "ray")


@dataclass(frozen=True)
class RunOptions:
    """How an experiment is run; none of this changes its result.

    Attributes:
        local: in this process, without Ray.
        resume: go on with the run in the folder; starts afresh if there is none.
        address: of a Ray cluster to join; empty to start Ray on this machine.
        cpus: CPUs that Ray may use on this machine; ``None`` for all.
        quiet: show no progress.
    """

    local: bool = False
    resume: bool = False
    address: str = ""
    cpus: int | None = None
    quiet: bool = False


@dataclass(frozen=True)
class RunResult:
    """What an experiment came to.

    Attributes:
        folder: everything on disk.
        trials: all trials, in the order of the experiment.
        summaries: of the trials that evaluated something, by id.
        failures: why trials failed, by id.
        wall_s: seconds that this run took.
    """

    folder: RunFolder
    trials: list[Trial]
    summaries: dict[str, TrialSummary]
    failures: dict[str, str]
    wall_s: float = field(compare=False)


def run_experiment(
    experiment: Experiment,
    out: str | Path,
    options: RunOptions = RunOptions(),
    console: Console | None = None,
) -> RunResult:
    """Runs an experiment and leaves datasets, results and a picture in a folder.

    Args:
        experiment: what to run.
        out: the output folder.
        options: how to run it.
        console: where progress is shown; by default stderr.

    Raises:
        ArchgymError: if anything in the experiment is not possible or the folder cannot be
            used; then nothing has been run or written.
    """
    began = time.perf_counter()
    console = console or Console(stderr=True)
    folder = RunFolder(out)
    trials = expand(experiment)
    folder.check(experiment, trials, options.resume)
    with _busy(console, options.quiet):
        environments = check_experiment(experiment, trials)
    if options.resume:
        check_workloads(folder.datasets, trials, environments)
    with folder.locked() as run_id:
        folder.check(experiment, trials, options.resume, own_lock=True)
        folder.prepare(experiment, trials)
        states = _sealed_states(folder)
        left = [trial for trial in trials if states.get(trial.trial_id) != "finished"]
        finished = [trial.trial_id for trial in trials if states.get(trial.trial_id) == "finished"]
        goals = {name: (env.objective, env.metrics) for name, env in environments.items()}
        progress = Progress(trials, goals, finished)
        try:
            with show_progress(progress, console, options.quiet):
                ends = _run(left, frozenset(states), folder, run_id, experiment, options, progress)
        finally:
            folder.wait_for_workers()
            _sealed_states(folder)
        result = _result(folder, trials, ends, began)
        _write(result, experiment, options)
    return result


def _busy(console: Console, quiet: bool) -> contextlib.AbstractContextManager[object]:
    """Shows, on a terminal, that simulators are being compiled."""
    if quiet or not console.is_terminal:
        return contextlib.nullcontext()
    return console.status("making and checking every environment and agent")


def summarise_run(folder: RunFolder) -> dict[str, TrialSummary]:
    """Summaries of all trials in a run's datasets, by id."""
    return {
        summary.trial_id: summary
        for path in sorted(folder.datasets.glob("*/dataset.json"))
        for summary in read_trials(Dataset(path.parent))
    }


def _run(
    trials: Sequence[Trial],
    begun: frozenset[str],
    folder: RunFolder,
    run_id: str,
    experiment: Experiment,
    options: RunOptions,
    progress: Progress,
) -> dict[str, TrialEnd]:
    if not trials:
        return {}
    if options.local:
        return run_locally(trials, begun, folder, progress)
    from archgym.experiment.ray_runner import run_with_ray  # slow to import

    return run_with_ray(
        trials,
        begun,
        folder,
        progress,
        run_id=run_id,
        resources=experiment.resources,
        address=options.address,
        cpus=options.cpus,
    )


def _sealed_states(folder: RunFolder) -> dict[str, str]:
    """Turns journals into Parquet; the state of every trial that the datasets hold."""
    states: dict[str, str] = {}
    for path in sorted(folder.datasets.glob("*/dataset.json")):
        dataset = Dataset(path.parent)
        dataset.seal()
        table = dataset.trials()
        states.update(zip(table["trial_id"].to_pylist(), table["state"].to_pylist(), strict=True))
    return states


def _result(
    folder: RunFolder, trials: list[Trial], ends: Mapping[str, TrialEnd], began: float
) -> RunResult:
    failures = {trial_id: end.error for trial_id, end in ends.items() if end.state == "failed"}
    return RunResult(folder, trials, summarise_run(folder), failures, time.perf_counter() - began)


def _write(result: RunResult, experiment: Experiment, options: RunOptions) -> None:
    from archgym.experiment.plot import plot_best_so_far  # slow to import

    result.folder.write_json(
        result.folder.results.name,
        {
            "experiment": experiment.name,
            "versions": _versions(),
            "runner": "local" if options.local else "ray",
            "wall_s": round(result.wall_s, 3),
            "trials": [_trial_json(result, trial) for trial in result.trials],
        },
    )
    plot_best_so_far(result, result.folder.picture)


def _trial_json(result: RunResult, trial: Trial) -> dict[str, Any]:
    summary = result.summaries.get(trial.trial_id)
    known = summary.to_json() if summary is not None else {"trial_id": trial.trial_id, "state": ""}
    failure = result.failures.get(trial.trial_id)
    state = "failed" if failure is not None else known["state"]
    where = {
        "dataset": f"datasets/{trial.dataset}",
        "setting": trial.setting,
        "agent_label": trial.agent_label,
    }
    return {**known, **where, "state": state, "error": failure}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _VERSIONS_OF:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
