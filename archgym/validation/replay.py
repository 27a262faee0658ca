"""Replay: evaluates recorded designs again and reports results that differ from the record."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from archgym.data.designs import design_columns, read_designs
from archgym.data.problems import PROBLEM_COLUMNS
from archgym.data.schema import Sidecar
from archgym.data.selection import Selection
from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, DatasetError, InvalidValueError, check_integer
from archgym.space import Designs
from archgym.validation.recorded import make_recorded

__all__ = ["Mismatch", "Program", "Replayed", "replay"]

TOLERANCE = 1e-9
"""Largest relative difference of two values that are taken as equal."""


@dataclass(frozen=True)
class Mismatch:
    """A value that differs from the recorded one.

    Attributes:
        trial_id: the trial.
        step: its step.
        what: name of the metric, or ``status``.
        recorded: the value in the dataset.
        replayed: the value now.
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


class Program(NamedTuple):
    """What simulates: its name and version, and the digest of its source.

    The digest is that of :func:`archgym.environment.source.source_sha256`.
    """

    name: str
    version: str
    source_sha256: str


@dataclass
class Replayed:
    """The result of a replay.

    Attributes:
        rows: number of rows that were evaluated again.
        mismatches: every value that differs, in the order of the dataset.
        skipped: rows that could not be evaluated again, by reason.
        notes: differences of settings or simulator from the record, which may explain mismatches.
        programs: what simulated the rows now.
    """

    rows: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    programs: set[Program] = field(default_factory=set)

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
    read_files: bool = False,
) -> Replayed:
    """Evaluates rows again through their environments.

    Only registered environments are made: a dataset does not decide which code is imported.

    Args:
        selection: the rows to take from.
        rows: how many, drawn at random; ``None`` for all. Not more than there are.
        seed: decides which rows are drawn.
        environment: name in place of the recorded one; needed for a ``module:Class``.
        simulator: name in place of the recorded one; needed for ``tabular:PATH``.
        tolerance: largest relative difference of equal values.
        read_files: whether files that the dataset names are read, such as the trace that was the
            workload; without it, rows that need them are skipped.

    Raises:
        InvalidValueError: if ``rows``, ``seed`` or ``tolerance`` is not possible.
        DatasetError: if the dataset cannot be read.
    """
    if not 0 <= tolerance < 1:
        raise InvalidValueError(f"tolerance must be at least 0 and below 1, not {tolerance!r}")
    if rows is not None and len(selection):
        rows = check_integer("rows", rows, 1)
        selection = selection.sample(min(rows, len(selection)), seed)
    player = _Player(selection, environment, simulator, tolerance, read_files)
    space = selection.dataset.sidecar.space
    metrics = [f"metric.{metric.name}" for metric in selection.dataset.sidecar.metrics]
    columns = ["trial_id", "step", *design_columns(space), *metrics, "status", "fidelity"]
    for table in selection.blocks(columns):
        player.play(table)
    return player.found


class _Player:
    """Makes the environments of trials once each, and compares results with the record."""

    def __init__(
        self,
        selection: Selection,
        environment: str,
        simulator: str,
        tolerance: float,
        read_files: bool,
    ) -> None:
        self.found = Replayed()
        self._sidecar = selection.dataset.sidecar
        self._trials = {row["trial_id"]: row for row in selection.trials}
        self._environment, self._simulator = environment, simulator
        self._tolerance, self._read_files = tolerance, read_files
        self._made: dict[tuple[str | None, ...], Environment | str] = {}

    def play(self, table: pa.Table) -> None:
        """Evaluates rows again."""
        ids = np.array(table["trial_id"].to_pylist(), dtype=object)
        fidelity = table["fidelity"].to_numpy().astype(np.float64)
        status = np.array(table["status"].to_pylist(), dtype=object)
        left = (status != "timeout") & (status != "stopped")
        self._skip("a timeout depends on the machine", int((status == "timeout").sum()))
        self._skip("it was stopped early", int((status == "stopped").sum()))
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
        env.start_trial()  # with an empty cache
        codes = read_designs(self._sidecar.space, table).codes
        outcomes = env.evaluate_batch(Designs(env.design_space, codes), fidelity)
        self.found.rows += len(outcomes)
        for row, outcome in zip(table.to_pylist(), outcomes, strict=True):
            place = (str(row["trial_id"]), int(row["step"]))
            pairs: dict[str, tuple[Any, Any]] = {
                name: (row[f"metric.{name}"], value) for name, value in outcome.metrics.items()
            }
            if outcome.status != row["status"]:
                pairs = {"status": (row["status"], outcome.status)}
            for what, (recorded, value) in pairs.items():
                if recorded is None or value is None or isinstance(recorded, str):
                    equal = recorded == value
                else:
                    equal = math.isclose(recorded, value, rel_tol=self._tolerance)
                if not equal:
                    self.found.mismatches.append(Mismatch(*place, what, recorded, value))

    def _skip(self, reason: str, times: int) -> None:
        if times:
            self.found.skipped[reason] += times

    def _environment_of(self, trial: Mapping[str, Any] | None) -> Environment | str:
        """The environment in which a trial was recorded, or why it cannot be had."""
        if trial is None:
            return "its trial is not in the table of trials"
        key = tuple(trial[name] for name in (*PROBLEM_COLUMNS, "workload_spec"))
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
            read_files=self._read_files,
            objective=json.loads(trial["objective"]),
            space=self._sidecar.space,
            fixed=json.loads(trial["fixed"]),
        )
        if trial["workload_sha256"] not in ("", None, env.workload_sha256):
            raise DatasetError(
                f"the workload has changed: its SHA-256 was {trial['workload_sha256'][:16]}, "
                f"now it is {env.workload_sha256[:16]}"
            )
        now = json.loads(json.dumps(env.trial_settings))
        notes = [
            f"setting {key} was {settings.get(key)!r}, now it is {now.get(key)!r}"
            for key in sorted({*settings, *now})
            if settings.get(key) != now.get(key)
        ]
        program = Program(**env.description.simulator, source_sha256=env.description.source_sha256)
        before = self._sidecar.simulator
        notes += [
            f"the simulator's {field} was {before[field]!r}, now it is {value!r}"
            for field, value in env.description.simulator.items()
            if value != before[field]
        ]
        self.found.programs.add(program)
        if Sidecar.of(env.description).source_changed(self._sidecar):
            notes.append("the source of the simulator has changed since")
        self.found.notes += [text for text in notes if text not in self.found.notes]
        return env
