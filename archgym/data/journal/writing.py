"""Writing a journal: whole lines, or none, whatever interrupts it."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import secrets
import socket
import threading
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from archgym.data.journal.lines import with_checksum
from archgym.errors import DatasetError
from archgym.reading.files import open_file

SYNC_S = 1.0
"""Seconds between two syncs to disk."""
_counter = itertools.count()
_AT_ONCE = 1 << 20
Lines = tuple[bytes, int, int]
"""Some lines of one trial, the checksum of the last one, and how many of them are rows."""
_State = tuple[int, int]
"""Checksum of the last line of a trial, and the number of its rows in a journal."""


class ClosedJournalError(DatasetError):
    """A journal takes no more lines: another thread closed it, which ends its trials there."""


class Journal:
    """One process's journal in one dataset.

    Args:
        directory: the dataset's folder.

    Attributes:
        path: its file.
        closed: whether it takes no more lines.
        removed: whether its file was deleted, as seen a second ago at most: what is written to it
            is lost when it is closed.

    Raises:
        DatasetError: if it cannot be created.
    """

    def __init__(self, directory: Path) -> None:
        self._file, self.path = _new_file(directory / "journal")
        self.closed = self.removed = False
        # How far it is written: bytes of whole lines, the trial of the last one, its state.
        self._written: tuple[int, int, _State] = (0, -1, (0, 0))
        self._trials: dict[int, _State] = {}
        self._numbers = itertools.count()
        self._open_trials: set[int] = set()
        self._synced = 0  # bytes that are on disk
        self._unsynced = bytearray()  # those after them
        self._unconfirmed = self._torn = self._entered = False
        self._wake = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._sync_regularly, name="archgym-journal", daemon=True).start()

    @property
    def idle(self) -> bool:
        """Whether every trial in it is over."""
        return not self._open_trials

    def look(self) -> bool:
        """Looks whether its file was deleted, as :attr:`removed` then says."""
        self.removed = not self.closed and os.fstat(self._file).st_nlink == 0
        return self.removed

    @property
    def unconfirmed(self) -> bool:
        """Whether the disk refused rows; they are kept, and written again by :meth:`sync`."""
        return self._unconfirmed

    def begin(self, trial: dict[str, Any]) -> int:
        """Announces a trial; the number that its rows carry."""
        n = next(self._numbers)
        self.append(n, [(*with_checksum({"trial": trial, "n": n}, 0), 0)])
        self._open_trials.add(n)
        return n

    def append(self, n: int, blocks: Iterable[Lines]) -> None:
        """Hands lines of a trial to the operating system, all of them or none.

        Args:
            n: its number.
            blocks: some lines at a time; checksums continue that of :meth:`state_of`. A row is a
                JSON list in the order of :data:`ROW_FIELDS`, perhaps with :data:`FLIGHT_FIELDS`,
                with the checksum behind it, and a newline.

        Raises:
            ClosedJournalError: if it is closed.
            DatasetError: if they cannot be written; then none of them is in the journal.
        """
        with self._lock:
            if self.closed:
                raise ClosedJournalError(f"the journal {self.path} is closed")
            size, last, state = self._written
            self._trials[last] = state
            checksum, rows = self._trials.get(n, (0, 0))
            try:
                if self._torn:
                    self._mend()
                self._torn = True  # until it is known how far it was written
                for data, checksum, more in blocks:  # noqa: B007 - that of the last block counts
                    _write(self._file, data, size)
                    self._unsynced += data
                    size, rows = size + len(data), rows + more
            except OSError as error:
                with contextlib.suppress(OSError):
                    self._mend()  # never leave half a row
                raise DatasetError(f"cannot write to {self.path}: {error.strerror}") from error
            self._written = (size, n, (checksum, rows))  # at once: a signal may come anywhere
            self._torn = False

    def state_of(self, n: int) -> tuple[int, int]:
        """Checksum of the last line of a trial, and the number of its rows in this journal."""
        _, last, state = self._written
        return state if last == n else self._trials[n]

    def end(self, n: int, state: str) -> None:
        """Writes that a trial is over.

        Args:
            n: its number.
            state: how it ended.
        """
        checksum, rows = self.state_of(n)
        end = {"end": n, "state": state, "timestamp": time.time(), "rows": rows}
        self.append(n, [(*with_checksum(end, checksum), 0)])
        self._open_trials.discard(n)

    def sync(self) -> None:
        """Waits until all rows are on disk, and the folders in which the journal is.

        Raises:
            DatasetError: if the disk does not take them; they are kept, and written again when
                this is called next.
        """
        with self._lock:
            if self.closed or not self._unsynced:
                return
            self._confirm()
            if not self._entered:
                sync_folders(self.path.parent)
                self._entered = True

    def put_back(self, directory: Path) -> int:
        """Writes a journal whose file was deleted into a new one.

        Args:
            directory: the dataset's folder, made anew.

        Returns:
            The number of rows.

        Raises:
            DatasetError: if that is not possible; nothing is lost by it.
        """
        with self._lock:
            file, path = _new_file(directory / "journal")
            try:
                for at in range(0, self._written[0], _AT_ONCE):
                    length = min(_AT_ONCE, self._written[0] - at)
                    _write(file, os.pread(self._file, length, at), at)
                os.fsync(file)
            except OSError as error:
                os.close(file)
                path.unlink(missing_ok=True)
                raise DatasetError(f"cannot write to {path}: {error.strerror}") from error
            old, self._file, self.path = self._file, file, path
            self.removed = self._unconfirmed = self._torn = self._entered = False
            self._on_disk(self._written[0])
            os.close(old)
            return self._rows()

    def close(self) -> None:
        """Syncs, closes and unlocks the file; warns of rows that are lost or not on disk."""
        problems, lost = [], self._rows() if self.look() else 0
        if lost:
            folder = self.path.parent.parent
            problems.append(f"{folder} was removed: {lost:,} rows recorded in it are lost")
        with self._lock:
            if self.closed:
                return
            try:
                with contextlib.suppress(OSError):
                    self._mend()
                self._confirm()
            except DatasetError as error:
                problems.append(str(error))
            self.closed = True
            self._wake.set()
            fcntl.flock(self._file, fcntl.LOCK_UN)  # a forked child may hold the file too
            os.close(self._file)
        for problem in problems:
            warnings.warn(problem, stacklevel=2)

    def abandon(self) -> None:
        """Lets go of a journal that belongs to the parent of this process."""
        if not self.closed:  # once closed, its descriptor may belong to another file
            self.closed = True
            os.close(self._file)

    # -- inner workings --------------------------------------------------------------------------

    def _mend(self) -> None:
        """Cuts off what a call that was interrupted wrote."""
        if self._torn:
            os.ftruncate(self._file, self._written[0])
            del self._unsynced[self._written[0] - self._synced :]
            self._torn = False

    def _confirm(self) -> None:
        """Waits until all rows are on disk."""
        try:
            if self._unconfirmed:  # the system may count these as written, or have lost them
                _write(self._file, bytes(self._unsynced), self._synced)
                os.ftruncate(self._file, self._written[0])
            os.fsync(self._file)
        except OSError as error:
            self._unconfirmed = True
            raise self._refused(error) from error
        self._on_disk(self._written[0])
        self._unconfirmed = False

    def _on_disk(self, size: int) -> None:
        """Keeps no bytes any more to write them again, of so many that are on disk."""
        if size > self._synced:
            del self._unsynced[: size - self._synced]
            self._synced = size

    def _refused(self, error: OSError) -> DatasetError:
        rows = sum(line[:1] == b"[" for line in self._unsynced.splitlines())
        return DatasetError(
            f"cannot write to {self.path}: {error.strerror}; its last {rows:,} rows may not be on "
            "disk, and are kept to be written again"
        )

    def _rows(self) -> int:
        _, last, state = self._written
        return sum(rows for _, rows in {**self._trials, last: state}.values())

    def _sync_regularly(self) -> None:
        while not self._wake.wait(SYNC_S):
            with self._lock:
                if self.closed:
                    return
                self.look()
                size = self._written[0]
                if self._unconfirmed or not self._unsynced:
                    continue  # whoever records is told that rows are unconfirmed, and tries again
                handle = os.dup(self._file)  # sync without holding up the writer
            try:
                os.fsync(handle)
            except OSError:
                self._unconfirmed = True
            else:
                with self._lock:
                    if not self._unconfirmed:
                        self._on_disk(size)
            finally:
                os.close(handle)


def _new_file(folder: Path) -> tuple[int, Path]:
    """A new journal, open and locked; and its path.

    Raises:
        DatasetError: if it cannot be created.
    """
    # Containers that share a folder may have one host name, the same process ids and one clock.
    number = f"{next(_counter)}{secrets.randbits(32):010d}"
    stamp = f"{time.time_ns():016x}-{os.getpid()}-{number}-{socket.gethostname()}"
    path, unseen = folder / f"{stamp}.jsonl", folder / f".{stamp}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open_file(unseen, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(unseen, path)  # locked before anybody can take it for an ended one
        except BaseException:
            os.close(file)
            raise
    except OSError as error:
        raise DatasetError(f"cannot write to {folder}: {error.strerror}") from error
    return file, path


def _write(file: int, data: bytes, at: int) -> None:
    done = os.pwrite(file, data, at)
    while done < len(data):
        done += os.pwrite(file, data[done:], at + done)


def sync_folders(folder: Path) -> None:
    """Makes the entries of a folder survive a power cut, and those that lead to it.

    File systems that cannot do that for a folder do it by themselves.
    """
    with contextlib.suppress(OSError):
        device = folder.stat().st_dev
        for place in (folder.absolute(), *folder.absolute().parents):
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                if os.fstat(handle).st_dev != device:
                    return
                os.fsync(handle)
            finally:
                os.close(handle)
