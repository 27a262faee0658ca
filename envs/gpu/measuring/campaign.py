"""Measuring many designs of many shapes into CSV files within a time limit.

``python -m archgym.envs.gpu.measuring.campaign --out DIR --shapes NAME,... --seconds N`` compiles
in parallel, runs each design as soon as it is compiled, checks its result, and times it in three
passes at different moments, each in its own random order; then it measures power for part of the
designs. Rows are written as they come, so that a run that is cut off leaves what it measured.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import os
import random
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.envs.gpu.measuring.choosing import chosen_designs, surely_too_large
from archgym.envs.gpu.parameters import KERNELS, SHAPES, Shape

CHUNK = 12
"""Designs that a process compiles at a time."""


class Table:
    """A CSV file whose rows reach the disk as they come."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self._lock = threading.Lock()
        self._file = path.open("a", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file)
        self._writer.writerow(columns)
        self._file.flush()

    def add(self, *values: Any) -> None:
        """Adds a row."""
        row = [f"{v:.6g}" if isinstance(v, float) else v for v in values]
        with self._lock:
            self._writer.writerow(row)
            self._file.flush()


def key_of(design: Mapping[str, int]) -> str:
    """A design as text: its values in the order of the parameters."""
    return " ".join(map(str, design.values()))


class Campaign:
    """One run of the measuring program.

    Args:
        out: folder for the tables.
        shapes: to measure, in this order.
        seconds: after which it ends, s.
        power_share: share of the time that power gets, at the end.
        limit: designs a shape at most, drawn at random; 0 for all.
        seed: of orders and draws.
        others: of products, only those of the copy engine and so many others; negative for all.
        power_kernels: power is measured of their shapes.
    """

    def __init__(
        self,
        out: Path,
        shapes: list[Shape],
        seconds: float,
        power_share: float,
        limit: int,
        seed: int,
        others: int = -1,
        power_kernels: Sequence[str] = KERNELS,
    ) -> None:
        import torch

        from archgym.envs.gpu.measuring.timing import Meter

        self._begun = time.perf_counter()
        self._end = self._begun + seconds
        self._timing_end = self._begun + seconds * (1 - power_share)
        self._random = random.Random(seed)
        self._meter = Meter()
        self._torch = torch
        device = torch.cuda.get_device_properties(0)
        self._capability = device.major * 10 + device.minor
        self._shared_limit = int(device.shared_memory_per_block_optin)  # type: ignore[attr-defined]
        self._shapes = {shape.name: shape for shape in shapes}
        self._designs: dict[str, list[dict[str, int]]] = {}
        for shape in shapes:
            every = chosen_designs(shape, others, self._random)
            self._designs[shape.name] = self._random.sample(every, limit) if limit else every
        self._compiled: dict[str, list[Mapping[str, int]]] = {name: [] for name in self._shapes}
        self._missing = {name: len(some) for name, some in self._designs.items()}
        self._lock = threading.Lock()
        self._good: dict[str, dict[str, tuple[dict[str, int], float]]] = {}
        self._checked = Table(
            out / "designs.csv",
            ("shape", "design", "status", "reason", "error", "shared", "registers", "spills"),
        )
        self._times = Table(
            out / "times.csv",
            (
                "shape",
                "design",
                "pass",
                "time_us",
                "fastest_us",
                "launches",
                "clock_mhz",
                "temperature_c",
                "moment_s",
            ),
        )
        self._powers = Table(
            out / "power.csv",
            ("shape", "design", "power_w", "time_us", "clock_mhz", "temperature_c", "moment_s"),
        )
        self._out = out
        self._power_kernels = power_kernels

    def run(self, processes: int) -> None:
        """Compiles, checks, times in three passes, and measures power."""
        self._describe()
        compiling = threading.Thread(target=self._compile, args=(processes,), daemon=True)
        compiling.start()
        for name in self._shapes:
            self._first_pass(name)
        for number in (2, 3):
            self._again(number)
        self._power()

    def _now(self) -> float:
        return time.perf_counter() - self._begun

    def _describe(self) -> None:
        import subprocess

        import triton

        query = (
            "name,driver_version,power.limit,clocks.max.sm,clocks.max.mem,clocks.sm,vbios_version"
        )
        asked = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
        smi = subprocess.run(asked, capture_output=True, text=True, timeout=60).stdout.strip()
        properties = self._torch.cuda.get_device_properties(0)
        (self._out / "machine.json").write_text(
            json.dumps(
                {
                    "torch": self._torch.__version__,
                    "triton": triton.__version__,
                    "cuda": self._torch.version.cuda,
                    "smi": smi,
                    "asked": query,
                    "properties": str(properties),
                    "date": time.strftime("%Y-%m-%d %H:%M"),
                    "cores": os.cpu_count(),
                    "shared_limit": self._shared_limit,
                    "energy_ticks": self._meter.ticks[-6:],
                },
                indent=1,
            )
        )

    def _compile(self, processes: int) -> None:
        from archgym.envs.gpu.measuring.compiling import compile_all

        tasks: list[tuple[Shape, list[Mapping[str, int]]]] = []
        twins: dict[tuple[Any, ...], list[tuple[str, Mapping[str, int]]]] = {}
        for name, shape in self._shapes.items():
            wanted: list[Mapping[str, int]] = []
            for design in self._designs[name]:
                if surely_too_large(shape, design, self._shared_limit):
                    self._checked.add(
                        name, key_of(design), "failed", "shared memory", "", "", "", ""
                    )
                    with self._lock:
                        self._missing[name] -= 1
                    continue
                same = self._same_code(shape, design)
                if same not in twins:
                    twins[same] = []
                    wanted.append(design)
                twins[same].append((name, design))
            self._random.shuffle(wanted)
            tasks += [(shape, wanted[i : i + CHUNK]) for i in range(0, len(wanted), CHUNK)]
        for some in compile_all(tasks, self._capability, processes):
            for one in some:
                for name, twin in twins[self._same_code(self._shapes[one.shape], one.design)]:
                    with self._lock:
                        if not one.reason:
                            self._compiled[name].append(twin)
                            continue
                        self._missing[name] -= 1
                    self._checked.add(name, key_of(twin), "failed", one.reason, "", "", "", "")

    @staticmethod
    def _same_code(shape: Shape, design: Mapping[str, int]) -> tuple[Any, ...]:
        """Equal for designs with the same compiled code."""
        sizes = shape.sizes
        if shape.kernel == "gemm":
            left = {n: v for n, v in design.items() if n not in ("group_m", "split_k")}
            if design["copy_engine"]:  # what is outside is cut off as it runs
                return ("gemm", shape.dtype, *left.values())
            even = sizes["k"] % design["block_k"] == 0
            aligned = tuple(sizes[size] % 16 == 0 for size in ("m", "n", "k"))
            special = (even, design["split_k"] > 1, aligned)
            return ("gemm", shape.dtype, *left.values(), *special)
        if shape.kernel == "attention":
            return ("attention", sizes["head"], sizes["causal"], *design.values())
        return ("norm", design["block_columns"] >= sizes["columns"], *design.values())

    def _first_pass(self, name: str) -> None:
        from archgym.envs.gpu.measuring.problem import Problem

        problem = Problem(self._shapes[name])
        good: dict[str, tuple[dict[str, int], float]] = {}
        self._good[name] = good
        self._baseline(problem, 1)
        done = 0
        while self._now() < self._timing_end - self._begun:
            with self._lock:
                ready, missing = self._compiled[name], self._missing[name]
                self._compiled[name] = []
            if not ready:
                if done >= missing:
                    break
                time.sleep(0.01)
                continue
            self._random.shuffle(ready)
            for design in ready:
                if time.perf_counter() > self._timing_end:
                    return
                self._check(problem, design, good)
                done += 1
        print(f"{self._now():.0f} s: {name}: {len(good)} good of {done}", flush=True)

    def _check(self, problem: Any, design: Mapping[str, int], good: dict[str, Any]) -> None:
        name, key, cuda = problem.shape.name, key_of(design), self._torch.cuda
        try:
            launch = problem.launch(design)
            problem.poison()
            start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            kernel = launch()
            start.record()
            launch()
            end.record()
            error = problem.error()
            guess = start.elapsed_time(end) * 1e3
        except Exception as failure:
            text = f"{type(failure).__name__}: {str(failure).strip()[:160]}"
            reason = "shared memory" if "OutOfResources" in text and "shared" in text else text
            self._checked.add(name, key, "failed", reason, "", "", "", "")
            if "CUDA" in text and "OutOfResources" not in text:
                raise  # nothing works after this
            return
        known = (int(kernel.metadata.shared), int(kernel.n_regs), int(kernel.n_spills))
        if not error <= problem.tolerance:
            self._checked.add(name, key, "failed", "wrong result", error, *known)
            return
        self._checked.add(name, key, "ok", "", error, *known)
        good[key] = (dict(design), guess)
        self._time(name, key, launch, 1, guess)

    def _time(self, name: str, key: str, launch: Any, number: int, guess: float) -> float:
        timed = self._meter.timed(launch, guess)
        self._times.add(
            name,
            key,
            number,
            timed.time_us,
            timed.fastest_us,
            timed.launches,
            timed.clock_mhz,
            timed.temperature_c,
            self._now(),
        )
        return timed.time_us

    def _baseline(self, problem: Any, number: int) -> None:
        try:
            launch = problem.torch_launch()
            for _ in range(3):
                launch()
            self._torch.cuda.synchronize()
            self._time(problem.shape.name, "torch", launch, number, 0.0)
        except Exception as failure:
            text = f"{type(failure).__name__}: {str(failure).strip()[:160]}"
            self._checked.add(problem.shape.name, "torch", "failed", text, "", "", "", "")

    def _again(self, number: int) -> None:
        from archgym.envs.gpu.measuring.problem import Problem

        for name, good in self._good.items():
            problem = Problem(self._shapes[name], seed=number)
            self._baseline(problem, number)
            order = list(good.items())
            self._random.shuffle(order)
            for key, (design, guess) in order:
                if time.perf_counter() > self._timing_end:
                    return
                self._time(name, key, problem.launch(design), number, guess)
        print(f"{self._now():.0f} s: pass {number}", flush=True)

    def _power(self) -> None:
        """Power of PyTorch's kernel and of random designs, the shapes in turn."""
        from archgym.envs.gpu.measuring.problem import Problem

        names = [n for n in self._good if self._shapes[n].kernel in self._power_kernels]
        problems = {name: Problem(self._shapes[name]) for name in names if self._good[name]}
        orders = {name: list(self._good[name].items()) for name in problems}
        for order in orders.values():
            self._random.shuffle(order)
        for turn in itertools.count():
            left = False
            for name, problem in problems.items():
                if turn >= len(orders[name]):
                    continue
                if time.perf_counter() > self._end:
                    return
                left = True
                key, (design, guess) = orders[name][turn]
                launch = problem.launch(design)
                if turn == 0:
                    key, launch, guess = "torch", problem.torch_launch(), 200.0
                power, time_us, clock = self._meter.power(launch, guess)
                self._powers.add(
                    name, key, power, time_us, clock, self._meter.temperature_c, self._now()
                )
                if not math.isfinite(power):
                    print(f"no power: {name} {key}", flush=True)
            if not left:
                return


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shapes", default="", help="names, or all")
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--power-share", type=float, default=0.3)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--others", type=int, default=-1)
    parser.add_argument("--power-kernels", nargs="+", choices=KERNELS, default=KERNELS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    by_name = {shape.name: shape for shape in SHAPES}
    names = given.shapes.split(",") if given.shapes else list(by_name)
    shapes = [by_name[name] for name in names]
    campaign = Campaign(
        given.out,
        shapes,
        given.seconds,
        given.power_share,
        given.limit,
        given.seed,
        given.others,
        given.power_kernels,
    )
    campaign.run(given.processes)
    sys.stdout.flush()
    os._exit(0)  # processes may still be compiling for a pass that there was no time for


if __name__ == "__main__":
    main()
