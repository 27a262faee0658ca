"""Runs the benchmark and prints its tables; see :mod:`benchmarks.history`."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from archgym.problem.scoring import Scorer
from benchmarks.history.problems import PAIRS, TABLES, Problem
from benchmarks.history.runs import Kind, search
from benchmarks.search_quality.facts import WITHIN
from benchmarks.search_quality.statistics import bootstrap_interval

_SETS = {"tables": TABLES, "real": PAIRS}
WITHIN_1_PERCENT = float(np.log(1.01))
_DRAWN = 20_000
"""Random designs whose median is that of a problem."""
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
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
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
    overall_near: dict[str, list[float]] = {}
    print(
        f"\n{agent}: designs until the target (median), share that met it, both by regret, "
        "best after, CPU s"
    )
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
        near_goal = target_by_regret(problem)
        for kind, rows in of.items():
            if not rows:
                continue
            best = np.array([row["best"] for row in rows])
            met, to = reached(best, goal)
            overall.setdefault(kind, []).extend(to.tolist())
            near, near_to = reached(best, near_goal)
            if np.isfinite(near_goal):
                overall_near.setdefault(kind, []).extend(near_to.tolist())
            finite = np.minimum(best, 99.0)
            low, high = bootstrap_interval(finite[:, last - 1].tolist())
            after = " ".join(
                f"{n}: {np.median(finite[:, n - 1]):7.4f}" for n in (5, 10, 20, 50) if n <= last
            )
            print(
                f"{problem.name:25} {kind:8} {len(rows):2} {np.median(to):5.0f} "
                f"{met[:, last - 1].mean():4.0%}  "
                f"regret: {np.median(near_to):5.0f} {near[:, last - 1].mean():4.0%}  "
                f"{after} {last}: "
                f"{np.median(finite[:, last - 1]):7.4f} [{low:.4f}, {high:.4f}]"
                f"  {np.median([row['cpu_s'] for row in rows]):.1f}"
            )
    for title, per_kind in (("all", overall), ("all by regret", overall_near)):
        for kind, counts in per_kind.items():
            shares = [f"{n}: {np.mean(np.array(counts) <= n):.0%}" for n in (5, 10, 20)]
            print(f"{title}, {kind}: median {np.median(counts):.0f}, within {', '.join(shares)}")


def reached(best: NDArray[np.float64], goal: float) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Whether each run is at a cost after each design, and the first design at which it is.

    Args:
        best: cost of the best design so far, shape (n_runs, n_designs).
        goal: the cost.
    """
    met = best <= goal + 1e-9
    return met, np.where(met.any(axis=1), met.argmax(axis=1) + 1, best.shape[1] + 1)


def target(problem: Problem, cold: Sequence[Sequence[float]]) -> float:
    """Cost that is to be met: within 1 % of the optimum, or the median of searches from nothing."""
    env = problem.make()
    optimum = env.optimum
    if optimum is None:
        return float(np.median([best[-1] for best in cold])) if cold else -np.inf
    scorer = Scorer(env.objective, env.metrics, env.baseline_metrics)
    metrics = [optimum.metrics.get(name, np.nan) for name in scorer.metric_names]
    return float(scorer.score(metrics)[1][0] + WITHIN_1_PERCENT)


def target_by_regret(problem: Problem) -> float:
    """Cost at a normalised regret of 1 %, as :mod:`benchmarks.search_quality` counts it.

    The regret of a value is 0 at the optimum and 1 at the median of random designs that keep the
    limits. NaN if the optimum is not known.
    """
    env = problem.make()
    if env.optimum is None:
        return float("nan")
    scorer = Scorer(env.objective, env.metrics, env.baseline_metrics)
    row = [env.optimum.metrics.get(name, np.nan) for name in scorer.metric_names]
    optimum = float(np.exp(scorer.score(row)[1][0]))
    drawn = env.evaluate_batch(env.design_space.sample(_DRAWN, np.random.default_rng(0)))
    median = float(np.median(np.exp(drawn.costs[drawn.feasible, 0])))
    return float(np.log(optimum + WITHIN * (median - optimum)))


if __name__ == "__main__":
    main()
