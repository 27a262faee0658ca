"""Simulator calls that a search on a proxy saves, against agents that search directly.

``python -m benchmarks.proxy_search [--seeds N] [--problems ...] [--agents ...]`` takes problems of
``benchmarks/search_quality`` for which random search needs 5,000 evaluations or more. The proxy's
way costs 350 simulator calls: 300 to train on (chosen by an agent), and the 50 designs that a
search on the proxy likes best, simulated. For each problem it prints the median of the best value
after these 350, and how many evaluations each direct agent needs until its median is as good. The
factor is that of the best direct agent by 350; "more than" says that none got there.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import archgym
from archgym.data import load
from archgym.proxy import Settings, read_training_data, save_proxy, train
from archgym.proxy.search import search_and_verify
from archgym.registry import make_agent
from benchmarks.search_quality import tables
from benchmarks.search_quality.contestants import perform
from benchmarks.search_quality.facts import Facts
from benchmarks.search_quality.problems import DRAM_REQUESTS, problem, read_facts

PROBLEMS = ("table-fft-product", "dram-sqlite", "dram-jpeg", "dram-xz", "dram-zstd")
TRAINING, VERIFIED = 300, 50


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", nargs="+", default=PROBLEMS)
    parser.add_argument("--agents", nargs="+", default=["auto", "local", "ga", "aco", "sa"])
    parser.add_argument("--source", default="active", help="the agent that spends the 300")
    parser.add_argument("--model", default="gp")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=2000, help="of direct agents")
    parser.add_argument("--facts", type=Path, default=Path("benchmarks/results/search_quality"))
    given = parser.parse_args()
    for name in given.problems:
        facts = read_facts(problem(name), given.facts)
        began = time.process_time()
        by_proxy = [
            _by_proxy(name, facts, given.source, given.model, seed) for seed in range(given.seeds)
        ]
        goal = float(np.median([best for best, _ in by_proxy]))
        print(
            f"{name}: by proxy {goal:.8g} after {TRAINING + VERIFIED} "
            f"({np.median([half for _, half in by_proxy]):.8g} after {TRAINING}), "
            f"{(time.process_time() - began) / given.seeds:.0f} CPU s a run; "
            f"optimum {facts.optimum}",
            flush=True,
        )
        needed = {}
        for agent in given.agents:
            curves = np.stack(
                [_direct(name, facts, agent, seed, given.budget) for seed in range(given.seeds)]
            )
            middle = np.median(curves, axis=0)
            there = np.flatnonzero(middle <= goal * (1 + 1e-12))
            needed[agent] = int(there[0]) + 1 if there.size else given.budget + 1
            said = f"{needed[agent]:,}" if there.size else f"more than {given.budget:,}"
            marks = ", ".join(
                f"{middle[n - 1]:.8g} after {n}" for n in (350, 700, 1400) if n <= given.budget
            )
            print(f"  {agent}: {said} evaluations; {marks}", flush=True)
        best = min(needed.values())
        word = "more than " if best > given.budget else ""
        print(f"  factor {word}{min(best, given.budget) / (TRAINING + VERIFIED):.2f}", flush=True)


def _environment(name: str, facts: Facts, **arguments: object) -> archgym.Environment:
    objective = facts.notes["objective"]
    workload = name.split("-")[1]
    if name.startswith("table-"):
        arguments = {"simulator": tables.table_name(workload), **arguments}
    else:
        arguments = {"workload": {"recorded": workload, "requests": DRAM_REQUESTS}, **arguments}
    return archgym.make("DRAM-v0", objective=objective, **arguments)


def _by_proxy(name: str, facts: Facts, source: str, model: str, seed: int) -> tuple[float, float]:
    """The best feasible value after all 350 calls, and after the first 300."""
    with tempfile.TemporaryDirectory() as folder:
        env = _environment(name, facts, record=folder)
        agent = make_agent(source, env.design_space, seed=seed)
        found = agent.search(env, TRAINING)
        env.close()
        limited = [limit.metric for limit in env.objective.limits]
        goals = [metric for goal in env.objective.goals for metric, _ in goal.terms]
        data = read_training_data(load(folder), list(dict.fromkeys([*goals, *limited])))
        file = Path(folder, "proxy.npz")
        save_proxy(train(data, Settings((model,), seed=seed)), file)
        real = _environment(name, facts)
        learned = _environment(name, facts, simulator=f"proxy:{file}")
        done = search_and_verify(learned, real, agent="ga", verify=VERIFIED, seed=seed)
    values = [
        float(one.objectives[0]) if one is not None and one.feasible else np.inf
        for one in (found.best, done.best)
    ]
    return min(values), values[0]


def _direct(name: str, facts: Facts, agent: str, seed: int, budget: int) -> np.ndarray:
    """The best feasible value after each evaluation."""
    curve = np.full(budget, np.inf)
    for step, value in perform(problem(name), facts, agent, seed, budget)["steps"]:
        curve[step - 1 :] = value
    return curve


if __name__ == "__main__":
    main()
