"""Results on their way from the workers into the journal."""

from __future__ import annotations

from archgym.experiment.workers.line_files import append_line
from archgym.experiment.workers.queue_folder import QueueFolder
from archgym.experiment.workers.remote_worker import RemoteWorker
from archgym.simulators.executor import Arrival

__all__ = ["Arrivals"]


class Arrivals:
    """Results that came, and which of them are in the journal.

    A result that was handed over is in the journal as soon as the next one is asked for. Only then
    the queue notes that it was collected; a run that is killed before finds it there.

    Args:
        queue: of this driver.

    Attributes:
        left: whether there are results in the queue that were not collected.
    """

    def __init__(self, queue: QueueFolder) -> None:
        self.left = False
        self._queue = queue
        self._waiting: list[Arrival] = []
        self._answered: dict[int, tuple[RemoteWorker, int]] = {}
        self._returned: dict[int, tuple[RemoteWorker, int]] = {}
        self._confirmed: list[tuple[RemoteWorker, int]] = []

    def __bool__(self) -> bool:
        """Whether a result waits to be handed over."""
        return bool(self._waiting)

    def add(self, arrival: Arrival, worker: RemoteWorker, number: int) -> None:
        """Takes a result.

        Args:
            arrival: the result.
            worker: that answered, under this number.
            number: of the ticket in the queue of that worker.
        """
        worker.unconfirmed.add(number)
        self._answered[arrival.ticket] = (worker, number)
        self.add_own(arrival)

    def add_own(self, arrival: Arrival) -> None:
        """Takes a result that no worker gave."""
        self._waiting.append(arrival)

    def leave(self, worker: RemoteWorker, number: int) -> None:
        """Leaves a worker's answer in the queue, for a run that is resumed."""
        worker.unconfirmed.add(number)
        self.left = True

    def hand_over(self) -> list[Arrival]:
        """All results that wait."""
        found, self._waiting = self._waiting, []
        for one in found:
            if one.ticket in self._answered:
                self._returned[one.ticket] = self._answered.pop(one.ticket)
        return found

    def confirm(self) -> None:
        """What was handed over is in the journal by now."""
        self._confirmed += self._returned.values()
        self._returned.clear()

    def drop(self, ticket: int) -> None:
        """Leaves the result of a ticket in the queue, if it is not in the journal."""
        for held in (self._answered, self._returned):
            if held.pop(ticket, None) is not None:
                self.left = True
        self._waiting = [one for one in self._waiting if one.ticket != ticket]

    def drop_waiting(self) -> None:
        """Leaves all results in the queue that were not handed over."""
        for one in self._waiting:
            self.drop(one.ticket)

    def note_collected(self) -> None:
        """Notes in the queue what is in the journal.

        Raises:
            OSError: if it cannot be written.
        """
        confirmed, self._confirmed = self._confirmed, []
        own = [number for worker, number in confirmed if worker.queue is self._queue]
        for worker, number in confirmed:
            worker.unconfirmed.discard(number)
        if own:
            append_line(self._queue.collected_file, {"tickets": own})
