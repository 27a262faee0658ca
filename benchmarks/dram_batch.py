"""How `evaluate_batch` of the DRAM environment scales, and how long compiling takes.

Run as ``python benchmarks/dram_batch.py``: a batch of designs that all need a run of their own, on
one core and on all, alternating; the first call in a process with an empty cache of compiled code
and in the next one; the memory of a process that evaluates more and more designs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import archgym
from archgym.envs.dram.environment import DramEnvironment

ONE_CALL = """
import resource, time
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.traces.workload import load_workload

trace = prepare(load_workload({"generator": "stream", "requests": 100}), load_memory("DDR4-2400"))
start = time.perf_counter()
simulate(trace, ControllerConfig())
print(time.perf_counter() - start)
"""


def scaling(designs: int, repeats: int) -> None:
    def fresh() -> DramEnvironment:  # one that has simulated something knows it
        env = archgym.make("DRAM-v0", workload={"recorded": "zstd", "requests": 50_000})
        assert isinstance(env, DramEnvironment)
        return env

    env = fresh()
    batch = env.design_space.sample(designs, np.random.default_rng(0))
    env.simulator.simulate(batch)
    cores = len(os.sched_getaffinity(0))
    best = {1: float("inf"), cores: float("inf")}
    for _ in range(repeats):
        for threads in best:
            os.environ["OMP_NUM_THREADS"] = str(threads)
            env = fresh()
            start = time.perf_counter()
            env.simulator.simulate(batch)
            best[threads] = min(best[threads], time.perf_counter() - start)
    speed_up = best[1] / best[cores]
    print(
        f"{designs} designs, {len(env.trace):,} requests: {best[1]:.2f} s on one core, "
        f"{best[cores]:.2f} s on {cores}: {speed_up:.2f} times, efficiency {speed_up / cores:.2f}"
    )


def first_call() -> None:
    with tempfile.TemporaryDirectory() as cache:
        for name in ("empty cache", "next process"):
            done = subprocess.run(
                [sys.executable, "-c", ONE_CALL],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
                timeout=300,
            )
            print(f"first call, {name}: {float(done.stdout):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    first_call()
    scaling(args.designs, args.repeats)


if __name__ == "__main__":
    main()
