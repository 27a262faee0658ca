"""A process in which designs are simulated: it may hang or crash, and the others go on."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["START_S", "SimulatingProcess"]

START_S = 600.0
"""Time limit on the start of a process: imports, making the environment, compilation; s."""
_PROGRAM = "archgym.experiment.simulate.worker_process"


class SimulatingProcess:
    """A process on this machine that makes an environment and simulates one design at a time.

    Args:
        environment: registered name, or ``module:Class``.
        arguments: of its constructor.
        problem: what the environment must agree with, see
            :func:`archgym.experiment.simulate.fingerprint.fingerprint`.
        kept: folder for :func:`~archgym.experiment.simulate.finished.keep_answer`; empty for none.

    Attributes:
        link: what it says can be waited for.
    """

    def __init__(
        self,
        environment: str,
        arguments: Mapping[str, Any],
        problem: Mapping[str, str] | None = None,
        kept: str = "",
    ) -> None:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self.link: Connection[Any, Any]
        self.link, theirs = multiprocessing.Pipe()
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen(
                # -P: or a module in the working folder would come before installed ones
                [sys.executable, "-P", "-m", _PROGRAM, str(descriptor)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=[descriptor],
            )
        job = {"environment": environment, "arguments": dict(arguments)}
        self._tell({**job, "problem": dict(problem or {}), "kept": kept})

    def simulate(
        self, codes: Sequence[int], fidelity: float, rule: Mapping[str, Any] | None = None
    ) -> None:
        """Begins a simulation; the answer comes through the link."""
        self._tell({"codes": list(codes), "fidelity": fidelity, "rule": rule})

    def answer(self) -> dict[str, Any] | None:
        """What it says; ``None`` if it has ended. Waits for it."""
        try:
            found: dict[str, Any] = json.loads(self.link.recv_bytes())
        except (EOFError, OSError):
            return None
        return found

    def kill(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self.link.close()

    def _tell(self, what: Mapping[str, Any]) -> None:
        try:
            self.link.send_bytes(json.dumps(what).encode())
        except OSError:
            return  # it has ended, which the next look at the link shows
