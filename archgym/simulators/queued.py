"""Simulators that leave the simulating to an executor, and the executor of this process."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from archgym.problem.simulator import MultiFidelitySimulator, SimulationResult, Simulator
from archgym.simulators.early_stopping import WatchedMetrics, watching
from archgym.simulators.executor import Arrival, Executor, Running
from archgym.simulators.external import available_cores, stoppable_threads
from archgym.simulators.result import check_results
from archgym.space import Designs, DesignSpace

__all__ = [
    "InProcessExecutor",
    "QueuedSimulator",
    "designs_at_a_time",
    "simulate_at",
    "simulate_one",
]

_Job = tuple[int, Sequence[int], float, Mapping[str, Any] | None]
"""A ticket, the codes of its design, its fidelity, and by which rule it may be stopped."""
TimedResult = tuple[SimulationResult, float]
"""The result of a simulation, and how long it took, s."""


def simulate_at(simulator: Simulator, designs: Designs, fidelity: float) -> Sequence[TimedResult]:
    """Simulates designs fully, or at a lower fidelity; gives results with their seconds."""
    if fidelity == 1:
        return simulator.simulate(designs)
    assert isinstance(simulator, MultiFidelitySimulator)
    return simulator.simulate_at(designs, fidelity)


class QueuedSimulator:
    """A simulator whose designs an executor simulates; the evaluation core finds that and uses it.

    Args:
        inner: whose name, version, metrics and fidelities it has.
        executor: simulates.
        asynchronous: whether searches propose a design whenever a worker is free, not in batches.
        stop_early: whether searches end runs of designs that are clearly worse.
        timeless: whether no decision may depend on which of several runs ends first.
    """

    def __init__(
        self,
        inner: Simulator,
        executor: Executor,
        *,
        asynchronous: bool,
        stop_early: bool = False,
        timeless: bool = False,
    ) -> None:
        self.name, self.version = inner.name, inner.version
        self.metric_names = inner.metric_names
        if hasattr(inner, "fidelities"):
            self.fidelities = inner.fidelities
        if hasattr(inner, "optimum"):
            self.optimum = inner.optimum
        self.executor, self.asynchronous = executor, asynchronous
        self.stop_early, self.timeless = stop_early, timeless
        self._numbers = itertools.count(-1, -1)  # the core's tickets count upwards

    def simulate(self, designs: Designs) -> list[TimedResult]:
        """Simulates designs and waits for all, apart from any trial, such as the baseline's."""
        return self.simulate_at(designs, 1.0)

    def simulate_at(self, designs: Designs, fidelity: float) -> list[TimedResult]:
        """As :meth:`simulate`, at a fidelity."""
        tickets = [next(self._numbers) for _ in range(len(designs))]
        for ticket, codes in zip(tickets, designs.codes.tolist(), strict=True):
            self.executor.submit(ticket, codes, fidelity)
        results: dict[int, TimedResult] = {}
        while len(results) < len(tickets):
            for arrival in self.executor.collect(None):
                results[arrival.ticket] = arrival.result, arrival.seconds
        return [results[ticket] for ticket in tickets]


def designs_at_a_time(simulator: Simulator) -> int:
    """How many designs a simulator of this process simulates at a time, each alone.

    0 for one that takes batches as a whole; then what it gives for a design comes with the batch.
    """
    if hasattr(simulator, "simulate_one"):
        return int(getattr(simulator, "threads", None) or available_cores())
    return int(getattr(simulator, "alone", 0))


class InProcessExecutor:
    """Simulates in this process, while results are collected.

    Args:
        simulator: that simulates.
        space: of the designs.
        threads: designs at a time; above 1 for simulators that run external programs.
    """

    def __init__(self, simulator: Simulator, space: DesignSpace, threads: int = 1) -> None:
        self._simulator, self._space = simulator, space
        self.slots = max(1, threads)
        self._waiting: deque[_Job] = deque()
        self._begun: dict[Future[Arrival], int] = {}
        self._threads: tuple[ThreadPoolExecutor, threading.Event] | None = None

    def restart(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self.close()

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
        self._waiting.append((ticket, codes, fidelity, rule))

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """Simulates the designs that wait longest; with one at a time that one, to its end."""
        if self.slots == 1:
            if not self._waiting:
                return []
            arrival = self._simulate(*self._waiting[0])
            self._waiting.popleft()
            return [arrival]
        if self._waiting:
            self._threads = self._threads or stoppable_threads(self.slots)
            for job in self._waiting:
                self._begun[self._threads[0].submit(self._simulate, *job)] = job[0]
            self._waiting.clear()
        done, _ = wait(self._begun, timeout_s, FIRST_COMPLETED)
        return [future.result() for future in list(self._begun) if self._is_over(future, done)]

    def running(self) -> list[Running]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        tickets = [job[0] for job in list(self._waiting)] + list(self._begun.values())
        return [Running(ticket, "", time.time()) for ticket in sorted(tickets)]

    def cancel(self, ticket: int) -> None:
        """See :class:`~archgym.simulators.executor.Executor`; ends all programs that run."""
        self._waiting = deque(job for job in self._waiting if job[0] != ticket)
        if ticket in self._begun.values():
            self._end_threads()

    def close(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._waiting.clear()
        self._end_threads()

    def _simulate(
        self,
        ticket: int,
        codes: Sequence[int],
        fidelity: float,
        rule: Mapping[str, Any] | None,
    ) -> Arrival:
        began = time.time()
        result, seconds = simulate_one(self._simulator, self._space, codes, fidelity, rule)
        return Arrival(ticket, result, seconds, "", began, time.time())

    def _is_over(self, future: Future[Arrival], done: set[Future[Arrival]]) -> bool:
        return future in done and self._begun.pop(future, None) is not None

    def _end_threads(self) -> None:
        self._begun.clear()
        if self._threads is not None:
            pool, stop = self._threads
            self._threads = None
            stop.set()
            pool.shutdown(cancel_futures=True)


def simulate_one(
    simulator: Simulator,
    space: DesignSpace,
    codes: Sequence[int],
    fidelity: float,
    rule: Mapping[str, Any] | None = None,
) -> TimedResult:
    """Simulates one design; gives the result and how long it took, s.

    Args:
        simulator: that simulates.
        space: of the design.
        codes: of the design.
        fidelity: at which it is simulated.
        rule: by which it may be stopped early; see :mod:`archgym.simulators.early_stopping`.
    """
    designs = Designs(space, np.array([codes], dtype=np.int64))
    if rule is None:
        results = simulate_at(simulator, designs, fidelity)
        check_results(results, simulator.name, 1)
        return results[0]
    with watching(rule) as watch:
        results = simulate_at(simulator, designs, fidelity)
    check_results(results, simulator.name, 1)
    result, seconds = results[0]
    return WatchedMetrics(result, watch.so_far) if isinstance(result, Mapping) else result, seconds
