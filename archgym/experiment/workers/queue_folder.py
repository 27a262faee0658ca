"""The folder through which the driver of a search and its workers exchange tickets and results.

The *driver* is the process that runs a search. It makes one queue folder, in which every worker
has two files of JSON lines: an inbox that only the driver appends to, and an outbox that only the
worker appends to. The driver alone decides who simulates a ticket and whether a result counts, so
nothing depends on locks, on exclusive creation, or on several clocks. In the folder of a run::

    queues/run.json              the run, and whether it goes on (run-3-of-16.json for a shard)
    queues/NAME/queue.json       what is simulated; the driver renews its time while it lives
    queues/NAME/WORKER.in        {"ticket": 7, "codes": [...], "fidelity": 1.0}, with a "rule"
                                 by which it may be stopped early; or {"cancel": 7}
    queues/NAME/WORKER.out       {"hello": ...}, {"done": 7, ...}, {"bye": ...}; renewed as well
    queues/NAME/collected        {"tickets": [...]} whose results are in the journal
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import shutil
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import archgym
from archgym.experiment.folder.names import QUEUES
from archgym.experiment.workers.line_files import LineReader, read_object, write_object

__all__ = [
    "FORMAT",
    "Job",
    "QueueFolder",
    "QueueInfo",
    "queue_folders",
    "run_files",
    "write_run_file",
]

FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")
_counter = itertools.count()


@dataclass(frozen=True)
class Job:
    """What workers simulate: an environment, and what tells it from others of the same name.

    Attributes:
        environment: registered name, or ``module:Class``.
        arguments: of its constructor.
        problem: see :func:`~archgym.experiment.simulate.fingerprint.fingerprint`.
    """

    environment: str
    arguments: Mapping[str, Any]
    problem: Mapping[str, str]


@dataclass(frozen=True)
class QueueInfo:
    """The content of ``queue.json``.

    Attributes:
        run_id: of the run that the driver belongs to.
        shard: name of the part of the trials that this run runs; empty for all.
        job: what is simulated.
        lease_s: after how many seconds without a sign of life a worker is given up.
        time_limit_s: on a simulation; ``None`` for no limit.
        started_in: the driver's working folder, for messages.
        version: of archgym.
        open: whether the driver gives tickets; else workers finish what they have.
    """

    run_id: str
    shard: str
    job: Job
    lease_s: float
    time_limit_s: float | None
    started_in: str = field(default_factory=os.getcwd)
    version: str = archgym.__version__
    open: bool = True

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the file."""
        return {"format": FORMAT, **asdict(self)}

    @staticmethod
    def from_json(data: Mapping[str, Any] | None) -> QueueInfo | None:
        """The inverse of :meth:`to_json`; ``None`` for anything else."""
        if data is None or data.get("format") != FORMAT:
            return None
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            job, limit = data["job"], data["time_limit_s"]
            return QueueInfo(
                str(data["run_id"]),
                str(data["shard"]),
                Job(str(job["environment"]), dict(job["arguments"]), dict(job["problem"])),
                max(0.1, float(data["lease_s"])),
                None if limit is None else float(limit),
                str(data["started_in"]),
                str(data["version"]),
                data["open"] is True,
            )
        return None


class QueueFolder:
    """One queue.

    Args:
        path: the folder.

    Attributes:
        info_file: ``queue.json``.
        collected_file: the tickets whose results are in the journal.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.info_file = path / "queue.json"
        self.collected_file = path / "collected"

    @staticmethod
    def make(run: Path, info: QueueInfo) -> QueueFolder:
        """Makes the queue of a new driver.

        Args:
            run: folder of the run.
            info: what the queue is for.

        Raises:
            OSError: if it cannot be written.
        """
        kind = re.sub(r"[^A-Za-z0-9]+", "-", info.job.environment.rpartition(":")[2])[:40]
        where = f"{kind}-{socket.gethostname()}-{os.getpid()}-{next(_counter)}-{info.run_id[:8]}"
        folder = QueueFolder(run / QUEUES / where.strip("-"))
        folder.path.mkdir(parents=True)
        folder.collected_file.touch(exist_ok=False)
        write_object(folder.info_file, info.to_json())
        return folder

    def info(self) -> QueueInfo | None:
        """What the queue is for; ``None`` if it is gone or cannot be read."""
        return QueueInfo.from_json(read_object(self.info_file))

    def inbox(self, worker: str) -> Path:
        """The file in which a worker gets tickets."""
        return self.path / f"{worker}.in"

    def outbox(self, worker: str) -> Path:
        """The file in which a worker returns results."""
        return self.path / f"{worker}.out"

    def workers(self) -> list[str]:
        """Names of the workers that have files here, ordered."""
        # A change of our own makes an NFS client ask the server for the listing anew.
        with contextlib.suppress(OSError):
            os.utime(self.path)
        with contextlib.suppress(OSError), os.scandir(self.path) as entries:
            names = [entry.name for entry in entries]
            found = [name.removesuffix(".out") for name in names if name.endswith(".out")]
            return sorted(name for name in found if _NAME.fullmatch(name))
        return []

    def collected(self) -> set[int]:
        """The tickets whose results are in the journal."""
        reader, found = LineReader(self.collected_file), set[int]()
        with contextlib.suppress(OSError):
            while lines := reader.read():
                for line in lines:
                    numbers = line.get("tickets")
                    if isinstance(numbers, list):
                        found.update(number for number in numbers if isinstance(number, int))
        return found

    def leave(self, info: QueueInfo) -> None:
        """Marks the queue as one that gives no more tickets; what is in it stays.

        Raises:
            OSError: if it cannot be written.
        """
        write_object(self.info_file, replace(info, open=False).to_json())

    def remove(self) -> None:
        """Removes the queue; workers that are in it notice that."""
        self.info_file.unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)


def queue_folders(run: Path) -> list[QueueFolder]:
    """All queues in the folder of a run, ordered by name.

    Args:
        run: folder of the run.
    """
    folder = run / QUEUES
    if folder.is_symlink():
        return []
    with contextlib.suppress(OSError):
        os.utime(folder)  # see QueueFolder.workers
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
        return [QueueFolder(folder / name) for name in sorted(names) if _NAME.fullmatch(name)]
    return []


def write_run_file(run: Path, shard: str, run_id: str, state: str) -> None:
    """Tells workers of a run.

    Args:
        run: its folder.
        shard: name of the part of the trials that is run; empty for all.
        run_id: id of the run.
        state: ``running``; ``stopped`` if it may be resumed; ``ended``.

    Raises:
        OSError: if it cannot be written.
    """
    folder = run / QUEUES
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "it is a link", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    data = {"format": FORMAT, "archgym": archgym.__version__, "run_id": run_id, "state": state}
    write_object(folder / (f"run-{shard}.json" if shard else "run.json"), data)


def run_files(run: Path) -> Iterator[dict[str, Any]]:
    """What :func:`write_run_file` wrote, for each shard.

    Args:
        run: folder of the run.
    """
    if (run / QUEUES).is_symlink():
        return
    for path in [run / QUEUES / "run.json", *sorted((run / QUEUES).glob("run-*-of-*.json"))]:
        data = read_object(path)
        if data is not None:
            yield data
