"""Results that simulating processes finished, kept until they are recorded.

While an agent computes, nobody takes the results that come. So a process that simulated a design
for long leaves the result in a file, and a search that is resumed after a kill finds it there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.experiment.simulate.fingerprint import fingerprint
from archgym.experiment.simulate.worker_pool import read_answer
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.problem.description import ProblemDescription
from archgym.reading.checked_json import read_checked_json
from archgym.simulators.executor import Arrival, Executor
from archgym.simulators.queued import TimedResult
from archgym.simulators.recall import RecallingExecutor

__all__ = ["FinishedExecutor", "MakePool", "executor_that_keeps", "keep_answer"]

MakePool = Callable[[str, Mapping[str, Any], SimulationSettings, ProblemDescription, str], Executor]
"""Makes an executor for the name of an environment, the arguments of its constructor, the settings
of the experiment, what the environment is then like, and the folder for :func:`keep_answer`."""
_KEPT_FROM_S = 1.0
"""A simulation that took less is not worth a file."""
_KEPT = ("metrics", "stopped")


def keep_answer(
    folder: str, codes: Sequence[int], fidelity: float, answer: Mapping[str, Any]
) -> None:
    """Keeps the answer of a simulating process, before it is sent, if the simulation was long.

    Failures and timeouts are not kept: they may end otherwise when they are tried again.

    Args:
        folder: where; empty to keep nothing.
        codes: canonical codes of the design.
        fidelity: at which it was simulated.
        answer: as :func:`archgym.experiment.simulate.worker_pool.read_answer` takes it.
    """
    if folder and answer["seconds"] >= _KEPT_FROM_S and any(name in answer for name in _KEPT):
        with contextlib.suppress(OSError):  # such as a full disk, or a node without the folder
            if Path(folder).parents[1].is_dir():
                Path(folder).mkdir(parents=True, exist_ok=True)  # another search may have ended
            path = Path(folder) / _file_name(codes, fidelity)
            temporary = path.with_suffix(f".tmp-{os.getpid()}")
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(answer, file, default=repr)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)


def executor_that_keeps(
    make: MakePool,
    root: Path,
    name: str,
    arguments: Mapping[str, Any],
    settings: SimulationSettings,
    problem: ProblemDescription,
) -> FinishedExecutor:
    """An executor of processes that keep what they finished.

    Args:
        make: makes the executor of the processes.
        root: folder in which each environment has a folder of its own.
        name: of the environment.
        arguments: of its constructor.
        settings: of the experiment.
        problem: what the environment is like here.

    Raises:
        OSError: if the folder cannot be made.
    """
    whose = json.dumps([name, dict(arguments), fingerprint(problem)], sort_keys=True)
    folder = root / hashlib.sha256(whose.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return FinishedExecutor(make(name, arguments, settings, problem, str(folder)), folder)


class FinishedExecutor(RecallingExecutor):
    """Takes the results that an earlier process of the run did not record, and simulates the rest.

    A result that was handed over is recorded by the time at which the next ones are collected;
    then its file is removed.

    Args:
        inner: simulates; its processes call :func:`keep_answer`.
        folder: of the files.
    """

    def __init__(self, inner: Executor, folder: Path) -> None:
        super().__init__(inner)
        self._folder = folder
        self._earlier = {path.name for path in folder.glob("*.json")}
        self._files: dict[int, Path] = {}
        self._handed_over: list[Path] = []

    def recall(self, ticket: int, codes: Sequence[int], fidelity: float) -> TimedResult | None:
        """What an earlier process left, once; a damaged file is as if it were not there."""
        file = self._files[ticket] = self._folder / _file_name(codes, fidelity)
        if file.name in self._earlier:
            self._earlier.remove(file.name)
            with contextlib.suppress(OSError, LookupError, TypeError, ValueError):
                return read_answer(read_checked_json(file, dict[str, Any]))
        return None

    def restart(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._remove_recorded()
        super().restart()

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._remove_recorded()
        arrivals = super().collect(timeout_s)
        self._handed_over = [self._files.pop(one.ticket) for one in arrivals]
        return arrivals

    def all_recorded(self) -> None:
        """Whatever was handed over is recorded: removes its files, and folders without files."""
        self._remove_recorded()
        for folder in (self._folder, self._folder.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def forget(self, ticket: int) -> None:
        """See :class:`~archgym.simulators.recall.RecallingExecutor`."""
        self._files.pop(ticket, None)

    def forget_all(self) -> None:
        """See :class:`~archgym.simulators.recall.RecallingExecutor`."""
        self._files.clear()

    def _remove_recorded(self) -> None:
        for file in self._handed_over:
            with contextlib.suppress(OSError):
                file.unlink()
        self._handed_over = []


def _file_name(codes: Sequence[int], fidelity: float) -> str:
    design = json.dumps([[int(code) for code in codes], float(fidelity)])
    return f"{hashlib.sha256(design.encode()).hexdigest()[:32]}.json"
