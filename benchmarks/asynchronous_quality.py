"""What a search loses by proposing designs while others are in flight, and what it gains in time.

Each agent searches NK-like landscapes and tabulated problems with one worker and with eight, on a
simulated clock with log-normal durations (sigma 1), on the same seeds. After equally many designs
it compares the median regret; and the median of the simulated time until the regret is within
1 %, where both get there in at least half of the seeds.

Bars, for ``auto`` and ``gp``: the regret after 300 designs is at most 1.25 times that with one
worker, and it is within 1 % at least five times sooner.

    python benchmarks/asynchronous_quality.py [--agents auto gp] [--seeds 20] [--designs 300]

With ``--runs FILE`` each run is added to a file when it ends, and the next call goes on from there;
``benchmarks/results/asynchronous_quality/runs.jsonl`` has those of the table in RESULTS.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.evaluation.outcome import Outcomes
from archgym.experiment.simulate.simulators import Simulators
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.registry import make_agent
from archgym.simulators.tabular.simulator import shipped_tables, table_named
from benchmarks.search_quality.landscapes import environment_of, nk_landscape

Run = tuple[str, str, int, int]
"""Problem, agent, workers and seed."""
WITHIN = 0.01
DURATION = {"log_normal": {"median": 3600, "sigma": 1}}


def problems(names: list[str]) -> dict[str, Callable[[], archgym.Environment]]:
    """Functions that make an environment, by the name of the problem."""
    found: dict[str, Callable[[], archgym.Environment]] = {}
    for name in names:
        if name.startswith("nk-"):
            found[name] = environment_of("Nk", [nk_landscape(int(name[3:]))])
        else:
            of = table_named(f"tabular:{name}").header.environment
            found[name] = partial(archgym.make, of, simulator=f"tabular:{name}")
    return found


def search(
    make: Callable[[], archgym.Environment], agent: str, workers: int, seed: int, designs: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Regret, and hours on the simulated clock, after each design."""
    env = make()
    settings = SimulationSettings(workers=workers, clock="simulated", duration=DURATION)
    Simulators(settings).serve(env, "", {})
    regrets: list[float] = []
    hours: list[float] = []
    best = math.inf

    def note(outcomes: Outcomes) -> None:
        nonlocal best
        for outcome in outcomes:
            if outcome.feasible:
                known = env.regret(outcome)
                best = min(best, outcome.objectives[0] - 1.0 if known is None else known)
            regrets.append(best)
            hours.append(env.evaluator.now / 3600)

    env.on_evaluated = note
    make_agent(agent, env.design_space, seed=seed).search(env, designs)
    return np.array(regrets), np.array(hours)


def sooner(regrets: NDArray[np.float64], hours: NDArray[np.float64]) -> float:
    """Hours until the regret is within 1 %; infinite if it never is."""
    there = np.flatnonzero(regrets <= WITHIN)
    return float(hours[there[0]]) if len(there) else math.inf


def measure(run: Run, make: Callable[[], archgym.Environment], designs: int) -> dict[str, Any]:
    """Regret at the end, hours until within 1 %, and processor time of a run."""
    problem, agent, workers, seed = run
    began = time.process_time()
    regrets, hours = search(make, agent, workers, seed, designs)
    return {
        "problem": problem,
        "agent": agent,
        "workers": workers,
        "seed": seed,
        "regret": float(regrets[-1]),
        "hours": sooner(regrets, hours),
        "cpu_s": time.process_time() - began,
    }


def known_runs(path: Path | None) -> dict[Run, dict[str, Any]]:
    """The runs that a file holds."""
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    found = [json.loads(line) for line in lines]
    return {(one["problem"], one["agent"], one["workers"], one["seed"]): one for one in found}


def line(name: str, agent: str, workers: int, runs: dict[Run, dict[str, Any]]) -> str:
    """A line of the table, of the seeds that ran both ways."""
    seeds = [s for p, a, w, s in runs if (p, a, w) == (name, agent, workers)]
    seeds = [seed for seed in seeds if (name, agent, 1, seed) in runs]
    ends, times = (
        [
            float(np.median([runs[name, agent, w, seed][what] for seed in seeds]))
            for w in (1, workers)
        ]
        for what in ("regret", "hours")
    )
    ratio = ends[1] / ends[0] if ends[0] > 0 else (1.0 if ends[1] == 0 else math.inf)
    faster = times[0] / times[1] if math.isfinite(times[0]) else math.nan
    return (
        f"{name:30}{agent:10}{len(seeds):6}{ends[0]:10.4f}{ends[1]:10.4f}{ratio:8.2f}"
        f"{times[0]:12.1f}{times[1]:10.1f}{faster:8.1f}"
    )


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", nargs="*", default=["auto", "gp"])
    parser.add_argument("--problems", nargs="*", default=["nk-9001", "nk-9002", *shipped_tables()])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--designs", type=int, default=300)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--runs", type=Path, help="file to which each run is added, and read from")
    options = parser.parse_args()
    runs = known_runs(options.runs)
    made = problems(options.problems)
    pairs = list(itertools.product(made, options.agents))
    for seed, (name, agent), workers in itertools.product(
        range(options.seeds), pairs, (1, options.workers)
    ):
        run = (name, agent, workers, seed)
        if run not in runs:
            runs[run] = measure(run, made[name], options.designs)
            if options.runs is not None:
                with options.runs.open("a") as file:
                    file.write(json.dumps(runs[run]) + "\n")
    head = f"{'seeds':>6}{'regret, 1':>10}{options.workers:>10}{'ratio':>8}"
    print(f"{'problem':30}{'agent':10}{head}{'hours, 1':>12}{options.workers:>10}{'faster':>8}")
    for name, agent in pairs:
        print(line(name, agent, options.workers, runs))


if __name__ == "__main__":
    main()
