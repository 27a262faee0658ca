"""Speed of LLMServing-v0: milliseconds of CPU for a run of requests on one deployment.

Run as ``python -m benchmarks.llm_serving_speed``. BLIS took 140 ms and aiconfigurator 870 ms for a
design on the machine where they were measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import numpy as np

from archgym.envs.llm.data.cluster import load_cluster
from archgym.envs.llm.data.model import load_model
from archgym.envs.llm.serving.engine import load_engine
from archgym.envs.llm.serving.records import Deployment, Pool, Requests
from archgym.envs.llm.serving.simulator import simulate

POOL = Pool("dgx_h100", tensor_parallel=4)
DEPLOYMENTS = {
    "4 H100": Deployment(POOL),
    "two replicas of 4, least loaded": Deployment(
        dataclasses.replace(POOL, replicas=2), routing="least_loaded"
    ),
    "4 that prefill, 4 that decode": Deployment(POOL, POOL),
    "4, cache of 2,000 blocks": Deployment(dataclasses.replace(POOL, cache_blocks=2000)),
    "4, draft model": Deployment(dataclasses.replace(POOL, speculative_tokens=3)),
}


def requests(n: int) -> Requests:
    """Poisson arrivals at 6 a second, drawn lengths."""
    rng = np.random.default_rng(0)
    return Requests.of(
        np.cumsum(rng.exponential(1 / 6, n)),
        rng.integers(100, 2000, n),
        rng.integers(50, 500, n),
    )


def milliseconds(deployment: Deployment, n: int, repeats: int) -> float:
    """Of CPU, coefficients included; the least of the repeats."""
    fleet = {"dgx_h100": load_cluster("dgx_h100")}
    model, engine, some = load_model("llama3_70b"), load_engine("vllm"), requests(n)
    simulate([deployment], model, fleet, some, engine)  # compiles
    times = []
    for _ in range(repeats):
        start = time.process_time()
        simulate([deployment], model, fleet, some, engine)
        times.append(time.process_time() - start)
    return min(times) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    print("| deployment | " + " | ".join(f"{n:,} requests, ms" for n in arguments.requests) + " |")
    print("|---" * (len(arguments.requests) + 1) + "|")
    for name, deployment in DEPLOYMENTS.items():
        found = [milliseconds(deployment, n, arguments.repeats) for n in arguments.requests]
        print(f"| {name} | " + " | ".join(f"{one:.1f}" for one in found) + " |")


if __name__ == "__main__":
    main()
