"""The protocol of an executor: where simulations run, several at a time.

The evaluation core hands designs over with :meth:`Executor.submit`, each under a number, its
*ticket*, and takes results with :meth:`Executor.collect` as simulations end, in any order. It
keeps at most :attr:`Executor.slots` tickets in flight, or one while there is no slot, and asks for
that number again before each :meth:`~Executor.submit`, so workers may come and go while a search
runs.

What happens to a ticket until then is the executor's affair: which worker simulates it, that it
goes to another one if its worker was preempted or died, that it is tried again as often as
:class:`Attempts` says, and that it arrives exactly once. A simulation that fails, exceeds its time
limit or is not covered is a result like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from archgym.problem.simulator import SimulationResult

__all__ = ["Arrival", "Attempts", "Executor", "Running", "SettableClock"]


@dataclass(frozen=True)
class Arrival:
    """The result of one ticket.

    Attributes:
        ticket: whose result it is.
        result: metrics, or the error in their place.
        seconds: that the simulation took on the worker; of several attempts the last one's. This
            is what counts as simulation time.
        worker: name of the worker; empty if none simulated it.
        started: when the attempt that gave the result began, on the clock of
            :meth:`Executor.now`.
        ended: when the result was there, on the same clock.
    """

    ticket: int
    result: SimulationResult
    seconds: float
    worker: str
    started: float
    ended: float


@dataclass(frozen=True)
class Running:
    """A ticket in flight, for display.

    Attributes:
        ticket: its number.
        worker: name of the worker that simulates it; empty while it waits for one.
        started: when that worker began, or when the ticket was submitted while it waits; on
            the clock of :meth:`Executor.now`.
    """

    ticket: int
    worker: str
    started: float


@dataclass(frozen=True)
class Attempts:
    """How long and how often an executor tries.

    Attributes:
        time_limit_s: after which a simulation is ended, with a :class:`TimeoutError` as its
            result, and not tried again; ``None`` for no limit. It does not include the start of a
            worker.
        retries: how often a simulation is tried again that failed with a
            :class:`~archgym.errors.SimulationError`, or whose worker died. Preemption (a worker
            that was told to end, a lost lease) is not counted.
    """

    time_limit_s: float | None = None
    retries: int = 1


class Executor(Protocol):
    """Simulates designs on any number of workers; used by one thread."""

    @property
    def slots(self) -> int:
        """How many tickets may be in flight now; 0 while no worker is there.

        It may include a small reserve, so that no worker waits for the core. If workers leave,
        more tickets may be in flight than slots; they wait for the workers that are left.
        """
        ...

    def restart(self) -> None:
        """A trial begins: gives all tickets up. A simulated clock begins anew."""
        ...

    def now(self) -> float:
        """The time on the clock of arrivals, seconds since the epoch.

        It is ``time.time()``, unless the clock is simulated.
        """
        ...

    def submit(
        self,
        ticket: int,
        codes: Sequence[int],
        fidelity: float,
        rule: Mapping[str, Any] | None = None,
    ) -> None:
        """Takes a design; does not wait for its simulation.

        Args:
            ticket: its number, never used before with this executor.
            codes: canonical codes of the design.
            fidelity: at which it is simulated.
            rule: by which it may be stopped early, as plain values; ``None``: it runs to its end,
                and nothing looks at it. See :mod:`archgym.simulators.early_stopping`.

        Raises:
            ArchgymError: if no design can be simulated.
        """
        ...

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """Results that came since the last call, in the order in which they came.

        Args:
            timeout_s: how long to wait for the first one; 0 does not wait, ``None`` waits without
                a limit.

        Returns:
            Each result once. Empty after the timeout, and at once if nothing is in flight.

        Raises:
            ArchgymError: for what concerns every design, such as a missing program or an
                environment that cannot be made. Results that came before it are not lost: they
                are returned first.
        """
        ...

    def running(self) -> list[Running]:
        """The tickets in flight, in the order of submission; any thread may call this."""
        ...

    def cancel(self, ticket: int) -> None:
        """Gives a ticket up: nothing arrives for it any more. Unknown tickets are ignored."""
        ...

    def close(self) -> None:
        """Gives all tickets up and ends the workers that it started; may be called twice."""
        ...


@runtime_checkable
class SettableClock(Protocol):
    """What an executor on a simulated clock has besides, so that a resumed trial goes on."""

    def set_clock(self, now: float) -> None:
        """Sets the clock, to a time that is not before any design that was submitted began."""
        ...
