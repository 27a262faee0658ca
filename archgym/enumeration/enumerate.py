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
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from archgym.enumeration.chunks import Chunks
from archgym.enumeration.workers import simulate_in_processes
from archgym.environment.environment import Environment
from archgym.errors import (
    DatasetError,
    InvalidValueError,
    SpaceTooLargeError,
    check_received,
)
from archgym.reading.checked_json import read_checked_json
from archgym.registry import make
from archgym.simulators.tabular.simulator import PREFIX, TABLE_FILE
from archgym.simulators.tabular.table import Header, Table, write_and_rename

MAX_CHUNK = 20_000
"""Designs that are simulated at once, at most: many, as some simulators reuse work in a batch."""
MAX_DESIGNS = 10_000_000
"""Designs above which a space is refused unless asked for: hours of a fast simulator."""
_MIN_CHUNK = 2_000
_PLAN = "enumeration.json"
_FORMAT = 1

Progress = Callable[[int, int], None]


def enumerate_space(
    environment: str,
    arguments: Mapping[str, Any],
    out: str | Path,
    *,
    workers: int | None = None,
    chunk: int | None = None,
    most: int = MAX_DESIGNS,
    progress: Progress | None = None,
) -> Table:
    """Evaluates every canonical design of an environment's space, or goes on with it.

    With several workers, a script that calls this needs the usual ``if __name__ == "__main__"``.

    Args:
        environment: registered name, or ``module:Class``.
        arguments: keyword arguments of its constructor.
        out: folder of the enumeration; made if it is not there.
        workers: processes, each with its own environment; by default one for each CPU.
        chunk: designs that are simulated at once; by default up to :data:`MAX_CHUNK`.
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
        chunks = _begin(folder, header, total, chunk, workers)
        if (folder / TABLE_FILE).exists():
            return Table.load(folder / TABLE_FILE)
        missing = chunks.missing
        done = total - sum(len(chunks.positions(n)) for n in missing)
        report = progress or (lambda done, total: None)
        report(done, total)
        workers = min(workers, len(missing))
        for number in (
            simulate_in_processes(chunks, missing, environment, arguments, workers)
            if workers > 1
            else _simulate_here(chunks, missing, made)
        ):
            done += len(chunks.positions(number))
            report(done, total)
        table = chunks.seal(header)
        # With what a writer that was killed left of a file that it had not renamed yet.
        shutil.rmtree(chunks.file(0).parent)
    return table


def _simulate_here(chunks: Chunks, missing: list[int], made: Environment) -> Iterator[int]:
    for number in missing:
        chunks.simulate(number, made)
        yield number


# -- what is enumerated --------------------------------------------------------------------------


def _make(environment: str, arguments: Mapping[str, Any]) -> Environment:
    if arguments.get("record") is not None:
        raise InvalidValueError("record: an enumeration makes a table, not a trajectory")
    if str(arguments.get("simulator", "")).startswith(PREFIX):
        raise InvalidValueError(f"simulator: {arguments['simulator']!r} is enumerated already")
    return make(environment, **arguments)


def _header(made: Environment, arguments: Mapping[str, Any]) -> Header:
    space = made.design_space
    if space.raw_cardinality == math.inf:
        space.rank(space.designs([made.baseline_design]))  # raises, with the reason
    if space.canonical_cardinality == 0:
        raise InvalidValueError("the design space has no legal design")
    general = inspect.signature(Environment.__init__).parameters
    own = {name: value for name, value in arguments.items() if name not in general}
    header = Header.of(made.description, own)
    try:
        return Header.from_json(json.loads(json.dumps(header.to_json())))
    except TypeError as error:
        raise InvalidValueError(f"the arguments cannot be written as JSON: {error}") from None


# -- the folder ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        check_received(folder)
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


def _begin(folder: Path, header: Header, total: int, chunk: int | None, workers: int) -> Chunks:
    """Begins an enumeration in a folder, or goes on with the one that is there."""
    path = folder / _PLAN
    plan = {"format": _FORMAT, **header.to_json()}
    if path.exists():
        try:
            before = read_checked_json(path, dict[str, Any])
            size = before.pop("chunk", None)
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"chunk is {size!r}")
        except (OSError, ValueError) as error:
            raise DatasetError(f"cannot read {path}: {error}") from error
        if differences := _differences(before, plan):
            raise InvalidValueError(
                f"{folder} holds another enumeration, which differs in {differences}: "
                "choose another folder"
            )
        if chunk not in (None, size):
            raise InvalidValueError(
                f"the enumeration in {folder} has chunks of {size} designs, not {chunk}: "
                "leave --chunk out to go on with it"
            )
        return Chunks(folder, total, size)
    others = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    if others:
        raise InvalidValueError(f"{folder} holds {others[0]!r} and no enumeration: choose another")
    spread = math.ceil(total / (2 * workers))
    size = chunk or min(MAX_CHUNK, max(_MIN_CHUNK, spread))
    (folder / "chunks").mkdir(exist_ok=True)
    text = json.dumps({**plan, "chunk": size}, indent=1, ensure_ascii=False)
    write_and_rename(path, text.encode())
    return Chunks(folder, total, size)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    texts = []
    for key in {**before, **now}:
        was, is_ = before.get(key), now.get(key)
        if was != is_:
            long = len(str(was)) + len(str(is_)) > 200
            texts.append(key if long else f"{key} ({was!r} there, {is_!r} here)")
    return ", ".join(texts)
