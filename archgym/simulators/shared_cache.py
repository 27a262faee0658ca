"""A cache of simulation results on disk, shared between trials, runs and processes.

It is for simulators that take seconds and more. Within a trial the evaluation core has its own
cache; results of other trials and earlier runs are taken from here. The file is an SQLite
database: safe while any number of processes read and write it, and after a kill.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archgym.errors import DatasetError, NotCoveredError
from archgym.problem.description import ProblemDescription
from archgym.problem.simulator import SimulationResult
from archgym.reading.checked_json import checked_json

_WAIT_S = 60.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS simulations (key BLOB PRIMARY KEY, result TEXT) WITHOUT ROWID"


def simulation_key(
    problem: ProblemDescription, design: Mapping[str, Any], fidelity: float
) -> bytes:
    """The key of a simulation: a hash of 32 bytes over all that its result depends on.

    Environment, its version, source and settings, the workload's content, the simulator and its
    version, the fidelity, and the canonical design; not the objective, the agent or the design
    space that the design was found in.

    Args:
        problem: the environment's description.
        design: canonical.
        fidelity: at which it is simulated.
    """
    what = {
        "environment": problem.environment,
        "version": problem.version,
        "settings": problem.settings,
        "workload": [problem.workload_name, problem.workload_sha256],
        "simulator": [problem.simulator["name"], problem.simulator["version"]],
        "source": problem.source_sha256,
        "metrics": list(problem.metrics_given),
        "fidelity": fidelity,
        "design": dict(design),
    }
    text = json.dumps(what, sort_keys=True, default=repr, ensure_ascii=False)
    return hashlib.sha256(text.encode()).digest()


class SimulationCache:
    """A file of results under keys.

    Metrics are kept, and that a simulator does not cover a design. A failure or a time limit is
    not: the next run may have more luck.

    >>> import tempfile
    >>> cache = SimulationCache(Path(tempfile.mkdtemp()) / "simulations.sqlite")
    >>> cache.put({b"a": {"energy_pj": 1.5}})
    >>> cache.get([b"a", b"b"])
    {b'a': {'energy_pj': 1.5}}

    Args:
        path: the file; made if it is not there.
        network: whether processes of several machines use it, through a shared file system.

    Raises:
        DatasetError: if it cannot be used, or is another kind of file.
    """

    def __init__(self, path: str | Path, *, network: bool = False) -> None:
        self.path = Path(path)
        self._network = network
        self._lock = threading.Lock()
        self._pid = 0
        with self._using():
            pass  # it can be used

    def get(self, keys: Iterable[bytes]) -> dict[bytes, SimulationResult]:
        """Results of those keys that it holds.

        Raises:
            DatasetError: if the file is damaged.
        """
        found: dict[bytes, SimulationResult] = {}
        with self._using() as database:
            for key in keys:
                row = database.execute(
                    "SELECT result FROM simulations WHERE key = ?", (key,)
                ).fetchone()
                if row is not None:
                    found[key] = self._result(row[0])
        return found

    def put(self, results: Mapping[bytes, SimulationResult]) -> None:
        """Keeps results; of a key that it holds the first one stays.

        Raises:
            DatasetError: if they cannot be written.
        """
        rows = [(key, text) for key, result in results.items() if (text := _text(result))]
        if not rows:
            return
        with self._using() as database, database:
            database.executemany("INSERT OR IGNORE INTO simulations VALUES (?, ?)", rows)

    def __len__(self) -> int:
        """Number of results."""
        with self._using() as database:
            return int(database.execute("SELECT count(*) FROM simulations").fetchone()[0])

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            if self._pid == os.getpid():
                self._open.close()
                self._pid = 0

    def _result(self, text: object) -> SimulationResult:
        try:
            kept = checked_json(str(text), _Kept)
            if kept.not_covered is not None:
                return NotCoveredError(kept.not_covered)
            if kept.metrics is None:
                raise ValueError("it has no metrics")
            return kept.metrics
        except ValueError as error:
            raise DatasetError(
                f"the simulation cache {self.path} is damaged: a result is {text!r:.80} ({error})"
            ) from error

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """This process's connection: one must not be carried over a fork."""
        with self._lock:
            try:
                if self._pid != os.getpid():
                    self._connect()
                    self._pid = os.getpid()
                yield self._open
            except (sqlite3.Error, OSError) as error:
                raise DatasetError(
                    f"cannot use the simulation cache {self.path}: {error}"
                ) from error

    def _connect(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._open = sqlite3.connect(self.path, timeout=_WAIT_S, check_same_thread=False)
        mode = "DELETE" if self._network else "WAL"  # WAL is for one machine
        self._open.execute(f"PRAGMA journal_mode={mode}")
        self._open.execute("PRAGMA synchronous=NORMAL")
        self._open.execute(_SCHEMA)
        self._open.commit()


def _text(result: SimulationResult) -> str:
    """JSON of a result; empty if it is not kept."""
    if isinstance(result, NotCoveredError):
        return json.dumps({"not_covered": str(result)})
    if not isinstance(result, Mapping):
        return ""
    try:
        metrics = {name: float(value) for name, value in result.items()}
        return json.dumps({"metrics": metrics}, allow_nan=False)  # NaN is a failure
    except (TypeError, ValueError):
        return ""


@dataclass(frozen=True)
class _Kept:
    """The form of a result in the file."""

    metrics: dict[str, float] | None = None
    not_covered: str | None = None
