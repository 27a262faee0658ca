"""Designs per second of the tensor engine environment, on one core.

Run as ``python benchmarks/tpe_speed.py`` (``OMP_NUM_THREADS=1`` keeps numpy on one core): random
designs of the default space in batches that the process sees for the first time. The first batch
finds nothing but compiled code: no heap, no adder and no statistic of the workload's operands is
known yet. Times are those of the processor, so that other work on the machine counts less.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import archgym

WORKLOADS: dict[str, Any] = {
    "resnet18": "resnet18",
    "gemm": {"gemm": [256, 1024, 256]},
    "digits_transformer": "digits_transformer",
}
TARGET = 20_000


def rates(workload: Any, designs: int, batches: int) -> list[float]:
    """Designs per second of each batch."""
    env = archgym.make("TPE-v0", workload=workload)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(batches):
        batch = env.design_space.sample(designs, rng)
        start = time.process_time()
        env.simulate_batch(batch)
        found.append(designs / (time.process_time() - start))
    return found


def load_compiled_code() -> None:
    """One design of a tiny product: what numba compiles or reads from its cache."""
    env = archgym.make("TPE-v0", workload={"gemm": [2, 2, 2]})
    env.simulate_batch(env.design_space.sample(1, np.random.default_rng(1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=20_000)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--workload", choices=WORKLOADS, help="only one, in a process of its own")
    args = parser.parse_args()
    load_compiled_code()
    for name in [args.workload] if args.workload else WORKLOADS:
        found = rates(WORKLOADS[name], args.designs, args.batches)
        print(
            f"{name}: {', '.join(f'{rate:,.0f}' for rate in found)} designs/s; the first batch "
            f"{found[0] / TARGET:.2f} times the target of {TARGET:,}"
        )


if __name__ == "__main__":
    main()
