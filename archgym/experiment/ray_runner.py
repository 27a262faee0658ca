"""Runs trials through Ray Tune, on this machine or on a cluster.

Ray decides only when and where a trial runs. Tune's own search and checkpoints are not used:
the list of trials is ours, and the dataset is what a run goes on from.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import socket
import threading
import uuid
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

# Ray reads these when it is imported or started.
os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"  # the dataset is the log
os.environ["TUNE_DISABLE_SIGINT_HANDLER"] = "1"  # Ctrl-C is ours
os.environ["TUNE_PRINT_ALL_TRIAL_ERRORS"] = "0"  # our own report names them
os.environ["RAY_AIR_NEW_OUTPUT"] = "0"  # the new one prints at verbosity 0 too
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else every start warns
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere

import ray
from ray import tune
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import archgym
from archgym.errors import ExperimentError
from archgym.experiment.expand import Trial
from archgym.experiment.folder import RunFolder
from archgym.experiment.progress import Counters, Progress
from archgym.experiment.run_trial import TrialEnd, run_trial
from archgym.experiment.schema import Resources

__all__ = ["run_with_ray"]

_CONNECT_S = 10.0
_STEP_S = 1.0  # how often a trial says how far it is
_OBJECT_STORE_BYTES = 100 * 1024 * 1024  # trials exchange next to nothing


def run_with_ray(
    trials: Sequence[Trial],
    begun: frozenset[str],
    folder: RunFolder,
    progress: Progress,
    *,
    run_id: str,
    resources: Resources,
    address: str = "",
    cpus: int | None = None,
) -> dict[str, TrialEnd]:
    """Runs trials in parallel; how each of them ended.

    Args:
        trials: what to run.
        begun: ids of the trials that the datasets hold a part of.
        folder: of the run.
        progress: is told how far it is.
        run_id: of the lock on the folder.
        resources: what a trial may use.
        address: of a Ray cluster to join; empty to start Ray on this machine.
        cpus: CPUs that Ray may use on this machine; ``None`` for all.

    Raises:
        ExperimentError: if Ray cannot be started or joined, a trial needs more CPUs than there
            are, or a node does not see the output folder.
    """
    _check_address(address)
    progress.note("joining Ray" if address else "starting Ray")
    shutil.rmtree(folder.ray, ignore_errors=True)
    with _ray(address, cpus):
        _check_cpus(resources)
        if address:
            _check_nodes(folder)
        texts = [
            json.dumps(
                {
                    "trial": trial.to_json(),
                    "folder": str(folder.path),
                    "run_id": run_id,
                    "resume": trial.trial_id in begun,
                    "working_directory": os.getcwd(),
                }
            )
            for trial in trials
        ]
        follower = _Follower(progress)
        tuner = tune.Tuner(
            tune.with_resources(_TuneTrial, {"cpu": resources.cpus_per_trial}),
            param_space={"trial": tune.grid_search(texts)},
            tune_config=tune.TuneConfig(
                max_concurrent_trials=resources.max_concurrent,
                reuse_actors=True,
                trial_name_creator=_name,
                trial_dirname_creator=_name,
            ),
            run_config=tune.RunConfig(
                name=f"tune-{run_id[:8]}",
                storage_path=str(folder.ray),
                failure_config=tune.FailureConfig(max_failures=0),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                callbacks=[follower],
                verbose=0,
            ),
        )
        tuner.fit()
    return follower.ends


class _TuneTrial(tune.Trainable):
    """One of our trials as Tune sees it: each step waits a second and says how far it is.

    The search runs in a thread of its own and never waits for Tune. It begins with the first
    step, not before: Tune may set up a trial in two processes and then use only one of them.
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Takes the trial in."""
        self._task: dict[str, Any] = json.loads(config["trial"])
        self._counters = Counters()
        self._end: TrialEnd | None = None
        self._thread: threading.Thread | None = None

    def step(self) -> dict[str, Any]:
        """How far the search is; at its end, how it ended."""
        if self._thread is None:
            # Tune has put this process into a folder of its own; paths in the experiment are
            # from where the user is. A node without that folder still runs what needs no path.
            with contextlib.suppress(OSError):
                os.chdir(self._task["working_directory"])
            self._thread = threading.Thread(target=self._search, daemon=True)
            self._thread.start()
        self._thread.join(_STEP_S)
        over = not self._thread.is_alive()
        counters = self._counters
        end = self._end or TrialEnd("failed", "the search ended without a word")
        return {
            "simulations": counters.simulations,
            "proposals": counters.proposals,
            "best": list(counters.best),
            "spent": counters.spent,
            "state": end.state if over else "running",
            "error": end.error if over else "",
            "done": over,
        }

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Goes on with another trial in the same process."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self.setup(new_config)
        return True

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Nothing to save: the dataset is the checkpoint."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Nothing to load."""

    def _search(self) -> None:
        folder = RunFolder(self._task["folder"])
        try:
            with folder.working(self._task["run_id"]):
                self._end = run_trial(
                    Trial.from_json(self._task["trial"]),
                    folder,
                    resume=self._task["resume"],
                    report=partial(setattr, self, "_counters"),
                )
        except Exception as error:  # a folder that went away, say: the driver must hear of it
            self._end = TrialEnd("failed", f"{type(error).__name__}: {error}")


class _Follower(tune.Callback):
    """Hands on what Tune hears from the trials."""

    def __init__(self, progress: Progress) -> None:
        self.ends: dict[str, TrialEnd] = {}
        self._progress = progress

    def __getstate__(self) -> dict[str, Any]:
        """Tune stores its callbacks in case it is restored, which we never do."""
        return {}

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._progress.started(_trial_id(trial))

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        trial_id = _trial_id(trial)
        counters = Counters(
            result["simulations"], result["proposals"], tuple(result["best"]), result["spent"]
        )
        self._progress.counted(trial_id, counters)
        if result["state"] != "running":
            self._ended(trial_id, TrialEnd(result["state"], result["error"]))

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        # What a trial raises is caught in the worker: here the worker itself is gone.
        reason = "its worker process died (killed from outside, out of memory, or a crash)"
        self._ended(_trial_id(trial), TrialEnd("failed", reason))

    def _ended(self, trial_id: str, end: TrialEnd) -> None:
        self.ends[trial_id] = end
        self._progress.ended(trial_id, end.state)


def _trial_id(trial: Any) -> str:
    return str(json.loads(trial.config["trial"])["trial"]["trial_id"])


def _name(trial: Any) -> str:
    return f"{_trial_id(trial)[:120]}-{trial.trial_id}"


@contextlib.contextmanager
def _ray(address: str, cpus: int | None) -> Iterator[None]:
    """Ray, started or joined, and quiet."""
    here: dict[str, Any] = {"num_cpus": cpus, "object_store_memory": _OBJECT_STORE_BYTES}
    warnings.filterwarnings("ignore", module="ray")
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        ray.init(
            address=address or "local",
            include_dashboard=False if not address else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=True,
            **({} if address else here),
        )
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        what = f"join the Ray cluster at {address!r}" if address else "start Ray"
        reason = str(error).strip().partition("\n")[0]
        raise ExperimentError(f"cannot {what}: {reason} (--local runs without Ray)") from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuses an address at which nobody answers; Ray itself would try for minutes."""
    if address.startswith("ray://"):
        raise ExperimentError(
            f"--address {address} is Ray Client, through which progress cannot be followed: start "
            "archgym on a node of the cluster, with --address auto"
        )
    host, _, port = address.rpartition(":")
    if not address or address == "auto":
        return
    if not host or not port.isdigit():
        raise ExperimentError(f"--address cannot be {address!r}: allowed is auto or HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise ExperimentError(f"cannot join the Ray cluster at {address!r}: {error}") from error


def _check_cpus(resources: Resources) -> None:
    largest = max((node["Resources"].get("CPU", 0.0) for node in _nodes()), default=0.0)
    if resources.cpus_per_trial > largest:
        raise ExperimentError(
            f"resources.cpus_per_trial cannot be {resources.cpus_per_trial:g}: the largest node "
            f"that Ray has offers {largest:g} CPUs"
        )


def _check_nodes(folder: RunFolder) -> None:
    """Refuses a cluster of which a node does not see the output folder or has another archgym."""
    token = uuid.uuid4().hex
    folder.write("ray/token", token)
    path = str(folder.ray / "token")
    look = ray.remote(num_cpus=0)(_look)
    for node in _nodes():
        affinity = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        where = f"node {node['NodeManagerAddress']} of the Ray cluster"
        try:
            text, version = ray.get(look.options(scheduling_strategy=affinity).remote(path))
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise ExperimentError(f"{where} cannot run archgym: {reason}") from error
        if text != token:
            raise ExperimentError(
                f"{where} does not see the output folder {folder.path}: choose one on a file "
                "system that all nodes share, with --out"
            )
        if version != archgym.__version__:
            raise ExperimentError(
                f"{where} has archgym {version}, this machine has {archgym.__version__}"
            )


def _nodes() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def _look(path: str) -> tuple[str, str]:
    """What a node reads in a file, and its version of archgym."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(), archgym.__version__
    except OSError:
        return "", archgym.__version__
