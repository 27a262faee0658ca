"""Runs the benchmark and prints its tables; see :mod:`benchmarks.history`."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from archgym.problem.scoring import Scorer
from benchmarks.history.problems import PAIRS, TABLES, Problem
from benchmarks.history.runs import Kind, search
from benchmarks.search_quality.statistics import bootstrap_interval

_SETS = {"tables": TABLES, "real": PAIRS}
_WITHIN = np.log(1.01)
Run = tuple[str, str, str, str, int, int]
"""Problem, agent, kind of history, agent of the earlier searches, seed and budget."""


def main() -> None:
    """Runs what is not in the file of runs yet, and prints what all runs say."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history")
    parser.add_argument("--problems", nargs="+", default=["tables", "real"])
    parser.add_argument("--agents", nargs="+", default=["auto"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--logged-by", default="auto", help="agent of the earlier searches")
    parser.add_argument(
        "--kinds", nargs="+", choices=get_args(Kind), default=["nothing", "history"]
    )
    parser.add_argument("--runs", type=Path, default=Path("results/history.jsonl"))
    parser.add_argument("--report", action="store_true", help="run nothing")
    options = parser.parse_args()
    every = {one.name: one for one in (*TABLES, *PAIRS)}
    chosen: list[Problem] = []
    for name in options.problems:
        chosen += _SETS.get(name) or [every[name]]
    options.runs.parent.mkdir(parents=True, exist_ok=True)
    done = read(options.runs)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    plan = itertools.product(seeds, chosen, options.agents, options.kinds)
    for seed, problem, agent, kind in plan if not options.report else ():
        logged = "" if kind == "nothing" else options.logged_by
        run = (problem.name, agent, kind, logged, seed, options.budget)
        if run not in done:
            best, cpu_s = search(problem, agent, seed, kind, options.budget, options.logged_by)
            done[run] = {"run": run, "best": best, "cpu_s": round(cpu_s, 3)}
            with options.runs.open("a") as file:
                file.write(json.dumps(done[run]) + "\n")
    for agent in options.agents:
        report(agent, chosen, options.kinds, done, options.budget)


def read(path: Path) -> dict[Run, Any]:
    """The runs in a file."""
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {tuple(row["run"]): row for row in rows}


def report(
    agent: str,
    problems: Sequence[Problem],
    kinds: Sequence[str],
    done: Mapping[Run, Any],
    budget: int,
) -> None:
    """Prints a line for each problem and kind of history."""
    last = min(budget, 100)
    overall: dict[str, list[float]] = {}
    print(f"\n{agent}: designs until the target (median), share that met it, best after, CPU s")
    for problem in problems:
        of = {
            kind: [
                row
                for run, row in done.items()
                if run[:3] == (problem.name, agent, kind) and run[5] == budget
            ]
            for kind in kinds
        }
        goal = target(problem, [row["best"] for row in of.get("nothing", [])])
        for kind, rows in of.items():
            if not rows:
                continue
            best = np.array([row["best"] for row in rows])
            met = best <= goal + 1e-9
            to = np.where(met.any(axis=1), met.argmax(axis=1) + 1, best.shape[1] + 1)
            overall.setdefault(kind, []).extend(to.tolist())
            finite = np.minimum(best, 99.0)
            low, high = bootstrap_interval(finite[:, last - 1].tolist())
            after = " ".join(
                f"{n}: {np.median(finite[:, n - 1]):7.4f}" for n in (5, 10, 20, 50) if n <= last
            )
            print(
                f"{problem.name:25} {kind:8} {len(rows):2} {np.median(to):5.0f} "
                f"{met[:, last - 1].mean():4.0%}  {after} {last}: "
                f"{np.median(finite[:, last - 1]):7.4f} [{low:.4f}, {high:.4f}]"
                f"  {np.median([row['cpu_s'] for row in rows]):.1f}"
            )
    for kind, counts in overall.items():
        print(f"all, {kind}: median {np.median(counts):.0f}")


def target(problem: Problem, cold: Sequence[Sequence[float]]) -> float:
    """Cost that is to be met: within 1 % of the optimum, or the median of searches from nothing."""
    env = problem.make()
    optimum = env.optimum
    if optimum is None:
        return float(np.median([best[-1] for best in cold])) if cold else -np.inf
    scorer = Scorer(env.objective, env.metrics, env.baseline_metrics)
    metrics = [optimum.metrics.get(name, np.nan) for name in scorer.metric_names]
    return float(scorer.score(metrics)[1][0] + _WITHIN)


if __name__ == "__main__":
    main()
