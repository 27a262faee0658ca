"""An executor of Ray actors, on any node of the cluster that has room."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ray

from archgym.experiment.simulate.finished import keep_answer
from archgym.experiment.simulate.worker_pool import Worker, WorkerPool
from archgym.experiment.simulate.worker_process import answer, make_ready
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.problem.description import ProblemDescription
from archgym.simulators.executor import Attempts

__all__ = ["RayExecutor", "ray_executor"]


def ray_executor(
    name: str,
    arguments: Mapping[str, Any],
    settings: SimulationSettings,
    problem: ProblemDescription,
    kept: str = "",
) -> RayExecutor:
    """An executor of Ray actors, as the settings of an experiment say."""
    workers = settings.workers or 1
    return RayExecutor(name, arguments, workers, settings.attempts, settings.for_ray, kept)


class RayExecutor(WorkerPool):
    """Ray actors that each simulate one design at a time, where the cluster has room for them.

    An actor that waits for room takes no designs: :attr:`slots` counts those that run.

    Args:
        environment: registered name, or ``module:Class``.
        arguments: of its constructor.
        workers: maximum number of actors.
        attempts: time limit and retries.
        resources: what Ray sets aside for an actor: ``num_cpus``, ``num_gpus``, ``memory`` in
            bytes, and ``resources`` by name.
        kept: folder for :func:`~archgym.experiment.simulate.finished.keep_answer`; empty for none.
    """

    def __init__(
        self,
        environment: str,
        arguments: Mapping[str, Any],
        workers: int,
        attempts: Attempts,
        resources: Mapping[str, Any] | None = None,
        kept: str = "",
    ) -> None:
        job = (environment, dict(arguments), os.getcwd(), list(sys.path), kept)
        options = {"num_cpus": 1, **(resources or {}), "max_restarts": 0}
        made = [_Actor(f"actor {number + 1}", job, options) for number in range(workers)]
        super().__init__(made, attempts)

    @property
    def slots(self) -> int:
        """Actors that run; all while none does, so that as many are asked for."""
        return sum(worker.ready for worker in self._workers) or len(self._workers)

    def _answers(
        self, workers: Sequence[Worker], timeout_s: float
    ) -> Iterable[tuple[Worker, Mapping[str, Any] | None]]:
        tasks = {w.task: w for w in workers if isinstance(w, _Actor) and w.task is not None}
        if not tasks:
            return
        ray.wait(list(tasks), num_returns=1, timeout=timeout_s)
        done, _ = ray.wait(list(tasks), num_returns=len(tasks), timeout=0)
        for task in done:
            worker = tasks[task]
            worker.task = None
            try:
                yield worker, ray.get(task)
            except ray.exceptions.RayActorError as error:
                preempted = getattr(error, "preempted", False)
                yield worker, {"preempted": True} if preempted else None
            except ray.exceptions.RayError:
                yield worker, None


class _Actor(Worker):
    """An actor.

    Attributes:
        task: whose answer is awaited.
    """

    def __init__(self, name: str, job: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        super().__init__(name)
        self._job, self._options = job, options
        self._actor: Any = None
        self.task: Any = None

    def start(self) -> None:
        self._actor = ray.remote(**self._options)(_Environment).remote()
        self.task = self._actor.start.remote(*self._job)

    def send(self, codes: Sequence[int], fidelity: float, rule: Mapping[str, Any] | None) -> None:
        self.task = self._actor.simulate.remote(codes, fidelity, rule)

    def stop(self) -> None:
        actor, self._actor, self.task = self._actor, None, None
        if actor is not None:
            ray.kill(actor)


class _Environment:
    """Holds an environment in the process of an actor."""

    def start(
        self, environment: str, arguments: dict[str, Any], folder: str, path: list[str], kept: str
    ) -> dict[str, Any]:
        """Makes the environment; says why that is not possible."""
        self._kept = kept
        sys.path[:] = list(dict.fromkeys([*sys.path, *path]))
        with contextlib.suppress(OSError):
            os.chdir(folder)
        try:
            self._environment = make_ready(environment, arguments)
        except Exception as error:
            return {"refused": f"{type(error).__name__}: {error}"}
        return {"ready": True, "name": f"{socket.gethostname()}, process {os.getpid()}"}

    def simulate(
        self, codes: list[int], fidelity: float, rule: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """See :func:`archgym.experiment.simulate.worker_process.answer`."""
        found = answer(self._environment, codes, fidelity, rule)
        keep_answer(self._kept, codes, fidelity, found)
        return found
