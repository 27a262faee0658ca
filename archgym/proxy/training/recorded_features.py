"""Features of the workloads of a dataset, computed from what was recorded of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from archgym.data.selection import Selection
from archgym.errors import InvalidValueError
from archgym.proxy.training.data import Features
from archgym.validation.recorded import make_recorded


def recorded_features(selection: Selection, *, read_files: bool = False) -> Features:
    """A function that gives the features of a trial's workload.

    It makes the environment of the trial, a registered one only, on the recorded workload, and
    simulates nothing; so datasets from before there were features serve as well.

    Args:
        selection: rows of the dataset.
        read_files: whether files that the dataset names are read, such as traces.
    """
    simulator = dict(selection.dataset.sidecar.simulator)

    def features(trial: Mapping[str, Any]) -> Mapping[str, float]:
        spec = trial["workload_spec"]
        environment = make_recorded(
            str(trial["environment"]),
            json.loads(trial["settings"]),
            json.loads(spec) if spec is not None else None,
            trial["workload"],
            simulator,
            read_files=read_files,
            simulator="embedded",
        )
        if trial["workload_sha256"] and environment.workload_sha256 != trial["workload_sha256"]:
            raise InvalidValueError(
                f"workload {trial['workload']!r} has changed since it was recorded: "
                "its features now would not be those of the rows"
            )
        return environment.workload_features

    return features
