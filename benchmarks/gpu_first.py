"""Designs that the model of GPUKernel-v0 likes best, measured beside PyTorch's own product.

``python -m benchmarks.gpu_first [--sizes 640,896,...] [--first 10] [--passes 7]`` needs torch,
triton, nvidia-ml-py and a GPU. It prints, for each square product in fp16, the time of PyTorch's
product and by how much the first design, the best of five and the best of all take more or less.
With ``--each`` it prints the time of each design too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import archgym
from archgym.envs.gpu.workload import shape_of

Design = Mapping[str, Any]
_SIZES = "640,896,1280,1792,2304,2560,3072,3584,5120,6144"


def liked(size: int, count: int) -> list[Design]:
    """The designs of a square product with the shortest predicted times."""
    model = archgym.make("GPUKernel-v0", workload={"gemm": [size, size, size]})
    designs = model.design_space.unrank(np.arange(int(model.design_space.canonical_cardinality)))
    times = [one.metrics.get("time_us") or np.inf for one in model.evaluate_batch(designs)]
    return [designs[int(place)] for place in np.argsort(times)[:count]]


def compile_designs(size: int, designs: Iterable[Design]) -> None:
    """Compiles designs in parallel; those of one design and other sizes are the same code."""
    import torch

    from archgym.envs.gpu.measuring.compiling import compile_all

    properties = torch.cuda.get_device_properties(0)
    shape = shape_of({"gemm": [size, size, size]})
    tasks = [(shape, [design]) for design in designs]
    processes = max(1, (os.cpu_count() or 2) - 2)
    for _ in compile_all(tasks, properties.major * 10 + properties.minor, processes):
        pass


def measured(size: int, designs: list[Design], passes: int) -> tuple[float, list[float]]:
    """Time of PyTorch's product and of designs, medians of the passes, us."""
    from archgym.envs.gpu.measuring.problem import Problem
    from archgym.envs.gpu.measuring.timing import Meter

    problem, meter = Problem(shape_of({"gemm": [size, size, size]})), Meter()
    launches = [problem.torch_launch(), *(problem.launch(design) for design in designs)]
    for launch in launches:
        problem.poison()
        launch()
        assert problem.error() <= problem.tolerance
    times: list[list[float]] = [[] for _ in launches]
    for number in range(passes):
        for place in np.random.default_rng(number).permutation(len(launches)):
            guess = times[place][-1] if times[place] else None
            times[place].append(meter.timed(launches[place], guess).time_us)
    torch_us, *others = (statistics.median(some) for some in times)
    return torch_us, others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--sizes", default=_SIZES)
    parser.add_argument("--first", type=int, default=10, help="designs of each product")
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--each", action="store_true", help="print each design and its time")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    designs = {size: liked(size, given.first) for size in sizes}
    every = {tuple(one.items()): one for some in designs.values() for one in some}
    compile_designs(sizes[0], every.values())
    for size in sizes:
        torch_us, times = measured(size, designs[size], given.passes)
        shares = [min(times[:count]) / torch_us - 1 for count in (1, 5, len(times))]
        found = ", ".join(f"{share:+.1%}" for share in shares)
        print(f"{size}: {torch_us:.2f} us, {found}", flush=True)
        if given.each:
            for design, time_us in zip(designs[size], times, strict=True):
                print(f"  {time_us:.2f} us {json.dumps(design)}", flush=True)


if __name__ == "__main__":
    main()
