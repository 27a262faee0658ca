"""The best designs that earlier runs in a folder found, for the display of a resumed run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from archgym.data import Dataset
from archgym.environment.environment import Environment
from archgym.experiment.spec.expand import Trial
from archgym.problem.scoring import Scorer

__all__ = ["best_before"]


def best_before(
    datasets: Iterable[Dataset],
    trials: Sequence[Trial],
    environments: Mapping[str, Environment],
) -> dict[str, tuple[float, ...]]:
    """Best feasible value of each goal at full fidelity, minimised, by trial.

    Metrics are read a block at a time, designs not at all.

    Args:
        datasets: of the run.
        trials: trials to look at.
        environments: the environment of each setting.
    """
    settings = {trial.trial_id: trial.setting for trial in trials}
    scorers = {
        setting: Scorer(env.objective, env.metrics, env.baseline_metrics)
        for setting, env in environments.items()
    }
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
                if name in settings:
                    found = scorers[settings[name]].values(mine).min(axis=0).tolist()
                    best[name] = tuple(map(min, found, best.get(name, found)))
    return best
