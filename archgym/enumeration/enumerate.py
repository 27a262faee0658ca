"""Evaluating a whole design space into a table: ``archgym enumerate``.

The folder of an enumeration holds::

    enumeration.json     what is tabulated, and the designs of a chunk
    chunks/*.parquet     outcomes of the chunks that are done, until the table is there
    table.parquet        the table, once all are

Chunks are written by write and rename, so a killed enumeration goes on where it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import inspect
import json
import math
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.environment.environment import Environment
from archgym.errors import (
    ArchgymError,
    DatasetError,
    InvalidValueError,
    SimulationError,
    SpaceTooLargeError,
)
from archgym.registry import make
from archgym.simulators.result import read_result
from archgym.simulators.tabular.simulator import PREFIX, TABLE_FILE
from archgym.simulators.tabular.table import Header, Table, write_and_rename
from archgym.simulators.threads import one_numeric_thread_in_children

__all__ = ["CHUNK", "MOST", "enumerate_space"]

CHUNK = 20_000
"""Designs that are simulated at once, at most: many, as some simulators reuse work in a batch."""
MOST = 10_000_000
"""Designs above which a space is refused unless asked for: hours of a fast simulator."""
_LEAST_CHUNK = 2_000
_PLAN = "enumeration.json"
_FORMAT = 1

Progress = Callable[[int, int], None]
_Process = multiprocessing.process.BaseProcess


def enumerate_space(
    environment: str,
    arguments: Mapping[str, Any],
    out: str | Path,
    *,
    workers: int | None = None,
    chunk: int | None = None,
    most: int = MOST,
    progress: Progress | None = None,
) -> Table:
    """Evaluates every canonical design of an environment's space, or goes on with it.

    With several workers, a script that calls this needs the usual ``if __name__ == "__main__"``.

    Args:
        environment: registered name, or ``module:Class``.
        arguments: keyword arguments of its constructor.
        out: folder of the enumeration; made if it is not there.
        workers: processes, each with an environment of its own; by default one for each CPU.
        chunk: designs that are simulated at once; by default up to :data:`CHUNK`.
        most: refuse a space of more designs, before anything is simulated.
        progress: called with the designs done and the designs in all, at the start and after
            each chunk.

    Raises:
        InvalidValueError: if the space is not finite or empty, or the folder holds another
            enumeration or other things.
        SpaceTooLargeError: if there are more than ``most`` designs, or they cannot be counted.
        DatasetError: if the folder cannot be used.
        ArchgymError: if the environment cannot be made.
    """
    for name, value in (("workers", workers), ("chunk", chunk)):
        if value is not None and value < 1:
            raise InvalidValueError(f"{name} must be at least 1, not {value}")
    workers = workers or len(os.sched_getaffinity(0))
    made = _make(environment, arguments)
    header = _header(made, arguments)
    total = int(made.design_space.canonical_cardinality)
    if total > most:
        raise SpaceTooLargeError(
            f"the space has {total:,} designs, more than most={most:,}: fix parameters, choose a "
            "smaller space, or raise the limit"
        )
    folder = Path(out)
    with _locked(folder):
        job = _begin(folder, header, total, chunk, workers)
        if (folder / TABLE_FILE).exists():
            return Table.load(folder / TABLE_FILE)
        missing = [n for n in range(job.chunks) if not job.file(n).exists()]
        done = total - sum(job.designs(n) for n in missing)
        for designs in (0, *_run(job, missing, made, environment, dict(arguments), workers)):
            done += designs
            if progress is not None:
                progress(done, total)
        table = _seal(job, header)
        # With what a writer that was killed left of a file that it had not renamed yet.
        shutil.rmtree(job.file(0).parent)
    return table


@dataclass(frozen=True)
class _Job:
    """An enumeration in its folder: ``total`` designs, ``chunk`` at a time."""

    folder: Path
    total: int
    chunk: int

    @property
    def chunks(self) -> int:
        return math.ceil(self.total / self.chunk)

    def file(self, number: int) -> Path:
        return self.folder / "chunks" / f"{number:06d}.parquet"

    def positions(self, number: int) -> NDArray[np.int64]:
        start = number * self.chunk
        return np.arange(start, min(start + self.chunk, self.total))

    def designs(self, number: int) -> int:
        return len(self.positions(number))


# -- what is enumerated --------------------------------------------------------------------------


def _make(environment: str, arguments: Mapping[str, Any]) -> Environment:
    if arguments.get("record") is not None:
        raise InvalidValueError("record: an enumeration makes a table, not a trajectory")
    if str(arguments.get("simulator", "")).startswith(PREFIX):
        raise InvalidValueError(f"simulator: {arguments['simulator']!r} is enumerated already")
    return make(environment, **arguments)


def _header(made: Environment, arguments: Mapping[str, Any]) -> Header:
    if made.design_space.raw_cardinality == math.inf:
        made.design_space.rank(made.design_space.designs([made.baseline_design]))  # says why
    if made.design_space.canonical_cardinality == 0:
        raise InvalidValueError("the design space has no legal design")
    general = inspect.signature(Environment.__init__).parameters
    own = {name: value for name, value in arguments.items() if name not in general}
    workload = os.fspath(made.workload) if isinstance(made.workload, Path) else made.workload
    given = set(made.simulator.metric_names)
    header = Header(
        environment=made.name,
        arguments=own,
        settings=made.trial_settings,
        space=made.design_space,
        workload=workload,
        workload_name=made.workload_name,
        workload_sha256=made.workload_sha256,
        simulator={"name": made.simulator.name, "version": made.simulator.version},
        metrics=tuple(metric for metric in made.metrics if metric.name in given),
        archgym=version("archgym"),
    )
    try:
        return Header.from_json(json.loads(json.dumps(header.to_json())))
    except TypeError as error:
        raise InvalidValueError(f"the arguments cannot be written as JSON: {error}") from None


# -- the folder ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise DatasetError(f"cannot write to {folder}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise DatasetError(f"another enumeration is writing to {folder}") from None
    finally:
        os.close(lock)


def _begin(folder: Path, header: Header, total: int, chunk: int | None, workers: int) -> _Job:
    """Begins an enumeration in a folder, or goes on with the one that is there."""
    path = folder / _PLAN
    plan = {"format": _FORMAT, **header.to_json()}
    if path.exists():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            size = int(before.pop("chunk"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"cannot read {path}: {error}") from error
        differing = [key for key in {**before, **plan} if before.get(key) != plan.get(key)]
        if differing:
            raise InvalidValueError(
                f"{folder} holds another enumeration, which differs in "
                f"{_differences(before, plan, differing)}: choose another folder"
            )
        if chunk not in (None, size):
            raise InvalidValueError(
                f"the enumeration in {folder} has chunks of {size} designs, not {chunk}: "
                "leave --chunk out to go on with it"
            )
        return _Job(folder, total, size)
    others = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    if others:
        raise InvalidValueError(f"{folder} holds {others[0]!r} and no enumeration: choose another")
    spread = math.ceil(total / (2 * workers))
    size = chunk or min(CHUNK, max(_LEAST_CHUNK, spread))
    (folder / "chunks").mkdir(exist_ok=True)
    text = json.dumps({**plan, "chunk": size}, indent=1, ensure_ascii=False)
    write_and_rename(path, text.encode())
    return _Job(folder, total, size)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], keys: list[str]) -> str:
    texts = []
    for key in keys:
        was, is_ = before.get(key), now.get(key)
        long = len(str(was)) + len(str(is_)) > 200
        texts.append(key if long else f"{key} ({was!r} there, {is_!r} here)")
    return ", ".join(texts)


# -- simulating ----------------------------------------------------------------------------------


def _run(
    job: _Job,
    missing: list[int],
    made: Environment,
    environment: str,
    arguments: dict[str, Any],
    workers: int,
) -> Iterator[int]:
    """Simulates the chunks that are missing; gives the designs of each when it is done."""
    workers = min(workers, len(missing))
    if workers <= 1:
        for number in missing:
            _simulate_chunk(job, number, made)
            yield job.designs(number)
        return
    with _pool(workers, (job, environment, arguments)) as busy:
        left = missing[::-1]
        numbers: dict[connection.Connection, int] = {}
        for pipe in busy:
            numbers[pipe] = left.pop()
            _send(pipe, numbers[pipe])
        while numbers:
            ready = connection.wait(list(numbers))
            for pipe in [p for p in numbers if p in ready]:
                number = numbers.pop(pipe)
                _check_answer(pipe, busy[pipe], job, number)
                if left:
                    numbers[pipe] = left.pop()
                    _send(pipe, numbers[pipe])
                yield job.designs(number)


@contextlib.contextmanager
def _pool(workers: int, shared: tuple[Any, ...]) -> Iterator[dict[connection.Connection, _Process]]:
    """Worker processes by the pipe to each; they end with this process, however it ends."""
    context = multiprocessing.get_context("spawn")  # threads and forks do not go together
    processes: dict[connection.Connection, _Process] = {}
    try:
        with one_numeric_thread_in_children():  # each worker has a core, not all of them
            for _ in range(workers):
                ours, theirs = context.Pipe()
                process: _Process = context.Process(
                    target=_work, args=(theirs, *shared), daemon=True
                )
                process.start()
                theirs.close()
                processes[ours] = process
        yield processes
    finally:
        for pipe, process in processes.items():
            pipe.close()
            process.terminate()
            process.join()


def _work(
    pipe: connection.Connection, job: _Job, environment: str, arguments: dict[str, Any]
) -> None:
    """A worker process: simulates the chunks that it is told to, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            made = make(environment, **arguments)
            while True:
                _simulate_chunk(job, pipe.recv(), made)
                pipe.send("")
        except ArchgymError as error:
            pipe.send(str(error))


def _end_with_parent() -> None:
    """Ends this process in the middle of a chunk if its parent is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _send(pipe: connection.Connection, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # waiting for its answer will say that it ended
        pipe.send(number)


def _check_answer(
    pipe: connection.Connection,
    process: _Process,
    job: _Job,
    number: int,
) -> None:
    try:
        problem = pipe.recv()
    except (EOFError, ConnectionResetError):
        process.join()
        positions = job.positions(number)
        raise SimulationError(
            f"a worker process ended with exit code {process.exitcode} in designs {positions[0]} "
            f"to {positions[-1]}; what is done is kept, and the same command goes on with it"
        ) from None
    if problem:
        raise ArchgymError(problem)


def _simulate_chunk(job: _Job, number: int, made: Environment) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    designs = made.design_space.unrank(job.positions(number))
    given = [metric for metric in made.metrics if metric.name in made.simulator.metric_names]
    results = made.simulator.simulate(designs)
    if len(results) != len(designs):
        raise InvalidValueError(
            f"simulator {made.simulator.name!r} gave {len(results)} results "
            f"for {len(designs)} designs"
        )
    read = [read_result(result, made.metrics, given) for result, _ in results]
    values = np.array([row for _, row, _ in read])[:, [made.metrics.index(m) for m in given]]
    columns: dict[str, Any] = {
        f"metric.{metric.name}": np.ascontiguousarray(column)
        for metric, column in zip(given, values.T, strict=True)
    }
    columns["status"] = pa.array([status for status, _, _ in read], pa.int8())
    columns["reason"] = pa.array([reason for *_, reason in read]).dictionary_encode()
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), buffer, compression="zstd")
    write_and_rename(job.file(number), buffer.getvalue().to_pybytes())


def _seal(job: _Job, header: Header) -> Table:
    """Makes the table from all chunks and writes it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = np.empty((job.total, len(header.metrics)))
    failure = np.zeros(job.total, dtype=np.int32)
    failures = {(0, ""): 0}
    for number in range(job.chunks):
        positions, path = job.positions(number), job.file(number)
        try:
            read = pq.read_table(path, partitioning=None)
            for column, metric in enumerate(header.metrics):
                values[positions, column] = read[f"metric.{metric.name}"].to_numpy()
            status, reason = read["status"].to_numpy(), read["reason"].to_pylist()
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise DatasetError(f"{path} is damaged, remove it and go on: {error}") from error
        for i in np.flatnonzero(status).tolist():
            failure[positions[i]] = failures.setdefault((int(status[i]), reason[i]), len(failures))
    table = Table.of(header, values, failure, failures)
    table.save(job.folder / TABLE_FILE)
    return table
