"""Recording: the row of each evaluation is written before the agent gets the outcome."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import platform
import secrets
import subprocess
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zlib import crc32

from archgym.data.dataset import Dataset
from archgym.data.journal import ClosedJournalError, Journal, Lines, begin_trial, rest
from archgym.data.known_trials import announce, check_new, check_resumed
from archgym.data.schema import SIDECAR, Sidecar, accepting_command
from archgym.errors import DatasetError, check_received
from archgym.evaluation.outcome import Row
from archgym.evaluation.recorder_protocol import Durability, Flight, Rows
from archgym.evaluation.resumed_log import ResumedLog
from archgym.evaluation.trial_info import TrialInfo
from archgym.problem.description import ProblemDescription
from archgym.reading.versions import version_of

ROWS_AT_ONCE = 2048
SLOW_S = 1.0
"""Seconds of a simulation from which a row is worth a sync: some hundred times what one takes."""
_LONGEST_S = 9e9
_counter = itertools.count()
_quote = json.encoder.encode_basestring_ascii


def open_dataset(directory: Path, problem: ProblemDescription) -> None:
    """Makes a dataset ready for the evaluations of an environment: writes its sidecar.

    Args:
        directory: folder of the dataset; made if it is not there.
        problem: the environment whose evaluations it is to take.

    Raises:
        DatasetError: if the folder cannot be written, or holds a dataset of another design
            space, other metrics or another simulator.
    """
    check_received(directory)
    if not (directory / SIDECAR).exists():
        for place in ("evaluations/*.parquet", "journal/*.jsonl"):
            if any(directory.glob(place)):
                raise DatasetError(f"{directory} is damaged: it has rows, but no {SIDECAR}")
    own = Sidecar.of(problem)
    if not (directory / SIDECAR).exists():
        own.save(directory)
    accepted_by = accepting_command(directory, problem.environment)
    difference = own.difference(Sidecar.load(directory), accepted_by)
    if difference:
        raise DatasetError(f"{directory} cannot take these evaluations: {difference}")


class TrialRecorder:
    """Writes the evaluations of one trial into a dataset.

    Nothing is written before the first evaluation but the dataset's sidecar.

    Args:
        directory: folder of the dataset; made if it is not there.
        problem: the environment whose evaluations are recorded.
        trial: what is known of the trial.
        baseline: metrics of the baseline design, shape (n_metrics,).
        optimum: metrics of the exact best design; ``None`` if they are not known.
        durable: when a row is on disk, see
            :data:`archgym.evaluation.recorder_protocol.Durability`.

    Attributes:
        trial_id: name of the trial in the dataset.
        resumed: what the dataset already holds of a resumed trial.

    Raises:
        DatasetError: if the folder cannot be written, or holds a dataset of another design
            space, other metrics or another simulator, a trial of the same id that is not to be
            resumed, or one that was begun with other settings.
    """

    def __init__(
        self,
        directory: Path,
        problem: ProblemDescription,
        trial: TrialInfo,
        baseline: Sequence[float],
        optimum: Mapping[str, float] | None = None,
        durable: Durability = "auto",
    ) -> None:
        self.directory = directory
        stamp = time.strftime("%Y%m%dT%H%M%S")
        # Containers that share the folder may all have process 1.
        unique = f"{os.getpid()}-{next(_counter)}-{secrets.token_hex(4)}"
        self.trial_id = trial.trial_id or f"{trial.agent}-{stamp}-{unique}"
        self._problem, self._trial = problem, trial
        self._baseline, self._optimum = baseline, optimum
        self._journal: Journal | None = None
        self._n, self._began = -1, time.time()
        self._durable, self._slow = durable, False
        self._pid, self._first_step = os.getpid(), 0
        open_dataset(directory, problem)
        self.resumed: ResumedLog | None = None
        if trial.resume:
            dataset = Dataset(directory)
            check_resumed(dataset, self._description())
            self.resumed = dataset.logged_trial(self.trial_id)
        elif trial.trial_id:
            check_new(directory, trial.trial_id)

    def write(
        self, first_step: int, rows: Rows, agent_s: float, flight: Flight | None = None
    ) -> BaseException | None:
        """Hands rows to the operating system.

        Args:
            first_step: number of the first one in the trial.
            rows: gives the evaluations, in order.
            agent_s: seconds that the agent spent on each.
            flight: of all of them, if an executor simulates designs.

        Returns:
            An interruption that came meanwhile: the simulations have ended, so their rows are
            written all the same.

        Raises:
            DatasetError: if they cannot be written; then none of them is recorded.
        """
        before: tuple[int, int] | None = None
        interruption: BaseException | None = None
        while True:
            try:
                journal = self._journal
                if journal is None or journal.closed or journal.removed or os.getpid() != self._pid:
                    journal = self._open_journal(first_step)
                state = journal.state_of(self._n)
                before = before or state
                if state == before:  # and not written already, when an interruption came
                    step = first_step - self._first_step
                    blocks = self._blocks(step, rows(), agent_s, flight, state[0])
                    journal.append(self._n, blocks)
                return interruption
            except ClosedJournalError:
                before = None  # another thread closed it just now: go on in a new one
            except Exception:
                raise
            except BaseException as error:
                interruption = error

    def settle(self) -> bool:
        """Waits until the rows are on disk, where the agent is not to know of them before.

        Raises:
            DatasetError: if the disk does not take them.
        """
        wait, self._slow = self._slow or self._durable == "always", False
        journal, wait = self._journal, wait and self._durable != "second"
        if journal is None or not (wait or journal.unconfirmed):
            return False
        journal.sync()
        return True

    def _open_journal(self, first_step: int) -> Journal:
        """The journal that takes the rows from a step on."""
        if os.getpid() != self._pid:
            self._go_on_in_child(first_step)
        journal = self._journal
        if journal is None or journal.closed:
            journal = self._begin()
        if journal.removed:
            self._put_back(journal)
        return journal

    def _begin(self) -> Journal:
        description = self._description()  # first: what fails must not leave an open journal
        self._journal = None  # until the line is there: on a full disk nothing is to end the trial
        journal, self._n = begin_trial(self.directory, description)
        self._journal = journal
        announce(journal.path, self.trial_id)
        return journal

    def _put_back(self, journal: Journal) -> None:
        """Makes the folder anew that somebody removed, with what this process recorded."""
        open_dataset(self.directory, self._problem)
        rows = journal.put_back(self.directory)
        what = f"{self.directory} was removed while rows were recorded in it"
        then = f"it has been made again with the {rows:,} rows that this process had not closed"
        warnings.warn(f"{what}: {then}; what else was in it is lost", stacklevel=2)

    def _blocks(
        self, step: int, rows: Iterable[Row], agent_s: float, flight: Flight | None, checksum: int
    ) -> Iterator[Lines]:
        """Lines of the journal, some thousand at a time."""
        ended = time.time_ns() // 1000 if flight is None else round(flight.ended * 1e6)
        tail = f",{int(agent_s * 1e9)},{ended}{_of_flight(flight)}"
        lines, n = [], self._n
        # Unpacked, which is faster than attributes: fields are those of Row, in order.
        for codes, values, _, _, _, reward, status, why, feasible, cached, seconds, at in rows:
            metrics = "null" if status else str(values).replace("nan", "null")
            reason = _quote(why) if why else '""'
            # Texts of two flags, which are several times faster than formats.
            flags = ("1,1" if cached else "1,0") if feasible else ("0,1" if cached else "0,0")
            # A simulator cannot have taken less than nothing, or years.
            nanoseconds = int(seconds * 1e9) if 0 <= seconds < _LONGEST_S else 0
            if seconds >= SLOW_S:
                self._slow = True
            content = (
                f"[{n},{step},null,{list(codes)},{metrics},{reward!r},{status},{reason},"
                f"{flags},{at!r},{nanoseconds}{tail}"
            ).encode()
            checksum = crc32(content, checksum)
            lines.append(b"%b,%d]\n" % (content, checksum))
            step += 1
            if len(lines) == ROWS_AT_ONCE:
                yield b"".join(lines), checksum, len(lines)
                lines = []
        if lines:
            yield b"".join(lines), checksum, len(lines)

    def _go_on_in_child(self, first_step: int) -> None:
        """After a fork the parent goes on with the trial, and the child begins a new one."""
        self._pid, self._first_step, self._journal = os.getpid(), first_step, None
        self.trial_id = f"{self.trial_id}-{self._pid}"

    def close(self, state: str = "closed") -> None:
        """Records that the trial is over.

        Args:
            state: ``finished`` (the search ended by itself), ``failed``, or ``closed`` (not
                known).
        """
        if self._journal is None and state == "finished":
            self._begin()  # all from the log: record that it is over
        if self._journal is not None and not self._journal.closed:
            with contextlib.suppress(ClosedJournalError):  # another thread closed it just now
                self._journal.end(self._n, state)
            rest(self._journal)
        self._journal = None

    def _description(self) -> dict[str, Any]:
        problem, trial = self._problem, self._trial
        baseline = {
            metric.name: value if value == value else None  # NaN: not given by the simulator
            for metric, value in zip(problem.metrics, self._baseline, strict=True)
        }
        return {
            "trial_id": self.trial_id,
            "environment": problem.environment,
            "settings": json.dumps(problem.settings),
            "agent": trial.agent,
            "hyperparameters": json.dumps(dict(trial.hyperparameters)),
            "seed": trial.seed,
            "label": trial.label,
            "budget": trial.budget,
            "hours": trial.hours,
            "objective": json.dumps(problem.objective.to_json()),
            "fixed": json.dumps(problem.space.fixed),
            "workload": problem.workload_name,
            "workload_sha256": problem.workload_sha256,
            "workload_spec": _json_or_none(problem.workload),
            "episode_length": problem.episode_length,
            "baseline": json.dumps(baseline),
            "fidelities": json.dumps([one.to_json() for one in problem.fidelities]),
            "baseline_design": json.dumps(problem.baseline_design),
            "optimum": None if self._optimum is None else json.dumps(self._optimum),
            "history": None if trial.history is None else json.dumps(asdict(trial.history)),
            "versions": json.dumps(_versions()),
            "commit": _commit(),
            "started": self._began,
        }


def _of_flight(flight: Flight | None) -> str:
    """The fields of a row after those that each has."""
    if flight is None:
        return ""
    began = None if flight.started is None else round(flight.started * 1e6)
    fields = [flight.proposal, flight.proposed, flight.worker or None, began]
    if flight.partial is not None:
        fields.append(flight.partial)
    return "," + json.dumps(fields)[1:-1]


def _json_or_none(value: Any) -> str | None:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return None


@functools.cache
def _versions() -> dict[str, str]:
    names = ("archgym", "numpy", "gymnasium")
    return {"python": platform.python_version(), **{name: version_of(name) for name in names}}


@functools.cache
def _commit() -> str:
    """Commit of the checkout that archgym runs from; empty outside one."""
    root = Path(__file__).resolve().parent.parent.parent
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],  # noqa: S607 - wherever it is
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
