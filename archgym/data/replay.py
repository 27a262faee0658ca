"""Evaluating recorded designs again, and saying which do not come out the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from archgym.data.designs import design_columns, read_designs
from archgym.data.recorded import make_recorded
from archgym.data.selection import Selection
from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, DatasetError, InvalidValueError
from archgym.problem.status import Status

__all__ = ["Mismatch", "Replayed", "replay"]

TOLERANCE = 1e-9
"""Largest relative difference of two values that are taken as equal."""


@dataclass(frozen=True)
class Mismatch:
    """A value that did not come out as it was recorded.

    Attributes:
        trial_id: the trial.
        step: its step.
        what: name of the metric, or ``status``.
        recorded: what the dataset says.
        replayed: what came out now.
    """

    trial_id: str
    step: int
    what: str
    recorded: float | str | None
    replayed: float | str | None

    def __str__(self) -> str:
        return (
            f"trial {self.trial_id}, step {self.step}: {self.what} is recorded as "
            f"{self.recorded!r}, now it is {self.replayed!r}"
        )


@dataclass
class Replayed:
    """What evaluating again came to.

    Attributes:
        rows: evaluated again.
        mismatches: every value that differs, in the order of the dataset.
        skipped: rows that could not be evaluated again, by reason.
        notes: what was not as it was recorded, and might explain mismatches.
    """

    rows: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def rows_that_differ(self) -> int:
        """Rows with a mismatch."""
        return len({(m.trial_id, m.step) for m in self.mismatches})

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "rows": self.rows,
            "rows_that_differ": self.rows_that_differ,
            "mismatches": [vars(mismatch) for mismatch in self.mismatches],
            "skipped": dict(self.skipped),
            "notes": self.notes,
        }


def replay(
    selection: Selection,
    rows: int | None = 100,
    *,
    seed: int = 0,
    environment: str = "",
    simulator: str = "",
    tolerance: float = TOLERANCE,
) -> Replayed:
    """Evaluates rows again through their environments.

    Only registered environments are made: a dataset does not decide which code is imported.

    Args:
        selection: the rows to take from.
        rows: how many, drawn at random; ``None`` for all. Not more than there are.
        seed: which.
        environment: takes the place of the recorded one; needed for a ``module:Class``.
        simulator: takes the place of the recorded one; needed for ``tabular:PATH``.
        tolerance: largest relative difference of equal values.

    Raises:
        InvalidValueError: if ``rows``, ``seed`` or ``tolerance`` is not possible.
        DatasetError: if the dataset cannot be read.
    """
    if not 0 <= tolerance < 1:
        raise InvalidValueError(f"tolerance must be at least 0 and below 1, not {tolerance!r}")
    if rows is not None and len(selection):
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise InvalidValueError(f"rows must be an integer of at least 1, not {rows!r}")
        selection = selection.sample(min(rows, len(selection)), seed)
    player = _Player(selection, environment, simulator, tolerance)
    space = selection.dataset.sidecar.space
    metrics = [f"metric.{metric.name}" for metric in selection.dataset.sidecar.metrics]
    columns = ["trial_id", "step", *design_columns(space), *metrics, "status", "fidelity"]
    for table in selection.blocks(columns):
        player.play(table)
    return player.found


class _Player:
    """Environments of trials, and what came out."""

    def __init__(
        self, selection: Selection, environment: str, simulator: str, tolerance: float
    ) -> None:
        self.found = Replayed()
        self._sidecar = selection.dataset.sidecar
        self._trials = {row["trial_id"]: row for row in selection.trials}
        self._environment, self._simulator = environment, simulator
        self._tolerance = tolerance
        self._made: dict[tuple[str | None, ...], Environment | str] = {}

    def play(self, table: pa.Table) -> None:
        """Evaluates rows again."""
        ids = np.array(table["trial_id"].to_pylist(), dtype=object)
        fidelity = table["fidelity"].to_numpy().astype(np.float64)
        status = np.array(table["status"].to_pylist(), dtype=object)
        left = status != "timeout"
        self._skip("a timeout depends on the machine", int((~left).sum()))
        for trial_id in dict.fromkeys(ids[left]):
            mine = left & (ids == trial_id)
            made = self._environment_of(self._trials.get(trial_id))
            if isinstance(made, str):
                self._skip(made, int(mine.sum()))
                continue
            for value in np.unique(fidelity[mine]).tolist():
                rows = np.flatnonzero(mine & (fidelity == value))
                if value in [known.value for known in made.fidelities]:
                    self._play_one(made, table.take(rows), value)
                else:
                    self._skip(f"{made.name} has no fidelity {value:.12g}", len(rows))

    def _play_one(self, env: Environment, table: pa.Table, fidelity: float) -> None:
        env.start_trial()  # so that nothing is known from before
        space = env.design_space
        designs = read_designs(self._sidecar.space, table)
        outcomes = env.evaluate_batch(type(designs)(space, designs.codes), fidelity)
        steps, ids = table["step"].to_pylist(), table["trial_id"].to_pylist()
        statuses = table["status"].to_pylist()
        self.found.rows += len(outcomes)
        recorded = {m.name: table[f"metric.{m.name}"].to_pylist() for m in self._sidecar.metrics}
        for row in range(len(outcomes)):
            place = (str(ids[row]), int(steps[row]))
            now = Status(outcomes.status[row]).label
            if now != statuses[row]:
                self.found.mismatches.append(Mismatch(*place, "status", statuses[row], now))
                continue
            if now != "ok":
                continue
            for number, name in enumerate(outcomes.metric_names):
                value: float | None = float(outcomes.metrics[row, number])
                value = None if value != value else value
                if not _equal(recorded[name][row], value, self._tolerance):
                    mismatch = Mismatch(*place, name, recorded[name][row], value)
                    self.found.mismatches.append(mismatch)

    def _skip(self, reason: str, times: int) -> None:
        if times:
            self.found.skipped[reason] += times

    def _environment_of(self, trial: Mapping[str, Any] | None) -> Environment | str:
        """The environment in which a trial was recorded, or why it cannot be had."""
        if trial is None:
            return "its trial is not in the table of trials"
        names = ("environment", "settings", "workload", "workload_spec", "workload_sha256", "fixed")
        key = tuple(trial[name] for name in (*names, "objective"))
        if key not in self._made:
            try:
                self._made[key] = self._make(trial)
            except ArchgymError as error:
                self._made[key] = f"{trial['environment']} on {trial['workload']!r}: {error}"
        return self._made[key]

    def _make(self, trial: Mapping[str, Any]) -> Environment:
        settings = json.loads(trial["settings"])
        spec = trial["workload_spec"]
        env = make_recorded(
            *(str(trial["environment"]), settings),
            *(json.loads(spec) if spec is not None else None, trial["workload"]),
            self._sidecar.simulator,
            chosen=self._environment,
            simulator=self._simulator,
            objective=json.loads(trial["objective"]),
            space=self._sidecar.space,
            fixed=json.loads(trial["fixed"]),
        )
        if trial["workload_sha256"] not in ("", None, env.workload_sha256):
            raise DatasetError(
                f"the workload has changed: its SHA-256 was {trial['workload_sha256'][:16]}, "
                f"now it is {env.workload_sha256[:16]}"
            )
        self._compare_settings(settings, json.loads(json.dumps(env.trial_settings)))
        version = {"name": env.simulator.name, "version": env.simulator.version}
        if version != self._sidecar.simulator:
            self._note(f"the simulator was {self._sidecar.simulator}, now it is {version}")
        return env

    def _compare_settings(self, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        for key in sorted({*then, *now}):
            if then.get(key) != now.get(key):
                self._note(f"setting {key} was {then.get(key)!r}, now it is {now.get(key)!r}")

    def _note(self, text: str) -> None:
        if text not in self.found.notes:
            self.found.notes.append(text)


def _equal(left: float | None, right: float | None, tolerance: float) -> bool:
    if left is None or right is None:
        return left is right
    return abs(left - right) <= tolerance * max(abs(left), abs(right))
