"""A worker in one queue: takes tickets, simulates, returns results, shows that it lives."""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import archgym
from archgym.errors import ArchgymError
from archgym.experiment.workers.line_files import LineReader, append_line, beat
from archgym.experiment.workers.queue_folder import FORMAT, QueueFolder, QueueInfo
from archgym.experiment.workers.remote_worker import Task, ticket_of
from archgym.experiment.workers.slots import Done, Slots
from archgym.experiment.workers.told import Told

__all__ = ["Attendance", "reachable"]

_BEATS = 6
"""Signs of life in the time of a lease."""
_FASTEST_S, _SLOWEST_S = 0.004, 1.0
_PAUSE_SHARE = 0.02  # of a simulation's time: how long a ticket may wait
_SLOWER = 1.2
_RETRY_S = 1.0
_RECENT = 16


@contextlib.contextmanager
def reachable() -> Iterator[None]:
    """Waits a moment if a file server does not answer; what the block did not do is done later.

    Raises:
        FileNotFoundError: if a file is gone.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError:
        time.sleep(_RETRY_S)


class Attendance:
    """One worker's part in one queue.

    Args:
        queue: the queue.
        info: what it is for.
        name: of the worker.
        slots: where it simulates.
        number: how many tickets it takes at a time.
        told: whether it was told to end.

    Attributes:
        simulated: designs that it has finished.
        idle_since: when it had nothing to do for the first time since then; monotonic clock, s.

    Raises:
        OSError: if the queue is gone or cannot be written.
    """

    def __init__(
        self,
        queue: QueueFolder,
        info: QueueInfo,
        name: str,
        slots: Slots,
        number: int,
        told: Told,
    ) -> None:
        self.queue, self.name, self.simulated = queue, name, 0
        self._info, self._slots, self._told = info, slots, told
        self._inbox, self._outbox = queue.inbox(name), queue.outbox(name)
        self._tickets = LineReader(self._inbox)
        self._waiting: deque[Task] = deque()
        self._recent: deque[float] = deque([1.0], maxlen=_RECENT)
        self._pause = _FASTEST_S
        self._next_beat = time.monotonic()
        self.idle_since = time.monotonic()
        self._inbox.touch(mode=0o644, exist_ok=False)
        hello = {"hello": FORMAT, "slots": number, "archgym": archgym.__version__}
        hello |= {"host": socket.gethostname(), "pid": os.getpid()}
        self._outbox.touch(mode=0o644, exist_ok=False)
        append_line(self._outbox, hello)
        slots.prepare(info.job, info.time_limit_s)

    @property
    def busy(self) -> bool:
        """Whether it has a ticket."""
        return bool(self._waiting or self._slots.tickets)

    def step(self, longest_s: float) -> None:
        """Waits for something to do, and does it.

        Args:
            longest_s: how long to wait, s.

        Raises:
            FileNotFoundError: if the queue is gone.
            ArchgymError: if this worker cannot simulate; the driver is told.
        """
        pause = self._pause if self._slots.free else _SLOWEST_S  # then only to be taken back
        until_beat = max(0.0, self._next_beat - time.monotonic())
        self._slots.wait(min(pause, longest_s, until_beat), self._told.link)
        self._pause = min(self._pause * _SLOWER, self._longest_pause())
        try:
            for done in self._slots.finished():
                self._return(done)
            self._read()
        except ArchgymError as error:
            where = "" if os.getcwd() == self._info.started_in else self._info.started_in
            hint = f" (the search was started in {where}: start workers there too)" if where else ""
            self.leave("it cannot simulate", refused=f"{error}{hint}")
            raise ArchgymError(f"{error}{hint}") from None
        if time.monotonic() >= self._next_beat:
            self._next_beat = time.monotonic() + self._info.lease_s / _BEATS
            with reachable():
                beat(self._outbox)

    def leave(self, why: str, **more: str) -> None:
        """Says that it goes; the driver gives its tickets to others.

        Raises:
            FileNotFoundError: if the queue is gone.
        """
        self._persistently({"bye": why, "tickets": self._slots.tickets, **more})

    def _read(self) -> None:
        lines: list[dict[str, Any]] = []
        with reachable():
            lines = self._tickets.read()
        for line in lines:
            self._pause = _FASTEST_S
            number = line.get("cancel")
            if type(number) is int:
                self._waiting = deque(one for one in self._waiting if one[0] != number)
                self._slots.cancel(number)
            elif (ticket := ticket_of(line)) is not None:
                self._waiting.append(ticket)
        while self._waiting and self._slots.take(self._waiting[0]):
            self._waiting.popleft()
        if self.busy:
            self.idle_since = time.monotonic()

    def _return(self, done: Done) -> None:
        self._persistently(done.to_json(), durable=True)
        self.simulated += 1
        self._recent.append(done.elapsed)
        self._pause = _FASTEST_S

    def _persistently(self, line: dict[str, Any], *, durable: bool = False) -> None:
        """Appends to the outbox; waits where the disk is full or the server is away."""
        while True:
            try:
                return append_line(self._outbox, line, durable=durable)
            except FileNotFoundError:
                raise
            except OSError:
                if self._told.by:
                    return
                time.sleep(_RETRY_S)

    def _longest_pause(self) -> float:
        typical = statistics.median(self._recent)
        return min(_SLOWEST_S, max(_FASTEST_S, _PAUSE_SHARE * typical))
