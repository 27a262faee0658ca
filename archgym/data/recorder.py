"""Recording: every evaluation of a trial goes to the dataset before the agent is told."""

from __future__ import annotations

import functools
import itertools
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archgym.data.journal import Journal, journal_of
from archgym.data.schema import Sidecar
from archgym.errors import DatasetError
from archgym.evaluation.outcome import Row
from archgym.evaluation.recorder import Replay
from archgym.evaluation.trial_info import TrialInfo

if TYPE_CHECKING:
    from archgym.environment.environment import Environment

__all__ = ["LoggedTrial", "TrialRecorder", "open_dataset"]

ROWS_AT_ONCE = 2048
_counter = itertools.count()
_quote = json.encoder.encode_basestring_ascii


def open_dataset(directory: Path, environment: Environment) -> None:
    """Makes a dataset ready for the evaluations of an environment: writes its sidecar.

    Args:
        directory: folder of the dataset; made if it is not there.
        environment: whose evaluations it is to take.

    Raises:
        DatasetError: if the folder cannot be written, or holds a dataset of another design
            space, other metrics or another simulator.
    """
    own = Sidecar.of(environment)
    own.save(directory)
    difference = own.difference(Sidecar.load(directory))
    if difference:
        raise DatasetError(f"{directory} cannot take these evaluations: {difference}")


@dataclass(frozen=True)
class LoggedTrial:
    """What a trial evaluated before it was interrupted, in order (a ``recording.Replay``).

    Attributes:
        codes: designs, shape (n, n_parameters).
        metrics: NaN where there are none, shape (n, n_metrics).
        status: a :class:`~archgym.problem.status.Status`, shape (n,).
        reason: one text a row.
        fidelity: at which it was evaluated, shape (n,).
    """

    codes: NDArray[np.int64]
    metrics: NDArray[np.float64]
    status: NDArray[np.int8]
    reason: list[str]
    fidelity: NDArray[np.float64]


class TrialRecorder:
    """Writes the evaluations of one trial into a dataset.

    Nothing is written before the first evaluation but the dataset's sidecar.

    Args:
        directory: folder of the dataset; made if it is not there.
        environment: whose evaluations are recorded.
        trial: what is known of the trial.

    Attributes:
        trial_id: name of the trial in the dataset.
        replay: what the dataset already holds of a resumed trial.

    Raises:
        DatasetError: if the folder cannot be written, or holds a dataset of another design
            space, other metrics or another simulator.
    """

    def __init__(self, directory: Path, environment: Environment, trial: TrialInfo) -> None:
        self.directory = directory
        stamp = time.strftime("%Y%m%dT%H%M%S")
        self.trial_id = trial.trial_id or f"{trial.agent}-{stamp}-{os.getpid()}-{next(_counter)}"
        self.replay: Replay | None = None
        self._environment, self._trial = environment, trial
        self._journal: Journal | None = None
        self._n, self._began = -1, time.time()
        self._pid, self._first_step = os.getpid(), 0
        open_dataset(directory, environment)
        if trial.resume:
            from archgym.data.dataset import Dataset

            self.replay = Dataset(directory).logged_trial(self.trial_id)

    def write(self, first_step: int, rows: Iterable[Row], agent_s: float) -> None:
        """Hands rows to the operating system.

        Args:
            first_step: number of the first one in the trial.
            rows: evaluations, in order.
            agent_s: seconds that the agent spent on each.

        Raises:
            DatasetError: if they cannot be written.
        """
        if self._pid != os.getpid():
            self._go_on_in_child(first_step)
        if self._journal is None or self._journal.closed:
            self._begin()
        assert self._journal is not None
        self._journal.append(self._blocks(first_step - self._first_step, rows, agent_s))

    def _begin(self) -> None:
        description = self._description()  # first: what fails must not leave an open journal
        self._journal = journal_of(self.directory)
        self._n = self._journal.begin(description)

    def _blocks(self, step: int, rows: Iterable[Row], agent_s: float) -> Iterator[str]:
        """Lines of the journal, some thousand at a time."""
        tail = f",{int(agent_s * 1e9)},{time.time_ns() // 1000}]\n"
        lines = []
        for row in rows:
            metrics = "null" if row.status else str(row.metrics).replace("nan", "null")
            reason = _quote(row.reason) if row.reason else '""'
            lines.append(
                f"[{self._n},{step},null,{list(row.codes)},{metrics},{row.reward!r},{row.status},"
                f"{reason},{row.feasible:d},{row.cached:d},{row.fidelity!r},"
                f"{int(row.simulation_s * 1e9)}{tail}"
            )
            step += 1
            if len(lines) == ROWS_AT_ONCE:
                yield "".join(lines)
                lines = []
        if lines:
            yield "".join(lines)

    def _go_on_in_child(self, first_step: int) -> None:
        """After a fork the parent goes on with the trial, and the child with one of its own."""
        self._pid, self._first_step, self._journal = os.getpid(), first_step, None
        self.trial_id = f"{self.trial_id}-{self._pid}"

    def close(self, state: str = "closed") -> None:
        """Says that the trial is over.

        Args:
            state: ``finished`` (the search came to its end), ``failed``, or ``closed`` (nobody
                said).
        """
        if self._journal is None and state == "finished":
            self._begin()  # all replayed: say that it is over
        if self._journal is not None and not self._journal.closed:
            self._journal.end(self._n, state)
            self._journal.rest()
        self._journal = None

    def _description(self) -> dict[str, Any]:
        env, trial = self._environment, self._trial
        baseline = dict(
            zip((m.name for m in env.metrics), env.baseline_metrics.tolist(), strict=True)
        )
        return {
            "trial_id": self.trial_id,
            "environment": env.name,
            "settings": json.dumps(env.trial_settings),
            "agent": trial.agent,
            "hyperparameters": json.dumps(dict(trial.hyperparameters)),
            "seed": trial.seed,
            "budget": trial.budget,
            "objective": json.dumps(env.objective.to_json()),
            "fixed": json.dumps(env.design_space.fixed),
            "workload": env.workload_name,
            "workload_sha256": env.workload_sha256,
            "workload_spec": _json_or_none(env.workload),
            "episode_length": env.episode_length,
            "baseline": json.dumps({k: v if v == v else None for k, v in baseline.items()}),
            "fidelities": json.dumps([one.to_json() for one in env.fidelities]),
            "baseline_design": json.dumps(env.baseline_design),
            "optimum": None if env.optimum is None else json.dumps(env.optimum.metrics),
            "versions": json.dumps(_versions()),
            "commit": _commit(),
            "started": self._began,
        }


def _json_or_none(value: Any) -> str | None:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return None


@functools.cache
def _versions() -> dict[str, str]:
    names = ("archgym", "numpy", "gymnasium")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in names}}


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
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
