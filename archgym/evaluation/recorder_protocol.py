"""The protocol of a trial's recorder, which writes the rows; :mod:`archgym.data` has one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, Protocol, get_args

from archgym.evaluation.outcome import Row
from archgym.evaluation.resumed_log import ResumedLog

Durability = Literal["auto", "second", "always"]
"""When a row is on disk, and not only in the memory of the operating system, which a killed process
does not lose, but a power cut does: ``second``, within a second; ``always``, before the agent gets
its outcome; ``auto``, before the agent gets it if the simulation took a second or more."""
DURABILITIES: tuple[str, ...] = get_args(Durability)


Rows = Callable[[], Iterable[Row]]
"""Gives the rows of an evaluation, in order."""


class Flight(NamedTuple):
    """How an outcome came from an executor.

    Attributes:
        proposal: number of the design in the order of proposals; ``None`` where steps are.
        proposed: number of proposals before the outcome was there; ``None`` likewise.
        worker: name of the worker; empty if none simulated it.
        started: when that worker began, seconds since the epoch; ``None`` if none did.
        ended: when the outcome was there.
        partial: JSON text of what the run had on the way, where the search stops runs early.
    """

    proposal: int | None
    proposed: int | None
    worker: str
    started: float | None
    ended: float
    partial: str | None = None


class Recorder(Protocol):
    """Takes the evaluations of one trial; see :mod:`archgym.data`.

    Attributes:
        resumed: what a resumed trial has evaluated already; ``None`` for a new trial.
    """

    resumed: ResumedLog | None

    def write(
        self, first_step: int, rows: Rows, agent_s: float, flight: Flight | None = None
    ) -> BaseException | None:
        """Hands rows to the operating system before the agent gets the outcomes.

        Args:
            first_step: index of the first one in the trial.
            rows: gives the evaluations, in order; called again if an interruption comes meanwhile.
            agent_s: seconds that the agent spent on each.
            flight: of all of them, if an executor simulates designs.

        Returns:
            An interruption that came meanwhile, such as a KeyboardInterrupt: to be raised once the
            rows, which are written, are counted.
        """
        ...

    def settle(self) -> bool:
        """Waits until the rows written are on disk, where they are to be before the agent knows.

        Called once for all outcomes that an agent gets together, after they were counted.

        Returns:
            Whether there was anything to wait for.
        """
        ...
