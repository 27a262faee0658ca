"""Runs an experiment: checks it, runs its trials, and writes its results."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from archgym.environment.environment import Environment
from archgym.errors import DatasetError, ExperimentError, InvalidValueError
from archgym.experiment.folder.full_disk import NoRoomError, explain_full_disk
from archgym.experiment.folder.live_files import clear_live_files
from archgym.experiment.folder.lock import locked, wait_for_workers
from archgym.experiment.folder.manifest import list_nothing, list_prepared, list_results
from archgym.experiment.folder.resume_checks import (
    check_folder,
    check_raised_budgets,
    check_unchanged,
)
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.results.random_search_difficulty import draws_table, random_draws
from archgym.experiment.results.run_result import RunResult
from archgym.experiment.results.write import write_results
from archgym.experiment.run.best_before import best_before
from archgym.experiment.run.context import RunContext
from archgym.experiment.run.history import (
    check_histories,
    history_lines,
    keep_histories,
    read_histories,
)
from archgym.experiment.run.library import add_to_library, as_begun, with_library
from archgym.experiment.run.live_logs import check_logs
from archgym.experiment.run.progress import Progress, show_progress
from archgym.experiment.run.recorded_baselines import recorded_baselines
from archgym.experiment.run.run_batch import run_batch
from archgym.experiment.run.trial_batches import TrialBatch, shard_of
from archgym.experiment.simulate.baselines import simulate_baselines
from archgym.experiment.spec.checks import check_experiment
from archgym.experiment.spec.expand import Trial, expand
from archgym.experiment.spec.initial import initial_designs
from archgym.experiment.spec.schema import Experiment
from archgym.experiment.workers.open_run import open_to_workers
from archgym.reading.checked_json import read_checked_json

__all__ = ["RunOptions", "run_experiment"]


@dataclass(frozen=True)
class RunOptions:
    """How an experiment is run; no option changes its result.

    Attributes:
        local: in this process, without Ray.
        resume: go on with the run in the folder; starts afresh if there is none.
        address: of a Ray cluster to join; empty to start Ray on this machine.
        cpus: CPUs that Ray may use on this machine; ``None`` for all.
        storage: where Ray Tune keeps its own files; empty for the output folder.
        shard: run only a part of the trials, ``(3, 16)`` the third of sixteen; the parts share
            the folder, one after the other or at the same time.
        quiet: show no progress.

    Raises:
        InvalidValueError: for a shard that does not exist.
    """

    local: bool = False
    resume: bool = False
    address: str = ""
    cpus: int | None = None
    storage: str = ""
    shard: tuple[int, int] | None = None
    quiet: bool = False

    def __post_init__(self) -> None:
        """Checks the shard."""
        if self.shard is not None:
            number, of = self.shard
            if not 1 <= number <= of:
                raise InvalidValueError(f"shard cannot be {number}/{of}: the first is 1/{of}")

    def chosen(self, trials: list[Trial]) -> list[Trial]:
        """Those of an experiment's trials that are run: all, or those of the shard."""
        return trials if self.shard is None else shard_of(trials, *self.shard)


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
    folder = RunFolder(out, "-of-".join(map(str, options.shard or ())))
    named = experiment.library
    experiment = as_begun(experiment, folder)
    trials = expand(experiment)
    check_folder(folder, experiment, trials, options.resume)
    check_logs(experiment.log)
    with _busy(console, options.quiet):
        environments = check_experiment(experiment, trials)
        experiment, of_library = with_library(experiment, environments, folder)
        trials = expand(experiment)
        chosen = options.chosen(trials)
        initial = _began_with(folder)
        check_histories(experiment, trials, environments, folder)
        new = [trial for trial in trials if trial.setting not in initial]
        initial |= initial_designs(experiment, new, environments)
        _check_room(experiment, folder, options)
        if options.resume:
            check_raised_budgets(folder.trials(), trials)
            check_unchanged(folder, trials, environments)
        known = recorded_baselines(folder.existing_datasets(), trials, environments)
        network = bool(options.address)
        baselines = simulate_baselines(experiment, trials, environments, known, network)
        histories = read_histories(experiment, trials, environments, folder)
        draws = {} if folder.begun() else random_draws(experiment, trials, environments)
    for text in _warnings(environments):
        console.print(text, style="yellow", highlight=False, markup=False)
    if draws and not options.quiet:
        console.print(draws_table(draws))
    if not options.quiet:
        for line in filter(None, [of_library, *history_lines(histories)]):
            console.print(line, highlight=False, soft_wrap=True, markup=False)
    with locked(folder) as run_id, explain_full_disk(folder.path):
        check_folder(folder, experiment, trials, options.resume, own_lock=True)
        list_nothing(folder)
        keep_histories(folder, histories, environments)
        folder.prepare(experiment, trials, initial)
        list_prepared(folder)
        clear_live_files(folder)
        if draws:
            folder.write_json(folder.random_draws, draws)
        states = _sealed_states(folder, chosen)
        finished = [t.trial_id for t in chosen if states.get(t.trial_id) == "finished"]
        left = [trial for trial in chosen if states.get(trial.trial_id) != "finished"]
        goals = {name: (env.objective, env.metrics) for name, env in environments.items()}
        before: dict[str, tuple[float, ...]] = {}
        if states and not options.quiet:
            before = best_before(folder.existing_datasets(), chosen, environments)
        environments.clear()  # this process simulates nothing
        progress = Progress(chosen, goals, finished, before)
        context = RunContext(
            folder,
            run_id,
            experiment.simulation,
            baselines,
            initial,
            frozenset(states),
            network=network,
            log=tuple(experiment.log),
            durable=experiment.durable,
        )
        try:
            leased = experiment.simulation.leased
            opened = open_to_workers(folder, run_id) if leased else contextlib.nullcontext()
            with opened, show_progress(progress, console, options.quiet):
                _run(left, context, progress, experiment, options)
        except NoRoomError:
            raise  # there is no room for Parquet either
        except BaseException:
            with contextlib.suppress(DatasetError):
                wait_for_workers(folder)
                _sealed_states(folder)
            raise
        wait_for_workers(folder)
        _sealed_states(folder)
        folder.remove_finished()
        result = write_results(
            folder,
            experiment.name,
            trials,
            began,
            local=options.local,
            resumed=bool(states),
        )
        list_results(folder)
        if (added := add_to_library(experiment, folder, named)) and not options.quiet:
            console.print(added, highlight=False, soft_wrap=True, markup=False)
        return result


def _began_with(folder: RunFolder) -> dict[str, list[dict[str, Any]]]:
    """The designs that searches in the folder began with, whatever their file holds by now."""
    if not folder.initial_designs.exists():
        return {}
    try:
        return read_checked_json(folder.initial_designs, dict[str, list[dict[str, Any]]])
    except (OSError, ValueError) as error:
        raise ExperimentError(f"cannot read {folder.initial_designs}: {error}") from error


def _warnings(environments: Mapping[str, Environment]) -> list[str]:
    """What users should know of an environment before its results, each with its setting."""
    return [f"{name}: {text}" for name, env in environments.items() for text in env.warnings]


def _busy(console: Console, quiet: bool) -> contextlib.AbstractContextManager[object]:
    """Shows, on a terminal, that simulators are being compiled."""
    if quiet or not console.is_terminal:
        return contextlib.nullcontext()
    return console.status("making and checking every environment and agent")


def _check_room(experiment: Experiment, folder: RunFolder, options: RunOptions) -> None:
    """Refuses a new run whose workers do not fit on this machine, before it simulates anything."""
    if not (options.local or options.address or folder.begun()):
        from archgym.experiment.run.ray_cluster import check_cpus_here  # slow to import

        check_cpus_here(experiment.resources, experiment.simulation, options.cpus)


def _run(
    trials: Sequence[Trial],
    context: RunContext,
    progress: Progress,
    experiment: Experiment,
    options: RunOptions,
) -> None:
    if options.local and trials:
        run_batch(TrialBatch("local", tuple(trials)), context, progress)
    elif trials:
        from archgym.experiment.run.ray_tune import run_with_ray  # slow to import

        run_with_ray(
            trials,
            context,
            progress,
            experiment.resources,
            address=options.address,
            cpus=options.cpus,
            storage=options.storage,
        )


def _sealed_states(folder: RunFolder, trials: Sequence[Trial] = ()) -> dict[str, str]:
    """Turns journals into Parquet; gives the state of every trial in the datasets.

    One of ``trials`` that finished with a smaller budget than it has now is ``closed``.
    """
    states: dict[str, str] = {}
    wanted = {trial.trial_id: (trial.budget or 0, trial.hours or 0) for trial in trials}
    for dataset in folder.existing_datasets():
        dataset.seal()
        for row in dataset.trials().select(["trial_id", "state", "budget", "hours"]).to_pylist():
            name, state = row["trial_id"], row["state"]
            more = wanted.get(name, (0, 0)) > (row["budget"] or 0, row["hours"] or 0)
            states[name] = "closed" if state == "finished" and more else state
    return states
