"""``archgym worker``: a process that simulates for the run in a folder, wherever it is started."""

from __future__ import annotations

import hashlib
import json
import os
import random
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import archgym
from archgym.errors import ExperimentError, check_received
from archgym.experiment.folder.names import QUEUES
from archgym.experiment.folder.run_folder import LOCK, TRIALS_LIMIT_BYTES
from archgym.experiment.workers.attendance import Attendance, reachable
from archgym.experiment.workers.line_files import LineReader
from archgym.experiment.workers.queue_folder import (
    FORMAT,
    Job,
    QueueFolder,
    QueueInfo,
    queue_folders,
    run_files,
)
from archgym.experiment.workers.slots import Slots
from archgym.experiment.workers.told import Told, told_by_signals
from archgym.reading import plain_yaml
from archgym.reading.checked_json import read_checked_json

__all__ = ["WorkerOptions", "work"]

_LOOK_S = 5.0
"""How often a worker that has a queue looks whether the run goes on and others need it more."""
_WAIT_S = 0.5


@dataclass(frozen=True)
class WorkerOptions:
    """How a worker works.

    Attributes:
        slots: designs that it simulates at the same time.
        max_wait_s: how long it waits for a run that has not begun, or was stopped or killed and
            may be resumed.
        max_idle_s: after how long without a ticket it ends although the run goes on; ``None`` for
            never.
        say: tells the person who started it what happens.
    """

    slots: int = 1
    max_wait_s: float = 1800.0
    max_idle_s: float | None = None
    say: Callable[[str], None] = lambda text: None


def work(folder: str | Path, options: WorkerOptions = WorkerOptions()) -> int:
    """Simulates for the run in a folder until it ends.

    Args:
        folder: of the run.
        options: how.

    Returns:
        0 if the run has ended, or there was nothing to do for longer than the options allow;
        otherwise the number of the signal that told the worker to end.

    Raises:
        ArchgymError: if the folder holds no run, or one of another version or whose designs are
            simulated elsewhere, or the environment cannot be made here.
    """
    check_received(Path(folder), ExperimentError)
    with told_by_signals() as told:
        return _Worker(Path(folder).absolute(), options, told).work()


class _Worker:
    def __init__(self, run: Path, options: WorkerOptions, told: Told) -> None:
        self._run, self._options, self._told, self._say = run, options, told, options.say
        self._name = f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(2)}"
        self._random = random.Random(self._name)  # noqa: S311 - spreads workers over queues
        self._slots = Slots(options.slots)
        self._joined = self._simulated = 0

    def work(self) -> int:
        waiting_since: float | None = None
        try:
            while not self._told.by:
                states = self._states()
                queues = self._live(states)
                if queues:
                    waiting_since = None
                    reason = self._attend(queues)
                    if reason:
                        self._say(f"{reason}; {self._simulated:,} designs simulated")
                        return 0
                    continue
                if states and all(state == "ended" for state in states.values()):
                    self._say(f"the run has ended; {self._simulated:,} designs simulated")
                    return 0
                if waiting_since is None:
                    waiting_since = time.monotonic()
                    self._say(f"waiting for a search in {self._run}")
                if time.monotonic() - waiting_since > self._options.max_wait_s:
                    self._say(f"nothing to do for {self._options.max_wait_s:g} s")
                    return 0
                self._told.link.poll(_WAIT_S)
        finally:
            self._slots.close()
        self._say(f"told to end by {self._told.name}; {self._simulated:,} designs simulated")
        return self._told.by

    def _states(self) -> dict[str, str]:
        """State of each shard of the run, by the id of its last start; checks that it fits.

        Raises:
            ExperimentError: if there is no run that this worker can work for.
        """
        found: dict[str, str] = {}
        for data in run_files(self._run):
            version = data.get("archgym")
            if data.get("format") != FORMAT or version != archgym.__version__:
                raise ExperimentError(
                    f"the run in {self._run} is one of archgym {version}, this worker has "
                    f"{archgym.__version__}: install the same version"
                )
            found[str(data.get("run_id"))] = str(data.get("state"))
        if not found:
            _check_may_begin(self._run)
        return found

    def _live(self, states: dict[str, str]) -> list[tuple[QueueFolder, QueueInfo]]:
        """Queues whose driver may be alive."""
        found = []
        for queue in queue_folders(self._run) if states else []:
            info = queue.info()
            if info is not None and info.open and states.get(info.run_id) == "running":
                found.append((queue, info))
        return found

    def _attend(self, queues: list[tuple[QueueFolder, QueueInfo]]) -> str:
        """Works in one of the queues until it ends or another one needs this worker more.

        Returns:
            Why the worker ends; empty if it looks for another queue.
        """
        sizes = {queue.path: len(queue.workers()) for queue, _ in queues}
        least = min(sizes.values())
        queue, info = self._random.choice([one for one in queues if sizes[one[0].path] == least])
        _check_job(self._run, info)
        self._joined += 1
        try:
            attendance = Attendance(
                queue,
                info,
                f"{self._name}-{self._joined}",
                self._slots,
                self._options.slots,
                self._told,
            )
        except OSError:
            return ""  # it has just ended
        self._say(f"works for {queue.path.name} as {attendance.name}")
        try:
            return self._serve(attendance, info)
        except FileNotFoundError:
            return ""  # the driver has removed the queue
        finally:
            self._simulated += attendance.simulated
            if attendance.busy:
                self._slots.close()

    def _serve(self, attendance: Attendance, info: QueueInfo) -> str:
        driver = LineReader(attendance.queue.info_file)
        look_s = min(_LOOK_S, info.lease_s / 2)
        heard = next_look = time.monotonic()
        changes = -1
        while True:
            now = time.monotonic()
            if self._told.by:
                attendance.leave(f"told to end by {self._told.name}")
                return ""
            if now >= next_look:
                next_look = now + look_s
                with reachable():
                    driver.read()
                if driver.changes != changes:
                    changes, heard = driver.changes, now
                why, end = self._reason_to_leave(attendance, now - heard > info.lease_s)
                if why:
                    attendance.leave(why)
                    return why if end else ""
            attendance.step(max(0.0, next_look - now))

    def _reason_to_leave(self, attendance: Attendance, silent: bool) -> tuple[str, bool]:
        """Why the worker should leave a queue, and whether it should end then."""
        states = self._states()
        if states and all(state == "ended" for state in states.values()):
            return "the run has ended", True
        if attendance.busy:
            return "", False
        idle = time.monotonic() - attendance.idle_since
        limit = self._options.max_wait_s if silent else self._options.max_idle_s
        if limit is not None and idle > limit:
            return f"nothing to do for {limit:g} s", True
        sizes = {queue.path: len(queue.workers()) for queue, _ in self._live(states)}
        own = sizes.pop(attendance.queue.path, 0)
        if not own:
            return "the search has left this queue", False
        least = min(sizes.values(), default=own)
        if own > least + 1 and self._random.random() < (own - least) / 2 / own:
            return "another queue has fewer workers", False
        return "", False


def _check_may_begin(run: Path) -> None:
    """Refuses a folder in which no run will ever want workers.

    A run takes its lock before it writes anything else, so a folder with a lock holds a run, or
    one that is being prepared, which takes minutes where it reads a large history.

    Raises:
        ExperimentError: for such a folder.
    """
    again = "start `archgym run YAML --out DIR` first, or make the empty folder"
    if not run.is_dir():
        raise ExperimentError(f"there is no folder {run}: {again}")
    held = {entry.name for entry in run.iterdir()}
    if (run / "experiment.yaml").exists() and (run / "trials.json").exists():
        try:
            settings = plain_yaml.read(run / "experiment.yaml")
            executor = (settings.get("simulation") or {}).get("executor")
        except (OSError, AttributeError, yaml.YAMLError) as error:
            raise ExperimentError(f"cannot read the experiment in {run}: {error}") from None
        if executor != "workers":
            raise ExperimentError(
                f"the run in {run} simulates its designs itself: workers are for experiments with "
                "simulation: {executor: workers}"
            )
    elif not any(name.startswith(LOCK) for name in held) and any(
        not name.startswith((".", QUEUES)) and name != "experiment.yaml" for name in held
    ):
        raise ExperimentError(f"{run} holds no run of archgym: {again}")


@dataclass(frozen=True)
class _Simulated:
    """What a worker needs to know of a trial."""

    environment: str
    arguments: dict[str, Any]


def _check_job(run: Path, info: QueueInfo) -> None:
    """Refuses an environment that no trial of the run has.

    Raises:
        ExperimentError: for such an environment, or a list of trials that cannot be read.
    """
    path = run / "trials.json"
    try:
        trials = read_checked_json(path, list[_Simulated], TRIALS_LIMIT_BYTES)
    except (OSError, ValueError) as error:
        raise ExperimentError(f"cannot read {path}: {error}") from None
    known = {_digest(trial.environment, trial.arguments) for trial in trials}
    job: Job = info.job
    if _digest(job.environment, job.arguments) not in known:
        raise ExperimentError(
            f"a queue in {run / QUEUES} asks for {job.environment!r} with other arguments than "
            "the trials of the run have"
        )


def _digest(environment: object, arguments: object) -> bytes:
    text = json.dumps([environment, arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).digest()
