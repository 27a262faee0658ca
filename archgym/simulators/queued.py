"""Simulators that leave the simulating to an executor, and executors around another one."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Sequence

import numpy as np

from archgym.problem.description import ProblemDescription
from archgym.problem.simulator import MultiFidelitySimulator, SimulationResult, Simulator
from archgym.simulators.executor import Arrival, Executor, Running
from archgym.simulators.result import check_results
from archgym.simulators.shared_cache import SimulationCache, simulation_key
from archgym.space import Designs, DesignSpace

__all__ = [
    "CachedExecutor",
    "InProcessExecutor",
    "QueuedSimulator",
    "simulate_at",
    "simulate_one",
]

_IN_PROCESS = "this process"
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
    """

    def __init__(self, inner: Simulator, executor: Executor, *, asynchronous: bool) -> None:
        self.name, self.version = inner.name, inner.version
        self.metric_names = inner.metric_names
        if hasattr(inner, "fidelities"):
            self.fidelities = inner.fidelities
        if hasattr(inner, "optimum"):
            self.optimum = inner.optimum
        self.executor, self.asynchronous = executor, asynchronous
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


class InProcessExecutor:
    """Simulates in this process, one design at a time, while results are collected.

    Args:
        simulator: that simulates.
        space: of the designs.
    """

    slots = 1

    def __init__(self, simulator: Simulator, space: DesignSpace) -> None:
        self._simulator, self._space = simulator, space
        self._waiting: deque[tuple[int, Sequence[int], float, float]] = deque()

    def restart(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self.close()

    def now(self) -> float:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return time.time()

    def submit(self, ticket: int, codes: Sequence[int], fidelity: float) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._waiting.append((ticket, codes, fidelity, time.time()))

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """Simulates the design that waits longest."""
        if not self._waiting:
            return []
        ticket, codes, fidelity, _ = self._waiting[0]
        began = time.time()
        result, seconds = simulate_one(self._simulator, self._space, codes, fidelity)
        self._waiting.popleft()
        return [Arrival(ticket, result, seconds, _IN_PROCESS, began, time.time())]

    def running(self) -> list[Running]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return [Running(ticket, "", since) for ticket, _, _, since in list(self._waiting)]

    def cancel(self, ticket: int) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._waiting = deque(one for one in self._waiting if one[0] != ticket)

    def close(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._waiting.clear()


class CachedExecutor:
    """Looks a design up in a cache before another executor simulates it.

    Args:
        inner: simulates.
        problem: of the designs.
        cache: takes each result as it arrives.
    """

    def __init__(
        self, inner: Executor, problem: ProblemDescription, cache: SimulationCache
    ) -> None:
        self._inner, self._problem, self._cache = inner, problem, cache
        self._keys: dict[int, bytes] = {}
        self._found: list[Arrival] = []

    def restart(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._keys.clear()
        self._found.clear()
        self._inner.restart()

    @property
    def slots(self) -> int:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return self._inner.slots

    def now(self) -> float:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return self._inner.now()

    def submit(self, ticket: int, codes: Sequence[int], fidelity: float) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        began = time.perf_counter()
        key = simulation_key(self._problem, self._problem.space.design(codes), fidelity)
        held = self._cache.get([key])
        if key in held:
            seconds, now = time.perf_counter() - began, self._inner.now()
            self._found.append(Arrival(ticket, held[key], seconds, "", now, now))
        else:
            self._keys[ticket] = key
            self._inner.submit(ticket, codes, fidelity)

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        found, self._found = self._found, []
        arrived = self._inner.collect(0 if found else timeout_s)
        self._cache.put({self._keys.pop(one.ticket): one.result for one in arrived})
        return found + arrived

    def running(self) -> list[Running]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return self._inner.running()

    def cancel(self, ticket: int) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._keys.pop(ticket, None)
        self._found = [one for one in self._found if one.ticket != ticket]
        self._inner.cancel(ticket)

    def close(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._keys.clear()
        self._found.clear()
        self._inner.close()


def simulate_one(
    simulator: Simulator, space: DesignSpace, codes: Sequence[int], fidelity: float
) -> TimedResult:
    """Simulates one design; gives the result and how long it took, s."""
    designs = Designs(space, np.array([codes], dtype=np.int64))
    results = simulate_at(simulator, designs, fidelity)
    check_results(results, simulator.name, 1)
    return results[0]
