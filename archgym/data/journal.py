"""The append-only journal, to which a row goes before the agent gets its outcome.

Each process appends lines of JSON to a separate file in ``DATASET/journal/`` and holds a lock on
it. A line is handed to the operating system in one write, so a killed process loses no outcome that
an agent has seen. A background thread syncs to disk every second, so a power cut loses at most one
second, and :meth:`Journal.sync` at once, where a row is to be on disk before the agent knows of it.

===================================================  =============================================
line                                                 meaning
===================================================  =============================================
``{"trial": {...}, "n": 0, "crc": ...}``             rows numbered 0 belong to this trial
``[0, step, parent, [codes], [metrics], ..., crc]``  one evaluation, see :data:`ROW_FIELDS`; with an
                                                     executor, :data:`FLIGHT_FIELDS` follow them
``{"end": 0, "state": "finished", "rows": ...}``     the trial is over, after so many rows
===================================================  =============================================

Each line ends with a checksum: the CRC-32 of the line before it, continued from that of the trial's
line before. So a line that is changed, doubled, moved or lost is noticed, unless it is the last.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
import socket
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from archgym.errors import DatasetError
from archgym.reading.files import LINE_LIMIT_BYTES, opened

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
FLIGHT_FIELDS = ("proposal", "proposed", "worker", "started_us", "partial")
"""Further fields of a row whose design was simulated by an executor; the last one is left out
where nothing looked at the run while it went on."""
ROW_LENGTHS = (
    len(ROW_FIELDS),
    len(ROW_FIELDS) + len(FLIGHT_FIELDS) - 1,
    len(ROW_FIELDS) + len(FLIGHT_FIELDS),
)
"""Numbers of values that a row without its checksum may have."""
_LENGTHS = ROW_LENGTHS[:2]
"""Those of versions that wrote no checksums."""
WRONG_CHECKSUM = "its checksum is wrong: it was changed, or a line before it is missing or doubled"
SYNC_S = 1.0
_BEGINNING = re.compile(rb'(\[|\[\d+(,[ -~]*)?|\{|\{"[ -~]*)')
"""The beginning of a line: text of ASCII characters."""
_NAME = re.compile(r"[0-9a-f]{16}-\d+-\d+-.+\.jsonl")
"""The name of a journal: when it was begun, by which process, its number in it, the machine."""
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
        self._dirty = self._entered = False
        self.closed = False
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._trials = itertools.count()
        self._open_trials: set[int] = set()
        threading.Thread(target=self._sync_regularly, name="archgym-journal", daemon=True).start()

    def begin(self, trial: dict[str, Any]) -> tuple[int, int]:
        """Announces a trial; the number that its rows carry, and the checksum so far."""
        n = next(self._trials)
        line, checksum = with_checksum({"trial": trial, "n": n}, 0)
        self.append([line])
        self._open_trials.add(n)
        return n, checksum

    def append(self, blocks: Iterable[bytes]) -> None:
        """Hands rows to the operating system.

        Args:
            blocks: lines, each a JSON list in the order of :data:`ROW_FIELDS`, perhaps with
                :data:`FLIGHT_FIELDS`, with the checksum behind it, and a newline.

        Raises:
            DatasetError: if they cannot be written; then none of them is in the journal.
        """
        with self._lock:
            if self.closed:
                raise DatasetError(f"the journal {self.path} is closed")
            before = self._size
            try:
                for data in blocks:
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

    def sync(self) -> None:
        """Waits until all rows are on disk, and the folders in which the journal is.

        Raises:
            DatasetError: if the disk does not take them.
        """
        with self._lock:
            if self.closed or not self._dirty:
                return
            try:
                os.fsync(self._file)
            except OSError as error:
                raise DatasetError(f"cannot write to {self.path}: {error.strerror}") from error
            self._dirty = False
            if not self._entered:
                sync_folders(self.path.parent)
                self._entered = True

    def end(self, n: int, state: str, rows: int, checksum: int) -> None:
        """Writes that a trial is over.

        Args:
            n: its number.
            state: how it ended.
            rows: how many it has in this journal.
            checksum: of its last line.
        """
        end = {"end": n, "state": state, "timestamp": time.time(), "rows": rows}
        self.append([with_checksum(end, checksum)[0]])
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


class Checksums:
    """Checks the lines of one journal, in order.

    Journals of an earlier version have no checksums, and pass.
    """

    def __init__(self) -> None:
        self._last: dict[int, int | None] = {}
        self._rows: dict[int, int] = {}

    def problem(self, line: bytes, data: Any) -> str:
        """What is wrong with a line; empty if nothing is.

        Args:
            line: as it is in the file.
            data: what it holds.
        """
        row = isinstance(data, list)
        n = data[0] if row else data.get("n", data.get("end"))
        n = n if isinstance(n, int) else -1
        if not row and "trial" in data:
            self._last[n] = 0 if "crc" in data else None
            self._rows[n] = 0
        before = self._last.get(n)
        if before is None:
            more = row and len(data) not in _LENGTHS
            return "it has a checksum, but the beginning of its trial has none" if more else ""
        now = checksum_of(line, before)
        if now is None:
            return WRONG_CHECKSUM
        self._last[n] = now
        self._rows[n] += row
        if not row and "end" in data and data.get("rows") != self._rows[n]:
            return f"its trial has {self._rows[n]} rows, not {data.get('rows')}"
        return ""


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


def with_checksum(data: dict[str, Any], before: int) -> tuple[bytes, int]:
    """A line of a JSON object, with a checksum continued from that of a line before; and it."""
    content = _encode(data).encode()
    checksum = zlib.crc32(content, before)
    return b'%b,"crc":%d}\n' % (content[:-1], checksum), checksum


def checksum_of(line: bytes, before: int) -> int | None:
    """The checksum of a line, continued from that of a line before; None if it has another."""
    row = line.startswith(b"[")
    content, _, given = line.rpartition(b"," if row else b',"crc":')
    checksum = zlib.crc32(content if row else content + b"}", before)
    return checksum if given == b"%d%c\n" % (checksum, b"]" if row else b"}") else None


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


def read_journal(
    path: Path, lines: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes, Any]]:
    """What the lines of a journal hold; a last line cut off by a kill is left out.

    Args:
        path: the journal, for messages.
        lines: of it, each with its number, counted from 1.

    Returns:
        The number of each line, the line, and what it holds.

    Raises:
        DatasetError: if a line before the last one cannot be read.
    """
    for number, line in lines:
        if not line.endswith(b"\n"):
            return
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = str(error) or "it is nested too deeply"
            raise DatasetError(f"{path}, line {number} is not JSON: {reason}") from error
        if isinstance(data, list) and not data:
            raise DatasetError(f"{path}, line {number} is damaged: an empty row")
        yield number, line, data


def ends_oddly(path: Path) -> bool:
    """Whether what follows the last line of a journal is not the beginning of another one.

    A power cut may leave such a beginning; anything else was not written by archgym. False while a
    process appends to it.
    """
    if is_locked(path):
        return False
    with opened(path) as file:
        end = file.seek(0, os.SEEK_END)
        tail, step = b"", 1 << 16
        while end and b"\n" not in tail:
            if len(tail) > LINE_LIMIT_BYTES:
                return True
            start = file.seek(max(end - step, 0))
            tail = file.read(end - start) + tail
            end, step = start, 2 * step
    rest = tail.rpartition(b"\n")[2]
    return bool(rest) and not _BEGINNING.fullmatch(rest)


def row_values(row: list[Any]) -> list[Any]:
    """The values of a row of a journal, without a checksum behind them."""
    return row[:-1] if len(row) - 1 in ROW_LENGTHS else row


def is_locked(path: Path) -> bool:
    """Whether a living process still appends to a journal."""
    with opened(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        return False


def is_of_this_machine(path: Path) -> bool:
    """Whether a journal was begun by a process of this machine, as its name says."""
    return bool(_NAME.fullmatch(path.name)) and path.stem.split("-", 3)[3] == socket.gethostname()
