"""Tables of a run's results, for reports: a row a trial, and where each search improved.

They are written while trials are read, so that the memory of a run does not grow with its rows.

========================  =======================================================================
``results/trials``        a row a trial of the experiment, in its order within a dataset
``results/curves``        a row a trial and goal: where its best value improved
``results/summary.json``  counts, times, failures, and the problem of each setting
========================  =======================================================================
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from archgym.analysis.trials import TrialSummary
from archgym.data.schema import columns
from archgym.errors import ExperimentError
from archgym.experiment.folder.trial_states import TrialEnd
from archgym.experiment.spec.expand import Trial
from archgym.problem.goals import direction, goal_unit, natural

_AT_ONCE = 500

TRIAL_SCHEMA = columns(
    (pa.string(), "trial_id setting dataset environment workload simulator agent agent_label"),
    (pa.string(), "hyperparameters"),
    (pa.int64(), "seed budget"),
    (pa.string(), "state error"),
    (pa.int64(), "simulations proposals duplicates illegal failed"),
    (pa.float64(), "spent"),
    (pa.list_(pa.string()), "goals"),
    (pa.list_(pa.float64()), "best"),
    (pa.bool_(), "best_feasible"),
    (pa.string(), "best_design best_metrics"),
    (pa.int64(), "best_at"),
    (pa.int64(), "history_sources history_designs history_first"),
    (pa.bool_(), "from_history"),
    (pa.float64(), "regret"),
    (pa.int64(), "hit_at"),
    (pa.float64(), "hypervolume"),
    (pa.int64(), "front_size"),
    (pa.float64(), "agent_s simulation_s wall_s framework_s"),
)
"""Columns of ``trials.parquet``. ``best`` is in its natural sign, of feasible designs at full
fidelity; ``hit_at`` the simulations after which it had reached the optimum (see
:data:`archgym.analysis.measures.WITHIN`); ``framework_s`` the rest of ``wall_s``; ``history_*``
count earlier problems that the search learned from, their designs, and designs that these suggested
to begin with, of which ``best_design`` is one if ``from_history``. What is not known is
null."""

CURVE_SCHEMA = columns(
    (pa.string(), "trial_id"),
    (pa.int32(), "goal"),
    (pa.list_(pa.float64()), "spent seconds value regret"),
)
"""Columns of ``curves.parquet``: budget spent, seconds in agent and simulator, value and regret at
each improvement, and once more at the end of the search. ``regret`` is null where the optimum is
not known."""


@dataclass
class Totals:
    """Sums over trials, and the problem of each setting."""

    states: dict[str, int] = field(default_factory=dict)
    agent_s: float = 0.0
    simulation_s: float = 0.0
    wall_s: float = 0.0
    evaluations: int = 0
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        framework = max(0.0, self.wall_s - self.agent_s - self.simulation_s)
        return {
            "trials": {"total": sum(self.states.values()), **self.states},
            "evaluations": self.evaluations,
            "split": {
                "agent_s": round(self.agent_s, 3),
                "simulation_s": round(self.simulation_s, 3),
                "framework_s": round(framework, 3),
                "wall_s": round(self.wall_s, 3),
            },
            "settings": self.settings,
        }


class TableWriter:
    """Writes the tables into a folder; the files are renamed to their names at the end.

    Args:
        folder: of the tables; made if it is not there.

    Attributes:
        totals: over the trials that were written.

    Raises:
        ExperimentError: if it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.totals = Totals()
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._tables: dict[str, tuple[pa.Schema, list[dict[str, Any]], pq.ParquetWriter]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, schema in (("trials", TRIAL_SCHEMA), ("curves", CURVE_SCHEMA)):
                writer = pq.ParquetWriter(self._unfinished(name), schema, compression="zstd")
                self._tables[name] = (schema, [], self._stack.enter_context(writer))
        except OSError as error:
            raise ExperimentError(f"cannot write {folder}: {error.strerror}") from error

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                for name in self._tables:
                    self._flush(name)
            self._stack.close()
            for name in self._tables:
                if kind is None:
                    os.replace(self._unfinished(name), self._folder / f"{name}.parquet")
                else:
                    self._unfinished(name).unlink(missing_ok=True)
        except OSError as error:
            raise ExperimentError(f"cannot write {self._folder}: {error.strerror}") from error

    def add(self, trial: Trial, summary: TrialSummary | None, end: TrialEnd | None) -> str:
        """Adds a trial; returns its state.

        Args:
            trial: of the experiment.
            summary: of its rows; ``None`` if it has none.
            end: how it ended in the last process that ran it, if any did.
        """
        state = _state(summary, end)
        totals = self.totals
        totals.states[state or "not_run"] = totals.states.get(state or "not_run", 0) + 1
        self._put("trials", [_row(trial, summary, end, state)])
        if summary is not None:
            self._put("curves", _curves(summary))
            totals.evaluations += summary.proposals
            wall_s = _wall_s(summary, end)
            if wall_s is not None:
                totals.agent_s += summary.agent_s
                totals.simulation_s += summary.simulation_s
                totals.wall_s += wall_s
            if trial.setting not in totals.settings:
                totals.settings[trial.setting] = _setting(summary)
        return state

    def _put(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
        held = self._tables[name][1]
        held.extend(rows)
        if len(held) >= _AT_ONCE:
            self._flush(name)

    def _flush(self, name: str) -> None:
        schema, rows, writer = self._tables[name]
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, schema))
            rows.clear()

    def _unfinished(self, name: str) -> Path:
        return self._folder / f".tmp-{os.getpid()}-{name}.parquet"


def _state(summary: TrialSummary | None, end: TrialEnd | None) -> str:
    """The dataset decides on ``finished``, the log on ``failed``, also without a row."""
    if summary is not None and summary.state == "finished":
        return "finished"
    if end is not None and end.state == "failed":
        return "failed"
    return "" if summary is None else summary.state


def _row(
    trial: Trial, summary: TrialSummary | None, end: TrialEnd | None, state: str
) -> dict[str, Any]:
    copied = "trial_id setting dataset environment agent agent_label seed budget"
    row: dict[str, Any] = {name: getattr(trial, name) for name in copied.split()}
    workload = trial.arguments.get("workload", "")
    row |= {
        "simulator": str(trial.arguments.get("simulator", "embedded")),
        "workload": json.dumps(workload) if isinstance(workload, dict | list) else str(workload),
        "hyperparameters": json.dumps(trial.hyperparameters),
        "state": state,
        "error": end.error if end is not None and state == "failed" else "",
    }
    if summary is None:
        return row
    wall_s = _wall_s(summary, end)
    best = summary.best
    ends = [one[-1, 2] if len(one) else math.inf for one in summary.improvements]
    copied = (
        "workload simulations proposals duplicates illegal failed spent best_at regret hit_at "
        "hypervolume agent_s simulation_s from_history"
    )
    row |= {name: getattr(summary, name) for name in copied.split()}
    if summary.history is not None:
        row["history_sources"] = len(summary.history.sources)
        row["history_designs"] = summary.history.designs
        row["history_first"] = len(summary.history.first)
    row |= {
        "goals": [goal.name for goal in summary.objective.goals],
        "best": _naturals(summary, np.array(ends)),
        "best_feasible": best.feasible if best is not None else None,
        "best_design": None if best is None else json.dumps(best.design),
        "best_metrics": None if best is None else json.dumps(best.metrics),
        "front_size": len(summary.front),
        "wall_s": wall_s,
        "framework_s": None if wall_s is None else wall_s - summary.seconds,
    }
    return row


def _wall_s(summary: TrialSummary, end: TrialEnd | None) -> float | None:
    """Seconds of the whole trial; ``None`` if it ended in another process than it began in.

    Also where designs are simulated side by side, and their seconds are more than the trial's.
    """
    known = end is not None and end.wall_s >= max(summary.seconds, 1e-9)
    return end.wall_s if end is not None and known else None


def _curves(summary: TrialSummary) -> Iterable[dict[str, Any]]:
    for number, found in enumerate(summary.improvements):
        if not len(found):
            continue
        points = found
        if found[-1, 0] != summary.spent:
            points = np.concatenate([found, [[summary.spent, summary.seconds, *found[-1, 2:]]]])
        goal = summary.objective.goals[number]
        yield {
            "trial_id": summary.trial_id,
            "goal": number,
            "spent": points[:, 0].tolist(),
            "seconds": points[:, 1].round(6).tolist(),
            "value": natural(goal, summary.metrics, points[:, 2]).tolist(),
            "regret": None if np.isnan(points[:, 3]).any() else points[:, 3].tolist(),
        }


def _setting(summary: TrialSummary) -> dict[str, Any]:
    """The problem of a setting."""
    copied = ("environment", "workload", "settings", "fixed")
    return {
        **{name: getattr(summary, name) for name in copied},
        "objective": summary.objective.to_json(),
        "goals": [
            {
                "name": goal.name,
                "kind": goal.kind,
                "unit": goal_unit(goal, summary.metrics),
                "direction": direction(goal, summary.metrics),
            }
            for goal in summary.objective.goals
        ],
        "baseline": _naturals(summary, summary.baseline),
        "optimum": None if summary.optimum is None else _naturals(summary, summary.optimum),
        "metrics": [metric.to_json() for metric in summary.metrics],
    }


def _naturals(summary: TrialSummary, values: NDArray[np.float64]) -> list[float | None]:
    return [
        natural(goal, summary.metrics, value) if math.isfinite(value) else None
        for goal, value in zip(summary.objective.goals, values.tolist(), strict=True)
    ]
