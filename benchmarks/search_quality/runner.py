"""Runs tasks in processes of one numeric thread each, and keeps a JSON line of each."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.search_quality.contestants import perform
from benchmarks.search_quality.facts import Facts
from benchmarks.search_quality.plan import Task
from benchmarks.search_quality.problems import problem

__all__ = ["RUNS", "pack_runs", "perform_task", "read_runs", "run_tasks", "update_best"]

RUNS = "runs.jsonl"
PACKED = "runs.jsonl.gz"
"""Runs of earlier, finished invocations."""
BEST = "best_found.json"
_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
Line = dict[str, Any]


def read_runs(folder: Path) -> list[Line]:
    """The runs in a folder, those of problems that have changed since left out.

    A line that was cut off by an interruption is passed over. Of two runs of a task the later
    one counts.
    """
    packed, path = folder / PACKED, folder / RUNS
    found: dict[str, Line] = {}
    texts = gzip.decompress(packed.read_bytes()).decode().splitlines() if packed.exists() else []
    texts += path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for text in texts:
        try:
            line: Line = json.loads(text)
        except ValueError:
            continue
        if line["fingerprint"] == problem(line["problem"]).fingerprint:
            found[line["key"]] = line
    return list(found.values())


def pack_runs(folder: Path) -> None:
    """Packs all runs of a folder into one compressed file."""
    text = "".join(json.dumps(line) + "\n" for line in read_runs(folder))
    unfinished = folder / f".{PACKED}"
    unfinished.write_bytes(gzip.compress(text.encode(), mtime=0))
    unfinished.replace(folder / PACKED)
    (folder / RUNS).unlink(missing_ok=True)


def perform_task(task: Task, facts: Facts) -> Line:
    """Runs a task; an error becomes part of the line."""
    began = time.perf_counter()
    chosen = problem(task.problem)
    line = {"key": task.key, **asdict(task), "fingerprint": chosen.fingerprint}
    try:
        line |= perform(chosen, facts, task.contestant, task.seed, task.budget, task.settings)
    except Exception:  # one contestant's failure must not end the suite
        line["error"] = traceback.format_exc(limit=-6)
    return {**line, "wall_s": round(time.perf_counter() - began, 3)}


def run_tasks(
    tasks: Iterable[Task],
    facts: Mapping[str, Facts],
    folder: Path,
    *,
    processes: int = 2,
    retry: bool = False,
    on_line: Callable[[Line, int, int], None] | None = None,
) -> int:
    """Runs what is not in the folder yet, and adds it there, line by line.

    Args:
        tasks: what to run, in this order.
        facts: of each problem.
        folder: where the lines are.
        processes: how many runs at a time; 0 runs them in this process.
        retry: whether to run again what ended in an error.
        on_line: called with each line, how many are done, and how many there are to do.

    Returns:
        How many were run.
    """
    known = {line["key"] for line in read_runs(folder) if not (retry and "error" in line)}
    left = [task for task in tasks if task.key not in known]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RUNS
    done = 0
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a line that was cut off ends here
                file.write(b"\n")
        for line in _lines(left, facts, processes):
            file.write((json.dumps(line) + "\n").encode())
            file.flush()
            done += 1
            if on_line is not None:
                on_line(line, done, len(left))
    return done


def _end_with(parent: int) -> None:
    """Ends this process soon after its parent, however that one ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def update_best(folder: Path, lines: Iterable[Line]) -> dict[str, float]:
    """The best value ever found for each problem, kept with its design beside the results."""
    path = folder / BEST
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for line in lines:
        if not line.get("steps"):
            continue
        name, value = line["problem"], line["steps"][-1][1]
        entry = kept.get(name)
        if entry is None or entry["fingerprint"] != line["fingerprint"] or value < entry["value"]:
            kept[name] = {
                "fingerprint": line["fingerprint"],
                "value": value,
                "codes": line["best"],
                "by": line["key"],
            }
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return {name: entry["value"] for name, entry in kept.items()}


def _lines(left: list[Task], facts: Mapping[str, Facts], processes: int) -> Iterable[Line]:
    if not processes:
        for task in left:
            yield perform_task(task, facts[task.problem])
        return
    for variable in _ONE_THREAD:
        os.environ[variable] = "1"  # for the processes to come
    todo = iter(left)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _end_with, (os.getpid(),)) as pool:
        running: set[Future[Line]] = set()
        try:
            while True:
                for task in islice(todo, 2 * processes - len(running)):
                    running.add(pool.submit(perform_task, task, facts[task.problem]))
                if not running:
                    return
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
