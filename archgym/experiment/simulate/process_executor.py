"""An executor of processes on this machine."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from archgym.experiment.simulate.worker_pool import Worker, WorkerPool
from archgym.simulators.executor import Attempts

__all__ = ["START_S", "ProcessExecutor"]

START_S = 600.0
"""Time limit on the start of a process: imports, making the environment, compilation; s."""


class ProcessExecutor(WorkerPool):
    """Processes on this machine, each with an environment; they start as designs need them.

    Args:
        environment: registered name, or ``module:Class``.
        arguments: of its constructor.
        workers: number of processes.
        attempts: time limit and retries.
    """

    def __init__(
        self, environment: str, arguments: Mapping[str, Any], workers: int, attempts: Attempts
    ) -> None:
        job = {"environment": environment, "arguments": dict(arguments)}
        made = [_Process(f"process {number + 1}", job) for number in range(workers)]
        super().__init__(made, attempts, START_S)

    def _answers(
        self, workers: Sequence[Worker], timeout_s: float
    ) -> Iterable[tuple[Worker, Mapping[str, Any] | None]]:
        by_link = {worker.link: worker for worker in workers if isinstance(worker, _Process)}
        for link in wait(list(by_link), timeout_s):
            worker = by_link[link]  # type: ignore[index]
            yield worker, worker.answer()


class _Process(Worker):
    """A process; see :mod:`archgym.experiment.simulate.worker_process`.

    Attributes:
        link: this end of its connection.
    """

    def __init__(self, name: str, job: Mapping[str, Any]) -> None:
        super().__init__(name)
        self._job = job
        self._process: subprocess.Popen[bytes] | None = None
        self.link: Connection[Any, Any]

    def start(self) -> None:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self.link, theirs = multiprocessing.Pipe()
        with theirs:
            descriptor = theirs.fileno()
            module = "archgym.experiment.simulate.worker_process"
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(descriptor)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=[descriptor],
            )
        self._tell(self._job)

    def send(self, codes: Sequence[int], fidelity: float) -> None:
        self._tell({"codes": codes, "fidelity": fidelity})

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            self.link.close()

    def answer(self) -> Mapping[str, Any] | None:
        """The answer that is there; ``None`` if the process has ended."""
        try:
            found: dict[str, Any] = json.loads(self.link.recv_bytes())
        except (EOFError, OSError):
            return None
        return found

    def _tell(self, question: Mapping[str, Any]) -> None:
        try:
            self.link.send_bytes(json.dumps(question).encode())
        except OSError:
            return  # it has ended, which the next answer says
