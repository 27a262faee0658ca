"""Speed of the NAS environment with known accuracies.

Run as ``python -m benchmarks.nas_speed``. CPU milliseconds of one thread for a design: networks
looked up, every layer's cost on every sub-accelerator, mapping and scheduling, metrics, reward.

- random: designs drawn at random, so that next to no sub-accelerator was seen before,
- search: those that a genetic algorithm asks for, all its own work left out; here most
  sub-accelerators are known from earlier designs.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")

import archgym
from archgym.evaluation.outcome import Outcomes


def random_ms(workload: str, scheduler: str, designs: int) -> float:
    """CPU ms for a design, of random ones evaluated one by one."""
    env = archgym.make("NAS-v0", workload=workload, scheduler=scheduler)
    drawn = list(env.design_space.sample(designs, np.random.default_rng(0)))
    start = time.process_time()
    for design in drawn:
        env.evaluate(design)
    return 1e3 * (time.process_time() - start) / designs


def search_ms(workload: str, scheduler: str, designs: int) -> float:
    """CPU ms for a design, of those that a search asks for."""
    env = archgym.make("NAS-v0", workload=workload, scheduler=scheduler)
    asked: list[Outcomes] = []
    env.on_evaluated = asked.append
    archgym.make_agent("ga", env.design_space, seed=0).search(env, designs)
    again = archgym.make("NAS-v0", workload=workload, scheduler=scheduler)
    start = time.process_time()
    for outcomes in asked:
        again.evaluate_batch(outcomes.designs)
    return 1e3 * (time.process_time() - start) / designs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=1000)
    parser.add_argument("--workloads", nargs="+", default=["digits_cells", "digits_twice", "W1"])
    arguments = parser.parse_args()
    print("| workload | scheduler | random, ms | search, ms |")
    print("|---|---|---|---|")
    for workload in arguments.workloads:
        for scheduler in ("hap", "list"):
            random_ms(workload, scheduler, 2)  # compiles
            drawn = random_ms(workload, scheduler, arguments.designs)
            searched = search_ms(workload, scheduler, arguments.designs)
            print(f"| {workload} | {scheduler} | {drawn:.2f} | {searched:.2f} |")


if __name__ == "__main__":
    main()
