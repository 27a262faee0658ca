"""What a run costs beside its simulators and agents, and the memory of its driver.

Trials on a simulator of 1 ms (it sleeps, as an external one would) through Ray on two CPUs; then
again ten times as many trials of a simulator that takes no time. Bars: everything that is neither
simulator nor agent takes under 10 % of the wall time of the first, and the driver's memory does
not grow with the trials.

    python -m benchmarks.framework_share [--trials 400] [--budget 100] [--local]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import psutil
import yaml

import archgym
from archgym.space import DesignSpace, Integer, Ordinal

BAR = 0.10


class Millisecond(archgym.Environment):
    """A closed form that takes ``seconds`` a design."""

    design_space = DesignSpace(
        [Integer("x", 0, 255), Integer("y", 0, 255), Ordinal("z", [1, 2, 4, 8, 16, 32])]
    )
    metrics: ClassVar = (
        archgym.Metric("time_ns", "ns", "minimize"),
        archgym.Metric("area_um2", "um2", "minimize"),
    )
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 0, "y": 0, "z": 1}

    incidental_arguments: ClassVar = ("seconds",)

    def __init__(self, *, seconds: float = 0.001, **arguments: Any) -> None:
        self.seconds = seconds
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:  # as a simulator that keeps its core busy
            pass
        x, y, z = design["x"], design["y"], design["z"]
        return {"time_ns": 1.0 + (x - 40) ** 2 + (y - 17) ** 2 + 100 / z, "area_um2": 1.0 + x + y}


def run(folder: Path, trials: int, budget: int, seconds: float, local: bool) -> dict[str, Any]:
    experiment = {
        "name": "share",
        "budget": budget,
        "seeds": trials // 2,
        "environments": [
            {"id": "benchmarks.framework_share:Millisecond", "arguments": {"seconds": seconds}}
        ],
        "agents": [{"name": "random"}, {"name": "sa"}],
    }
    path = folder / f"{trials}.yaml"
    path.write_text(yaml.safe_dump(experiment))
    out = folder / f"run-{trials}"
    options = ["--local"] if local else ["--cpus", "2"]
    command = [sys.executable, "-m", "archgym", "run", str(path), "--out", str(out), "-q", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    memory: list[int] = []

    def watch() -> None:
        driver = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                memory.append(driver.memory_info().rss)
            except psutil.Error:
                return
            time.sleep(0.25)

    thread = threading.Thread(target=watch)
    thread.start()
    assert process.wait() == 0
    thread.join()
    summary: dict[str, Any] = json.loads((out / "results" / "summary.json").read_text())
    half = memory[len(memory) // 4 : max(len(memory) // 4 + 1, 3 * len(memory) // 4)]
    return {**summary, "growth_mib": (half[-1] - half[0]) / 2**20, "peak_mib": max(memory) / 2**20}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--local", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = run(folder, chosen.trials, chosen.budget, 0.001, chosen.local)
        many = run(folder, 10 * chosen.trials, chosen.budget, 0.0, chosen.local)
    split = few["split"]
    share = split["framework_s"] / split["wall_s"]
    workers = 1 if chosen.local else 2
    print(f"{few['trials']['total']} trials of {chosen.budget} simulations of 1 ms:")
    print(f"  wall time of the trials {split['wall_s']:.1f} s, of the run {few['wall_s']:.1f} s")
    print(
        f"  simulators {split['simulation_s'] / split['wall_s']:.1%}, agents "
        f"{split['agent_s'] / split['wall_s']:.1%}, framework {share:.1%} (bar {BAR:.0%})"
    )
    print(
        f"  {workers} workers busy with trials {split['wall_s'] / workers / few['wall_s']:.0%} "
        "of the run, start and end of Ray included"
    )
    for result in (few, many):
        print(
            f"{result['trials']['total']} trials: driver {result['peak_mib']:.0f} MiB at its "
            f"peak, {result['growth_mib']:+.0f} MiB in the middle half of the run"
        )
    sys.exit(share > BAR)


if __name__ == "__main__":
    main()
