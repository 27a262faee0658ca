"""A worker as its driver sees it: its lease, its tickets, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archgym.experiment.workers.line_files import LineReader, append_line
from archgym.experiment.workers.queue_folder import QueueFolder
from archgym.simulators.early_stopping import is_so_far, is_stop

__all__ = [
    "Answer",
    "Given",
    "RemoteWorker",
    "Task",
    "Ticket",
    "first_free",
    "read_inbox",
    "ticket_of",
]

Task = tuple[int, tuple[int, ...], float, Mapping[str, Any] | None]
"""A ticket as a worker gets it: number, codes, fidelity, and by which rule it may be stopped."""
_MAX_SLOTS = 4096
_MAX_NUMBER = 1e15  # of seconds since the epoch and the like


@dataclass
class Ticket:
    """A design in flight.

    Attributes:
        number: its number.
        codes: canonical codes of the design.
        fidelity: at which it is simulated.
        submitted: when it was submitted, seconds since the epoch.
        failures: attempts that failed.
        lost: workers that were lost while they had it.
        rule: by which it may be stopped early.
    """

    number: int
    codes: tuple[int, ...]
    fidelity: float
    submitted: float
    failures: int = 0
    lost: int = 0
    rule: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Given:
    """A ticket that a worker has.

    Attributes:
        ticket: the ticket.
        at: when it was given, seconds since the epoch of the driver.
    """

    ticket: Ticket
    at: float


@dataclass(frozen=True)
class Answer:
    """What a worker says of a ticket.

    Attributes:
        number: of the ticket.
        content: as :func:`archgym.experiment.simulate.worker_process.answer` gives it, or with
            the key ``died``.
        elapsed: seconds that it had the ticket.
        started: when it began, seconds since the epoch of the worker.
    """

    number: int
    content: Mapping[str, Any]
    elapsed: float
    started: float


@dataclass
class RemoteWorker:
    """One worker of a queue.

    Attributes:
        name: of its files.
        queue: the queue.
        slots: how many tickets it takes at a time; 0 until it has introduced itself.
        given: the tickets that it has, by number.
        silent_s: seconds since its last sign of life.
        left: why it is gone; empty while it is there.
        refused: why it cannot simulate; empty if it can.
        lost: whether its lease was lost.
        unconfirmed: tickets that it answered and whose results are not in the journal yet.
    """

    name: str
    queue: QueueFolder
    slots: int = 0
    given: dict[int, Given] = field(default_factory=dict)
    silent_s: float = 0.0
    left: str = ""
    refused: str = ""
    lost: bool = False
    unconfirmed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begins to follow the outbox."""
        self._outbox = LineReader(self.queue.outbox(self.name))
        self._changes = -1

    @property
    def free(self) -> int:
        """How many more tickets it takes now."""
        return 0 if self.left or self.lost else max(0, self.slots - len(self.given))

    def listen(self, passed_s: float) -> list[Answer]:
        """Reads what is new in its outbox.

        Args:
            passed_s: seconds since the last call.

        Returns:
            Its answers, also those to tickets that it should not have.
        """
        try:
            lines = self._outbox.read()
        except FileNotFoundError:
            lines, self.left = [], self.left or "its files are gone"
        except OSError:
            lines = []
        if self._outbox.changes != self._changes:
            self._changes, self.silent_s, self.lost = self._outbox.changes, 0.0, False
        else:
            self.silent_s += passed_s
        answers = []
        for line in lines:
            if "hello" in line:
                self.slots = _whole(line.get("slots"), 1, _MAX_SLOTS, 1)
            elif "bye" in line:
                self.left = str(line["bye"])[:500] or "it has left"
                self.refused = str(line.get("refused", ""))[:2000]
            elif (answer := _answer(line)) is not None:
                answers.append(answer)
        return answers

    def give(self, ticket: Ticket, now: float) -> None:
        """Hands a ticket over.

        Raises:
            OSError: if it cannot be written.
        """
        line = {"ticket": ticket.number, "codes": ticket.codes, "fidelity": ticket.fidelity}
        if ticket.rule is not None:
            line["rule"] = ticket.rule
        append_line(self.queue.inbox(self.name), line)
        self.given[ticket.number] = Given(ticket, now)

    def cancel(self, number: int) -> None:
        """Takes a ticket back."""
        if self.given.pop(number, None) is not None and not self.left:
            try:
                append_line(self.queue.inbox(self.name), {"cancel": number})
            except OSError:
                return  # its result will be dropped

    def forget(self) -> None:
        """Removes the files of a worker that is gone and whose results are all in the journal."""
        self.queue.inbox(self.name).unlink(missing_ok=True)
        self.queue.outbox(self.name).unlink(missing_ok=True)


def read_inbox(queue: QueueFolder, worker: str) -> dict[int, tuple[tuple[int, ...], float]]:
    """Codes and fidelity of every ticket that a worker was given and that was not taken back.

    Args:
        queue: the queue.
        worker: name of the worker.
    """
    reader, found = LineReader(queue.inbox(worker)), dict[int, tuple[tuple[int, ...], float]]()
    try:
        while lines := reader.read():
            for line in lines:
                if "cancel" in line:
                    found.pop(line["cancel"], None)
                elif (ticket := ticket_of(line)) is not None:
                    found[ticket[0]] = ticket[1:3]
    except (OSError, TypeError):
        return found
    return found


def ticket_of(line: Mapping[str, Any]) -> Task | None:
    """Number, codes, fidelity and rule in a line of an inbox; ``None`` if it is no ticket."""
    number, codes, fidelity = line.get("ticket"), line.get("codes"), line.get("fidelity")
    plain = isinstance(codes, list) and all(type(code) is int for code in codes)
    if type(number) is int and plain and _is_number(fidelity):
        assert isinstance(codes, list)
        rule = line.get("rule")
        known = rule if isinstance(rule, dict) else None
        return number, tuple(codes), float(fidelity or 0.0), known
    return None


def _answer(line: Mapping[str, Any]) -> Answer | None:
    number, content = line.get("done"), line.get("answer")
    elapsed, started = line.get("elapsed"), line.get("started")
    if type(number) is not int or not isinstance(content, dict):
        return None
    if not (_is_number(elapsed) and _is_number(started) and _is_valid(content)):
        return None
    return Answer(number, content, max(0.0, float(elapsed or 0)), float(started or 0))


def _is_valid(content: Mapping[str, Any]) -> bool:
    """Whether it has the form of an answer."""
    metrics = content.get("metrics")
    if not _is_number(content.get("seconds")):
        return False
    if isinstance(content.get("stopped"), dict):
        return isinstance(content.get("reason"), str) and is_stop(content["stopped"])
    if isinstance(metrics, dict):
        return is_so_far(content.get("so_far", {}))
    if "died" in content:
        return True
    known = content.get("error") in ("failed", "not_covered", "timeout")
    return known and isinstance(content.get("reason"), str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < _MAX_NUMBER


def _whole(value: object, low: int, high: int, otherwise: int) -> int:
    return value if type(value) is int and low <= value <= high else otherwise


def first_free(workers: Sequence[RemoteWorker]) -> RemoteWorker | None:
    """The worker that takes the next ticket: the one with the most free slots."""
    return max((one for one in workers if one.free), key=lambda one: one.free, default=None)
