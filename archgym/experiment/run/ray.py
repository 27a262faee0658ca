"""Runs packs of trials through Ray Tune, on this machine or on a cluster.

Tune decides when and where a pack runs, keeps its actors for the next ones, and starts it again
where a process or node is lost. Its own search and checkpoints are not used: the list of trials
is ours, and the dataset is what a run goes on from.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import shutil
import signal
import socket
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
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
from archgym.experiment.run.batch import dead_worker, run_pack
from archgym.experiment.run.batches import Pack, make_packs
from archgym.experiment.folder.run_folder import NoRoomError, RunFolder, stop_if_full
from archgym.experiment.run.progress import Counters, Progress
from archgym.experiment.run.trial import Environments
from archgym.experiment.folder.trial_states import TrialEnd, read_ends
from archgym.experiment.simulate.executors import ProcessLane, Simulators
from archgym.experiment.simulate.ray_executor import RayLane
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.schema import Resources, Simulation

__all__ = ["run_with_ray"]

_CONNECT_S = 10.0
_STEP_S = 1.0  # how often a trial says how far it is
_RESTARTS = 10  # of a pack without a trial that could be blamed
_OBJECT_STORE_BYTES = 100 * 1024 * 1024  # trials exchange next to nothing


def run_with_ray(
    trials: Sequence[Trial],
    begun: frozenset[str],
    folder: RunFolder,
    progress: Progress,
    *,
    run_id: str,
    resources: Resources,
    simulation: Simulation,
    baselines: Mapping[str, Sequence[float]] | None = None,
    address: str = "",
    cpus: int | None = None,
    storage: str = "",
) -> dict[str, TrialEnd]:
    """Runs trials in parallel; how each of them ended.

    Each of Tune's trials is a pack of ours. If its worker process or node is lost, Tune starts
    the pack again elsewhere, and it goes on with the trial that it was in the middle of.

    Args:
        trials: what to run.
        begun: ids of the trials that the datasets hold a part of.
        folder: of the run.
        progress: is told how far it is.
        run_id: of the lock on the folder.
        resources: what a trial may use.
        simulation: how designs are simulated.
        baselines: metrics of the baseline design of each setting, where they are known.
        address: of a Ray cluster to join; empty to start Ray on this machine.
        cpus: CPUs that Ray may use on this machine; ``None`` for all.
        storage: where Tune keeps its own files, a path or an address that Ray knows; by default
            in the folder.

    Raises:
        ExperimentError: if Ray cannot be started or joined, a trial needs more CPUs than there
            are, or a node does not see the output folder.
        NoRoomError: if the disk is full.
    """
    _check_address(address)
    lanes = simulation.workers or 0
    if cpus is not None and not address:  # known without waiting for Ray
        _check_cpus(resources, lanes, [float(cpus)])
    progress.note("joining Ray" if address else "starting Ray")
    shutil.rmtree(folder.ray, ignore_errors=True)
    with _ray(address, cpus):
        _check_cpus(resources, lanes, [node["Resources"].get("CPU", 0.0) for node in _nodes()])
        if address:
            _check_nodes(folder)
        known = {setting: list(metrics) for setting, metrics in (baselines or {}).items()}
        packs = make_packs(trials, _at_a_time(resources, lanes))
        where = folder.ray.relative_to(folder.path) / "packs"
        for pack in packs:
            task = {
                "trials": [trial.to_json() for trial in pack.trials],
                "begun": [trial.trial_id for trial in pack.trials if trial.trial_id in begun],
                "simulation": simulation.model_dump(mode="json"),
                "baselines": {s: known[s] for s in {t.setting for t in pack.trials} & known.keys()},
                "network": bool(address),
            }
            folder.write(f"{where}/{pack.name}.json", json.dumps(task))
        run = {
            "folder": str(folder.path),
            "shard": folder.shard,
            "run_id": run_id,
            "packs": str(where),
            "working_directory": os.getcwd(),
        }
        follower = _Follower(progress, packs)
        tuner = tune.Tuner(
            tune.with_resources(_TunePack, _bundles(resources, lanes)),
            param_space={**run, "pack": tune.grid_search([pack.name for pack in packs])},
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
                    max_failures=_RESTARTS + 3 * max(len(pack.trials) for pack in packs)
                ),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                stop=_Stopper(follower),
                callbacks=[follower],
                verbose=0,
            ),
        )
        tuner.fit()
    stop_if_full(follower.no_room, folder.path)
    ends = read_ends(folder.logs, f"{run_id[:8]}-*.jsonl")
    for name, reason in follower.lost.items():
        for trial in next(pack.trials for pack in packs if pack.name == name):
            ends.setdefault(trial.trial_id, TrialEnd("failed", reason))
    return ends


class _TunePack(tune.Trainable):
    """A pack as Tune sees it: each step waits a second and says how far it is.

    The searches run in a thread of their own and never wait for Tune. They begin with the first
    step, not before: Tune may set up a pack in two processes and then use only one of them.
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Takes the pack in."""
        self._task = config
        self._mailbox = _Mailbox()
        self._problem: Exception | None = None
        self._thread: threading.Thread | None = None

    def step(self) -> dict[str, Any]:
        """What happened since the last step."""
        if self._thread is None:
            # Tune has put this process into a folder of its own; paths in the experiment are
            # from where the user is. A node without that folder still runs what needs no path.
            with contextlib.suppress(OSError):
                os.chdir(self._task["working_directory"])
            self._thread = threading.Thread(target=self._search, daemon=True)
            self._thread.start()
        self._thread.join(_STEP_S)
        over = not self._thread.is_alive()
        problem = self._problem
        return {
            "news": self._mailbox.news(),
            "no_room": isinstance(problem, NoRoomError),
            "error": "" if problem is None else f"{type(problem).__name__}: {problem}",
            "done": over,
        }

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Goes on with another pack in the same process."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self.setup(new_config)
        return True

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Nothing to save: the dataset is the checkpoint."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Nothing to load."""

    def _search(self) -> None:
        task = self._task
        folder = RunFolder(task["folder"], task["shard"])
        try:
            with folder.working(task["run_id"]):
                pack = json.loads(
                    (folder.path / task["packs"] / f"{task['pack']}.json").read_text()
                )
                simulation = Simulation.model_validate(pack["simulation"])
                make_lane = RayLane if simulation.workers else ProcessLane
                simulators = Simulators(simulation, make_lane, pack["network"])
                with contextlib.closing(
                    Environments(folder, simulators, pack["baselines"])
                ) as environments:
                    run_pack(
                        [Trial.from_json(trial) for trial in pack["trials"]],
                        frozenset(pack["begun"]),
                        folder,
                        folder.log_file(task["run_id"], task["pack"]),
                        environments,
                        self._mailbox,
                    )
        except Exception as error:  # a folder that went away, say: the driver must hear of it
            self._problem = error


class _Mailbox:
    """What a pack's searches have to say until the next step of Tune; nothing piles up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._news: list[tuple[Any, ...]] = []
        self._counters: dict[str, Counters] = {}

    def started(self, trial_id: str) -> None:
        with self._lock:
            self._news.append(("started", trial_id))

    def counted(self, trial_id: str, counters: Counters) -> None:
        with self._lock:
            self._counters[trial_id] = counters

    def ended(self, trial_id: str, state: str) -> None:
        with self._lock:
            self._news.append(("ended", trial_id, state))

    def news(self) -> str:
        """JSON of it, and forgets it."""
        with self._lock:
            counted = [
                ("counted", trial_id, c.simulations, c.proposals, list(c.best), c.spent)
                for trial_id, c in self._counters.items()
            ]
            # Counters last, but before a trial's end: what has ended is not counted any more.
            news = [n for n in self._news if n[0] == "started"]
            news += counted + [n for n in self._news if n[0] == "ended"]
            self._news, self._counters = [], {}
        return json.dumps(news)


class _Follower(tune.Callback):
    """Hands on what Tune hears from the packs.

    Attributes:
        lost: why a pack did not come to its end, by its name.
        no_room: set when the disk is full.
    """

    def __init__(self, progress: Progress, packs: Sequence[Pack]) -> None:
        self.lost: dict[str, str] = {}
        self.no_room: OSError | None = None
        self._progress = progress
        self._packs = {pack.name: [trial.trial_id for trial in pack.trials] for pack in packs}

    def __getstate__(self) -> dict[str, Any]:
        """Tune stores its callbacks in case it is restored, which we never do."""
        return {}

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        for what, trial_id, *rest in json.loads(result["news"]):
            if what == "started":
                self._progress.started(trial_id)
            elif what == "counted":
                simulations, proposals, best, spent = rest
                counters = Counters(simulations, proposals, tuple(best), spent)
                self._progress.counted(trial_id, counters)
            else:
                self._progress.ended(trial_id, rest[0])
        if result["no_room"]:
            self.no_room = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif result["error"]:
            self._lose(trial.config["pack"], result["error"])

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        # What a trial raises is caught in the worker: here the worker itself is gone, for good.
        self._lose(trial.config["pack"], dead_worker(1))

    def _lose(self, pack: str, reason: str) -> None:
        self.lost[pack] = reason
        for trial_id in self._packs[pack]:
            self._progress.ended(trial_id, "failed")


class _Stopper(tune.Stopper):
    """Ends the run when the disk is full: every further trial would fail."""

    def __init__(self, follower: _Follower) -> None:
        self._follower = follower

    def __getstate__(self) -> dict[str, Any]:
        """As of the follower, nothing of it is stored."""
        return {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return self._follower.no_room is not None


def _name(trial: Any) -> str:
    return f"{trial.config['pack']}-{trial.trial_id}"


def _bundles(resources: Resources, lanes: int) -> tune.PlacementGroupFactory:
    """CPUs of a pack: its own, and one for each process that simulates for it."""
    return tune.PlacementGroupFactory(
        [{"CPU": resources.cpus_per_trial}, *([{"CPU": 1.0}] * lanes)], strategy="PACK"
    )


def _at_a_time(resources: Resources, lanes: int) -> int:
    """Packs that fit into the cluster at the same time."""
    total = sum(node["Resources"].get("CPU", 0.0) for node in _nodes())
    most = max(1, int(total / (resources.cpus_per_trial + lanes)))
    return min(most, resources.max_concurrent or most)


@contextlib.contextmanager
def _ray(address: str, cpus: int | None) -> Iterator[None]:
    """Ray, started or joined, and quiet."""
    here: dict[str, Any] = {"num_cpus": cpus, "object_store_memory": _OBJECT_STORE_BYTES}
    warnings.filterwarnings("ignore", module="ray")
    logging.getLogger("ray").setLevel(logging.ERROR)
    # With a full disk, Tune shows a traceback each time it cannot store its state, which is not
    # needed here: workers that cannot record say so in one line.
    logging.getLogger("ray.tune.execution.experiment_state").setLevel(logging.CRITICAL)
    ends = signal.getsignal(signal.SIGTERM)
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
    if callable(ends) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, ends)  # Ray's would print a stack and abort
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


def _check_cpus(resources: Resources, lanes: int, sizes: Sequence[float]) -> None:
    """Refuses trials that do not fit into nodes of these numbers of CPUs."""
    largest = max(sizes, default=0.0)
    most = int(sum(sizes) - resources.cpus_per_trial)
    if lanes and lanes > most:
        allowed = f"at most {most} fit" if most > 0 else "none fit"
        raise ExperimentError(
            f"simulation.workers cannot be {lanes}: Ray offers {sum(sizes):g} CPUs, of which a "
            f"trial itself takes resources.cpus_per_trial, {resources.cpus_per_trial:g}; beside it "
            f"{allowed}, or leave workers out"
        )
    if resources.cpus_per_trial > largest:
        raise ExperimentError(
            f"resources.cpus_per_trial cannot be {resources.cpus_per_trial:g}: the largest node "
            f"that Ray has offers {largest:g} CPUs"
        )


def _check_nodes(folder: RunFolder) -> None:
    """Refuses a cluster of which a node does not see the output folder or has another archgym."""
    token = uuid.uuid4().hex
    folder.write(str(folder.ray.relative_to(folder.path) / "token"), token)
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
