"""What the processes of a run do right now: a small file for each batch of trials that runs.

The process that runs a batch replaces its file about once a second, and removes it at the end.
``archgym status`` reads them. A file that stays the same was left by a process that was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from archgym.errors import ExperimentError
from archgym.experiment.folder.run_folder import RunFolder

__all__ = ["LIVE", "InFlight", "LiveFile", "LiveState", "clear_live_files", "live_states"]

LIVE = "live"
"""Name of the folder of these files in the folder of a run."""
EVERY_S = 1.0
"""How often a file is replaced, s."""
_FORMAT = 1
_MAX_BYTES = 1 << 20
_MAX_SHOWN = 2000
_PATIENCE_S = 3.0


@dataclass(frozen=True)
class InFlight:
    """A design that is simulated or waits for a worker.

    Attributes:
        worker: name of its worker; empty while it waits for one.
        started: when that worker began, or since when it waits, seconds since the epoch.
    """

    worker: str
    started: float


@dataclass(frozen=True)
class LiveState:
    """What one batch of trials does.

    Attributes:
        batch: name of the batch, with that of the run.
        number: how often the file was written.
        written: when it was written, seconds since the epoch, by the clock of its machine.
        began: when the batch began, likewise.
        host: name of the machine.
        pid: number of the process.
        trial_id: the trial that runs; empty between two.
        slots: designs that can be simulated at a time; 0 while no worker is there.
        in_flight: designs in flight.
    """

    batch: str
    number: int
    written: float
    began: float
    host: str
    pid: int
    trial_id: str
    slots: int
    in_flight: Sequence[InFlight] = field(default_factory=list)

    @staticmethod
    def from_json(data: Any) -> LiveState | None:
        """The state in the JSON of a file; ``None`` if it is none."""
        try:
            if data["format"] != _FORMAT:
                return None
            return LiveState(
                batch=str(data["batch"]),
                number=int(data["number"]),
                written=float(data["written"]),
                began=float(data["began"]),
                host=str(data["host"]),
                pid=int(data["pid"]),
                trial_id=str(data["trial_id"]),
                slots=int(data["slots"]),
                in_flight=[InFlight(str(w), float(s)) for w, s in data["in_flight"]],
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            return None


class LiveFile:
    """The file of one batch.

    Args:
        folder: of the run.
        batch: name of the batch, with that of the run.
    """

    def __init__(self, folder: RunFolder, batch: str) -> None:
        name = f"{_prefix(folder)}{batch}.json"
        self._folder, self._path = folder, folder.path / LIVE / name
        self._batch, self._number, self._began = batch, 0, time.time()

    def write(self, trial_id: str, slots: int, in_flight: Sequence[InFlight]) -> None:
        """Replaces it; a disk that is full or away is no reason to stop."""
        self._number += 1
        state = LiveState(
            self._batch,
            self._number,
            round(time.time(), 3),
            round(self._began, 3),
            socket.gethostname(),
            os.getpid(),
            trial_id,
            slots,
        )
        flights = [[one.worker, round(one.started, 3)] for one in in_flight[:_MAX_SHOWN]]
        with contextlib.suppress(ExperimentError):
            data = {"format": _FORMAT, **asdict(state), "in_flight": flights}
            self._folder.write(self._path, json.dumps(data) + "\n")

    def remove(self) -> None:
        """Removes it, and the folder if it was the last one."""
        with contextlib.suppress(OSError):
            self._path.unlink()
            self._path.parent.rmdir()


def clear_live_files(folder: RunFolder) -> None:
    """Removes files that an earlier run left behind which was killed; of a shard, only its own.

    Args:
        folder: of the run; the caller holds its lock.
    """
    for path in (folder.path / LIVE).glob(f"{_prefix(folder)}*.json"):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        (folder.path / LIVE).rmdir()


def live_states(run: Path, patience_s: float = _PATIENCE_S) -> list[LiveState]:
    """The batches that run now, ordered by name.

    Whether the process of a file on another machine lives shows in that it is replaced, which is
    waited for. Clocks are not compared.

    Args:
        run: folder of the run.
        patience_s: how long to wait for that, s.
    """
    first = _read_all(run)
    found = {name: state for name, state in first.items() if _is_ours(state) and _lives(state)}
    unsure = {name for name, state in first.items() if not _is_ours(state)}
    end = time.monotonic() + patience_s
    while unsure and time.monotonic() < end:
        time.sleep(0.1)
        now = _read_all(run)
        changed = {n for n in unsure if n in now and now[n].number != first[n].number}
        found |= {name: now[name] for name in changed}
        unsure -= changed
    return [found[name] for name in sorted(found)]


def _prefix(folder: RunFolder) -> str:
    return f"{folder.shard or 'run'}."


def _read_all(run: Path) -> dict[str, LiveState]:
    found = {}
    for path in sorted((run / LIVE).glob("[!.]*.json")):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                state = LiveState.from_json(json.loads(os.read(file, _MAX_BYTES)))
            finally:
                os.close(file)
            if state is not None:
                found[path.name] = state
    return found


def _is_ours(state: LiveState) -> bool:
    return state.host == socket.gethostname()


def _lives(state: LiveState) -> bool:
    try:
        os.kill(state.pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return state.pid > 0
