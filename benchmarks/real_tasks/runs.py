"""Runs searches on tasks in processes of one numeric thread, and keeps a JSON line of each."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from archgym.errors import AgentUnsuitableError, MissingDependencyError
from archgym.experiment.spec.checks import goal_directions
from archgym.registry import make_agent
from benchmarks.real_tasks.tasks import task_named
from benchmarks.search_quality.peers import PEERS
from benchmarks.search_quality.tracker import Done, Tracker

__all__ = ["BASELINE", "Line", "Run", "perform", "read_runs", "run_all"]

Line = dict[str, Any]
Run = tuple[str, str, int, int]
"""Task, contestant, seed, evaluations."""
BASELINE = "baseline"
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def perform(run: Run) -> Line:
    """One search, the baseline design first; an error becomes part of the line.

    Returns:
        The run, the version of the environment, ``steps`` (evaluation and new best value, both
        minimised), ``feasible`` and ``better`` (share of the evaluated designs that keep the
        limits, and of those that also beat the baseline), and ``agent_s`` (processor seconds of
        the search itself an evaluation).
    """
    name, contestant, seed, budget = run
    began = time.perf_counter()
    env = task_named(name).make()
    line: Line = {"run": list(run), "version": env.version}
    baseline = env.evaluate(env.baseline_design)
    bar = baseline.objectives[0] if baseline.feasible else float("inf")
    env.close()
    env = task_named(name).make()
    tracker = Tracker(env, budget)
    better = feasible = 0
    watch = env.on_evaluated

    def count(outcomes: Any) -> None:
        nonlocal better, feasible
        if watch is not None:
            watch(outcomes)
        feasible += int(outcomes.feasible.sum())
        better += int((outcomes.feasible & (outcomes.objectives[:, 0] < bar)).sum())

    env.on_evaluated = count
    try:
        if contestant in PEERS:
            tracker.evaluate(env.design_space.codes(env.baseline_design))
            PEERS[contestant].run(tracker, seed)
        else:
            agent = make_agent(contestant, env.design_space, goal_directions(env), seed=seed)
            agent.search(env, budget, initial=[env.baseline_design])
    except Done:
        pass
    except (AgentUnsuitableError, MissingDependencyError) as error:
        line["unsuitable"] = str(error)
    except Exception:  # the failure of one search must not end the others
        line["error"] = traceback.format_exc(limit=-6)
    result = tracker.result()
    last = max(result["marks"], key=int)
    proposals = max(1, tracker.proposals)
    env.close()
    return line | {
        "steps": result["steps"],
        "best": result["best"],
        "feasible": feasible / proposals,
        "better": better / proposals,
        "agent_s": result["marks"][last]["agent_s"] / proposals,
        "wall_s": round(time.perf_counter() - began, 3),
    }


def read_runs(path: Path) -> dict[Run, Line]:
    """Finished runs of the present versions of the environments; cut-off lines are passed over."""
    found: dict[Run, Line] = {}
    versions: dict[str, str] = {}
    for text in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        name, contestant, seed, budget = line["run"]
        if name not in versions:
            versions[name] = task_named(name).make().version
        if line["version"] == versions[name] and "error" not in line:
            found[name, contestant, seed, budget] = line
    return found


def run_all(runs: Iterable[Run], path: Path, processes: int) -> Iterator[tuple[Line, int, int]]:
    """Performs the runs that the file lacks and adds them; yields each with how many are done."""
    known = read_runs(path)
    left = [run for run in runs if run not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    for variable in _ONE_THREAD:
        os.environ[variable] = "1"  # for the processes to come
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context) as pool, path.open("a", encoding="utf-8") as file:
        futures = [pool.submit(perform, run) for run in left]
        for done, future in enumerate(as_completed(futures), start=1):
            line = future.result()
            file.write(json.dumps(line) + "\n")
            file.flush()
            yield line, done, len(left)
