"""The output folder of a run: what is in it, who may write to it, and whether it can go on."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from archgym.errors import ExperimentError
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.load import experiment_yaml
from archgym.experiment.spec.schema import Experiment
from archgym.reading import plain_yaml as bounded_yaml

__all__ = ["RANDOM_DRAWS", "NoRoomError", "RunFolder", "stop_if_full"]

_LOCK = ".lock"
_WORKERS = ".workers"
_WAIT_FOR_WORKERS_S = 60.0
RANDOM_DRAWS = "results/random_draws.json"
_BEFORE_TRIALS = {"experiment.yaml", "trials.json", "results", "ray", "log", _LOCK, _WORKERS}
"""What a run writes before its first trial."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class NoRoomError(ExperimentError):
    """The disk is full: nothing can be recorded, so the run stops until there is room."""


def stop_if_full(error: BaseException | None, path: Path) -> None:
    """Tells a full disk from everything else that can go wrong with one trial.

    Args:
        error: what was raised.
        path: the folder of the run.

    Raises:
        NoRoomError: if it comes from a full disk.
    """
    first = error
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise NoRoomError(
                f"there is no room to write in {path} ({error.strerror}): what was evaluated is "
                "kept; make room and go on with --resume"
            ) from first
        error = error.__cause__ or error.__context__


class RunFolder:
    """The folder of one run.

    It holds::

        experiment.yaml     the experiment, as it was run
        trials.json         the list of its trials
        datasets/NAME/      the evaluations
        errors/TRIAL.txt    why a trial failed
        results.json        what every trial came to
        results/            the same as tables, with curves and comparisons
        best_so_far.png     the picture
        log/                how trials ended, a file for each pack of them
        ray/                Ray Tune's own files

    Args:
        path: the folder; it need not exist.
        shard: name of the part of the trials that is run, such as ``3-of-16``; parts run at the
            same time in one folder, each with a lock of its own. Empty for all trials.
    """

    def __init__(self, path: str | Path, shard: str = "") -> None:
        self.path = Path(path).absolute()
        self.shard = shard
        ending = f"-{shard}" if shard else ""
        self._lock, self._workers = _LOCK + ending, _WORKERS + ending

    @property
    def datasets(self) -> Path:
        """Folder of the datasets."""
        return self.path / "datasets"

    @property
    def results(self) -> Path:
        """File with what every trial came to."""
        return self.path / "results.json"

    @property
    def picture(self) -> Path:
        """File of the plot."""
        return self.path / "best_so_far.png"

    @property
    def tables(self) -> Path:
        """Folder of the tables of results."""
        return self.path / "results"

    @property
    def ray(self) -> Path:
        """Folder of Ray Tune."""
        return self.path / "ray" / self.shard

    @property
    def logs(self) -> Path:
        """Folder of the logs that say how trials ended."""
        return self.path / "log"

    def log_file(self, run_id: str, pack: str) -> Path:
        """Log of one pack of a run."""
        return self.logs / f"{run_id[:8]}-{pack}.jsonl"

    def error_file(self, trial_id: str) -> Path:
        """File that says why a trial failed."""
        return self.path / "errors" / f"{trial_id}.txt"

    def trials(self) -> list[Trial]:
        """The trials of the run that is in it; none if there is no run.

        Raises:
            ExperimentError: if the list is damaged.
        """
        path = self.path / "trials.json"
        try:
            return [Trial.from_json(trial) for trial in json.loads(path.read_text())]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise ExperimentError(f"cannot read {path}: {error}") from error

    def check(
        self,
        experiment: Experiment,
        trials: Sequence[Trial],
        resume: bool,
        *,
        own_lock: bool = False,
    ) -> None:
        """Refuses a folder that this run cannot use; changes nothing.

        Args:
            experiment: what is to be run.
            trials: its trials.
            resume: whether it may go on with a run that is there.
            own_lock: whether the lock files in it are this run's own.

        Raises:
            ExperimentError: if it holds a run and ``resume`` is not set, if its run has
                trials that are not among these, with as much budget at least, or as a shard
                other ones, if it holds other things, or if it cannot be written.
        """
        self._check_writable()
        held = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
        ours = {*_BEFORE_TRIALS, self._lock, self._workers}
        if not self.begun() and all(n in ours or n.startswith(".tmp-") for n in held):
            return  # empty, or of a run that ended before its first trial
        new_shard = self.shard and (own_lock or self._lock not in held)
        if not (resume or new_shard):
            raise ExperimentError(
                f"the output folder {self.path} exists already: go on with its run by --resume, "
                "or choose another folder with --out"
            )
        before = self.trials()
        if not before:
            if not any(_is_foreign(name) for name in held):
                return  # killed while it was prepared
            raise ExperimentError(f"{self.path} holds no run to resume (it has no trials.json)")
        if not self._holds_part_of(trials, before):
            same = "as the other shards have it" if self.shard else "that it began with"
            more = "" if self.shard else ", or with more seeds, agents, environments or budget"
            raise ExperimentError(
                f"the run in {self.path} is of another experiment: {self._difference(experiment)}; "
                f"a run is resumed with the experiment {same}{more}"
            )

    def prepare(self, experiment: Experiment, trials: Sequence[Trial]) -> None:
        """Writes down what is to be run.

        Raises:
            ExperimentError: if it cannot be written.
        """
        self.write("experiment.yaml", experiment_yaml(experiment))
        self.write_json("trials.json", [trial.to_json() for trial in trials])

    def begun(self) -> bool:
        """Whether any trial of its run has begun."""
        logs, rows = self.logs.glob("*.jsonl"), self.datasets.glob("*/*")
        return self.results.exists() or any(logs) or any(rows)

    def write_json(self, name: str, data: Any) -> None:
        """Writes a file of JSON, by write and rename."""
        self.write(name, json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    def write(self, name: str, text: str) -> None:
        """Writes a text file, by write and rename.

        Raises:
            ExperimentError: if it cannot be written.
        """
        path = self.path / name
        temporary = path.with_name(f".tmp-{os.getpid()}-{path.name}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, path)
        except OSError as error:
            raise ExperimentError(f"cannot write {path}: {error.strerror}") from error

    # -- who may write -------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[str]:
        """Makes the folder and keeps other runs out of it; gives an id for this run's workers.

        If the run is refused before its first trial, nothing of it is left.

        Raises:
            ExperimentError: if it cannot be made, or another run is writing to it.
        """
        made = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / self._lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ExperimentError(
                f"cannot write to the output folder {self.path}: {error.strerror}"
            ) from error
        whole, mine = lock, False
        try:
            try:
                if self.shard:  # other shards may run beside it, but not the whole experiment
                    whole = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
                    fcntl.flock(whole, fcntl.LOCK_SH | fcntl.LOCK_NB)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.stat(self.path / self._lock)  # gone: a run that was refused took it away
            except OSError:
                raise ExperimentError(f"another run is writing to {self.path}") from None
            mine = True
            self._check_shards()
            run_id = uuid4().hex
            os.truncate(lock, 0)
            os.pwrite(lock, run_id.encode(), 0)
            self.wait_for_workers()
            yield run_id
        except BaseException:
            if mine and not self.begun():
                self._discard(made)
            raise
        finally:
            os.close(lock)
            if whole != lock:
                os.close(whole)

    def wait_for_workers(self, seconds: float = _WAIT_FOR_WORKERS_S) -> None:
        """Waits until no worker process is in the middle of a trial.

        Raises:
            ExperimentError: if one still is after that time.
        """
        end = time.monotonic() + seconds
        with self._workers_file() as file:
            while True:
                with contextlib.suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                if time.monotonic() > end:
                    raise ExperimentError(
                        f"worker processes of an earlier run still write to {self.path}"
                    )
                time.sleep(0.1)

    @contextlib.contextmanager
    def working(self, run_id: str) -> Iterator[None]:
        """Held by a worker process during a trial, so that no later run meets it there.

        Raises:
            ExperimentError: if the run that it worked for is over.
        """
        with self._workers_file() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            if (self.path / self._lock).read_text() != run_id:
                raise ExperimentError(f"the run in {self.path} that this worker belongs to is over")
            yield

    @contextlib.contextmanager
    def _workers_file(self) -> Iterator[int]:
        file = os.open(self.path / self._workers, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            yield file
        finally:
            os.close(file)

    # -- inner workings ------------------------------------------------------------------------

    def _discard(self, whole: bool) -> None:
        """Takes away what a run made before its first trial, and the folder with ``whole``.

        What the shards of a run share stays for the others.
        """
        shutil.rmtree(self.ray, ignore_errors=True)
        names = [self._lock, self._workers]
        if not self.shard:
            names += ["experiment.yaml", "trials.json", RANDOM_DRAWS]
        for name in names:
            with contextlib.suppress(OSError):
                (self.path / name).unlink()
        empty = [self.path / "ray", self.logs, self.datasets, self.tables]
        for folder in [*empty, *([self.path] if whole else [])]:
            with contextlib.suppress(OSError):  # there is something in it
                folder.rmdir()

    def _holds_part_of(self, trials: Sequence[Trial], before: Sequence[Trial]) -> bool:
        """Whether the trials are those of the run, or more of them, or with more budget.

        Those of shards are the same, since they share the list of trials.
        """
        if self.shard:
            return list(before) == list(trials)
        now = {trial.trial_id: trial for trial in trials}
        return all(
            (new := now.get(old.trial_id)) is not None
            and new.budget >= old.budget
            and replace(new, budget=old.budget) == old
            for old in before
        )

    def _check_shards(self) -> None:
        """Refuses a shard of another number of shards: the two would overlap."""
        _, of, number = self.shard.partition("-of-")
        for path in self.path.glob(f"{_LOCK}-*"):
            if of and path.name.partition("-of-")[2] != number:
                raise ExperimentError(
                    f"--shard cannot be {self.shard.replace('-of-', '/')}: the run in {self.path} "
                    f"was divided into {path.name.partition('-of-')[2]} shards"
                )

    def _check_writable(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ExperimentError(f"the output folder {self.path} is a file")
        nearest = next(p for p in (self.path, *self.path.parents) if p.exists())
        if not nearest.is_dir():
            raise ExperimentError(
                f"cannot write to the output folder {self.path}: {nearest} is a file"
            )
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise ExperimentError(
                f"cannot write to the output folder {self.path}: "
                f"no permission to write in {nearest}"
            )

    def _difference(self, experiment: Experiment) -> str:
        """The first thing in which the experiment is not the one that was run."""
        try:
            before = bounded_yaml.read(self.path / "experiment.yaml")
        except (OSError, yaml.YAMLError):
            return "its experiment.yaml cannot be read"
        found = _first_difference(before, experiment.to_json(), "")
        return found or "archgym expands it to other trials now (another version?)"


def _is_foreign(name: str) -> bool:
    """Whether a file is none that a run makes before it has a list of trials."""
    return name != "experiment.yaml" and not name.startswith((_LOCK, _WORKERS, ".tmp-"))


def _first_difference(before: Any, now: Any, where: str) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            place = f"{where}.{key}" if where else str(key)
            if key in ("description", "resources", "name") and not where:
                continue
            found = _first_difference(before.get(key), now.get(key), place)
            if found:
                return found
        return ""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = enumerate(zip(before, now, strict=True))
        return next(
            (text for i, (a, b) in pairs if (text := _first_difference(a, b, f"{where}[{i}]"))), ""
        )
    texts = ["left out" if value is None else repr(value) for value in (before, now)]
    return "" if before == now else f"{where} was {texts[0]} there and is {texts[1]} now"
