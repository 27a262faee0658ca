"""Trials of a selection by what was searched: those of one problem can be put side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from archgym.data.rows import Rows
from archgym.problem.objective import Objective

__all__ = ["Problem", "identifier", "problems_of"]

_PROBLEM = ("environment", "settings", "workload", "workload_sha256", "fixed", "objective")


@dataclass(frozen=True)
class Problem:
    """What some trials searched.

    Attributes:
        name: readable and unique among the problems of a dataset.
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
            groups.setdefault(tuple(row[name] for name in _PROBLEM), []).append(row)
    labels = _labels([rows[0] for rows in groups.values()])
    return [
        Problem(label, tuple(rows)) for label, rows in zip(labels, groups.values(), strict=True)
    ]


def _labels(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Environment and workload; a number behind it where that is not enough."""
    seen: dict[str, int] = {}
    found = []
    for row in rows:
        label = " ".join(part for part in (row["environment"], row["workload"]) if part)
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} #{seen[label]}")
    return found


def identifier(text: str) -> str:
    """A text with nothing but letters, digits, ``_`` and ``-``, as file names take it."""
    return re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_-") or "data"
