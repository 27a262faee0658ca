"""The queue: designs are submitted, and their outcomes collected as simulations end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archgym.errors import ReplayMismatchError
from archgym.evaluation.early_stopping import EarlyStopping, partial_text
from archgym.evaluation.ledger import Ledger
from archgym.evaluation.outcome import Outcomes, Row
from archgym.evaluation.recorder_protocol import Flight
from archgym.evaluation.tickets import Ticket, Tickets
from archgym.problem import Status
from archgym.simulators.executor import Arrival
from archgym.simulators.queued import InProcessExecutor, designs_at_a_time
from archgym.simulators.result import read_result
from archgym.space import Designs

_ILLEGAL = Status.ILLEGAL
_PATIENCE_S = 1.0


@dataclass(frozen=True)
class InFlight:
    """A design that is simulated now, or waits for a worker.

    Attributes:
        design: canonical.
        fidelity: at which it is simulated.
        worker: name of its worker; empty while it waits for one.
        started: when that worker began, on the executor's clock; ``None`` while it waits for one.
    """

    design: dict[str, Any]
    fidelity: float
    worker: str
    started: float | None


class Queue(Ledger):
    """Adds designs in flight to the state of a trial.

    A design that is in flight is not sent twice: a further proposal of it waits for its outcome,
    as a duplicate. Every outcome is recorded when it arrives, before it is collected.

    The log of a trial whose outcomes were collected as they came holds the number of each
    proposal, and how many there had been when its outcome arrived. A resumed search gets the same
    outcomes after the same proposals, whatever the workers do now; :attr:`vacant` says when it is
    to propose.
    """

    _proposed = 0
    """Proposals so far, with those in flight."""
    _allotted = 0
    """Steps of a batch whose outcomes are not there yet."""
    _clock = 0.0
    """When the last outcome from the log was there."""
    live_since: float | None = None
    """When the executor got the first design of this search, or of what is left of it."""
    live_s = 0.0
    """Seconds that the simulations took which have ended since then."""

    @cached_property
    def queued(self) -> bool:
        """Whether an executor simulates."""
        return getattr(self._simulator, "executor", None) is not None

    @cached_property
    def asynchronous(self) -> bool:
        """Whether a search is to propose a design whenever :attr:`vacant` says so."""
        return self.queued and bool(getattr(self._simulator, "asynchronous", False))

    @property
    def slots(self) -> int:
        """How many designs are simulated at a time; 1 without an executor."""
        return self._tickets.executor.slots if self.queued else 1

    @property
    def replaying(self) -> bool:
        """Whether the next outcome comes from the log of a resumed trial, in its order there."""
        return self._replayed_row >= 0

    @property
    def vacant(self) -> int:
        """How many designs to submit now, so that as many are in flight as can be.

        Duplicates of designs in flight need no worker, but there are never more than slots: an
        agent that proposes nothing else has to wait for outcomes.
        """
        log, row = self._log, self._replayed_row
        if log is not None and row >= 0:
            return max(0, int(log.proposed[row]) - self._proposed)
        slots = max(1, self._tickets.executor.slots)
        return max(0, slots - len(self._tickets) + min(slots, self._tickets.twins))

    @property
    def patience_s(self) -> float | None:
        """How long a search waits for an outcome until it looks at :attr:`vacant` again, s.

        ``None``, without a limit, unless workers come and go: a new one needs a design at once.
        """
        return _PATIENCE_S if getattr(self._tickets.executor, "slots_change", False) else None

    @property
    def in_flight(self) -> list[InFlight]:
        """The designs in flight, in the order of submission; any thread may ask."""
        return [
            InFlight(
                self._space.design(ticket.codes),
                ticket.fidelity,
                "" if one is None else one.worker,
                one.started if one is not None and one.worker else None,
            )
            for ticket, one in self._tickets.running()
        ]

    @property
    def now(self) -> float:
        """The time on the executor's clock, seconds since the epoch."""
        return self._tickets.executor.now()

    def submit(self, designs: Designs, fidelity: float = 1.0) -> list[int]:
        """Takes designs to evaluate, without waiting; with a budget, as many as are left in it.

        Args:
            designs: of this space.
            fidelity: at which to simulate.

        Returns:
            The tickets of the first ``len(result)`` designs: all, unless the budget ran out.
            Tickets count proposals from 0.

        Raises:
            BudgetExhausted: if nothing is left at all.
            InvalidValueError: if there is no such fidelity.
        """
        taken = self._take(designs, fidelity, None)
        self._feed()
        self._returned_at = time.perf_counter()
        return [ticket.number for ticket in taken]

    def collect(self, timeout_s: float | None = None) -> list[tuple[int, Row]]:
        """Outcomes that are there, each with its ticket, in the order in which they came.

        Args:
            timeout_s: how long to wait for the first one, s; 0 does not wait, ``None`` waits
                without a limit.

        Returns:
            Each outcome once; none after the timeout, and at once if nothing was submitted.

        Raises:
            ArchgymError: for what concerns every design, such as a missing program.
            ReplayMismatchError: if a resumed trial proposed another design than its log holds.
        """
        if not self._collected and self._tickets:
            row = self._replayed_row
            if row >= 0:
                self._replay(row)
            else:
                self._advance(timeout_s)
        found = [(t.number, t.outcome) for t in self._collected if t.outcome is not None]
        self._collected.clear()
        self._returned_at = time.perf_counter()
        return found

    def evaluate_queued(self, designs: Designs, fidelity: float) -> Outcomes:
        """Submits designs and waits for all of them; see :meth:`Evaluator.evaluate`.

        Rows have the steps of the order of the designs, though each is recorded when its
        simulation ends. Outcomes of other designs that come meanwhile are for the next
        :meth:`collect`.
        """
        first = self.proposals + self._allotted
        taken = self._take(designs, fidelity, first)
        designs = designs[: len(taken)]
        if self._log is not None:
            logged = self._log.compare(first, designs, self._levels[fidelity][1])
            for ticket, row in zip(taken, logged, strict=True):
                if row >= 0:
                    self._land_from_log(ticket, row)
        for ticket in taken:
            while ticket.outcome is None:
                self._advance(None)
        mine = set(map(id, taken))
        self._collected = [ticket for ticket in self._collected if id(ticket) not in mine]
        self._returned_at = time.perf_counter()
        outcomes = [ticket.outcome for ticket in taken if ticket.outcome is not None]
        if len(outcomes) == 1:
            return Outcomes.of(outcomes[0], designs, self._names)
        new = [i for i, ticket in enumerate(taken) if ticket.leads]
        return self._scoring.many(
            designs,
            [ticket.row for ticket in taken],
            new,
            {i: ticket.reason for i, ticket in enumerate(taken) if ticket.reason},
            [outcomes[i].simulation_s for i in new],
            self._levels[fidelity][1],
        )

    def give_up(self) -> None:
        """Gives up all designs in flight, at the end of a trial."""
        if "_tickets" in vars(self):
            self._tickets.give_up()

    # -- inner workings --------------------------------------------------------------------------

    @cached_property
    def _tickets(self) -> Tickets:
        executor = getattr(self._simulator, "executor", None)
        if executor is None:
            executor = InProcessExecutor(self._simulator, self._space, self._at_a_time)
        early = self._early
        return Tickets(executor) if early is None else Tickets(executor, early.rule)

    @cached_property
    def _early(self) -> EarlyStopping | None:
        """What stops runs early, where the search does."""
        if not getattr(self._simulator, "stop_early", False):
            return None
        return EarlyStopping(self._metrics, self._scorer)

    @cached_property
    def _at_a_time(self) -> int:
        """Designs that a simulator of this process simulates at a time, each alone, or 0."""
        return designs_at_a_time(self._simulator)

    @cached_property
    def _collected(self) -> list[Ticket]:
        return []

    @property
    def _replayed_row(self) -> int:
        """Row of the log with the outcome that comes next; -1 if it is to be simulated."""
        log = self._log
        row = -1 if log is None else log.row(self.proposals + self._allotted)
        return row if log is not None and row >= 0 and log.proposal[row] >= 0 else -1

    def _take(self, designs: Designs, fidelity: float, first: int | None) -> list[Ticket]:
        """Makes tickets of as many designs as there is room for.

        Args:
            designs: of this space.
            fidelity: at which to simulate.
            first: step of the first one's row; ``None``: rows have the order of outcomes.
        """
        level, fidelity = self._levels.get(fidelity) or self._refuse(fidelity)
        max_new, max_proposed = self._room(len(designs), level)
        reasons = self._space.illegal_reasons(designs)
        agent_s = self._in_agent / max(1, len(designs))
        rule = None
        if self._early is not None and not level and getattr(self._simulator, "timeless", False):
            rule = self._early.rule()  # before any of the batch ends
        taken: list[Ticket] = []
        new = 0
        pairs = zip(designs.keys(), designs.codes.tolist(), strict=True)
        for i, (key, codes) in enumerate(pairs):
            if i >= max_proposed or new >= max_new:
                break
            key += level * self._keys_of_level
            reason = reasons.get(i, "")
            leads = not (reason or self._cache.find(key) >= 0 or self._tickets.leads(key))
            new += leads
            step = None if first is None else first + i
            number = self._proposed + i
            ticket = Ticket(
                number, codes, key, level, fidelity, reason, agent_s, self._clock, step, leads, rule
            )
            self._tickets.add(ticket)
            taken.append(ticket)
        self._proposed += len(taken)
        self._allotted += 0 if first is None else len(taken)
        self._budget.reserve(level, new, len(taken))
        self._flying += 0 if level else new
        return taken

    def _advance(self, timeout_s: float | None) -> None:
        """Takes in results that are known, or else those that arrive next."""
        replaying = self._replayed_row >= 0
        ready = [t for t in self._tickets.ready() if t.step is not None or not replaying]
        for ticket in ready:
            self._land(ticket, None, 0.0, None)
        self._feed()
        for ticket, arrival in self._tickets.collect(0 if ready else timeout_s):
            result = read_result(arrival.result, self._metrics, self._given)
            self.live_s += arrival.seconds
            partial = None if self._early is None else partial_text(arrival.result)
            self._land(ticket, result, arrival.seconds, arrival, partial)
        self._settle()

    def _feed(self) -> None:
        """Hands designs to the executor, after the log was replayed."""
        replaying = self._replayed_row >= 0
        if self.live_since is None and not replaying:
            if self._clock:
                self._tickets.go_on(self._clock)
            self.live_since = self.now
        self._tickets.feed(batch_only=replaying)

    def _replay(self, row: int) -> None:
        """Takes the outcome that comes next from the log."""
        assert self._log is not None
        number = int(self._log.proposal[row])
        if number not in self._tickets:
            raise ReplayMismatchError(
                f"step {self.proposals}: the log holds the outcome of proposal {number}, but the "
                f"resumed search made {self._proposed}: code, seed or hyperparameters changed"
            )
        ticket = self._tickets[number]
        designs = Designs(self._space, np.array([ticket.codes], dtype=np.int64))
        self._log.compare(int(self._log.steps[row]), designs, ticket.fidelity)
        self._land_from_log(ticket, row)

    def _land_from_log(self, ticket: Ticket, row: int) -> None:
        assert self._log is not None
        self._clock = max(self._clock, float(self._log.ended[row]))
        seconds = float(self._log.seconds[row]) if ticket.leads else 0.0
        partial = self._log.partial[row]
        self._land(ticket, self._log.result(row), seconds, None, partial, logged=True)

    def _land(
        self,
        ticket: Ticket,
        result: tuple[Status, list[float], str] | None,
        seconds: float,
        arrival: Arrival | None,
        partial: str | None = None,
        *,
        logged: bool = False,
    ) -> None:
        """Caches, scores, records and counts the outcome of a ticket.

        Args:
            ticket: whose outcome it is.
            result: of its simulation, if it leads.
            seconds: that the simulation took.
            arrival: from the executor, if it simulated the design now.
            partial: what the run had on the way.
            logged: whether the log of a resumed trial holds the row.
        """
        first = len(self._cache)
        if ticket.leads and result is not None:
            ticket.row = self._cache.add(ticket.key, *result)
        elif not ticket.reason:
            ticket.row = self._cache.find(ticket.key)
        cached = not (ticket.leads or ticket.reason)
        outcome = self._scoring.one(
            ticket.codes, ticket.row, ticket.reason, cached, seconds, ticket.fidelity
        )
        if not logged:
            step = self.proposals + self._allotted if ticket.step is None else ticket.step
            flight = self._flight(ticket, arrival, partial)
            self._record(first, step, ticket.agent_s, lambda: (outcome,), flight)
        if self._early is not None and ticket.leads:
            self._early.learn(outcome, partial)
        self._budget.reserve(ticket.level, -int(ticket.leads), -1)
        if ticket.leads and not ticket.level:
            self._flying -= 1
        if ticket.step is not None:
            self._allotted -= 1
        illegal = outcome.status == _ILLEGAL
        simulated = ticket.leads and not illegal
        self._count(first, 1, ticket.level, simulated, illegal, cached, seconds)
        self._tickets.landed(ticket)
        ticket.outcome = outcome
        self._collected.append(ticket)

    def _flight(
        self, ticket: Ticket, arrival: Arrival | None, partial: str | None
    ) -> Flight | None:
        in_order = ticket.step is not None
        return Flight(
            None if in_order else ticket.number,
            None if in_order else self._proposed,
            "" if arrival is None else arrival.worker,
            arrival.started if arrival is not None and arrival.worker else None,
            self.now if arrival is None else arrival.ended,
            partial,
        )
