"""The state of trials: a line when a trial begins and a line when it ends, one file per batch.

Each line is handed to the operating system before anything else happens. Whatever ends a worker
process, the file shows which trial it was in the middle of. Evaluations are in the datasets. A line
ends with the checksum of the line before it, continued: what was changed or lost is noticed, unless
it is the last. Runs of archgym 0.1.0 have no checksums; when they are resumed, these begin.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from archgym.analysis.held_out import HeldOut, held_out_of
from archgym.data.journal import WRONG_CHECKSUM, checksum_of, with_checksum
from archgym.errors import ExperimentError
from archgym.experiment.folder.full_disk import stop_if_full
from archgym.experiment.folder.lock import acquired
from archgym.reading.files import LINE_LIMIT_BYTES, opened

__all__ = ["TrialEnd", "TrialLog", "problems_of_log", "read_ends"]

_WAIT_S = 120.0


@dataclass(frozen=True)
class TrialEnd:
    """How a trial ended.

    Attributes:
        state: ``finished`` or ``failed``.
        error: one line that says why it failed.
        wall_s: seconds from its beginning to its end, in the last process that ran it; 0 if the
            process died.
        cpu_s: processor time of that process in the trial, s.
        held_out: its best design on a workload that it did not search, if there is one.
    """

    state: str
    error: str = ""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    held_out: HeldOut | None = None


class TrialLog:
    """The log of one batch of trials, open in one process at a time.

    Args:
        path: its file; made if it does not exist.

    Attributes:
        ends: how trials ended, by id, including those that earlier processes ran.
        starts: how often each trial was begun, by id.

    Raises:
        ExperimentError: if another process holds the log for minutes, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise ExperimentError(f"cannot write {path}: {error.strerror}") from error
        self._path = path
        # A process that Ray gave up, because its node was slow to answer, may still hold it.
        if not acquired(self._file, _WAIT_S):
            os.close(self._file)
            raise ExperimentError(f"another process still works on {path.stem}")
        self.ends: dict[str, TrialEnd] = {}
        self.starts: Counter[str] = Counter()
        self._checksum = whole = 0
        for line, checksum, size in _lines(path):
            self._checksum, whole = checksum, whole + size
            if "begin" in line:
                self.starts[line["begin"]] += 1
            elif line:
                self.ends[line["trial_id"]] = _end(line)
        os.ftruncate(self._file, whole)  # a line that a power cut left half written

    def begin(self, trial_id: str) -> None:
        """Records that a trial begins."""
        self.starts[trial_id] += 1
        self._write({"begin": trial_id})

    def end(self, trial_id: str, end: TrialEnd) -> None:
        """Records how a trial ended."""
        self.ends[trial_id] = end
        self._write({"trial_id": trial_id, **asdict(end)})

    def close(self) -> None:
        """Closes the file and releases its lock."""
        os.close(self._file)

    def _write(self, line: dict[str, Any]) -> None:
        where = {"t": round(time.time(), 3), "pid": os.getpid(), "host": socket.gethostname()}
        data, checksum = with_checksum({**line, **where}, self._checksum)
        before = os.fstat(self._file).st_size
        try:
            if os.write(self._file, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)  # never leave half a line
            stop_if_full(error, self._path.parent.parent)
            raise ExperimentError(f"cannot write {self._path}: {error.strerror}") from error
        self._checksum = checksum


def read_ends(folder: Path) -> dict[str, TrialEnd]:
    """How trials ended, by id; the last end counts where a trial ended several times.

    Args:
        folder: of the logs.
    """
    ends = [
        line
        for path in sorted(folder.glob("*.jsonl"))
        for line, _, _ in _lines(path)
        if "trial_id" in line
    ]
    return {line["trial_id"]: _end(line) for line in sorted(ends, key=lambda line: line["t"])}


def problems_of_log(path: Path) -> Iterator[str]:
    """What is wrong with a log: lines that were changed, or are none of it.

    Args:
        path: of the log.
    """
    for number, (line, _, _) in enumerate(_lines(path), 1):
        if not line:
            yield f"line {number}: {WRONG_CHECKSUM}"


def _end(line: dict[str, Any]) -> TrialEnd:
    held_out = held_out_of(line.get("held_out"))
    return TrialEnd(line["state"], line["error"], line["wall_s"], line["cpu_s"], held_out)


def _lines(path: Path) -> Iterator[tuple[dict[str, Any], int, int]]:
    """The whole lines: what each holds, empty if it is damaged; the checksum; and its bytes.

    After a damaged line, those behind it are checked from what it gives as its checksum. Lines
    without a checksum are of archgym 0.1.0, and sound as long as they stand before all others.
    """
    before, checked = 0, False
    with opened(path) as file:
        while text := file.readline(LINE_LIMIT_BYTES):
            if len(text) == LINE_LIMIT_BYTES:
                yield {}, 0, len(text)
                return
            if not text.endswith(b"\n"):
                return  # a process was killed in the middle of it
            line: dict[str, Any] = {}
            with contextlib.suppress(ValueError, RecursionError):
                data = json.loads(text)
                if isinstance(data, dict) and (_is_begin(data) or _is_end(data)):
                    line = data
            if line and "crc" not in line and not checked:
                yield line, 0, len(text)
                continue
            checked = True
            checksum = checksum_of(text, before)
            if checksum is None:
                given = line.get("crc")
                checksum, line = given if isinstance(given, int) else 0, {}
            before = checksum & 0xFFFFFFFF
            yield line, before, len(text)


def _is_begin(line: dict[str, Any]) -> bool:
    return isinstance(line.get("begin"), str)


def _is_end(line: dict[str, Any]) -> bool:
    numbers = (line.get("wall_s"), line.get("cpu_s"), line.get("t"))
    return (
        all(isinstance(line.get(name), str) for name in ("trial_id", "error"))
        and line.get("state") in ("finished", "failed")
        and all(isinstance(one, int | float) and 0 <= one < 1e12 for one in numbers)
    )
