"""Runs the benchmark and prints its tables; see :mod:`benchmarks.history`."""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

import numpy as np

from benchmarks.history.problems import PAIRS, TABLES, Problem
from benchmarks.history.runs import search

_SETS = {"tables": TABLES, "real": PAIRS}
_AFTER = (5, 10, 20, 50, 100)


def main() -> None:
    """Runs what is not in the file of runs yet, and prints what all runs say."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history")
    parser.add_argument("--problems", nargs="+", default=["tables", "real"])
    parser.add_argument("--agents", nargs="+", default=["auto"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--logged-by", default="auto", help="agent of the earlier searches")
    kinds = ("nothing", "initial", "history", "shuffled", "reversed")
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=["nothing", "history"])
    parser.add_argument("--runs", type=Path, default=Path("results/history.jsonl"))
    options = parser.parse_args()
    every = {one.name: one for one in (*TABLES, *PAIRS)}
    chosen: list[Problem] = []
    for name in options.problems:
        chosen += _SETS.get(name) or [every[name]]
    options.runs.parent.mkdir(parents=True, exist_ok=True)
    done = {}
    if options.runs.exists():
        for line in options.runs.read_text().splitlines():
            row = json.loads(line)
            done[tuple(row["run"])] = row
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for problem, agent, kind, seed in itertools.product(
        chosen, options.agents, options.kinds, seeds
    ):
        logged = "" if kind == "nothing" else options.logged_by
        run = (problem.name, agent, kind, logged, seed, options.budget)
        if run in done:
            continue
        best, cpu_s = search(problem, agent, seed, kind, options.budget, options.logged_by)
        done[run] = {"run": run, "best": best, "cpu_s": round(cpu_s, 3)}
        with options.runs.open("a") as file:
            file.write(json.dumps(done[run]) + "\n")
    for agent in options.agents:
        report(agent, chosen, options.kinds, options.logged_by, seeds, done, options.budget)


def report(agent, chosen, kinds, logged_by, seeds, done, budget) -> None:  # type: ignore[no-untyped-def]
    print(f"\n{agent}, {len(seeds)} seeds, earlier searches by {logged_by}")
    for problem in chosen:
        rows = {
            kind: [
                done[
                    problem.name, agent, kind, "" if kind == "nothing" else logged_by, seed, budget
                ]
                for seed in seeds
            ]
            for kind in kinds
        }
        table = {kind: np.array([row["best"] for row in found]) for kind, found in rows.items()}
        optimum = problem.make().optimum if problem in TABLES else None
        if optimum is not None:
            env = problem.make()
            goal = env.evaluate(optimum.design)
            target = float(-np.log(1 / env._outcome_reward(goal) - 1)) if False else None
            from archgym.problem.scoring import Scorer

            scorer = Scorer(env.objective, env.metrics, env.baseline_metrics)
            metrics = [goal.metrics[name] or np.nan for name in scorer.metric_names]
            target = scorer.score(metrics)[1][0] + np.log(1.01)
        else:
            target = float(np.median(table["nothing"][:, -1])) if "nothing" in table else None
        for kind, best in table.items():
            within = best <= target + 1e-9 if target is not None else np.zeros_like(best, bool)
            to = np.where(within.any(axis=1), within.argmax(axis=1) + 1, budget + 1)
            medians = {n: np.median(best[:, n - 1]) for n in _AFTER if n <= budget}
            low, high = np.quantile(best[:, min(budget, 100) - 1], [0.25, 0.75])
            cpu = np.median([row["cpu_s"] for row in rows[kind]])
            print(
                f"{problem.name:26} {kind:9} to {np.median(to):5.0f}  "
                f"{within[:, -1].mean():4.0%}  "
                + " ".join(f"{n}:{value:8.4f}" for n, value in medians.items())
                + f"  [{low:.3f} {high:.3f}] {cpu:.1f} s"
            )


if __name__ == "__main__":
    main()
