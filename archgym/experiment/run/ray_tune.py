"""Runs batches of trials through Ray Tune, on this machine or on a cluster.

Tune decides when and where a batch runs, keeps its actors for the next ones, and starts a batch
again when a process or node is lost. Its own search and checkpoints are not used: archgym makes
the list of trials, and a run is resumed from the datasets.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from typing import Any

# Ray reads these when it is imported or started.
os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"  # the dataset is the log
os.environ["TUNE_DISABLE_SIGINT_HANDLER"] = "1"  # archgym handles Ctrl-C
os.environ["TUNE_PRINT_ALL_TRIAL_ERRORS"] = "0"  # archgym reports them
os.environ["RAY_AIR_NEW_OUTPUT"] = "0"  # the new one prints at verbosity 0 too
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else every start warns
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere

from ray import tune

from archgym.errors import ExperimentError
from archgym.experiment.folder.full_disk import stop_if_full
from archgym.experiment.run import ray_cluster
from archgym.experiment.run.busy import Busy
from archgym.experiment.run.context import RunContext
from archgym.experiment.run.environments import NoBaselineError
from archgym.experiment.run.progress import Counters, Progress
from archgym.experiment.run.ray_trainable import TuneBatch, write_batches
from archgym.experiment.run.trial_batches import TrialBatch, make_batches
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.schema import Resources

__all__ = ["run_with_ray"]

_RESTARTS = 10  # of a batch, beyond those that a trial in it explains


def run_with_ray(
    trials: Sequence[Trial],
    context: RunContext,
    progress: Progress,
    resources: Resources,
    *,
    address: str = "",
    cpus: int | None = None,
    storage: str = "",
) -> None:
    """Runs trials in parallel; how each of them ended is in the logs of the folder.

    Each trial of Tune is a batch of trials. If its worker process or node is lost, Tune starts
    the batch again elsewhere, where it goes on with the trial that was interrupted.

    Args:
        trials: what to run.
        context: of the run.
        progress: hears of the progress.
        resources: what a trial may use.
        address: of a Ray cluster to join; empty to start Ray on this machine.
        cpus: CPUs that Ray may use on this machine; ``None`` for all.
        storage: where Tune keeps its own files, a path or an address that Ray knows; by default
            in the folder.

    Raises:
        ExperimentError: if Ray cannot be started or joined, a trial needs more CPUs than there
            are, a node does not see the output folder, or a batch could not go on.
        NoRoomError: if the disk is full.
        NoBaselineError: if the baseline design of an environment cannot be simulated.
    """
    folder, run_id = context.folder, context.run_id
    executors, worker = context.simulation.processes, context.simulation.bundle
    ray_cluster.check_address(address)
    if not address:
        ray_cluster.check_cpus_here(resources, context.simulation, cpus)
    progress.note("joining Ray" if address else "starting Ray")
    shutil.rmtree(folder.ray, ignore_errors=True)
    with ray_cluster.connected(address, cpus):
        sizes = ray_cluster.node_cpus()
        ray_cluster.check_cpus(resources, context.simulation, sizes)
        ray_cluster.check_offer(context.simulation)
        if address:
            ray_cluster.check_nodes(folder)
        cpus_of_one = resources.cpus_per_trial + executors * worker.get("CPU", 0.0)
        fitting = max(1, int(sum(sizes) / cpus_of_one))
        batches = make_batches(trials, min(fitting, resources.max_concurrent or fitting))
        follower = _Follower(progress, batches)
        # One for each worker that simulates for a batch, beside that of the batch itself.
        bundles = [{"CPU": resources.cpus_per_trial}, *([worker] * executors if worker else [])]
        files = write_batches(batches, context)
        tuner = tune.Tuner(
            tune.with_resources(TuneBatch, tune.PlacementGroupFactory(bundles, strategy="PACK")),
            param_space={
                "files": str(files),
                "batch": tune.grid_search([batch.name for batch in batches]),
                "working_directory": os.getcwd(),
            },
            tune_config=tune.TuneConfig(
                max_concurrent_trials=resources.max_concurrent,
                reuse_actors=True,
                trial_name_creator=_name,
                trial_dirname_creator=_name,
            ),
            run_config=tune.RunConfig(
                name=f"tune-{run_id[:8]}",
                storage_path=storage or str(folder.ray),
                # Each new start leaves a trial fewer to be run, or gives one up.
                failure_config=tune.FailureConfig(
                    max_failures=_RESTARTS + 3 * max(len(batch.trials) for batch in batches)
                ),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                stop=follower,
                callbacks=[follower],
                verbose=0,
            ),
        )
        tuner.fit()
    stop_if_full(follower.no_room, folder.path)
    if follower.no_baseline:
        raise NoBaselineError(follower.no_baseline)
    if follower.lost:
        ((reason, _),) = follower.lost.most_common(1)
        raise ExperimentError(
            f"{follower.lost.total()} of {len(batches)} batches could not go on: {reason}. "
            "What was simulated is kept, and --resume goes on with the trials that have not ended"
        )


class _Follower(tune.Callback, tune.Stopper):
    """Passes the reports of batches from Tune to the display; ends the run when it cannot go on.

    Attributes:
        no_room: set when the disk is full.
        no_baseline: why a baseline design cannot be simulated; empty if all can.
        lost: why batches could not go on, with the number of batches.
    """

    def __init__(self, progress: Progress, batches: Sequence[TrialBatch]) -> None:
        self.no_room: OSError | None = None
        self.no_baseline = ""
        self.lost: Counter[str] = Counter()
        self._progress = progress
        self._batches = {batch.name: batch for batch in batches}

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune stores its callbacks to restore a run, which archgym never asks for."""
        return {}

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        for what, trial_id, *rest in json.loads(result["news"]):
            if what == "counted":
                busy = Busy.from_json(rest[0]["busy"])
                rest = [Counters(**{**rest[0], "best": tuple(rest[0]["best"]), "busy": busy})]
            getattr(self._progress, what)(trial_id, *rest)
        if result["no_room"]:
            self.no_room = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif result["no_baseline"]:
            self.no_baseline = result["no_baseline"]
        elif result["error"]:
            self._lose(trial, result["error"])

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        # The worker catches what a trial raises. Here the worker itself has ended for good.
        self._lose(trial, "the process of a worker ended again and again")

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Whether Tune stops one of its trials: never."""
        return False

    def stop_all(self) -> bool:
        """Whether Tune stops all trials: every further one would fail for the same reason."""
        return self.no_room is not None or bool(self.no_baseline)

    def _lose(self, lost: Any, reason: str) -> None:
        self.lost[reason] += 1
        for trial in self._batches[lost.config["batch"]].trials:
            self._progress.ended(trial.trial_id, "failed")


def _name(trial: Any) -> str:
    return f"{trial.config['batch']}-{trial.trial_id}"
