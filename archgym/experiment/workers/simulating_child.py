"""The process in which a worker simulates: it may hang or crash, and the worker goes on."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["SimulatingChild"]

_PROGRAM = "archgym.experiment.simulate.worker_process"


class SimulatingChild:
    """A process that makes an environment and then simulates one design at a time.

    Args:
        environment: registered name, or ``module:Class``.
        arguments: of its constructor.
        problem: what the environment must agree with, see
            :func:`archgym.experiment.simulate.fingerprint.fingerprint`.

    Attributes:
        link: what it says can be waited for.
    """

    def __init__(
        self, environment: str, arguments: Mapping[str, Any], problem: Mapping[str, str]
    ) -> None:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self.link: Connection[Any, Any]
        self.link, theirs = multiprocessing.Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=[theirs.fileno()],
            )
        self._say(
            {"environment": environment, "arguments": dict(arguments), "problem": dict(problem)}
        )

    def simulate(self, codes: Sequence[int], fidelity: float) -> None:
        """Begins a simulation; the answer comes through the link."""
        self._say({"codes": list(codes), "fidelity": fidelity})

    def heard(self) -> dict[str, Any] | None:
        """What it says; ``None`` if it has died. Waits for it."""
        try:
            answer: dict[str, Any] = json.loads(self.link.recv_bytes())
        except (EOFError, OSError):
            return None
        return answer

    def kill(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self.link.close()

    def _say(self, what: Mapping[str, Any]) -> None:
        try:
            self.link.send_bytes(json.dumps(what).encode())
        except OSError:
            return  # it has died, which the next look at the link shows
