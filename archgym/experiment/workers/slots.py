"""The places of a worker: in each of them one design is simulated at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from archgym.errors import ArchgymError
from archgym.experiment.simulate.simulating_process import START_S, SimulatingProcess
from archgym.experiment.workers.queue_folder import Job
from archgym.experiment.workers.remote_worker import Task

__all__ = ["Done", "Slots"]

_MAX_STARTS = 3


@dataclass(frozen=True)
class Done:
    """A ticket that is finished.

    Attributes:
        number: its number.
        answer: as :func:`archgym.experiment.simulate.worker_process.answer` gives it, or with the
            key ``died``.
        elapsed: seconds that it took.
        started: when it began, seconds since the epoch.
    """

    number: int
    answer: dict[str, Any]
    elapsed: float
    started: float

    def to_json(self) -> dict[str, Any]:
        """The line of an outbox."""
        times = {"elapsed": round(self.elapsed, 6), "started": round(self.started, 6)}
        return {"done": self.number, "answer": self.answer, **times}


@dataclass
class _Slot:
    child: SimulatingProcess | None = None
    ready: bool = False
    starts: int = 0
    ticket: Task | None = None
    began: float = 0.0
    """Of the start or of the simulation, by the monotonic clock."""


class Slots:
    """Processes that simulate for one worker.

    Args:
        number: of places.
    """

    def __init__(self, number: int) -> None:
        self._slots = [_Slot() for _ in range(number)]
        self._job: Job | None = None
        self._limit_s: float | None = None

    def prepare(self, job: Job, limit_s: float | None) -> None:
        """Makes ready for a job; the processes go on if it is the one that they have.

        Args:
            job: what is simulated.
            limit_s: time limit on a simulation, s; ``None`` for no limit.
        """
        if job != self._job:
            self.close()
        self._job, self._limit_s = job, limit_s
        for slot in self._slots:
            if slot.child is None:
                self._start(slot)

    @property
    def tickets(self) -> list[int]:
        """Numbers of the tickets that are being simulated."""
        return [slot.ticket[0] for slot in self._slots if slot.ticket is not None]

    @property
    def free(self) -> bool:
        """Whether there is room for a ticket."""
        return any(slot.ticket is None for slot in self._slots)

    def take(self, ticket: Task) -> bool:
        """Begins a simulation; whether there was room for it."""
        for slot in self._slots:
            if slot.ticket is None:
                slot.ticket = ticket
                self._begin(slot)
                return True
        return False

    def cancel(self, number: int) -> None:
        """Ends a simulation."""
        for slot in self._slots:
            if slot.ticket is not None and slot.ticket[0] == number:
                slot.ticket = None
                self._restart(slot)

    def wait(self, seconds: float, wakes: Connection[Any, Any]) -> None:
        """Waits until a process says something, or the connection can be read, or time is up."""
        until = [s.began + (self._limit_s or seconds) for s in self._slots if s.ticket and s.ready]
        left = min(until, default=float("inf")) - time.monotonic()
        links = [slot.child.link for slot in self._slots if slot.child is not None]
        wait([wakes, *links], max(0.0, min(seconds, left)))

    def finished(self) -> Iterator[Done]:
        """What has been finished since the last call.

        Raises:
            ArchgymError: if the environment cannot be made, or no design can be simulated.
        """
        for slot in self._slots:
            while slot.child is not None and slot.child.link.poll():
                done = self._heard(slot, slot.child.answer())
                if done is not None:
                    yield done
            done = self._late(slot)
            if done is not None:
                yield done

    def close(self) -> None:
        """Ends the processes."""
        for slot in self._slots:
            if slot.child is not None:
                slot.child.kill()
        self._slots = [_Slot() for _ in self._slots]

    def _start(self, slot: _Slot) -> None:
        assert self._job is not None
        job = self._job
        slot.child = SimulatingProcess(job.environment, job.arguments, job.problem)
        slot.ready, slot.began = False, time.monotonic()
        slot.starts += 1

    def _restart(self, slot: _Slot) -> None:
        if slot.child is not None:
            slot.child.kill()
        self._start(slot)

    def _begin(self, slot: _Slot) -> None:
        if slot.ready and slot.ticket is not None and slot.child is not None:
            slot.began = time.monotonic()
            slot.child.simulate(*slot.ticket[1:])

    def _heard(self, slot: _Slot, what: dict[str, Any] | None) -> Done | None:
        if what is None:
            return self._died(slot)
        reason = what.get("refused") or what.get("fatal")
        if reason:
            raise ArchgymError(str(reason))
        if "ready" in what:
            slot.ready, slot.starts = True, 0
            self._begin(slot)
            return None
        return self._done(slot, what)

    def _died(self, slot: _Slot) -> Done | None:
        was_ready = slot.ready
        done = self._done(slot, {"died": True, "seconds": 0.0}) if was_ready else None
        if slot.starts >= _MAX_STARTS:
            raise ArchgymError(
                f"the process that makes the environment has died {slot.starts} times "
                "(out of memory, or a crash)"
            )
        self._restart(slot)
        return done

    def _late(self, slot: _Slot) -> Done | None:
        """Ends what takes too long."""
        passed = time.monotonic() - slot.began
        if slot.child is not None and not slot.ready and passed > START_S:
            raise ArchgymError(f"the environment was not made within {START_S:g} s")
        limit = self._limit_s
        if slot.ticket is None or not slot.ready or limit is None or passed <= limit:
            return None
        reason = f"the simulation did not end within {limit:g} s"
        done = self._done(slot, {"error": "timeout", "reason": reason, "seconds": passed})
        self._restart(slot)
        return done

    def _done(self, slot: _Slot, answer: dict[str, Any]) -> Done | None:
        if slot.ticket is None:
            return None
        number, slot.ticket = slot.ticket[0], None
        elapsed = time.monotonic() - slot.began
        return Done(number, answer, elapsed, time.time() - elapsed)
