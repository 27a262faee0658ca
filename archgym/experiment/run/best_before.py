"""The best that earlier runs in a folder found, for the display of one that goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from archgym.data import Dataset
from archgym.problem.scorer import Scorer

__all__ = ["best_before"]


def best_before(
    datasets: Iterable[Dataset], scorers: Mapping[str, Scorer]
) -> dict[str, tuple[float, ...]]:
    """Best feasible value of each goal at full fidelity, minimised, by trial.

    Metrics are read a block at a time, designs not at all.

    Args:
        datasets: of the run.
        scorers: of the trials to look at, by id.
    """
    best: dict[str, tuple[float, ...]] = {}
    for dataset in datasets:
        metrics = [f"metric.{metric.name}" for metric in dataset.sidecar.metrics]
        columns = ["trial_id", "status", "feasible", "fidelity", *metrics]
        for _, table in dataset.snapshot().blocks(columns):
            ids = np.array(table["trial_id"].cast(pa.string()).to_pylist())
            ok = np.array(table["status"].cast(pa.string()).to_pylist()) == "ok"
            good = ok & table["feasible"].to_numpy() & (table["fidelity"].to_numpy() == 1)
            values = np.column_stack([table[name].to_numpy() for name in metrics])
            names, numbers = np.unique(ids[good], return_inverse=True)
            order = np.argsort(numbers, kind="stable")
            ends = np.cumsum(np.bincount(numbers))[:-1]
            rows = np.split(values[good][order].astype(np.float64), ends)
            for name, mine in zip(names.tolist(), rows, strict=False):
                if name in scorers:
                    found = scorers[name].values(mine).min(axis=0).tolist()
                    best[name] = tuple(map(min, found, best.get(name, found)))
    return best
