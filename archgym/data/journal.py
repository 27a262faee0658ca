"""The append-only journal, to which a row goes before the agent gets its outcome.

Each process appends lines of JSON to a separate file in ``DATASET/journal/`` and holds a lock on
it. A line is handed to the operating system in one write, so a killed process loses no outcome that
an agent has seen, and a background thread syncs to disk every second, so a power cut loses at most
one second.

===============================================  ================================================
line                                             meaning
===============================================  ================================================
``{"trial": {...}, "n": 0}``                     rows numbered 0 belong to this trial
``[0, step, parent, [codes], [metrics], ...]``   one evaluation, see :data:`ROW_FIELDS`; with an
                                                 executor, :data:`FLIGHT_FIELDS` follow
``{"end": 0, "state": "finished", ...}``         the trial is over
===============================================  ================================================
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from archgym.errors import DatasetError

ROW_FIELDS = (
    "n",
    "step",
    "parent_step",
    "codes",
    "metrics",
    "reward",
    "status",
    "reason",
    "feasible",
    "cached",
    "fidelity",
    "simulation_ns",
    "agent_ns",
    "timestamp_us",
)
FLIGHT_FIELDS = ("proposal", "proposed", "worker", "started_us")
"""Further fields of a row whose design was simulated by an executor."""
SYNC_S = 1.0
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_counter = itertools.count()


class Journal:
    """One process's journal in one dataset.

    Args:
        directory: the dataset's folder.

    Attributes:
        path: its file.
        closed: whether it takes no more lines.

    Raises:
        DatasetError: if it cannot be created.
    """

    def __init__(self, directory: Path) -> None:
        folder = directory / "journal"
        stamp = f"{time.time_ns():016x}-{os.getpid()}-{next(_counter)}-{socket.gethostname()}"
        self.path = folder / f"{stamp}.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
            unseen = folder / f".{stamp}"
            self._file = os.open(unseen, flags, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(unseen, self.path)  # locked before anybody can take it for an ended one
        except OSError as error:
            raise DatasetError(f"cannot write to {folder}: {error.strerror}") from error
        self._size = 0
        self._dirty = False
        self.closed = False
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._trials = itertools.count()
        self._open_trials: set[int] = set()
        threading.Thread(target=self._sync_regularly, name="archgym-journal", daemon=True).start()

    def begin(self, trial: dict[str, Any]) -> int:
        """Announces a trial; the number that its rows carry."""
        n = next(self._trials)
        self._open_trials.add(n)
        self.append([_encode({"trial": trial, "n": n}) + "\n"])
        return n

    def append(self, blocks: Iterable[str]) -> None:
        """Hands rows to the operating system.

        Args:
            blocks: lines, each a JSON list in the order of :data:`ROW_FIELDS`, perhaps
                with :data:`FLIGHT_FIELDS`, and a newline.

        Raises:
            DatasetError: if they cannot be written; then none of them is in the journal.
        """
        with self._lock:
            if self.closed:
                raise DatasetError(f"the journal {self.path} is closed")
            before = self._size
            try:
                for block in blocks:
                    data = block.encode()
                    written = os.write(self._file, data)
                    while written < len(data):
                        written += os.write(self._file, data[written:])
                    self._size += len(data)
            except OSError as error:
                self._size = before
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, before)  # never leave half a row
                raise DatasetError(f"cannot write to {self.path}: {error.strerror}") from error
            self._dirty = True

    def end(self, n: int, state: str) -> None:
        """Writes that a trial is over."""
        self.append([_encode({"end": n, "state": state, "timestamp": time.time()}) + "\n"])
        self._open_trials.discard(n)

    def close(self) -> None:
        """Syncs, closes and unlocks the file."""
        with self._lock:
            if not self.closed:
                self.closed = True
                self._wake.set()
                with contextlib.suppress(OSError):
                    os.fsync(self._file)
                fcntl.flock(self._file, fcntl.LOCK_UN)  # a forked child may hold the file too
                os.close(self._file)

    def rest(self) -> None:
        """Closes it if every trial in it is over, unless journals are kept open for more."""
        if not self._open_trials and not _keepers:
            self.close()

    def abandon(self) -> None:
        """Lets go of a journal that belongs to the parent of this process."""
        if not self.closed:  # once closed, its descriptor may belong to another file
            self.closed = True
            os.close(self._file)

    def _sync_regularly(self) -> None:
        while not self._wake.wait(SYNC_S):
            if self._dirty:
                with self._lock:
                    if self.closed:
                        return
                    self._dirty = False
                    handle = os.dup(self._file)  # sync without holding up the writer
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)


_journals: dict[Path, Journal] = {}
_keepers: list[object] = []


@contextlib.contextmanager
def journals_kept_open() -> Iterator[None]:
    """In the block this process writes all trials of a dataset to one journal.

    At its end, journals in which every trial is over are closed.
    """
    keeper = object()
    _keepers.append(keeper)
    try:
        yield
    finally:
        _keepers.remove(keeper)
        for journal in list(_journals.values()):
            journal.rest()


def journal_of(directory: Path) -> Journal:
    """This process's open journal in a dataset."""
    key = directory.resolve()
    journal = _journals.get(key)
    if journal is None or journal.closed:
        journal = _journals[key] = Journal(directory)
    return journal


def close_journals(directory: Path) -> None:
    """Closes this process's journal in a dataset, if it has one."""
    journal = _journals.pop(directory.resolve(), None)
    if journal is not None:
        journal.close()


def _abandon_all() -> None:
    """After a fork: each process writes a separate journal."""
    while _journals:
        _journals.popitem()[1].abandon()


os.register_at_fork(after_in_child=_abandon_all)


def read_journal(path: Path, lines: Iterable[bytes]) -> Iterator[dict[str, Any] | list[Any]]:
    """The lines of a journal; a last line cut off by a kill is left out.

    Args:
        path: the journal, for messages.
        lines: what is in it.

    Raises:
        DatasetError: if a line before the last one cannot be read.
    """
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            return
        try:
            yield json.loads(line)
        except ValueError as error:
            raise DatasetError(f"{path}, line {number} is not JSON: {error}") from error


def is_locked(path: Path) -> bool:
    """Whether a living process still appends to a journal."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        return False
