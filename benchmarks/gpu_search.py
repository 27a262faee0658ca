"""Searches of measured GPU kernels, from nothing and from what the model likes best.

``python -m benchmarks.gpu_search [--budget 60] [--first 10] [--seed 1]`` prints by how much the
best design that ``auto`` finds is slower than the best one, for each shape that no model was fitted
to.
"""

from __future__ import annotations

import argparse

import numpy as np

import archgym
from archgym.envs.gpu.model.measured import measured_shapes

_NEAR = 0.03


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--first", type=int, default=10, help="designs that the model likes best")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found: list[tuple[float, float]] = []
    for shape in measured_shapes(held_out=True):
        table = f"tabular:gpu-{shape.name.replace('_', '-')}"
        first = archgym.make("GPUKernel-v0", simulator=table).predicted_designs(given.first)
        regrets = []
        for initial in ([], first):
            env = archgym.make("GPUKernel-v0", simulator=table)
            agent = archgym.make_agent("auto", env.design_space, seed=given.seed)
            best = agent.search(env, given.budget, initial=initial).best
            assert best is not None
            assert env.optimum is not None
            reached, optimum = (one.metrics["time_us"] for one in (best, env.optimum))
            assert reached is not None
            assert optimum is not None
            regrets.append(reached / optimum - 1)
        found.append((regrets[0], regrets[1]))
        print(f"{shape.name}: {regrets[0]:.1%}, {regrets[1]:.1%}", flush=True)
    near = (np.array(found) <= _NEAR).sum(axis=0)
    print(f"within {_NEAR:.0%}: {near[0]} and {near[1]} of {len(found)} shapes")


if __name__ == "__main__":
    main()
