"""How a recorded design is evaluated again: the arguments of its trial, and the command."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import yaml

from archgym.data import Dataset
from archgym.environment.arguments import search_arguments
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.spec.expand import Trial
from archgym.reading import plain_yaml as bounded_yaml
from archgym.registry import environment_class, environment_names
from archgym.space import DesignSpace

_OPTIONS = ("workload", "objective", "space", "simulator")


def trials_in(
    folder: str | Path, datasets: Iterable[tuple[Dataset, list[dict[str, Any]]]]
) -> dict[str, Trial]:
    """Every trial of a run, or of datasets by themselves, by id.

    Args:
        folder: of the run; its list of trials has them as they were expanded.
        datasets: with the rows of their tables of trials. A trial that is in no list is as its
            row describes it, which does not say where a table or a proxy was.

    Raises:
        ExperimentError: if the list of trials is damaged.
    """
    trials = {trial.trial_id: trial for trial in RunFolder(folder).trials()}
    for dataset, rows in datasets:
        for row in rows:
            if row["trial_id"] not in trials:
                trials[row["trial_id"]] = _recorded(dataset, row)
    return trials


class _Evaluated(Protocol):
    """The part of a trial that decides how its designs are evaluated."""

    @property
    def environment(self) -> str: ...
    @property
    def arguments(self) -> Mapping[str, Any]: ...


def evaluate_command(trial: _Evaluated, design: Mapping[str, Any]) -> str:
    """A line for a shell that evaluates a design as a trial did: same arguments, every digit.

    >>> trial = Trial("t", "s", "d", "DRAM-v0", "ga", "ga", 0, 10, {"workload": "a trace.stl"})
    >>> evaluate_command(trial, {"arbiter": "simple"})
    "archgym evaluate DRAM-v0 arbiter=simple --workload 'a trace.stl'"
    """
    words = ["archgym", "evaluate", trial.environment]
    words += [f"{name}={_plain(value)}" for name, value in design.items()]
    for name, value in trial.arguments.items():
        if name in ("record", "render_mode"):
            continue
        text = _yaml(value)
        words += [f"--{name}", text] if name in _OPTIONS else ["--set", f"{name}={text}"]
    return shlex.join(words)


def _plain(value: Any) -> str:
    """A parameter's value as ``archgym evaluate`` reads it, with every digit."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _yaml(value: Any) -> str:
    """A value as YAML on one line: a text by itself where that means the same."""
    with contextlib.suppress(yaml.YAMLError):
        if isinstance(value, str) and bounded_yaml.parse(value) == value:
            return value
    return json.dumps(value)


def _recorded(dataset: Dataset, row: Mapping[str, Any]) -> Trial:
    """The trial that a dataset's row describes, as far as it says."""
    hyperparameters = json.loads(row["hyperparameters"])
    digest = hashlib.sha256(str(row["hyperparameters"]).encode()).hexdigest()[:4]
    spec = row["workload_spec"]
    arguments: dict[str, Any] = {
        "workload": json.loads(spec) if spec is not None else (row["workload"] or None),
        "objective": json.loads(row["objective"]),
        **space_arguments(row["environment"], dataset.sidecar.space, json.loads(row["fixed"])),
    }
    if dataset.sidecar.simulator["name"] not in ("embedded", "tabular", "proxy"):
        arguments["simulator"] = dataset.sidecar.simulator["name"]
    arguments |= {
        key: value
        for key, value in json.loads(row["settings"]).items()
        if not key.endswith("_sha256") and value not in ({}, [], None, "")
    }
    return Trial(
        trial_id=row["trial_id"],
        setting=" ".join(filter(None, (row["environment"], row["workload"]))),
        dataset=dataset.directory.name,
        environment=row["environment"],
        agent=row["agent"],
        agent_label=f"{row['agent']}-{digest}" if hyperparameters else row["agent"],
        seed=-1 if row["seed"] is None else row["seed"],
        budget=row["budget"] or 0,
        arguments={key: value for key, value in arguments.items() if value not in (None, {})},
        hyperparameters=hyperparameters,
    )


def space_arguments(
    environment: str, space: DesignSpace, fixed: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments ``space``, ``fixed``, ``exclude`` and ``include`` that give a recorded space.

    The space is the default one if the environment is not registered or does not know it.
    """
    if environment not in environment_names():  # a dataset does not decide which code is imported
        return search_arguments(space, fixed, space.without_fixed())
    offered = environment_class(environment).spaces()
    declared = space.to_json()["parameters"]
    for name, one in offered.items():
        if one.to_json()["parameters"] == declared:
            named = {} if name == "default" else {"space": name}
            return named | search_arguments(space, fixed, one)
    return search_arguments(space, fixed, space.without_fixed())
