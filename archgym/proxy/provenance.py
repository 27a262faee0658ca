"""Where training data come from: an environment, its settings and its workloads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Workload:
    """One workload of the data.

    Attributes:
        name: its label.
        sha256: hash of its content; empty if the environment has none.
        spec: what the environment was given, a JSON value.
        baseline_design: the environment's.
        baseline: its metrics by name.
        features: numbers that describe it, by name.
    """

    name: str
    sha256: str
    spec: Any
    baseline_design: dict[str, Any]
    baseline: dict[str, float]
    features: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Origin:
    """The simulation that a proxy replaces.

    Attributes:
        environment: registered name, or ``module:Class``.
        settings: constructor arguments of the environment on which metrics depend.
        simulator: name and version.
        workloads: all of the data, in a fixed order.
        fixed: parameters that were held at one value in all of the data.
    """

    environment: str
    settings: dict[str, Any]
    simulator: dict[str, str]
    workloads: tuple[Workload, ...]
    fixed: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values; the inverse of :meth:`from_json`."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Origin:
        """The inverse of :meth:`to_json`."""
        return Origin(
            str(data["environment"]),
            dict(data["settings"]),
            {key: str(value) for key, value in data["simulator"].items()},
            tuple(
                Workload(
                    **{
                        **one,
                        "baseline": _finite(one["baseline"]),
                        "baseline_design": dict(one["baseline_design"]),
                    }
                )
                for one in data["workloads"]
            ),
            dict(data.get("fixed") or {}),
        )


def workload_of_trial(trial: Mapping[str, Any], features: Mapping[str, float]) -> Workload:
    """The workload of a row of the table of trials."""
    spec = trial["workload_spec"]
    design = trial["baseline_design"]
    return Workload(
        name=str(trial["workload"] or ""),
        sha256=str(trial["workload_sha256"] or ""),
        spec=json.loads(spec) if spec is not None else None,
        baseline_design=json.loads(design) if design else {},
        baseline=_finite(json.loads(trial["baseline"]) if trial["baseline"] else {}),
        features=dict(features),
    )


def _finite(values: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in values.items()
        if value is not None and np.isfinite(float(value))
    }
