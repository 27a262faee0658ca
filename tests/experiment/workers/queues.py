"""What the tests of workers share: a folder of a run, a driver in this process, and workers."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from archgym.experiment.simulate.fingerprint import fingerprint
from archgym.experiment.workers.lease_executor import LeaseExecutor
from archgym.experiment.workers.queue_folder import Job, QueueInfo, write_run_file
from archgym.registry import make
from archgym.simulators.executor import Arrival, Attempts
from tests.experiment.runner_helpers import Slow

SLOW = "tests.experiment.runner_helpers:Slow"


class Run:
    """The folder of a run whose designs workers simulate."""

    def __init__(self, folder: Path, environment: str = SLOW, **arguments: Any) -> None:
        self.folder, self.environment, self.arguments = folder, environment, arguments
        self.processes: list[subprocess.Popen[bytes]] = []
        self.said = folder.with_name("said.txt")
        folder.mkdir(exist_ok=True)
        trial = {"environment": environment, "arguments": arguments}
        (folder / "experiment.yaml").write_text("simulation: {executor: workers}\n")
        (folder / "trials.json").write_text(json.dumps([trial]))

    @contextlib.contextmanager
    def driver(
        self, run_id: str = "first", *, lease_s: float = 2.0, **options: Any
    ) -> Iterator[LeaseExecutor]:
        """An executor, as a driver has it."""
        write_run_file(self.folder, "", run_id, "running")
        problem = fingerprint(make(self.environment, **self.arguments).description)
        problem |= options.pop("problem", {})
        job = Job(self.environment, self.arguments, problem)
        limit = options.pop("time_limit_s", None)
        attempts = Attempts(limit, options.pop("retries", 1))
        info = QueueInfo(run_id, "", job, lease_s, limit)
        with contextlib.closing(LeaseExecutor(self.folder, info, attempts, **options)) as executor:
            yield executor

    def end(self) -> None:
        write_run_file(self.folder, "", "any", "ended")

    def worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Starts a worker."""
        command = [sys.executable, "-m", "archgym", "worker", str(self.folder), *options]
        with self.said.open("a", encoding="utf-8") as said:
            self.processes.append(subprocess.Popen(command, stderr=said))
        return self.processes[-1]

    def stop(self) -> None:
        """Ends workers that are still there."""
        for process in self.processes:
            process.kill()
            process.wait()
        if self.said.exists():
            sys.stderr.write(self.said.read_text())  # pytest shows it if a test fails


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def collected(executor: LeaseExecutor, number: int, seconds: float = 60.0) -> list[Arrival]:
    """That many arrivals."""
    found: list[Arrival] = []
    end = time.monotonic() + seconds
    while len(found) < number:
        assert time.monotonic() < end, f"only {len(found)} of {number} arrived"
        found += executor.collect(1.0)
    return found


class Logging(Slow):
    """Writes a line into a file when a simulation begins and when it ends."""

    incidental_arguments: ClassVar = ("seconds", "log")

    def __init__(self, *, log: str, **arguments: Any) -> None:
        self.log = log
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        self._write("began", design)
        metrics = super().simulate(design)
        self._write("ended", design)
        return metrics

    def _write(self, what: str, design: dict[str, Any]) -> None:
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(f"{what} {sorted(design.items())}\n")
