"""Locks on a run's folder: one run, or one process per shard, writes to it at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from archgym.errors import ExperimentError
from archgym.experiment.folder.names import MANIFEST
from archgym.experiment.folder.run_folder import LOCK, RunFolder

__all__ = ["acquired", "locked", "wait_for_workers", "working"]

_WAIT_FOR_WORKERS_S = 60.0


@contextlib.contextmanager
def locked(folder: RunFolder) -> Iterator[str]:
    """Makes the folder and keeps other runs out of it; gives the id of this run.

    If the run is refused before its first trial, everything that it wrote is removed.

    Raises:
        ExperimentError: if the folder cannot be made, or another run is writing to it.
    """
    made = not folder.path.exists()
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        lock = _opened(folder.lock_file)
    except OSError as error:
        raise ExperimentError(
            f"cannot write to the output folder {folder.path}: {error.strerror}"
        ) from error
    whole, mine = lock, False
    try:
        try:
            if folder.shard:  # other shards may run beside it, but not the whole experiment
                whole = _opened(folder.path / LOCK)
                fcntl.flock(whole, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.stat(folder.lock_file)  # missing: a run that was refused has removed it
        except OSError:
            raise ExperimentError(f"another run is writing to {folder.path}") from None
        mine = True
        _check_number_of_shards(folder)
        run_id = uuid4().hex
        os.truncate(lock, 0)
        os.pwrite(lock, run_id.encode(), 0)
        wait_for_workers(folder)
        yield run_id
    except BaseException:
        if mine and not folder.begun():
            _discard(folder, made)
        raise
    finally:
        os.close(lock)
        if whole != lock:
            os.close(whole)


def wait_for_workers(folder: RunFolder, seconds: float = _WAIT_FOR_WORKERS_S) -> None:
    """Waits until no worker process is in the middle of a trial.

    Raises:
        ExperimentError: if one still is after that time.
    """
    file = _opened(folder.workers_file)
    try:
        if not acquired(file, seconds):
            raise ExperimentError(
                f"worker processes of an earlier run still write to {folder.path}"
            )
    finally:
        os.close(file)


def acquired(file: int, seconds: float) -> bool:
    """Tries to lock an open file for this process alone; whether that succeeded in time.

    Args:
        file: its descriptor.
        seconds: how long to try, s.
    """
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.1)


@contextlib.contextmanager
def working(folder: RunFolder, run_id: str) -> Iterator[None]:
    """A worker process holds this during a batch, so that no later run writes beside it.

    Args:
        folder: of the run.
        run_id: of the run that the worker belongs to, from :func:`locked`.

    Raises:
        ExperimentError: if that run is over.
    """
    file = _opened(folder.workers_file)
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        if folder.lock_file.read_text("utf-8") != run_id:
            raise ExperimentError(f"the run in {folder.path} that this worker belongs to is over")
        yield
    finally:
        os.close(file)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)


def _check_number_of_shards(folder: RunFolder) -> None:
    """Refuses a shard if the run was divided into another number of shards: they would overlap."""
    _, of, number = folder.shard.partition("-of-")
    for path in folder.path.glob(f"{LOCK}-*"):
        before = path.name.partition("-of-")[2]
        if of and before != number:
            raise ExperimentError(
                f"--shard cannot be {folder.shard.replace('-of-', '/')}: the run in {folder.path} "
                f"was divided into {before} shards"
            )


def _discard(folder: RunFolder, whole: bool) -> None:
    """Removes what a run wrote before its first trial, and the folder itself with ``whole``.

    The files that the shards of a run share stay.
    """
    shutil.rmtree(folder.ray, ignore_errors=True)
    files = [folder.lock_file, folder.workers_file]
    if not folder.shard:
        files += [
            folder.path / name
            for name in ("experiment.yaml", "trials.json", "initial_designs.json", MANIFEST)
        ]
        files.append(folder.random_draws)
        shutil.rmtree(folder.histories, ignore_errors=True)
    for file in files:
        with contextlib.suppress(OSError):
            file.unlink()
    empty = [folder.path / "ray", folder.logs, folder.datasets, folder.tables]
    for one in [*empty, *([folder.path] if whole else [])]:
        with contextlib.suppress(OSError):  # it is not empty
            one.rmdir()
