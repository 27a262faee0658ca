"""An executor above workers that each simulate one design at a time: turns, limits, retries."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archgym.errors import ArchgymError, NotCoveredError, SimulationError, StoppedEarly
from archgym.problem.simulator import SimulationResult
from archgym.simulators.early_stopping import WatchedMetrics
from archgym.simulators.executor import Arrival, Attempts, Running

__all__ = ["Worker", "WorkerPool", "read_answer"]

_SHORTEST_S, _LONGEST_S = 0.0, 3600.0
"""Bounds of one wait; a longer one is made of several."""


@dataclass(slots=True, eq=False)
class _Job:
    """A ticket.

    Attributes:
        tries: attempts so far, without those that were preempted.
        died: attempts whose worker died.
        since: when it was submitted, or its attempt began.
        rule: by which it may be stopped early.
    """

    ticket: int
    codes: Sequence[int]
    fidelity: float
    since: float
    rule: Mapping[str, Any] | None = None
    tries: int = 0
    died: int = 0


class Worker(ABC):
    """Something that holds an environment and simulates one design at a time.

    It is *off* until :meth:`start`, then *starting* until it says that it is ready.

    Attributes:
        name: for people.
        ready: whether it can take designs.
        job: what it simulates now.
        deadline: when its start or its simulation is to be over; infinite for no limit.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready = self.on = False
        self.job: _Job | None = None
        self.deadline = math.inf

    @abstractmethod
    def start(self) -> None:
        """Begins to start; the answer is ``{"ready": ...}`` or ``{"refused": why}``."""

    @abstractmethod
    def send(self, codes: Sequence[int], fidelity: float, rule: Mapping[str, Any] | None) -> None:
        """Begins to simulate a design; the answer is one for :func:`read_answer`."""

    @abstractmethod
    def stop(self) -> None:
        """Ends it, whatever it does; it may be started again."""


class WorkerPool(ABC):
    """An executor above some workers, which are started as designs need them.

    A subclass says how to wait for answers.

    Args:
        workers: all that there are.
        attempts: time limit and retries.
        start_s: time limit on the start of a worker, s; ``None`` for no limit.
    """

    def __init__(
        self, workers: Sequence[Worker], attempts: Attempts, start_s: float | None = None
    ) -> None:
        self._workers, self._attempts, self._start_s = list(workers), attempts, start_s
        self._waiting: deque[_Job] = deque()
        self._fatal: ArchgymError | None = None

    def restart(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`; workers that are free stay."""
        self._waiting.clear()
        self._fatal = None
        for worker in self._workers:
            if worker.job is not None:
                self._off(worker)

    @property
    def slots(self) -> int:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return len(self._workers)

    def now(self) -> float:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return time.time()

    def submit(
        self,
        ticket: int,
        codes: Sequence[int],
        fidelity: float,
        rule: Mapping[str, Any] | None = None,
    ) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        plain = [int(code) for code in codes]
        self._waiting.append(_Job(ticket, plain, float(fidelity), time.time(), rule))
        self._assign()

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        until = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while True:
            arrivals: list[Arrival] = []
            self._assign()
            on = [worker for worker in self._workers if worker.on]
            left = min([until, *(worker.deadline for worker in on)]) - time.monotonic()
            if self._fatal is None and any(worker.job or not worker.ready for worker in on):
                wait_s = min(max(left, _SHORTEST_S), _LONGEST_S)
                for worker, answer in self._answers(on, wait_s):
                    arrivals += self._take(worker, answer)
            for worker in on:
                if worker.on and worker.deadline <= time.monotonic():
                    arrivals += self._expire(worker)
            if arrivals:
                # What waits, as a dead worker's design does, is assigned when these are recorded:
                # so of each worker only the latest result can be lost by a kill.
                return arrivals
            if self._fatal is not None:
                fatal, self._fatal = self._fatal, None
                raise fatal
            nothing = not self._waiting and not any(worker.job for worker in self._workers)
            if nothing or time.monotonic() >= until:
                return []

    def running(self) -> list[Running]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        held = [(worker.name, worker.job) for worker in list(self._workers)]
        found = [Running(job.ticket, name, job.since) for name, job in held if job is not None]
        found += [Running(job.ticket, "", job.since) for job in list(self._waiting)]
        return sorted(found, key=lambda one: one.ticket)

    def cancel(self, ticket: int) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._waiting = deque(job for job in self._waiting if job.ticket != ticket)
        for worker in self._workers:
            if worker.job is not None and worker.job.ticket == ticket:
                self._off(worker)

    def close(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._waiting.clear()
        for worker in self._workers:
            self._off(worker)

    @abstractmethod
    def _answers(
        self, workers: Sequence[Worker], timeout_s: float
    ) -> Iterable[tuple[Worker, Mapping[str, Any] | None]]:
        """Answers that come first; ``None``: the worker died; ``{"preempted": ...}``: was ended.

        Args:
            workers: that are on.
            timeout_s: how long to wait for one, s.
        """

    # -- inner workings --------------------------------------------------------------------------

    def _assign(self) -> None:
        """Gives waiting designs to free workers, and starts as many more as they need."""
        for worker in self._workers:
            if not self._waiting:
                return
            if worker.ready and worker.job is None:
                job = worker.job = self._waiting.popleft()
                self._limit(worker, self._attempts.time_limit_s)
                job.since = time.time()
                worker.send(job.codes, job.fidelity, job.rule)
        starting = sum(worker.on and not worker.ready for worker in self._workers)
        off = [worker for worker in self._workers if not worker.on]
        for worker in off[: max(0, len(self._waiting) - starting)]:
            worker.on = True
            self._limit(worker, self._start_s)
            worker.start()

    @staticmethod
    def _limit(worker: Worker, seconds: float | None) -> None:
        worker.deadline = math.inf if seconds is None else time.monotonic() + seconds

    def _off(self, worker: Worker) -> None:
        worker.on = worker.ready = False
        worker.job, worker.deadline = None, math.inf
        worker.stop()

    def _take(self, worker: Worker, answer: Mapping[str, Any] | None) -> list[Arrival]:
        """Results that follow from an answer: none, or one."""
        job = worker.job
        if answer is None or "preempted" in answer:
            idle = worker.ready and job is None
            self._off(worker)
            return [] if idle else self._again(job, died=answer is None)
        if "ready" in answer:
            worker.ready, worker.deadline = True, math.inf
            worker.name = str(answer.get("name") or worker.name)
            return []
        if "refused" in answer:
            self._off(worker)
            self._fatal = ArchgymError(str(answer["refused"]))
            return []
        worker.job, worker.deadline = None, math.inf
        if job is None:
            return []
        try:
            result, seconds = read_answer(answer)
        except ArchgymError as error:
            self._waiting.appendleft(job)
            self._fatal = error
            return []
        job.tries += 1
        if isinstance(result, SimulationError) and job.tries <= self._attempts.retries:
            self._waiting.appendleft(job)
            return []
        return [self._arrival(job, result, seconds, worker.name)]

    def _again(self, job: _Job | None, *, died: bool) -> list[Arrival]:
        """Has the design of a worker that is gone simulated elsewhere, unless too often.

        A worker that died while it started is held against the design that waits longest.
        """
        if job is None:
            if not self._waiting:
                return []
            job = self._waiting.popleft()
        job.tries += died
        job.died += died
        if job.tries <= self._attempts.retries:
            self._waiting.appendleft(job)
            return []
        why = SimulationError(f"the simulating process died, {job.died} times in all")
        return [self._arrival(job, why, time.time() - job.since, "")]

    def _expire(self, worker: Worker) -> list[Arrival]:
        """Ends a worker that took too long."""
        job, name = worker.job, worker.name
        self._off(worker)
        if job is None:
            return self._again(None, died=True)
        limit = self._attempts.time_limit_s
        why = TimeoutError(f"the simulation did not end within {limit:g} s")
        return [self._arrival(job, why, time.time() - job.since, name)]

    @staticmethod
    def _arrival(job: _Job, result: SimulationResult, seconds: float, worker: str) -> Arrival:
        return Arrival(job.ticket, result, seconds, worker, job.since, time.time())


def read_answer(answer: Mapping[str, Any]) -> tuple[SimulationResult, float]:
    """Reads result and seconds in the answer of a simulating process.

    Raises:
        ArchgymError: if the answer concerns every design.
    """
    seconds = float(answer["seconds"])
    if "stopped" in answer:
        return StoppedEarly(str(answer["reason"]), answer["stopped"]), seconds
    if "metrics" in answer:
        so_far = answer.get("so_far")
        metrics = answer["metrics"]
        return metrics if so_far is None else WatchedMetrics(metrics, so_far), seconds
    if "fatal" in answer:
        raise ArchgymError(answer["fatal"])
    reason = answer["reason"]
    if answer["error"] == "timeout":
        return TimeoutError(reason), seconds
    kind = NotCoveredError if answer["error"] == "not_covered" else SimulationError
    return kind(reason), seconds
