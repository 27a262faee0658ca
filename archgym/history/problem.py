"""What an earlier problem has in common with the one that is searched now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.data import Dataset, Sidecar
from archgym.data.problems import baseline_of
from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError
from archgym.history.translation import Translation
from archgym.problem.metrics import Metric
from archgym.problem.scoring import Scorer

__all__ = ["baseline_metrics", "differences", "problem_key", "problem_name", "refusal"]

_COLUMNS = ("environment", "settings", "workload", "workload_sha256", "fixed")
_LEAST_SHARE = 0.5
"""Share of the parameters that a problem of another environment has in common at least."""
_MAX_HELD = 3
"""Held values that are named at most."""


def problem_key(trial: Mapping[str, Any], sidecar: Sidecar) -> tuple[Any, ...]:
    """Equal for trials of one problem, whatever their objective and dataset.

    Args:
        trial: a row of the table of trials.
        sidecar: of its dataset.
    """
    simulator = (sidecar.simulator["name"], sidecar.simulator["version"], sidecar.source_sha256)
    return (*(trial[name] for name in _COLUMNS), *simulator)


def problem_name(trial: Mapping[str, Any], sidecar: Sidecar, environment: Environment) -> str:
    """What to call a problem: its environment and workload, the values held, another version.

    Args:
        trial: a row of the table of trials.
        sidecar: of its dataset.
        environment: in which is searched.
    """
    name = " ".join(trial[column] for column in ("environment", "workload") if trial[column])
    held = [f"{parameter}={value}" for parameter, value in json.loads(trial["fixed"]).items()]
    if held:
        name += f" with {', '.join(held[:_MAX_HELD])}{', ...' if len(held) > _MAX_HELD else ''}"
    before, now = sidecar.simulator, environment.description.simulator
    other_version = before["name"] == now["name"] and before["version"] != now["version"]
    return f"{name}, version {before['version']}" if other_version else name


def differences(
    trial: Mapping[str, Any], sidecar: Sidecar, environment: Environment
) -> tuple[str, ...]:
    """In what the problem of a trial differs; empty if its metrics hold now.

    The objective, limits and values that were held do not count, nor does the design space.
    """
    now, found = environment.description, []
    if trial["environment"] != now.environment:
        found.append(f"of environment {trial['environment']}")
    earlier, settings = (
        json.loads(trial["settings"]),
        json.loads(json.dumps(dict(now.settings), default=repr)),
    )
    found += [
        f"{name}={earlier.get(name)!r} and not {settings.get(name)!r}"
        for name in dict.fromkeys([*earlier, *settings])
        if earlier.get(name) != settings.get(name)
    ]
    if trial["workload_sha256"] != now.workload_sha256 or (
        not now.workload_sha256 and trial["workload"] != now.workload_name
    ):
        same = trial["workload"] == now.workload_name
        found.append(f"workload {trial['workload']}{' had another content' if same else ''}")
    for field in ("name", "version"):
        if sidecar.simulator[field] != now.simulator[field]:
            what = "simulator" if field == "name" else "version"
            found.append(f"{what} {sidecar.simulator[field]} and not {now.simulator[field]}")
            break
    if sidecar.source_sha256 != now.source_sha256:
        known = bool(sidecar.source_sha256 and now.source_sha256)
        found.append(f"the source of the simulator {'has changed' if known else 'is not known'}")
    return tuple(found)


def refusal(
    dataset: Dataset, trial: Mapping[str, Any], environment: Environment, translation: Translation
) -> str:
    """Why nothing that was recorded for the problem of a trial can be used; empty if it can."""
    names = environment.design_space.names
    other = trial["environment"] != environment.name
    if other and len(translation.common) < _LEAST_SHARE * len(names):
        return (
            f"it is of environment {trial['environment']}, which has {len(translation.common)} of "
            f"the {len(names)} parameters of {environment.name}: at least half are needed"
        )
    if translation.problem:
        return translation.problem
    there = {metric.name: metric for metric in dataset.sidecar.metrics}
    baseline = baseline_metrics(trial, environment.metrics)
    needed = environment.objective.metric_names()
    for metric, known in zip(environment.metrics, baseline.tolist(), strict=True):
        if metric.name not in there:
            if metric.name in needed:
                return f"it has no metric {metric.name!r}, which the objective needs"
            continue
        unit = there[metric.name].unit
        if unit != metric.unit:
            return f"metric {metric.name!r} is in {unit!r} there and in {metric.unit!r} here"
        if metric.name in needed and not np.isfinite(known):
            return f"its baseline design has no {metric.name!r}, which the objective needs"
    try:
        Scorer(environment.objective, environment.metrics, baseline)
    except InvalidValueError as error:
        return str(error)
    return ""


def baseline_metrics(trial: Mapping[str, Any], metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """Metrics of the baseline design of a trial, NaN where there are none, shape (n_metrics,)."""
    return baseline_of(trial, metrics)
