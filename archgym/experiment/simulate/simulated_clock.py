"""An executor on a simulated clock: any number of workers, and no waiting."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from typing import Any

from archgym.experiment.simulate.durations import Durations
from archgym.problem.simulator import SimulationResult, Simulator
from archgym.simulators.executor import Arrival, Running
from archgym.simulators.queued import simulate_one
from archgym.space import DesignSpace

__all__ = ["SimulatedExecutor"]


class SimulatedExecutor:
    """Simulates a design in this process when it is submitted; its result arrives later.

    Each design takes its duration on the worker that is free first. The clock stands still but
    in :meth:`collect`, which goes on to the next end of a simulation. It begins at 0, the epoch,
    with each trial. So a search with hours of simulation on hundreds of workers takes
    milliseconds, and is the same every time. A resumed trial goes on at the time of its last row.

    Args:
        simulator: that simulates, such as a table.
        space: of the designs.
        workers: how many there are.
        durations: of designs.
        time_limit_s: after which a simulation is ended, on the simulated clock.
    """

    def __init__(
        self,
        simulator: Simulator,
        space: DesignSpace,
        workers: int,
        durations: Durations,
        time_limit_s: float | None = None,
    ) -> None:
        self._simulator, self._space, self._durations = simulator, space, durations
        self._limit = math.inf if time_limit_s is None else time_limit_s
        self.slots = workers
        self.restart()

    def restart(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`; the clock begins at 0."""
        self._now = 0.0
        self._free = [(0.0, number) for number in range(self.slots)]  # since when each worker is
        self._ends: list[tuple[float, int, Arrival]] = []

    def now(self) -> float:
        """Seconds since the trial began, on the simulated clock."""
        return self._now

    def set_clock(self, now: float) -> None:
        """See :class:`~archgym.simulators.executor.SettableClock`."""
        self._now = now

    def submit(
        self,
        ticket: int,
        codes: Sequence[int],
        fidelity: float,
        rule: Mapping[str, Any] | None = None,
    ) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        result: SimulationResult
        result, _ = simulate_one(self._simulator, self._space, codes, fidelity)
        seconds = self._durations.of(codes, fidelity, result)
        if seconds > self._limit:
            seconds = self._limit
            result = TimeoutError(f"the simulation did not end within {seconds:g} s")
        since, number = heapq.heappop(self._free)
        began = max(since, self._now)
        ended = began + seconds
        heapq.heappush(self._free, (ended, number))
        arrival = Arrival(ticket, result, seconds, f"worker {number + 1}", began, ended)
        heapq.heappush(self._ends, (ended, ticket, arrival))

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """The simulations that end next, at one time on the clock."""
        if not self._ends:
            return []
        end = self._ends[0][0]
        if timeout_s is not None and end > self._now + timeout_s:
            self._now += timeout_s
            return []
        self._now = max(self._now, end)
        arrivals = []
        while self._ends and self._ends[0][0] <= self._now:
            arrivals.append(heapq.heappop(self._ends)[2])
        return arrivals

    def running(self) -> list[Running]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        held = sorted((one for _, _, one in list(self._ends)), key=lambda one: one.ticket)
        return [Running(one.ticket, one.worker, one.started) for one in held]

    def cancel(self, ticket: int) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._ends = [one for one in self._ends if one[1] != ticket]
        heapq.heapify(self._ends)

    def close(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self.restart()
