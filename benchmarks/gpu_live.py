"""Searches on the GPU of this machine against the best design of the tables, measured beside.

``python -m benchmarks.gpu_live [--shapes NAME,...] [--budget 60] [--seed 1] [--processes 14]``
needs torch, triton and a GPU. ``auto`` searches each shape with ``simulator="triton"``, from
nothing and from the ten designs that the model likes best; then the found designs, the best of the
shape's table and PyTorch's own kernel are measured together, in turns. It prints by how much each
takes more time than the best of the table; the default shapes are those that no model was fitted
to.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

import archgym
from archgym.envs.gpu.parameters import HELD_OUT

Design = Mapping[str, Any]
_NEAR = 0.03
_STARTS = ("nothing", "predicted")


def searched(shape: str, start: str, budget: int, seed: int) -> dict[str, Any]:
    """The best design that ``auto`` finds on the GPU."""
    env = archgym.make("GPUKernel-v0", workload=shape, simulator="triton")
    first = env.predicted_designs(10) if start == "predicted" else []
    agent = archgym.make_agent("auto", env.design_space, seed=seed)
    best = agent.search(env, budget, initial=first).best
    assert best is not None
    return dict(best.design)


def best_of_table(shape: str) -> dict[str, Any]:
    """The design of a shape's table with the shortest time."""
    table = f"tabular:gpu-{shape.replace('_', '-')}"
    optimum = archgym.make("GPUKernel-v0", simulator=table).optimum
    assert optimum is not None
    return dict(optimum.design)


def beside(shape: str, designs: Sequence[Design], passes: int) -> list[float]:
    """Times of PyTorch's kernel and of designs in turns, medians of the passes, us."""
    from archgym.envs.gpu.measuring.problem import Problem
    from archgym.envs.gpu.measuring.timing import Meter
    from archgym.envs.gpu.workload import shape_of

    problem, meter = Problem(shape_of(shape)), Meter(sensors=False)
    launches = [problem.torch_launch(), *(problem.launch(design) for design in designs)]
    for launch in launches:
        launch()
    times: list[list[float]] = [[] for _ in launches]
    for number in range(passes):
        for place in np.random.default_rng(number).permutation(len(launches)):
            guess = times[place][-1] if times[place] else None
            times[place].append(meter.timed(launches[place], guess).time_us)
    return [statistics.median(some) for some in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--shapes", default=",".join(shape.name for shape in HELD_OUT))
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--passes", type=int, default=9)
    given = parser.parse_args()
    shapes = given.shapes.split(",")
    tasks = [(shape, start, given.budget, given.seed) for shape in shapes for start in _STARTS]
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        waiting = [pool.submit(searched, *task) for task in tasks]
        found = {task[:2]: one.result() for task, one in zip(tasks, waiting, strict=True)}
    near = dict.fromkeys(_STARTS, 0)
    for shape in shapes:
        designs = [best_of_table(shape), *(found[shape, start] for start in _STARTS)]
        torch_us, best_us, *others = beside(shape, designs, given.passes)
        regrets = dict(zip(_STARTS, [one / best_us - 1 for one in others], strict=True))
        for start, regret in regrets.items():
            near[start] += regret <= _NEAR
        text = ", ".join(f"{regret:+.1%} from {start}" for start, regret in regrets.items())
        print(f"{shape}: {best_us:.2f} us, {text}, PyTorch {torch_us / best_us - 1:+.1%}")
        print(json.dumps(designs), flush=True)
    text = ", ".join(f"{count} from {start}" for start, count in near.items())
    print(f"within {_NEAR:.0%} of {len(shapes)} shapes: {text}")


if __name__ == "__main__":
    main()
