"""Simulates designs in Ray actors, on any node of the cluster that has room."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ray

from archgym.errors import ArchgymError
from archgym.experiment.simulate import process_executor as executors
from archgym.experiment.simulate.worker_process import answer, make_ready

__all__ = ["RayExecutor"]


class RayExecutor:
    """An executor that is a Ray actor with one CPU.

    Args:
        environment: registered name, or ``module:Class``.
        arguments: of its constructor.
    """

    def __init__(self, environment: str, arguments: Mapping[str, Any]) -> None:
        self._job = (environment, dict(arguments), os.getcwd(), list(sys.path))
        self._actor: Any = None

    def simulate(
        self, codes: Sequence[int], fidelity: float, limit_s: float | None
    ) -> executors.TimedResult:
        """See :class:`~archgym.experiment.simulate.process_executor.Executor`."""
        try:
            if self._actor is None:
                remote = ray.remote(num_cpus=1, max_restarts=0)(_Worker)
                self._actor = remote.remote()
                refused = ray.get(self._actor.start.remote(*self._job), timeout=executors.START_S)
                if refused:
                    self.close()
                    raise ArchgymError(refused)
            task = self._actor.simulate.remote([int(code) for code in codes], fidelity)
            return executors.read_answer(ray.get(task, timeout=limit_s))
        except ray.exceptions.GetTimeoutError:
            self.close()
            raise TimeoutError from None
        except ray.exceptions.RayError as error:
            self.close()
            raise executors.ExecutorDiedError from error

    def close(self) -> None:
        """Ends the actor."""
        actor, self._actor = self._actor, None
        if actor is not None:
            ray.kill(actor)


class _Worker:
    """Holds an environment in the process of an actor."""

    def start(
        self, environment: str, arguments: dict[str, Any], folder: str, path: list[str]
    ) -> str:
        """Makes the environment; says why that is not possible, or nothing."""
        sys.path[:] = list(dict.fromkeys([*sys.path, *path]))
        with contextlib.suppress(OSError):
            os.chdir(folder)
        try:
            self._environment = make_ready(environment, arguments)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def simulate(self, codes: list[int], fidelity: float) -> dict[str, Any]:
        """See :func:`archgym.experiment.simulate.worker_process.answer`."""
        return answer(self._environment, codes, fidelity)
