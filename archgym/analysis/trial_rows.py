"""What a row of a dataset's table of trials says: objective, scorer, fidelities, optimum."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.scorer import Scorer


@functools.lru_cache(maxsize=4096)
def parsed(text: str | None) -> Any:
    """The value of a JSON text, ``None`` without one; trials with the same text share it."""
    return None if text is None else json.loads(text)


@functools.lru_cache(maxsize=256)
def _objective(text: str) -> Objective:
    return Objective.parse(json.loads(text))


@functools.lru_cache(maxsize=256)
def _scorer(objective: str, baseline: str, metrics: tuple[Metric, ...]) -> Scorer:
    names = [metric.name for metric in metrics]
    return Scorer(_objective(objective), metrics, metric_vector(parsed(baseline), names))


def objective_of(row: Mapping[str, Any]) -> Objective:
    """The objective of a trial."""
    return _objective(row["objective"])


def scorer_of(row: Mapping[str, Any], metrics: Sequence[Metric]) -> Scorer:
    """The objective of a trial, bound to its baseline design.

    Args:
        row: of the table of trials.
        metrics: metrics to score, in the order of their columns.
    """
    return _scorer(row["objective"], row["baseline"], tuple(metrics))


def fidelities_of(row: Mapping[str, Any]) -> list[Fidelity]:
    """The fidelities of a trial; a dataset from before there were any records none."""
    return [Fidelity(**one) for one in parsed(row["fidelities"]) or ()] or [FULL]


def metric_vector(values: Mapping[str, float | None], names: Sequence[str]) -> NDArray[np.float64]:
    """Some metrics as an array, NaN for one without a value, shape (n_metrics,)."""
    return np.array([np.nan if (v := values.get(name)) is None else v for name in names])
