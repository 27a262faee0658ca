"""What a search knows about runs that were finished, from which it stops others early."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archgym.errors import StoppedEarly
from archgym.evaluation.outcome import Row
from archgym.problem.metrics import Metric
from archgym.problem.scoring import Scorer
from archgym.problem.status import Status
from archgym.simulators.early_stopping import (
    SoFar,
    WatchedMetrics,
    growth_of,
    is_so_far,
    is_stop,
)

__all__ = ["EarlyStopping", "partial_text", "predicted_metrics"]

_MAX_FRONT = 32


class EarlyStopping:
    """Learns from the runs of a search at full fidelity, and makes the rule for the next ones.

    Args:
        metrics: all of the environment.
        scorer: the objective, bound to the baseline design.
    """

    def __init__(self, metrics: Sequence[Metric], scorer: Scorer) -> None:
        self._names = [metric.name for metric in metrics]
        self._needed = scorer.objective.metric_names()
        self._pairs: dict[str, dict[str, list[tuple[float, float]]]] = {}
        self._front: list[list[float]] = []
        self._finished = 0
        self._known: dict[str, Any] | None = None
        self._about = {
            "objective": scorer.objective.to_json(),
            "metrics": [metric.to_json() for metric in metrics],
            "baseline": [None if math.isnan(value) else value for value in scorer.baseline],
        }

    def rule(self) -> dict[str, Any]:
        """The rule by which a run that begins now is stopped, as plain values."""
        if self._known is None:
            growth: dict[str, dict[str, Any]] = {}
            for key, by_name in self._pairs.items():
                found = {name: growth_of(pairs) for name, pairs in by_name.items()}
                growth[key] = {name: one for name, one in found.items() if one is not None}
            growth = {key: found for key, found in growth.items() if found}
            self._known = {"growth": growth, "best": self._front, "finished": self._finished}
            if growth and self._front:
                self._known |= self._about
        return self._known

    def learn(self, outcome: Row, partial: str | None) -> None:
        """Takes in the outcome of a run.

        Args:
            outcome: of a design that was simulated.
            partial: what it had on the way; see :func:`partial_text`.
        """
        if outcome.status != Status.OK or outcome.fidelity != 1:
            return
        self._known = None
        if outcome.feasible:
            self._extend(list(outcome.costs))
        ends = dict(zip(self._names, outcome.metrics, strict=True))
        so_far: SoFar = _read(partial).get("so_far", {})
        self._finished += bool(so_far)
        for key, found in so_far.items():
            by_name = self._pairs.setdefault(key, {})
            for name in self._needed:
                if name in found and not math.isnan(ends[name]):
                    by_name.setdefault(name, []).append((found[name], ends[name]))

    def _extend(self, costs: list[float]) -> None:
        import moocore  # heavy, and only needed here

        values = np.array([*self._front, costs])
        keep = moocore.is_nondominated(values, keep_weakly=False)
        self._front = [values[i].tolist() for i in np.flatnonzero(keep)][-_MAX_FRONT:]


def partial_text(result: object) -> str | None:
    """What the row of a result says about its way, a JSON text; ``None`` if nothing is known."""
    if isinstance(result, StoppedEarly):
        return json.dumps(result.record)
    if isinstance(result, WatchedMetrics) and result.so_far:
        return json.dumps({"so_far": result.so_far})
    return None


def predicted_metrics(partial: str | None, names: Sequence[str]) -> list[float]:
    """Metrics that were predicted for a run that was stopped, NaN where there are none.

    Args:
        partial: the text of its row.
        names: of all metrics.
    """
    found = _read(partial).get("predicted", {})
    return [float(found.get(name, math.nan)) for name in names]


def _read(partial: str | None) -> Mapping[str, Any]:
    """What the text of a row holds; nothing if it is damaged."""
    try:
        found: dict[str, Any] = json.loads(partial or "{}")
    except (ValueError, RecursionError):
        return {}
    if is_stop(found) or (isinstance(found, dict) and is_so_far(found.get("so_far"))):
        return found
    return {}
