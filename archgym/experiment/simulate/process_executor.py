"""An executor of processes on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from archgym.experiment.simulate.simulating_process import START_S, SimulatingProcess
from archgym.experiment.simulate.worker_pool import Worker, WorkerPool
from archgym.simulators.executor import Attempts

__all__ = ["ProcessExecutor"]


class ProcessExecutor(WorkerPool):
    """Processes on this machine, each with an environment; they start as designs need them.

    Args:
        environment: registered name, or ``module:Class``.
        arguments: of its constructor.
        workers: number of processes.
        attempts: time limit and retries.
        kept: folder for :func:`~archgym.experiment.simulate.finished.keep_answer`; empty for none.
    """

    def __init__(
        self,
        environment: str,
        arguments: Mapping[str, Any],
        workers: int,
        attempts: Attempts,
        kept: str = "",
    ) -> None:
        names = [f"process {number + 1}" for number in range(workers)]
        made = [_Process(name, environment, arguments, kept) for name in names]
        super().__init__(made, attempts, START_S)

    def _answers(
        self, workers: Sequence[Worker], timeout_s: float
    ) -> Iterable[tuple[Worker, Mapping[str, Any] | None]]:
        by_link = {worker.link: worker for worker in workers if isinstance(worker, _Process)}
        for link in wait(list(by_link), timeout_s):
            worker = by_link[link]  # type: ignore[index]
            yield worker, worker.answer()


class _Process(Worker):
    """A process; see :mod:`archgym.experiment.simulate.worker_process`.

    Attributes:
        link: this end of its connection.
    """

    def __init__(
        self, name: str, environment: str, arguments: Mapping[str, Any], kept: str
    ) -> None:
        super().__init__(name)
        self._job, self._kept = (environment, arguments), kept
        self._process: SimulatingProcess | None = None
        self.link: Connection[Any, Any]

    def start(self) -> None:
        self._process = SimulatingProcess(*self._job, kept=self._kept)
        self.link = self._process.link

    def send(self, codes: Sequence[int], fidelity: float, rule: Mapping[str, Any] | None) -> None:
        if self._process is not None:
            self._process.simulate(codes, fidelity, rule)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def answer(self) -> Mapping[str, Any] | None:
        """The answer that is there; ``None`` if the process has ended."""
        return None if self._process is None else self._process.answer()
