"""A search whose designs ``archgym worker`` processes simulate, which come and go meanwhile.

python benchmarks/cluster_workers.py [--workers 32] [--designs 10000] [--seconds 0.2] [--ends 50]

Workers are ended now and then, by SIGKILL, SIGTERM or SIGUSR1 in turn, and others started. At the
end, every design must be in the dataset once. The processor time of the driver is that of the
process of ``archgym run``, from its first result to its last, agent and recording included.
"""

from __future__ import annotations

import argparse
import itertools
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

import psutil
import yaml

from archgym.environment.environment import Environment
from archgym.problem.metrics import Metric
from archgym.space import DesignSpace, Integer

ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1)


class Sleeping(Environment):
    """Takes its time and does nothing."""

    design_space = DesignSpace([Integer("x", 0, 999), Integer("y", 0, 999)])
    metrics: ClassVar = (Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 0, "y": 0}

    def __init__(self, *, seconds: float = 0.2, **arguments: Any) -> None:
        self.seconds = seconds
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        time.sleep(self.seconds)
        return {"time_ns": 1.0 + (design["x"] - 300) ** 2 + (design["y"] - 700) ** 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--designs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a simulation")
    parser.add_argument("--ends", type=int, default=50, help="workers that are ended meanwhile")
    parser.add_argument("--lease", type=float, default=10.0, help="seconds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), arguments)


def measure(folder: Path, arguments: argparse.Namespace) -> None:
    run = folder / "run"
    run.mkdir()
    experiment = {
        "name": "workers",
        "budget": arguments.designs,
        "environments": [
            {"id": "cluster_workers:Sleeping", "arguments": {"seconds": arguments.seconds}}
        ],
        "agents": [{"name": "random"}],
        "simulation": {"executor": "workers", "lease_s": arguments.lease},
    }
    (folder / "workers.yaml").write_text(yaml.safe_dump(experiment))

    def start(*command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "archgym", *command],
            cwd=Path(__file__).parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    workers = [start("worker", str(run)) for _ in range(arguments.workers)]
    driver = start("run", str(folder / "workers.yaml"), "--local", "--out", str(run))
    process = psutil.Process(driver.pid)
    journals = run / "datasets"
    while not sum(path.stat().st_size > 50_000 for path in journals.glob("*/journal/*.jsonl")):
        time.sleep(0.05)  # until all workers have started
    began, cpu, ended = time.monotonic(), busy_s(process), 0
    interval = arguments.designs * arguments.seconds / arguments.workers / (arguments.ends + 2)
    memory: list[tuple[float, float]] = []
    last, used = began, cpu
    for how in itertools.cycle(ENDS):
        time.sleep(interval)
        if driver.poll() is not None:
            break
        last, used = time.monotonic(), busy_s(process)
        memory += [memory_mb(worker.pid) for worker in workers[1:4] if worker.poll() is None]
        if ended < arguments.ends:
            number = ended % len(workers)
            workers[number].send_signal(how)
            workers[number].wait()
            workers[number] = start("worker", str(run))
            ended += 1
    codes = [worker.wait(120) for worker in workers]
    from archgym.data import Dataset  # here: workers import this module, and must stay small

    (path,) = journals.iterdir()
    rows = Dataset(path).evaluations().to_pylist()
    new = [row for row in rows if not row["cached"]]
    designs = {(row["param.x"], row["param.y"]) for row in new}
    assert driver.returncode == 0, driver.returncode
    assert len(new) == len(designs) == arguments.designs, "a design is missing or there twice"
    ends = sorted(row["timestamp"] for row in new)
    part = ends[len(ends) // 10 : len(ends) * 9 // 10]
    rate = (len(part) - 1) / (part[-1] - part[0]).total_seconds()
    share = (used - cpu) / (last - began)
    print(f"{arguments.designs:,} designs of {arguments.seconds} s, {arguments.workers} workers")
    print(f"ended meanwhile:      {ended} workers; none of the designs is lost, none is doubled")
    print(f"exit codes:           {dict.fromkeys(codes)!s}".replace(": None", ""))
    print(f"rate:                 {rate:.0f} designs/s (middle 80 % of the run)")
    print(f"busy workers:         {rate * arguments.seconds:.1f} of {arguments.workers}")
    print(f"driver:               {share:.1%} of a core, {share / rate * 100:.1%} at 100 designs/s")
    pss, rss = (statistics.median(some) for some in zip(*memory, strict=True))
    print(f"memory of a worker:   {pss:.0f} MB (PSS), {rss:.0f} MB (RSS), both its processes")


def busy_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def memory_mb(pid: int) -> tuple[float, float]:
    """Memory of a process and its children: shared pages in parts, and in each process; MB."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    found = [one.memory_full_info() for one in processes]
    return sum(one.pss for one in found) / 1e6, sum(one.rss for one in found) / 1e6


if __name__ == "__main__":
    main()
