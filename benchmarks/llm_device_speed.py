"""Speed of LLMDevice-v0: designs a CPU second of one thread.

Run as ``python -m benchmarks.llm_device_speed``. Random designs of each workload: the metrics as
columns, the simulator (columns and a result for each design), and the whole environment, which
checks, counts, scores and keeps every design.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import archgym
from archgym.envs.llm.device.columns import columns_of
from archgym.envs.llm.device.environment import LLMDevice
from archgym.envs.llm.device.metrics import metric_columns
from archgym.envs.llm.device.workload import WORKLOADS


def rates(workload: str, n: int) -> tuple[float, float, float]:
    """Designs a CPU second: metrics, simulator, environment."""
    env = archgym.make("LLMDevice-v0", workload=workload)
    assert isinstance(env, LLMDevice)
    designs = env.design_space.sample(n, np.random.default_rng(0))
    found = []
    for run in (
        lambda: metric_columns(columns_of(designs), env.loaded),
        lambda: env.simulate_batch(designs),
        lambda: env.evaluate_batch(designs),
    ):
        start = time.process_time()
        run()
        found.append(n / (time.process_time() - start))
    return found[0], found[1], found[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=100_000)
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS))
    arguments = parser.parse_args()
    print("| workload | metrics, designs/s | simulator, designs/s | environment, designs/s |")
    print("|---|---|---|---|")
    for workload in arguments.workloads:
        metrics, simulator, whole = rates(workload, arguments.designs)
        print(f"| {workload} | {metrics:,.0f} | {simulator:,.0f} | {whole:,.0f} |")


if __name__ == "__main__":
    main()
