"""Makes the tables of accuracies: trains every distinct architecture of a task.

Two steps, which may run on different machines:

    python -m archgym.envs.nas.accuracy.tabulate train --task digits --processes 16 --journal FILE
    python -m archgym.envs.nas.accuracy.tabulate collect FILE... --out datasets/nas/digits.parquet

``train`` writes one line for each architecture to the journal and skips those that are in it, so
that it can be stopped and continued. ``collect`` puts journals of one task together. One process
trains one architecture with one thread; for images this small, 16 processes on a CPU keep up with
a GPU, whose time goes into starting kernels.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from archgym.envs.nas.accuracy.training_loop import RECIPES, SEEDS, one_thread, train
from archgym.envs.nas.data import load
from archgym.envs.nas.families import Architecture, Task
from archgym.envs.nas.tasks import distinct_architectures, family_of, task_of
from archgym.errors import DatasetError, InvalidValueError

__all__ = ["collect", "main", "train_all"]

Line = dict[str, Any]

_SAME = ("task", "data", "networks", "recipe")
"""What journals that are put together have in common."""
_MEANING = {
    "task": "another task needs its own journal",
    "data": "the digest of the images and labels differs, so these were other data: another "
    "version of scikit-learn or NumPy, or of the generator; begin a new journal",
    "networks": "the version of the family of networks differs; begin a new journal",
    "recipe": "networks trained in different ways do not belong in one table; begin a new journal",
}


def train_all(
    task: Task,
    journal: Path,
    *,
    seeds: Sequence[int] = SEEDS,
    device: str = "cpu",
    processes: int = 1,
    sample: int | None = None,
    limit_s: float = float("inf"),
) -> int:
    """Train what the journal lacks and return how many architectures are still missing.

    Args:
        task: one with data.
        journal: JSON lines; a header, then one line an architecture.
        seeds: of weights and order of images, each its own network.
        device: a PyTorch device.
        processes: how many train at a time, each with one thread.
        sample: number of architectures to train, spread evenly over the space.
        limit_s: start no more after this time, s.

    Raises:
        DatasetError: if the journal was begun with another task, data set or recipe.
    """
    if task.data is None:
        raise InvalidValueError(f"task {task.name!r} has no data: nothing to train on")
    header = _header(task, device)
    done = {line["architecture"] for line in _continued(journal, header)}
    wanted = distinct_architectures(task)
    keys = list(wanted)
    if sample is not None:
        keys = [keys[i] for i in np.linspace(0, len(keys) - 1, sample).round().astype(int)]
    # Shuffled, so that the time passed predicts the time left.
    order = np.random.default_rng(0).permutation(len(keys))
    missing = {keys[i]: wanted[keys[i]] for i in order if keys[i] not in done}
    if not missing:
        return 0
    started, trained = time.perf_counter(), 0
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that are started below
    context = multiprocessing.get_context("spawn")
    with (
        journal.open("a", encoding="utf-8") as file,
        ProcessPoolExecutor(processes, context, one_thread, (device,)) as pool,
    ):
        futures = [
            pool.submit(_trained, task.name, key, architecture, tuple(seeds), device)
            for key, architecture in missing.items()
        ]
        for line in _results(futures, started + limit_s):
            file.write(json.dumps(line) + "\n")
            file.flush()
            trained += 1
            if trained % 10 == 0 or trained == len(missing):
                _report(trained, len(missing), time.perf_counter() - started)
    return len(missing) - trained


def collect(journals: Sequence[Path], out: Path) -> int:
    """Write the lines of journals as one Parquet table and return its number of architectures.

    Columns: ``architecture`` (the family's key), ``seed``, ``epochs``, ``percent``. What made
    them is in the schema's metadata under ``archgym``.

    Raises:
        DatasetError: if a journal is of another data set or recipe than archgym has now, if
            journals differ in task or seeds, or if there is nothing in them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    header, machines, found = _joined(journals)
    rows = [
        (key, seed, epochs, percent)
        for key in distinct_architectures(task_of(header["task"]))
        if key in found
        for seed, curve in zip(found[key]["seeds"], found[key]["percent"], strict=True)
        for epochs, percent in zip(header["recipe"]["epochs"], curve, strict=True)
    ]
    types = (pa.string(), pa.int16(), pa.int16(), pa.float64())
    names = ("architecture", "seed", "epochs", "percent")
    table = pa.table(
        {
            name: pa.array(column, type_)
            for name, column, type_ in zip(names, zip(*rows, strict=True), types, strict=True)
        }
    )
    made = {field: header[field] for field in _SAME} | {"machines": machines}
    table = table.replace_schema_metadata({"archgym": json.dumps(made)})
    out.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, out, compression="zstd", compression_level=19)
    return len(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code: 3 if architectures are still missing."""
    parser = argparse.ArgumentParser(prog="tabulate", description="tables of accuracies")
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train", help="train what the journal lacks")
    training.add_argument("--task", required=True)
    training.add_argument("--journal", type=Path, required=True)
    training.add_argument("--device", default="cpu")
    training.add_argument("--processes", type=int, default=1)
    training.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    training.add_argument("--sample", type=int)
    training.add_argument("--limit-s", type=float, default=float("inf"))
    collecting = commands.add_parser("collect", help="make the table from journals")
    collecting.add_argument("journals", type=Path, nargs="+")
    collecting.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    if given.command == "collect":
        count = collect(given.journals, given.out)
        sys.stderr.write(f"{given.out}: {count} architectures\n")
        return 0
    left = train_all(
        task_of(given.task),
        given.journal,
        seeds=given.seeds,
        device=given.device,
        processes=given.processes,
        sample=given.sample,
        limit_s=given.limit_s,
    )
    if left:
        sys.stderr.write(f"{left} architectures are missing: run the same command again\n")
    return 3 if left else 0


def _header(task: Task, device: str) -> Line:
    import torch

    assert task.data is not None
    return {
        "task": task.name,
        "data": load(task.data).digest,
        "networks": family_of(task).version,
        "recipe": {**asdict(RECIPES[task.name]), "epochs": list(RECIPES[task.name].epochs)},
        "machine": {
            "torch": torch.__version__,
            "numpy": np.__version__,
            "processor": platform.machine(),
            "device": device,
        },
    }


def _continued(journal: Path, header: Line) -> list[Line]:
    """What the journal holds; a new one gets its header."""
    if journal.exists():
        _drop_cut_off_line(journal)
    if journal.exists() and journal.stat().st_size:
        before, lines = _read(journal)
        _check_same(journal, before, header)
        return lines
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.write_text(json.dumps(header) + "\n", encoding="utf-8")
    return []


def _drop_cut_off_line(journal: Path) -> None:
    """Removes an incomplete last line, so that the next line does not join it."""
    whole = journal.read_bytes()
    kept = whole.rfind(b"\n") + 1
    if kept < len(whole):
        with journal.open("r+b") as file:
            file.truncate(kept)


def _read(journal: Path) -> tuple[Line, list[Line]]:
    """Header and lines; a last line that was cut off in writing is left out.

    Raises:
        DatasetError: if there is no header, or a line is not what `train_all` writes.
    """
    try:
        text = journal.read_text(encoding="utf-8")
        header, *lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
        header.setdefault("networks", 1)  # the value of older journals, which lack it
        whole = {"architecture", "seeds", "percent"}
        good = {*_SAME, "machine"} <= set(header) and all(whole <= set(line) for line in lines)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise DatasetError(f"{journal}: not a journal of trained networks: {error}") from error
    if not good:
        raise DatasetError(f"{journal}: not a journal of trained networks: fields are missing")
    return header, lines


def _check_same(journal: Path, header: Line, other: Line) -> None:
    for field in _SAME:
        if header[field] != other[field]:
            raise DatasetError(
                f"{journal}: {field} is {header[field]!r}, here it is {other[field]!r}: "
                f"{_MEANING[field]}"
            )


def _joined(journals: Sequence[Path]) -> tuple[Line, list[Line], dict[str, Line]]:
    """Header, machines, and lines by architecture of journals that belong together."""
    headers, lines = zip(*(_read(path) for path in journals), strict=True)
    task = task_of(headers[0]["task"])
    here = _header(task, "")
    for path, header in zip(journals, headers, strict=True):
        _check_same(path, header, here)
    found = {line["architecture"]: line for part in lines for line in part}
    if not found:
        raise DatasetError(f"{journals[0]}: no network is trained yet")
    known = distinct_architectures(task)
    seeds = next(iter(found.values()))["seeds"]
    for key, line in found.items():
        if key not in known:
            raise DatasetError(f"{key} is no architecture of task {task.name!r}")
        if line["seeds"] != seeds:
            raise DatasetError(f"{key} has seeds {line['seeds']}, others have {seeds}")
    machines = {json.dumps(header["machine"], sort_keys=True): header for header in headers}
    return headers[0], [machines[name]["machine"] for name in sorted(machines)], found


def _trained(
    task_name: str, key: str, architecture: Architecture, seeds: tuple[int, ...], device: str
) -> Line:
    task = task_of(task_name)
    assert task.data is not None
    started = time.perf_counter()
    curves = train(task, architecture, load(task.data), seeds=seeds, device=device)
    return {
        "architecture": key,
        "seeds": list(seeds),
        "percent": curves.round(4).tolist(),
        "seconds": round(time.perf_counter() - started, 3),
    }


def _results(futures: Iterable[Future[Line]], end: float) -> Iterator[Line]:
    """Results as they come; after ``end`` no more are started, and running ones are awaited."""
    waiting = list(futures)
    stopped = False
    for future in as_completed(waiting):
        if not future.cancelled():
            yield future.result()
        if not stopped and time.perf_counter() > end:
            stopped = True
            for other in waiting:
                other.cancel()


def _report(trained: int, total: int, passed_s: float) -> None:
    left_s = passed_s / trained * (total - trained)
    sys.stderr.write(f"{trained} of {total} in {passed_s:.0f} s, {left_s:.0f} s left\n")


if __name__ == "__main__":
    sys.exit(main())
