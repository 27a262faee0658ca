"""Runs an experiment: checks it, runs its trials, and sums them up."""

from __future__ import annotations

import contextlib
import json
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from archgym.analysis.trials import TrialSummary, stream_trials
from archgym.data import Dataset
from archgym.environment.environment import Environment
from archgym.errors import DatasetError, InvalidValueError
from archgym.analysis.comparison import write_comparisons
from archgym.experiment.results.random_draws import draws_table, random_draws
from archgym.experiment.results.files import TableWriter, Totals
from archgym.experiment.results.run_result import RunResult
from archgym.experiment.run.batches import shard_of
from archgym.experiment.run.best_before import best_before
from archgym.experiment.folder.run_folder import RANDOM_DRAWS, NoRoomError, RunFolder, stop_if_full
from archgym.experiment.run.local import run_locally
from archgym.experiment.run.progress import Progress, show_progress
from archgym.experiment.folder.trial_states import read_ends
from archgym.experiment.spec.checks import (
    check_experiment,
    check_raised_budgets,
    check_workloads,
    simulate_baselines,
)
from archgym.experiment.spec.expand import Trial, expand
from archgym.experiment.spec.schema import Experiment
from archgym.problem.scorer import Scorer

__all__ = ["RunOptions", "run_experiment"]

_LARGE = 2000
"""Trials above which nothing is kept of each that the tables of results hold."""
_VERSIONS_OF = ("archgym", "numpy", "numba", "scikit-learn", "scikit-optimize", "ray")


@dataclass(frozen=True)
class RunOptions:
    """How an experiment is run; none of this changes its result.

    Attributes:
        local: in this process, without Ray.
        resume: go on with the run in the folder; starts afresh if there is none.
        address: of a Ray cluster to join; empty to start Ray on this machine.
        cpus: CPUs that Ray may use on this machine; ``None`` for all.
        storage: where Ray Tune keeps its own files; empty for the output folder.
        shard: run only a part of the trials, ``(3, 16)`` the third of sixteen; the parts share
            the folder, one after the other or at the same time.
        quiet: show no progress.
    """

    local: bool = False
    resume: bool = False
    address: str = ""
    cpus: int | None = None
    storage: str = ""
    shard: tuple[int, int] | None = None
    quiet: bool = False


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
            used; then no trial has been run, and nothing written but baselines into the cache.
    """
    began = time.perf_counter()
    console = console or Console(stderr=True)
    folder = RunFolder(out, _shard_name(options.shard))
    trials = expand(experiment)
    ours = trials if options.shard is None else shard_of(trials, *options.shard)
    folder.check(experiment, trials, options.resume)
    with _busy(console, options.quiet):
        environments = check_experiment(experiment, trials)
        baselines = simulate_baselines(experiment, trials, environments, bool(options.address))
        draws = {} if folder.begun() else random_draws(experiment, trials, environments)
    if draws and not options.quiet:
        console.print(draws_table(draws))
    if options.resume:
        check_workloads(folder.datasets, trials, environments)
        check_raised_budgets(folder.trials(), trials)
    with folder.locked() as run_id, _said_if_full(folder):
        folder.check(experiment, trials, options.resume, own_lock=True)
        folder.prepare(experiment, trials)
        if draws:
            folder.write_json(RANDOM_DRAWS, draws)
        states = _sealed_states(folder, ours)
        left = [trial for trial in ours if states.get(trial.trial_id) != "finished"]
        finished = [trial.trial_id for trial in ours if states.get(trial.trial_id) == "finished"]
        goals = {name: (env.objective, env.metrics) for name, env in environments.items()}
        before = _best_before(folder, ours, environments) if states and not options.quiet else {}
        environments.clear()  # this process simulates nothing
        progress = Progress(ours, goals, finished, before)
        try:
            with show_progress(progress, console, options.quiet):
                begun = frozenset(states)
                _run(left, begun, folder, run_id, experiment, options, progress, baselines)
        except NoRoomError:
            raise  # there is no room for Parquet either
        except BaseException:
            with contextlib.suppress(DatasetError):
                folder.wait_for_workers()
                _sealed_states(folder)
            raise
        folder.wait_for_workers()
        _sealed_states(folder)
        return _finish(folder, trials, experiment, options, began, resumed=bool(states))


def _busy(console: Console, quiet: bool) -> contextlib.AbstractContextManager[object]:
    """Shows, on a terminal, that simulators are being compiled."""
    if quiet or not console.is_terminal:
        return contextlib.nullcontext()
    return console.status("making and checking every environment and agent")


@contextlib.contextmanager
def _said_if_full(folder: RunFolder) -> Iterator[None]:
    """Whatever fails because the disk is full, at the end of a run too, says so and how to go on.

    Raises:
        NoRoomError: in place of an error that comes from a full disk.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, NoRoomError):
            stop_if_full(error, folder.path)
        raise


def _shard_name(shard: tuple[int, int] | None) -> str:
    if shard is None:
        return ""
    number, of = shard
    if not 1 <= number <= of:
        raise InvalidValueError(f"shard cannot be {number}/{of}: the first is 1/{of}")
    return f"{number}-of-{of}"


def _run(
    trials: Sequence[Trial],
    begun: frozenset[str],
    folder: RunFolder,
    run_id: str,
    experiment: Experiment,
    options: RunOptions,
    progress: Progress,
    baselines: Mapping[str, Sequence[float]],
) -> None:
    if not trials:
        return
    simulation = experiment.simulation
    if options.local:
        run_locally(
            trials,
            begun,
            folder,
            progress,
            run_id=run_id,
            simulation=simulation,
            baselines=baselines,
        )
        return
    from archgym.experiment.run.ray import run_with_ray  # slow to import

    run_with_ray(
        trials,
        begun,
        folder,
        progress,
        run_id=run_id,
        resources=experiment.resources,
        simulation=simulation,
        baselines=baselines,
        address=options.address,
        cpus=options.cpus,
        storage=options.storage,
    )


def _sealed_states(folder: RunFolder, trials: Sequence[Trial] = ()) -> dict[str, str]:
    """Turns journals into Parquet; the state of every trial that the datasets hold.

    One of ``trials`` that finished with a smaller budget than it has now is ``closed``.
    """
    states: dict[str, str] = {}
    wanted = {trial.trial_id: trial.budget for trial in trials}
    for path in sorted(folder.datasets.glob("*/dataset.json")):
        dataset = Dataset(path.parent)
        dataset.seal()
        for row in dataset.trials().select(["trial_id", "state", "budget"]).to_pylist():
            name, state = row["trial_id"], row["state"]
            more = wanted.get(name, 0) > (row["budget"] or 0)
            states[name] = "closed" if state == "finished" and more else state
    return states


def _best_before(
    folder: RunFolder, trials: Sequence[Trial], environments: Mapping[str, Environment]
) -> dict[str, tuple[float, ...]]:
    """What trials had found when they were interrupted, or had ended."""
    scorers = {
        setting: Scorer(env.objective, env.metrics, env.baseline_metrics)
        for setting, env in environments.items()
    }
    of_trials = {trial.trial_id: scorers[trial.setting] for trial in trials}
    paths = sorted(folder.datasets.glob("*/dataset.json"))
    return best_before([Dataset(path.parent) for path in paths], of_trials)


def _finish(
    folder: RunFolder,
    trials: list[Trial],
    experiment: Experiment,
    options: RunOptions,
    began: float,
    *,
    resumed: bool,
) -> RunResult:
    """Reads what all trials came to, and writes it down."""
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
            elif state == "finished" and summary and summary.spent <= trial.budget - 1:
                early[trial.trial_id] = summary.spent

        for path in sorted(folder.datasets.glob("*/dataset.json")):
            for summary in stream_trials(Dataset(path.parent)):
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
        "experiment": experiment.name,
        "versions": _versions(),
        "runner": "local" if options.local else "ray",
        "wall_s": round(wall_s, 3),
        "resumed": resumed,
    }
    folder.write_json(
        folder.results.name, {**head, "trials": [_trial_json(result, trial) for trial in trials]}
    )
    folder.write_json(
        f"{folder.tables.name}/summary.json",
        {**head, **_with_draws(folder, writer.totals), "failures": _failures_json(result)},
    )
    write_comparisons(folder.tables)
    plot_best_so_far(by_agent(result), folder.picture)
    return result


def _slim(summary: TrialSummary, large: bool) -> TrialSummary:
    """What is still needed once its rows of the tables are written."""
    single = len(summary.objective.goals) == 1
    return replace(summary, improvements=[], front=[] if large and single else summary.front)


def _with_draws(folder: RunFolder, totals: Totals) -> dict[str, Any]:
    data = totals.to_json()
    with contextlib.suppress(FileNotFoundError):
        draws = json.loads((folder.path / RANDOM_DRAWS).read_text(encoding="utf-8"))
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
