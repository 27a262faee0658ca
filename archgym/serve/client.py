"""The program as a simulator: designs are handed to it when it asks, and it tells their results."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from archgym.problem.fidelity import Fidelity
from archgym.problem.simulator import SimulationResult
from archgym.simulators.executor import Arrival, Running
from archgym.space import Designs

__all__ = ["ClientExecutor", "ClientSimulator", "Handed", "ProgramEnded"]

_WORKER: Final = "client"


class ProgramEnded(Exception):
    """The program that simulates has ended, so the search cannot go on."""


@dataclass
class Handed:
    """A design on its way through the program.

    Attributes:
        ticket: its number.
        codes: of the design.
        fidelity: at which it is to be simulated.
        since: when the program got it; ``None`` before.
    """

    ticket: int
    codes: Sequence[int]
    fidelity: float
    since: float | None = None


class ClientSimulator:
    """What stands in records as the simulator; the executor does its work.

    Args:
        name: of the program, such as ``client:my_simulator``.
        metric_names: metrics that every design must have.
        fidelities: at which it simulates.
    """

    def __init__(
        self, name: str, metric_names: Sequence[str], fidelities: tuple[Fidelity, ...]
    ) -> None:
        self.name, self.version = name, ""
        self.metric_names = tuple(metric_names)
        self.fidelities = fidelities

    def simulate(self, designs: Designs) -> Sequence[tuple[SimulationResult, float]]:
        """Not called: the executor simulates."""
        raise NotImplementedError

    def simulate_at(
        self, designs: Designs, fidelity: float
    ) -> Sequence[tuple[SimulationResult, float]]:
        """Not called: the executor simulates."""
        raise NotImplementedError


class ClientExecutor:
    """An executor whose simulations happen in the program.

    The search calls the methods of :class:`~archgym.simulators.executor.Executor` in one thread,
    and another one, which talks with the program, calls :meth:`ask` and :meth:`tell`. What is told
    counts as recorded when the search comes for more.

    Args:
        slots: how many designs the program may have at a time.

    Attributes:
        slots: the same.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._state = threading.Condition()
        self._waiting: deque[Handed] = deque()
        self._handed: dict[int, Handed] = {}
        self._told: list[Arrival] = []
        self._unrecorded: set[int] = set()
        self._idle = self._over = False
        self._known: dict[tuple[tuple[int, ...], float], SimulationResult] = {}

    # -- for the search --------------------------------------------------------------------------

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
        with self._state:
            self._recorded()
            known = self._known.get((tuple(codes), fidelity))
            if known is not None:  # the baseline design, which was simulated before the trial
                now = time.time()
                self._told.append(Arrival(ticket, known, 0.0, "", now, now))
            else:
                self._waiting.append(Handed(ticket, codes, fidelity))
            self._state.notify_all()

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """See :class:`~archgym.simulators.executor.Executor`.

        Raises:
            ProgramEnded: if the program has ended.
        """
        with self._state:
            self._recorded()
            if not (self._told or self._waiting or self._handed):
                return []
            self._idle = True
            self._state.notify_all()
            self._state.wait_for(lambda: self._told or self._over, timeout_s)
            self._idle = False
            if self._over and not self._told:
                raise ProgramEnded("the program has ended")
            found, self._told = self._told, []
            self._unrecorded |= {arrival.ticket for arrival in found}
            return found

    def running(self) -> list[Running]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        with self._state:
            waiting = [Running(one.ticket, "", time.time()) for one in self._waiting]
            handed = [Running(n, _WORKER, one.since or 0.0) for n, one in self._handed.items()]
            return handed + waiting

    def cancel(self, ticket: int) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        with self._state:
            self._handed.pop(ticket, None)
            self._waiting = deque(one for one in self._waiting if one.ticket != ticket)

    def close(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        with self._state:
            self._recorded()
            self._waiting.clear()
            self._handed.clear()

    def recorded(self) -> None:
        """Whatever was collected is recorded by now."""
        with self._state:
            self._recorded()

    # -- for the program -------------------------------------------------------------------------

    def ask(self, n: int) -> list[Handed]:
        """Up to ``n`` designs to simulate; none if the search waits for others, or is over.

        Waits while the search thinks.
        """
        with self._state:
            self._state.wait_for(lambda: self._waiting or self._idle or self._over)
            found = [self._waiting.popleft() for _ in range(min(n, len(self._waiting)))]
            for one in found:
                one.since = time.time()
                self._handed[one.ticket] = one
            return found

    @property
    def handed(self) -> dict[int, Handed]:
        """The designs that the program has, by ticket."""
        with self._state:
            return dict(self._handed)

    def tell(self, ticket: int, result: SimulationResult, seconds: float | None) -> None:
        """Takes a result, and waits until it is recorded or the search has ended.

        Args:
            ticket: of a design that the program has.
            result: metrics, or why there are none.
            seconds: that the simulation took; since the program got the design if ``None``.
        """
        with self._state:
            one = self._handed.pop(ticket)
            now = time.time()
            since = now if one.since is None else one.since
            took = now - since if seconds is None else seconds
            if ticket < 0:  # apart from any trial
                self._known[tuple(one.codes), one.fidelity] = result
            self._told.append(Arrival(ticket, result, took, _WORKER, since, now))
            self._unrecorded.add(ticket)
            self._state.notify_all()
            self._state.wait_for(lambda: ticket not in self._unrecorded or self._over)

    def end(self) -> None:
        """The search, or the program, has ended: nobody waits any more."""
        with self._state:
            self._over = True
            self._unrecorded.clear()
            self._state.notify_all()

    @property
    def over(self) -> bool:
        """Whether the search, or the program, has ended."""
        return self._over

    def _recorded(self) -> None:
        told = {arrival.ticket for arrival in self._told}
        self._unrecorded &= told
        self._state.notify_all()
