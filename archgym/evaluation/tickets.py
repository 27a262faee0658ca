"""Designs between their proposal and their outcome, most of them in the hands of an executor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archgym.evaluation.outcome import Row
from archgym.simulators.executor import Arrival, Executor, Running, SettableClock

_numbers = itertools.count()
"""Numbers under which an executor knows tickets; it serves one trial after the other."""


@dataclass(slots=True, eq=False)
class Ticket:
    """A proposal.

    Attributes:
        number: in the order of proposals.
        codes: of the design, canonical.
        key: of the design at its fidelity.
        level: of the fidelity.
        fidelity: at which it is simulated.
        reason: why it is illegal, if it is.
        agent_s: seconds that the agent spent on it.
        since: time on the executor's clock when it was submitted, in the replay of a trial's log.
        step: of its row; ``None``: its row has the place in which its outcome comes.
        rule: by which it may be stopped early; ``None``: by the one when it is handed over.
        leads: whether it is simulated; else it is illegal, or a design like it is known or leads.
        row: of its result in the cache, once it is there; -1 if it is illegal.
        outcome: once it is there.
    """

    number: int
    codes: Sequence[int]
    key: int
    level: int
    fidelity: float
    reason: str
    agent_s: float
    since: float
    step: int | None
    leads: bool
    rule: Mapping[str, Any] | None = None
    row: int = -1
    outcome: Row | None = None


class Tickets:
    """The tickets of a trial without outcome.

    Args:
        executor: simulates those that lead.
        rule: gives the rule by which the next one may be stopped early.
    """

    def __init__(
        self, executor: Executor, rule: Callable[[], Mapping[str, Any] | None] = lambda: None
    ) -> None:
        self.executor, self._rule = executor, rule
        executor.restart()
        self._all: dict[int, Ticket] = {}
        self._backlog: dict[int, Ticket] = {}  # that lead, and were not handed over yet
        self._sent: dict[int, Ticket] = {}  # by the number that the executor knows
        self._ready: dict[int, Ticket] = {}  # whose result is known, the oldest first
        self._leading: dict[int, list[Ticket]] = {}  # by key: those that wait for its result

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, number: int) -> bool:
        return number in self._all

    def __getitem__(self, number: int) -> Ticket:
        return self._all[number]

    @property
    def twins(self) -> int:
        """How many wait for the outcome of a design like theirs."""
        return len(self._all) - len(self._leading) - len(self._ready)

    def leads(self, key: int) -> bool:
        """Whether a design is in flight."""
        return key in self._leading

    def add(self, ticket: Ticket) -> None:
        """Takes a ticket: it leads, waits for the one that does, or is ready."""
        self._all[ticket.number] = ticket
        if ticket.leads:
            self._backlog[ticket.number] = ticket
            self._leading[ticket.key] = []
        elif not ticket.reason and ticket.key in self._leading:
            self._leading[ticket.key].append(ticket)
        else:
            self._ready[ticket.number] = ticket

    def ready(self) -> list[Ticket]:
        """Those whose result is known already."""
        return list(self._ready.values())

    def feed(self, *, batch_only: bool) -> None:
        """Hands designs to the executor as long as it has room.

        Args:
            batch_only: only those whose row has a given step.
        """
        while len(self._sent) < max(1, self.executor.slots):
            waiting = (t for t in self._backlog.values() if t.step is not None or not batch_only)
            ticket = next(waiting, None)
            if ticket is None:
                return
            self._send(ticket)

    def go_on(self, now: float) -> None:
        """Begins with the executor, after the log of a resumed trial was replayed.

        A simulated clock is where it was, and what is in flight has begun when it was submitted.
        """
        clock = self.executor
        if isinstance(clock, SettableClock):
            for ticket in list(self._backlog.values())[: self.executor.slots]:
                clock.set_clock(ticket.since)
                self._send(ticket)
            clock.set_clock(now)

    def collect(self, timeout_s: float | None) -> Iterator[tuple[Ticket, Arrival]]:
        """Results from the executor; see there."""
        for arrival in self.executor.collect(timeout_s):
            yield self._sent.pop(arrival.ticket), arrival

    def landed(self, ticket: Ticket) -> None:
        """Forgets a ticket whose outcome is there; those that waited for it are ready."""
        del self._all[ticket.number]
        self._backlog.pop(ticket.number, None)
        self._ready.pop(ticket.number, None)
        if ticket.leads:
            self._ready.update((twin.number, twin) for twin in self._leading.pop(ticket.key))

    def give_up(self) -> None:
        """Forgets all tickets."""
        for number in self._sent:
            self.executor.cancel(number)
        for held in (self._all, self._backlog, self._sent, self._ready, self._leading):
            held.clear()

    def _send(self, ticket: Ticket) -> None:
        number = next(_numbers)
        rule = self._rule() if ticket.rule is None and ticket.fidelity == 1 else ticket.rule
        if rule is None:
            self.executor.submit(number, ticket.codes, ticket.fidelity)
        else:
            self.executor.submit(number, ticket.codes, ticket.fidelity, rule)
        self._sent[number] = ticket
        del self._backlog[ticket.number]

    def running(self) -> list[tuple[Ticket, Running | None]]:
        """Those that lead, in the order of submission; any thread may ask."""
        running = {one.ticket: one for one in self.executor.running()} if self._sent else {}
        sent: list[tuple[Ticket, Any]] = [(t, running.get(n)) for n, t in [*self._sent.items()]]
        return sent + [(ticket, None) for ticket in [*self._backlog.values()]]
