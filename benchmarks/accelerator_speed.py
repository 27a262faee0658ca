"""The embedded accelerator model beside ZigZag, SCALE-Sim and MAESTRO: speed, in one run.

Run as ``python -m benchmarks.accelerator_speed`` with the extras ``zigzag`` and ``scalesim`` (or
``ARCHGYM_ZIGZAG_PYTHON`` and ``ARCHGYM_SCALESIM_PYTHON`` set to Python interpreters that have them)
and ``ARCHGYM_MAESTRO``; one that is missing is left out.

Ours: layers of random designs of the ``template`` space a CPU second of one thread, from designs to
metrics of the network. Theirs: CPU seconds of the process that runs the same layers, start and
imports apart (a run without layers), so that the comparison is of the models.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")

import archgym
from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.external.maestro import MaestroSimulator
from archgym.envs.accelerator.external.program import AcceleratorProgram
from archgym.envs.accelerator.external.scalesim import ScaleSimSimulator
from archgym.envs.accelerator.external.zigzag import ZigZagSimulator
from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.accelerator.workload.workload import load_workload
from archgym.errors import MissingDependencyError

NVDLA = Hardware("nvdla_ws", rows=16, columns=16, weights_bypass_buffer=True)
SYSTOLIC = Hardware(
    "systolic_ws",
    rows=16,
    columns=16,
    buffer_bytes=3 * 65536,
    buffer_split_bytes=(65536, 65536, 65536),
    dram_links="separate",
)
# Layers of ResNet-18; SCALE-Sim's time grows with cycles, so it gets the smallest ones.
NAMED = ("layer3.0.conv1", "layer4.0.conv1", "layer4.0.downsample")
SMALL = (
    Layer("small conv", "conv", K=32, C=16, R=3, S=3, P=14, Q=14),
    Layer.from_gemm("small gemm", M=64, N=64, K=256),
)


def cpu_seconds(run: Callable[[], object], repeats: int) -> float:
    """Least CPU time of this process for a call, after one to warm up."""
    run()
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def child_seconds(run: Callable[[], object]) -> float:
    """CPU time of the processes that a call starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ours(designs: int, repeats: int) -> dict[str, float]:
    """Prints how fast we are; seconds a design and layer, by mapper."""
    print("\n## Embedded, one thread\n")
    print("| network | layers | mapper | design-layers a CPU second | ms for one design |")
    print("|---|---|---|---|---|")
    seconds: dict[str, float] = {}
    for name in ("resnet50", "mobilenet_v2", "bert_base"):
        for mapper in ("off", "latency", "edp"):
            env: Any = archgym.make(
                "Accelerator-v0", workload=name, space="template", mapper=mapper
            )
            layers = len(env.network.layers)
            drawn = env.design_space.sample(designs, np.random.default_rng(0))
            many = cpu_seconds(partial(env.simulate_batch, drawn), repeats)
            one = env.design_space.designs([env.baseline_design])
            single = cpu_seconds(partial(env.simulate_batch, one), 5 * repeats)
            rate = designs * layers / many
            print(f"| {name} | {layers} | {mapper} | {rate:,.0f} | {1e3 * single:.2f} |")
            if name == "resnet50":
                seconds[mapper] = 1 / rate
    return seconds


def theirs(
    make: Callable[[Network], AcceleratorProgram], hardware: Hardware, layers: Sequence[Layer]
) -> float | None:
    """CPU seconds a layer, without start and imports; ``None`` if it is not installed."""
    try:
        program = make(Network("benchmark", tuple(layers), (1,) * len(layers)))
    except MissingDependencyError as error:
        print(error)
        return None

    def run(chosen: Sequence[Layer]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program.run(hardware, chosen, Path(folder))

    # The first of two equal layers pays for the start, the difference is the layer's own.
    whole = child_seconds(lambda: run([*layers, *layers]))
    return (whole - child_seconds(lambda: run(layers))) / len(layers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    mine = ours(args.designs, args.repeats)
    resnet18 = load_workload("resnet18")
    named = [layer for layer in resnet18.layers if layer.name in NAMED]
    print("\n## Beside other programs, CPU seconds a layer\n")
    rows = [
        ("ZigZag", theirs(lambda n: ZigZagSimulator(n, lambda _: NVDLA), NVDLA, named), "latency"),
        (
            "SCALE-Sim",
            theirs(lambda n: ScaleSimSimulator(n, lambda _: SYSTOLIC), SYSTOLIC, SMALL),
            "off",
        ),
        ("MAESTRO", theirs(lambda n: MaestroSimulator(n, lambda _: NVDLA), NVDLA, named), "off"),
    ]
    print("| program | CPU s a layer | ours, same task | times faster |")
    print("|---|---|---|---|")
    for name, seconds, mapper in rows:
        if seconds is not None:
            print(
                f"| {name} | {seconds:.4f} | {mine[mapper]:.2e} (mapper {mapper}) "
                f"| {seconds / mine[mapper]:,.0f} |"
            )


if __name__ == "__main__":
    main()
