"""What workers finished or still simulate for drivers that were killed before.

A search that is resumed proposes again what was in flight. Such a design is not simulated a second
time if a worker finished it in the meantime, or is still at it.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archgym.experiment.workers.line_files import append_line
from archgym.experiment.workers.queue_folder import QueueFolder, QueueInfo, queue_folders
from archgym.experiment.workers.remote_worker import Answer, Given, RemoteWorker, Ticket, read_inbox

__all__ = ["EarlierResults"]

_Key = tuple[tuple[int, ...], float]
_TAKEN = ("metrics", "stopped", "error")
_FAILED = "failed"


class EarlierResults:
    """Results and running simulations in the queues of drivers of earlier runs in the same folder.

    Args:
        run: folder of the run.
        info: of the new driver's queue.

    Attributes:
        workers: workers that may still simulate for an earlier driver.
    """

    def __init__(self, run: Path, info: QueueInfo) -> None:
        self.workers: list[RemoteWorker] = []
        self._found: defaultdict[_Key, list[tuple[RemoteWorker, Answer]]] = defaultdict(list)
        self._running: defaultdict[_Key, list[tuple[RemoteWorker, int]]] = defaultdict(list)
        for queue in queue_folders(run):
            earlier = queue.info()
            if earlier is None or earlier.run_id == info.run_id:
                continue
            if earlier.shard == info.shard and _same(earlier, info):
                self._read(queue)

    def take(self, ticket: Ticket, now: float) -> tuple[RemoteWorker, Answer] | None:
        """The result of a ticket, if there is one; then it is not given a second time.

        A worker that is still at it gets the ticket instead.

        Args:
            ticket: what is to be simulated.
            now: seconds since the epoch.
        """
        key = (ticket.codes, ticket.fidelity)
        if self._found.get(key):
            worker, answer = self._found[key].pop()
            with contextlib.suppress(OSError):
                append_line(worker.queue.collected_file, {"tickets": [answer.number]})
            return worker, answer
        while self._running.get(key):
            worker, number = self._running[key].pop()
            if not (worker.left or worker.lost):
                worker.given[number] = Given(ticket, now)
                break
        return None

    def keep(self, worker: RemoteWorker, answer: Answer) -> None:
        """Keeps a result that nobody has asked for yet."""
        for key, running in self._running.items():
            if (worker, answer.number) in running:
                running.remove((worker, answer.number))
                self._add(key, worker, answer)
                return

    def _read(self, queue: QueueFolder) -> None:
        collected = queue.collected()
        for name in queue.workers():
            worker = RemoteWorker(name, queue)
            tickets = read_inbox(queue, name)
            while answers := worker.listen(0.0):
                for answer in answers:
                    key = tickets.pop(answer.number, None)
                    if key is not None and answer.number not in collected:
                        self._add(key, worker, answer)
            worker.slots = 0  # for its tickets only
            if not worker.left and tickets:
                for number, key in tickets.items():
                    self._running[key].append((worker, number))
                self.workers.append(worker)

    def _add(self, key: _Key, worker: RemoteWorker, answer: Answer) -> None:
        content: Mapping[str, Any] = answer.content
        if any(name in content for name in _TAKEN) and content.get("error") != _FAILED:
            self._found[key].append((worker, answer))


def _same(one: QueueInfo, other: QueueInfo) -> bool:
    return one.job == other.job
