"""Metrics of baseline designs that the datasets of a run hold, so that they need no simulation."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

from archgym.data import Dataset
from archgym.environment.environment import Environment
from archgym.experiment.spec.expand import Trial

__all__ = ["recorded_baselines"]


def recorded_baselines(
    datasets: Iterable[Dataset],
    trials: Sequence[Trial],
    environments: Mapping[str, Environment],
) -> dict[str, list[float]]:
    """Baseline metrics of each setting of which a trial was begun, NaN for one that is not given.

    Args:
        datasets: of the run.
        trials: of the run.
        environments: the environment of each setting.
    """
    settings = {trial.trial_id: trial.setting for trial in trials}
    found: dict[str, list[float]] = {}
    for dataset in datasets:
        for row in dataset.trials().select(["trial_id", "baseline"]).to_pylist():
            setting = settings.get(row["trial_id"], "")
            if setting in environments and setting not in found:
                held = json.loads(row["baseline"])
                names = [metric.name for metric in environments[setting].metrics]
                values = [held.get(name) for name in names]
                if any(value is not None for value in values):
                    found[setting] = [math.nan if v is None else float(v) for v in values]
    return found
