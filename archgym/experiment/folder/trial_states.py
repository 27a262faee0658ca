"""What became of trials: a line as one begins and a line as it ends, in a file for each pack.

The lines are with the operating system before anything else happens, so that they tell, whatever
ends a worker process, which trial it was in the middle of. Evaluations are not here: they are in
the datasets.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from archgym.errors import ExperimentError
from archgym.experiment.folder.run_folder import stop_if_full

__all__ = ["TrialEnd", "TrialLog", "read_ends"]

_WAIT_S = 120.0


@dataclass(frozen=True)
class TrialEnd:
    """How a trial ended.

    Attributes:
        state: ``finished`` or ``failed``.
        error: one line that says why it failed.
        wall_s: seconds from its beginning to its end, in the last process that ran it; 0 if the
            process died.
        cpu_s: processor time of that, s.
    """

    state: str
    error: str = ""
    wall_s: float = 0.0
    cpu_s: float = 0.0


class TrialLog:
    """The log of one pack, open for one process at a time.

    Args:
        path: its file; made if it is not there.

    Attributes:
        ends: how trials ended, by id, what earlier processes wrote included.
        begun: how often each trial was begun.

    Raises:
        ExperimentError: if another process holds it for minutes, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise ExperimentError(f"cannot write {path}: {error.strerror}") from error
        self._path = path
        _lock(self._file, path)
        self.ends: dict[str, TrialEnd] = {}
        self.begun: Counter[str] = Counter()
        for line in _lines(path):
            if "begin" in line:
                self.begun[line["begin"]] += 1
            else:
                self.ends[line["trial_id"]] = _end(line)

    def begin(self, trial_id: str) -> None:
        """A trial begins."""
        self.begun[trial_id] += 1
        self._write({"begin": trial_id})

    def end(self, trial_id: str, end: TrialEnd) -> None:
        """A trial is over."""
        self.ends[trial_id] = end
        self._write({"trial_id": trial_id, **asdict(end)})

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._file)

    def _write(self, line: dict[str, Any]) -> None:
        where = {"t": round(time.time(), 3), "pid": os.getpid(), "host": socket.gethostname()}
        data = (json.dumps({**line, **where}) + "\n").encode()
        before = os.fstat(self._file).st_size
        try:
            if os.write(self._file, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)  # never leave half a line
            stop_if_full(error, self._path.parent.parent)
            raise ExperimentError(f"cannot write {self._path}: {error.strerror}") from error


def read_ends(folder: Path, pattern: str = "*.jsonl") -> dict[str, TrialEnd]:
    """How trials ended, by id: of several ends of one trial the last one.

    Args:
        folder: of the logs.
        pattern: names of those to read.
    """
    found: dict[str, tuple[float, TrialEnd]] = {}
    for path in sorted(folder.glob(pattern)):
        for line in _lines(path):
            if "trial_id" in line:
                held = found.get(line["trial_id"])
                if held is None or held[0] <= line["t"]:
                    found[line["trial_id"]] = (line["t"], _end(line))
    return {trial_id: end for trial_id, (_, end) in found.items()}


def _end(line: dict[str, Any]) -> TrialEnd:
    return TrialEnd(line["state"], line["error"], line["wall_s"], line["cpu_s"])


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):  # a process may have been killed in the middle of the last
                with contextlib.suppress(ValueError):
                    yield json.loads(line)


def _lock(file: int, path: Path) -> None:
    """Waits for a process that was given up, on a node that is slow to answer say, but lives."""
    end = time.monotonic() + _WAIT_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() > end:
                os.close(file)
                raise ExperimentError(f"another process still works on {path.stem}") from None
            time.sleep(0.1)
