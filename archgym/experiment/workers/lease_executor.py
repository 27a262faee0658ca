"""An executor whose workers are ``archgym worker`` processes, wherever they see the folder."""

from __future__ import annotations

import contextlib
import json
import statistics
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.errors import ArchgymError, SimulationError
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.simulate.fingerprint import fingerprint
from archgym.experiment.simulate.worker_pool import read_answer
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.experiment.workers.arrivals import Arrivals
from archgym.experiment.workers.earlier_results import EarlierResults
from archgym.experiment.workers.line_files import beat
from archgym.experiment.workers.queue_folder import Job, QueueFolder, QueueInfo
from archgym.experiment.workers.remote_worker import Answer, RemoteWorker, Ticket, first_free
from archgym.problem.description import ProblemDescription
from archgym.simulators.executor import Arrival, Attempts, Running

__all__ = ["LeaseExecutor", "lease_executor"]

_BEATS = 6
"""Signs of life in the time of a lease."""
_FASTEST_S, _SLOWEST_S = 0.004, 1.0
_PAUSE_SHARE = 0.02  # of a simulation's time: how long its result may wait
_MAX_BUSY = 0.2  # share of the time in which the files are looked at
_LISTING_S = 1.0
_MAX_LOST = 10
"""A design that so many workers were lost with counts as failed: it may be what ends them."""
_MAX_REFUSALS = 3
_RECENT = 64


def lease_executor(
    folder: RunFolder,
    run_id: str,
    name: str,
    arguments: Mapping[str, Any],
    settings: SimulationSettings,
    problem: ProblemDescription,
) -> LeaseExecutor:
    """An executor for the workers of a run, as the settings of its experiment say.

    Args:
        folder: of the run.
        run_id: id of the run.
        name: of the environment.
        arguments: of its constructor.
        settings: of the experiment.
        problem: what the environment is like here.
    """
    attempts = settings.attempts
    job = Job(name, json.loads(json.dumps(arguments)), fingerprint(problem))
    info = QueueInfo(run_id, folder.shard, job, settings.lease_s, attempts.time_limit_s)
    return LeaseExecutor(folder.path, info, attempts, settings.workers)


class LeaseExecutor:
    """Hands tickets to the workers of one queue; a thread looks after them.

    A worker holds its tickets under a lease, which its signs of life renew. If they stay away, its
    tickets go to other workers; a result that comes after all is taken if it is the first one.
    Results that workers finished for an earlier driver, which was killed, are taken over.

    Args:
        run: folder of the run.
        info: what is simulated, and how long a lease is.
        attempts: how long and how often a design is tried.
        max_slots: tickets in flight at most; ``None`` for as many as workers have slots.

    Raises:
        ArchgymError: if the queue cannot be made.
    """

    slots_change = True
    """Workers come and go while a search runs."""

    def __init__(
        self, run: Path, info: QueueInfo, attempts: Attempts, max_slots: int | None = None
    ) -> None:
        self._info, self._attempts, self._max_slots = info, attempts, max_slots
        self._lease_s = info.lease_s
        self._changed = threading.Condition()
        self._open: dict[int, Ticket] = {}
        self._waiting: deque[Ticket] = deque()
        self._workers: dict[str, RemoteWorker] = {}
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._fatal: list[str] = []
        self._trouble = ""
        self._over = self._urgent = False
        self._given_up: list[Ticket] = []
        try:
            self._queue = QueueFolder.make(run, info)
        except OSError as error:
            raise ArchgymError(f"cannot write to {run}: {error.strerror}") from error
        self._arrivals = Arrivals(self._queue)
        self._earlier = EarlierResults(run, info)
        self._next_listing = self._next_beat = 0.0
        self._thread = threading.Thread(target=self._serve, name="archgym-workers", daemon=True)
        self._thread.start()

    @property
    def slots(self) -> int:
        """See :class:`~archgym.simulators.executor.Executor`."""
        with self._changed:
            there = sum(w.slots for w in self._workers.values() if not (w.left or w.lost))
            there += sum(len(w.given) for w in self._earlier.workers if not w.lost)
        return there if self._max_slots is None else min(there, self._max_slots)

    def restart(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        with self._changed:
            for ticket in [*self._open.values(), *self._given_up]:
                self._take_back(ticket)
            self._open.clear()
            self._given_up.clear()
            self._arrivals.drop_waiting()
            self._arrivals.confirm()

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
        now = time.time()
        with self._changed:
            plain = tuple(int(code) for code in codes)
            new = Ticket(ticket, plain, float(fidelity), now, rule=rule)
            self._open[ticket] = new
            found = self._earlier.take(new, now)
            if found is not None:
                self._settle(new, *found, given_at=None)
            elif not any(
                given.ticket is new for w in self._earlier.workers for given in w.given.values()
            ):
                self._waiting.append(new)
            self._arrivals.confirm()
            self._urgent = True
            self._changed.notify_all()

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        with self._changed:
            self._arrivals.confirm()
            self._changed.wait_for(
                lambda: self._arrivals or not self._open or self._trouble, timeout_s
            )
            if not self._arrivals and self._trouble:
                raise ArchgymError(self._trouble)
            return self._arrivals.hand_over()

    def running(self) -> list[Running]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        with self._changed:
            held = {
                given.ticket.number: (worker.name, given.at)
                for worker in [*self._earlier.workers, *self._workers.values()]
                if not (worker.left or worker.lost)
                for given in worker.given.values()
            }
            return [
                Running(number, *held.get(number, ("", ticket.submitted)))
                for number, ticket in self._open.items()
            ]

    def cancel(self, ticket: int) -> None:
        """See :class:`~archgym.simulators.executor.Executor`.

        A worker that simulates it goes on until the next trial begins: a search that was
        interrupted may be resumed, and proposes it again.
        """
        with self._changed:
            one = self._open.pop(ticket, None)
            if one is not None and one in self._waiting:
                self._waiting.remove(one)
            elif one is not None:
                self._given_up.append(one)
            self._arrivals.drop(ticket)

    def close(self) -> None:
        """Ends the queue.

        What is in flight or was not collected stays in the folder for a run that is resumed:
        workers finish it.
        """
        with self._changed:
            if self._over:
                return
            self._over = True
            self._arrivals.drop_waiting()
            self._arrivals.confirm()
            self._changed.notify_all()
        self._thread.join()
        with contextlib.suppress(OSError):
            self._arrivals.note_collected()
            if self._arrivals.left or self._open or self._given_up:
                self._queue.leave(self._info)
            else:
                self._queue.remove()

    # -- in the thread -------------------------------------------------------------------------

    def _serve(self) -> None:
        before = time.monotonic()
        pause = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or self._urgent, pause)
                if self._over:
                    return
                self._urgent = False
                began = time.monotonic()
                try:
                    # After a pause of this process, workers get time to show that they live.
                    self._look(min(began - before, self._lease_s / 4))
                except Exception as error:  # must not end unnoticed
                    self._trouble = f"cannot look after workers: {type(error).__name__}: {error}"
                    self._changed.notify_all()
                    return
                before, spent = began, time.monotonic() - began
            pause = max(self._pause(), spent * (1 / _MAX_BUSY - 1))
            time.sleep(min(_FASTEST_S, pause))  # several submissions are one look

    def _look(self, passed_s: float) -> None:
        now = time.monotonic()
        with contextlib.suppress(OSError):
            self._arrivals.note_collected()
        self._forget_workers()
        if now >= self._next_beat:
            self._next_beat = now + self._lease_s / _BEATS
            with contextlib.suppress(OSError):
                beat(self._queue.info_file)
        if now >= self._next_listing:
            self._next_listing = now + (_LISTING_S if self._workers else _LISTING_S / 4)
            for name in self._queue.workers():
                if name not in self._workers:
                    self._workers[name] = RemoteWorker(name, self._queue)
        for worker in [*self._earlier.workers, *self._workers.values()]:
            if not worker.left:
                self._hear(worker, passed_s)
        self._earlier.workers = [w for w in self._earlier.workers if not w.left]
        while self._waiting:
            free = first_free(list(self._workers.values()))
            if free is None:
                break
            ticket = self._waiting.popleft()
            try:
                free.give(ticket, time.time())
            except OSError:
                self._waiting.appendleft(ticket)
                free.left = "its inbox cannot be written"
                self._release(free, lost=True)

    def _hear(self, worker: RemoteWorker, passed_s: float) -> None:
        for answer in worker.listen(passed_s):
            given = worker.given.pop(answer.number, None)
            if given is None:
                self._earlier.keep(worker, answer)
            elif given.ticket in self._given_up:
                self._given_up.remove(given.ticket)
                self._arrivals.leave(worker, answer.number)
            elif self._open.get(given.ticket.number) is given.ticket:
                self._settle(given.ticket, worker, answer, given.at)
        if worker.left:
            if worker.refused:
                self._refuse(worker.refused)
            self._release(worker, lost=False)
        elif worker.silent_s > self._lease_s and not worker.lost:
            worker.lost = True
            self._release(worker, lost=True)

    def _settle(
        self, ticket: Ticket, worker: RemoteWorker, answer: Answer, given_at: float | None
    ) -> None:
        """Makes an arrival of an answer, or lets the ticket be tried again."""
        content = dict(answer.content)
        if "died" in content:
            ticket.failures += 1
            times = f"{ticket.failures} times in all"
            reason = f"the simulating process died, {times}"
            content = {"error": "failed", "reason": reason, "seconds": answer.elapsed}
        elif content.get("error") == "failed":
            ticket.failures += 1
        else:
            self._fatal.clear()
        result, seconds = read_answer(content)
        if isinstance(result, SimulationError) and ticket.failures <= self._attempts.retries:
            self._wait_again(ticket)
            return
        started, ended = _times(answer, given_at)
        self._recent.append(answer.elapsed)
        arrival = Arrival(ticket.number, result, seconds, worker.name, started, ended)
        self._arrivals.add(arrival, worker, answer.number)
        self._end(ticket)

    def _end(self, ticket: Ticket) -> None:
        del self._open[ticket.number]
        self._take_back(ticket)
        self._changed.notify_all()

    def _wait_again(self, ticket: Ticket) -> None:
        if ticket not in self._waiting:
            self._waiting.appendleft(ticket)

    def _take_back(self, ticket: Ticket) -> None:
        """Takes a ticket from everybody who has it."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
        for worker in [*self._earlier.workers, *self._workers.values()]:
            for number in [n for n, given in worker.given.items() if given.ticket is ticket]:
                worker.cancel(number)

    def _release(self, worker: RemoteWorker, *, lost: bool) -> None:
        """Gives the tickets of a worker that is gone to others."""
        for given in list(worker.given.values()):
            ticket = given.ticket
            if self._open.get(ticket.number) is not ticket:
                continue
            ticket.lost += lost
            if ticket.lost < _MAX_LOST:
                self._wait_again(ticket)
                continue
            reason = SimulationError(f"{ticket.lost} workers were lost while they simulated it")
            now = time.time()
            own = Arrival(ticket.number, reason, now - given.at, worker.name, given.at, now)
            self._arrivals.add_own(own)
            self._end(ticket)
        if worker.left:
            worker.given.clear()

    def _refuse(self, reason: str) -> None:
        """Several workers in a row that cannot simulate anything end the search."""
        self._fatal.append(reason)
        if len(self._fatal) >= _MAX_REFUSALS and not any(
            worker.slots and not worker.left and not worker.lost
            for worker in self._workers.values()
        ):
            self._trouble = f"{len(self._fatal)} workers in a row cannot simulate: {reason}"
            self._changed.notify_all()

    def _forget_workers(self) -> None:
        """Removes files of workers that are gone and whose results are all in the journal."""
        for name, worker in list(self._workers.items()):
            if worker.left and not worker.unconfirmed:
                worker.forget()
                del self._workers[name]

    def _pause(self) -> float:
        if not self._recent:
            return _FASTEST_S * 10
        typical = statistics.median(self._recent)
        return min(_SLOWEST_S, max(_FASTEST_S, _PAUSE_SHARE * typical))


def _times(answer: Answer, given_at: float | None) -> tuple[float, float]:
    """When a simulation began and ended, by the driver's clock unless it was at another time.

    Args:
        answer: of the worker, with times of its clock.
        given_at: when the driver gave it the ticket; ``None`` if an earlier driver did.
    """
    now = time.time()
    low = answer.started if given_at is None else given_at
    started = answer.started
    if not low <= started <= now - answer.elapsed:
        started = max(low, now - answer.elapsed) if given_at is not None else now - answer.elapsed
    return started, started + answer.elapsed
