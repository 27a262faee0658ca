"""Problems in a dataset: trials of one problem searched for the same and can be compared."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.data.rows import Rows
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.scoring import Scorer

PROBLEM_COLUMNS = ("environment", "settings", "workload", "workload_sha256", "fixed", "objective")
"""Columns of the table of trials that are equal for trials of one problem."""


@dataclass(frozen=True)
class Problem:
    """A problem, and the trials that searched it.

    Attributes:
        name: environment and workload, and a number where that is not enough: unique among the
            problems of a dataset.
        trials: rows of the table of trials.
    """

    name: str
    trials: tuple[dict[str, Any], ...]

    @property
    def first(self) -> dict[str, Any]:
        """One of the trials: environment, settings, workload and objective are those of all."""
        return self.trials[0]

    @property
    def trial_ids(self) -> list[str]:
        """Names of the trials."""
        return [row["trial_id"] for row in self.trials]

    @property
    def objective(self) -> Objective:
        """What was sought."""
        return Objective.parse(json.loads(self.first["objective"]))

    @property
    def fixed(self) -> dict[str, Any]:
        """Parameters held at a value."""
        found: dict[str, Any] = json.loads(self.first["fixed"])
        return found

    @property
    def agents(self) -> list[str]:
        """Names of the agents."""
        return sorted({row["agent"] for row in self.trials})


def problems_of(rows: Rows) -> list[Problem]:
    """The problems of the trials that have some of the rows."""
    used = rows.values_of("trial_id")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows.trials:
        if row["trial_id"] in used:
            groups.setdefault(tuple(row[name] for name in PROBLEM_COLUMNS), []).append(row)
    counts: Counter[str] = Counter()
    found = []
    for trials in groups.values():
        label = " ".join(trials[0][name] for name in ("environment", "workload") if trials[0][name])
        counts[label] += 1
        label += f" #{counts[label]}" if counts[label] > 1 else ""
        found.append(Problem(label, tuple(trials)))
    return found


def baseline_of(trial: Mapping[str, Any], metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """Metrics of a trial's baseline design, NaN where there is none, shape (n_metrics,)."""
    values = json.loads(trial["baseline"])
    return np.array([values.get(metric.name) for metric in metrics], dtype=np.float64)


def scorer_of(trial: Mapping[str, Any], metrics: Sequence[Metric]) -> Scorer:
    """Scores metrics as the trial did.

    Args:
        trial: a row of the table of trials.
        metrics: of its dataset.
    """
    objective = Objective.parse(json.loads(trial["objective"]))
    return Scorer(objective, metrics, baseline_of(trial, metrics))


def identifier(text: str) -> str:
    """A text with nothing but letters, digits, ``_`` and ``-``, as file names take it."""
    return re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_-") or "data"
