"""A search whose designs ``archgym worker`` processes simulate, which come and go meanwhile.

python benchmarks/cluster_workers.py [--workers 32] [--designs 10000] [--seconds 0.2] [--ends 50]

Workers are ended now and then, by SIGKILL, SIGTERM or SIGUSR1 in turn, and others started. At the
end, every design must be in the dataset once. The processor time of the driver is that of the
process of ``archgym run``, from its first result to its last, agent and recording included.

On few cores, the workers and not the driver decide the rate. With ``--stand-ins N``, that many
processes do all that the workers do in the folder, each for its part of them, and only the
simulating is left out: a result is there after the time of a simulation. The driver does not see a
difference, and can be measured at rates of large clusters:

python benchmarks/cluster_workers.py --workers 32 --stand-ins 4 --seconds 0.25 --ends 0
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import psutil
import yaml

from archgym.environment.environment import Environment
from archgym.experiment.workers.attendance import Attendance
from archgym.experiment.workers.queue_folder import Job, queue_folders
from archgym.experiment.workers.remote_worker import Task
from archgym.experiment.workers.slots import Done, Slots
from archgym.experiment.workers.told import told_by_signals
from archgym.problem.metrics import Metric
from archgym.space import DesignSpace, Integer

ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1)


class Sleeping(Environment):
    """Takes its time and does nothing."""

    design_space = DesignSpace([Integer("x", 0, 999), Integer("y", 0, 999)])
    metrics: ClassVar = (Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 0, "y": 0}
    incidental_arguments: ClassVar = ("seconds",)

    def __init__(self, *, seconds: float = 0.2, **arguments: Any) -> None:
        self.seconds = seconds
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        time.sleep(self.seconds)
        return {"time_ns": closed_form(design["x"], design["y"])}


class StandIn(Slots):
    """One place in which a simulation takes its time, without a process.

    Args:
        seconds: that it takes.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(0)
        self._seconds = seconds
        self._held: tuple[int, tuple[int, ...], float] | None = None

    def prepare(self, job: Job, limit_s: float | None) -> None:
        """Nothing is to be made."""

    @property
    def tickets(self) -> list[int]:
        return [] if self._held is None else [self._held[0]]

    @property
    def free(self) -> bool:
        return self._held is None

    def take(self, ticket: Task) -> bool:
        if self._held is not None:
            return False
        number, codes, *_ = ticket
        self._held = number, codes, time.time()
        return True

    def cancel(self, number: int) -> None:
        if number in self.tickets:
            self._held = None

    def wait(self, seconds: float, wakes: Connection[Any, Any]) -> None:
        """The loop around all places waits."""

    def finished(self) -> Iterator[Done]:
        if self._held is not None and time.time() >= self._held[2] + self._seconds:
            number, codes, began = self._held
            self._held = None
            metrics = {"time_ns": closed_form(*codes)}
            answer = {"metrics": metrics, "seconds": self._seconds}
            yield Done(number, answer, time.time() - began, began)


def stand_in(run: Path, number: int, seconds: float) -> None:
    """Does in the folder of a run what some workers do, until it ends."""
    with told_by_signals() as told:
        queue, info = None, None
        while info is None and not told.by:
            time.sleep(0.05)
            queue = next(iter(queue_folders(run)), None)
            info = None if queue is None else queue.info()
        if queue is None or info is None:
            return
        named = [f"stand-in-{os.getpid()}-{i}" for i in range(number)]
        places = [Attendance(queue, info, name, StandIn(seconds), 1, told) for name in named]
        with contextlib.suppress(FileNotFoundError):  # the queue is over
            while not told.by:
                for place in places:
                    place.step(0.0)
                time.sleep(0.01)


def closed_form(x: int, y: int) -> float:
    return 1.0 + (x - 300) ** 2 + (y - 700) ** 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--designs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a simulation")
    parser.add_argument("--ends", type=int, default=50, help="workers that are ended meanwhile")
    parser.add_argument("--stand-ins", type=int, default=0, help="processes in place of workers")
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

    if arguments.stand_ins:
        part = arguments.workers // arguments.stand_ins
        code = f"from cluster_workers import *; stand_in(Path({str(run)!r}), {part}, "
        code += f"{arguments.seconds})"
        command = [sys.executable, "-c", code]
        here = Path(__file__).parent
        workers = [subprocess.Popen(command, cwd=here) for _ in range(arguments.stand_ins)]
    else:
        workers = [start("worker", str(run)) for _ in range(arguments.workers)]
    driver = start("run", str(folder / "workers.yaml"), "--local", "--out", str(run))
    process = psutil.Process(driver.pid)
    journals = run / "datasets"
    while not sum(path.stat().st_size > 50_000 for path in journals.glob("*/journal/*.jsonl")):
        assert driver.poll() is None, f"the run ended at once: {driver.returncode}"
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
    if arguments.stand_ins:
        return
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
