"""Resident memory of a search of 200,000 evaluations with recording on: it stays flat.

python benchmarks/memory.py [--evaluations 200000]
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np
import psutil
from step_overhead import TenParameters  # type: ignore[import-not-found]

from archgym.agents.random import RandomSearch

BLOCK = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=200_000)
    parser.add_argument("--loop", action="store_true", help="a plain loop of step() instead")
    arguments = parser.parse_args()
    marks = [arguments.evaluations * share // 10 for share in (1, 2, 3, 5, 7, 10)]
    process, start = psutil.Process(), time.perf_counter()
    seen: list[tuple[int, int]] = []

    def look(simulations: int) -> None:
        if len(seen) < len(marks) and simulations >= marks[len(seen)]:
            seen.append((simulations, process.memory_info().rss))

    with tempfile.TemporaryDirectory() as folder:
        env = TenParameters(record=folder)
        if arguments.loop:
            rng = np.random.default_rng(0)
            while env.evaluator.simulations < arguments.evaluations:
                for design in env.design_space.sample(BLOCK, rng):
                    env.evaluate(design)
                look(env.evaluator.simulations)
        else:
            env.on_evaluated = lambda outcomes: look(env.evaluator.simulations + 1)
            RandomSearch(env.design_space, seed=0).search(env, arguments.evaluations)
        env.close()
    print(f"{arguments.evaluations:,} evaluations in {time.perf_counter() - start:.1f} s")
    for simulations, rss in seen:
        print(f"after {simulations:8,}: {rss / 2**20:8.1f} MiB resident")
    (first, least), (last, most) = seen[0], seen[-1]
    print(f"growth: {(most - least) / (last - first):.0f} bytes an evaluation")


if __name__ == "__main__":
    main()
