"""Executors: processes that hold an environment and simulate one design at a time."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from archgym.errors import ArchgymError, NotCoveredError, SimulationError
from archgym.problem.simulator import SimulationResult

__all__ = [
    "START_S",
    "Executor",
    "ExecutorDiedError",
    "MakeExecutor",
    "ProcessExecutor",
    "TimedResult",
    "read_answer",
]

TimedResult = tuple[SimulationResult, float]
"""The result of a simulation, and how long it took, s."""
_WORKER = "archgym.experiment.simulate.worker_process"
START_S = 600.0
"""Time limit on the start of an executor: imports, making the environment, compilation; s."""


class ExecutorDiedError(Exception):
    """The process of an executor has ended."""


class Executor(Protocol):
    """A process that holds an environment and simulates one design at a time."""

    def simulate(self, codes: Sequence[int], fidelity: float, limit_s: float | None) -> TimedResult:
        """Simulates a design.

        Args:
            codes: canonical codes of the design.
            fidelity: at which it is simulated.
            limit_s: time limit, s; ``None`` for no limit.

        Returns:
            The result, and how long the simulation took, s.

        Raises:
            TimeoutError: after the limit; the process is ended.
            ExecutorDiedError: if the process has ended.
        """
        ...

    def close(self) -> None:
        """Ends the process."""
        ...


MakeExecutor = Callable[[str, Mapping[str, Any]], Executor]
"""Makes an executor for the name of an environment and the arguments of its constructor."""


class ProcessExecutor:
    """A process on this machine; it starts with the first design.

    Args:
        environment: registered name, or ``module:Class``.
        arguments: of its constructor.
    """

    def __init__(self, environment: str, arguments: Mapping[str, Any]) -> None:
        self._job = {"environment": environment, "arguments": dict(arguments)}
        self._process: subprocess.Popen[bytes] | None = None

    def simulate(self, codes: Sequence[int], fidelity: float, limit_s: float | None) -> TimedResult:
        """See :class:`Executor`."""
        if self._process is None:
            self._start()
        return read_answer(self._ask({"codes": list(codes), "fidelity": fidelity}, limit_s))

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            self._link.close()

    def _start(self) -> None:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self._link, theirs = multiprocessing.Pipe()
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",  # or a module in the working folder would come before installed ones
                    "-m",
                    "archgym.experiment.simulate.worker_process",
                    str(descriptor),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=[descriptor],
            )
        answer = self._ask(self._job, START_S)
        if "refused" in answer:
            self.close()
            raise ArchgymError(str(answer["refused"]))

    def _ask(self, question: Mapping[str, Any], limit_s: float | None) -> dict[str, Any]:
        try:
            self._link.send_bytes(json.dumps(question).encode())
            if not self._link.poll(limit_s):
                raise TimeoutError
            answer: dict[str, Any] = json.loads(self._link.recv_bytes())
        except (EOFError, ConnectionError) as error:
            self.close()
            raise ExecutorDiedError from error
        except BaseException:  # timeout or Ctrl-C: a late answer must not meet the next question
            self.close()
            raise
        return answer


def read_answer(answer: Mapping[str, Any]) -> TimedResult:
    """Reads result and seconds in the answer of a simulating process."""
    seconds = float(answer["seconds"])
    if "metrics" in answer:
        return answer["metrics"], seconds
    if "fatal" in answer:
        raise ArchgymError(answer["fatal"])
    reason = answer["reason"]
    if answer["error"] == "timeout":
        return TimeoutError(reason), seconds
    kind = NotCoveredError if answer["error"] == "not_covered" else SimulationError
    return kind(reason), seconds
