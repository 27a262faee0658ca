"""Whether a run may use an output folder, and go on with the run that is in it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from archgym.data import Dataset, Sidecar
from archgym.data.parts import problems_of_parts
from archgym.data.schema import accepting_command
from archgym.declared import DeclaredEnvironment
from archgym.environment.environment import Environment
from archgym.errors import ExperimentError, check_received
from archgym.experiment.folder.live_files import LIVE
from archgym.experiment.folder.manifest import check_prepared, is_of_run
from archgym.experiment.folder.names import FINISHED, MANIFEST, QUEUES
from archgym.experiment.folder.run_folder import HISTORIES, LOCK, WORKERS, RunFolder
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.schema import Experiment
from archgym.reading import plain_yaml as bounded_yaml
from archgym.registry import agent_class, is_environment_file

__all__ = ["check_folder", "check_raised_budgets", "check_unchanged"]

_BEFORE_TRIALS = {
    "experiment.yaml",
    "trials.json",
    "initial_designs.json",
    HISTORIES,
    MANIFEST,
    "results",
    "ray",
    "log",
    LIVE,
    QUEUES,
    FINISHED,
    LOCK,
    WORKERS,
}
"""What a run writes before its first trial."""


def check_folder(
    folder: RunFolder,
    experiment: Experiment,
    trials: Sequence[Trial],
    resume: bool,
    *,
    own_lock: bool = False,
) -> None:
    """Refuses a folder that this run cannot use; changes nothing.

    Args:
        folder: the output folder.
        experiment: what is to be run.
        trials: its trials.
        resume: whether it may go on with a run that is there.
        own_lock: whether this run made the lock files in the folder.

    Raises:
        ExperimentError: if the folder holds a run and ``resume`` is not set; if it holds a run
            with trials that the experiment lacks, or with more budget (a shard needs exactly the
            same trials); if it holds other files, or cannot be written.
    """
    path = folder.path
    check_received(path, ExperimentError)
    _check_writable(folder)
    held = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    ours = {*_BEFORE_TRIALS, folder.lock_file.name, folder.workers_file.name}
    if not folder.begun() and all(n in ours or n.startswith(".tmp-") for n in held):
        return  # empty, or its run ended before the first trial
    new_shard = folder.shard and (own_lock or folder.lock_file.name not in held)
    if not (resume or new_shard):
        raise ExperimentError(
            f"the output folder {path} exists already: go on with its run by --resume, "
            "or choose another folder with --out"
        )
    before = folder.trials()
    if not before:
        prepared = (LOCK, WORKERS, QUEUES, LIVE, ".tmp-")
        if all(name == "experiment.yaml" or name.startswith(prepared) for name in held):
            return  # killed while it was prepared
        raise ExperimentError(f"{path} holds no run to resume (it has no trials.json)")
    check_prepared(folder)
    if not _contains(trials, before, bool(folder.shard)):
        same = "as the other shards have it" if folder.shard else "that it began with"
        more = "" if folder.shard else ", or with more seeds, agents, environments or budget"
        difference = _difference(folder, experiment, trials)
        raise ExperimentError(
            f"the run in {path} is of another experiment: {difference}; "
            f"a run is resumed with the experiment {same}{more}"
        )


def check_raised_budgets(before: Sequence[Trial], trials: Sequence[Trial]) -> None:
    """Refuses more budget for trials whose agents would have searched otherwise with it.

    Args:
        before: trials of the run that is resumed.
        trials: the same trials, and others, with their present budgets.

    Raises:
        ExperimentError: for the first such trial.
    """
    had = {trial.trial_id: trial for trial in before}
    for trial in trials:
        if (
            _raised(had.get(trial.trial_id, trial), trial)
            and agent_class(trial.agent).plans_by_budget
        ):
            raise ExperimentError(
                f"budget: agent {trial.agent!r} plans by its budget, so its trials cannot go on "
                f"from {_budget(had[trial.trial_id])} to {_budget(trial)}; run it in another folder"
            )


def check_unchanged(
    folder: RunFolder, trials: Sequence[Trial], environments: Mapping[str, Environment]
) -> None:
    """Refuses to resume a run whose environments have changed since.

    Args:
        folder: of the run.
        trials: of the run.
        environments: the environment of each setting, as it is now.

    Raises:
        ExperimentError: if a workload, a design space, the metrics or a simulator changed.
    """
    for name in dict.fromkeys(trial.dataset for trial in trials):
        where = folder.datasets / name
        if not (where / "dataset.json").exists():
            if any(where.glob("*/*.parquet")) or any(where.glob("journal/*.jsonl")):
                raise ExperimentError(f"{where} is damaged: it has rows, but no dataset.json")
            continue  # not begun, or killed while its folder was made
        dataset = Dataset(where)
        for problem in problems_of_parts(where):
            raise ExperimentError(
                f"{where} is damaged, so its run cannot go on: {problem}; put the file back, or "
                f"keep what is sound by archgym dataset repair {where}, or remove the dataset: "
                "what is lost is then simulated again"
            )
        _check_steps(dataset)
        table = dataset.trials().select(["trial_id", "workload_sha256"]).to_pylist()
        hashes = {row["trial_id"]: row["workload_sha256"] for row in table}
        ours = {trial.trial_id for trial in trials if trial.dataset == name}
        for trial_id in hashes:
            if not is_of_run(trial_id, ours):
                raise ExperimentError(
                    f"{where} is damaged, so its run cannot go on: it has trial {trial_id}, which "
                    "is none of the run; remove the journal or dataset that is of another run"
                )
        differences: dict[str, str] = {}
        for trial in (one for one in trials if one.dataset == name):
            environment = environments[trial.setting]
            if trial.setting not in differences:
                now = Sidecar.of(environment.description)
                accepted_by = accepting_command(where, trial.environment)
                difference = now.difference(dataset.sidecar, accepted_by)
                differences[trial.setting] = difference and difference + _edited(environment, where)
            difference = differences[trial.setting]
            digest = environment.workload_sha256
            if hashes.get(trial.trial_id, digest) != digest:
                difference = f"workload {environment.workload_name!r} has changed"
            if difference:
                raise ExperimentError(
                    f"the run in {folder.path} cannot go on with {trial.setting}: {difference}"
                )


def _edited(environment: Environment, dataset: Path) -> str:
    """Which files of a declared environment may have changed, as the end of a sentence."""
    if not isinstance(environment, DeclaredEnvironment):
        return ""
    names = environment.edited_since((dataset / "dataset.json").stat().st_mtime)
    return f" (by their dates, these changed since: {', '.join(names)})" if names else ""


def _check_steps(dataset: Dataset) -> None:
    """Makes sure that no row is there twice, such as in two copies of a journal."""
    seen: dict[str, list[NDArray[np.int64]]] = {}
    for _, table in dataset.snapshot().blocks(["trial_id", "step"]):
        names = np.array(table["trial_id"].to_pylist(), dtype=object)
        steps = table["step"].to_numpy().astype(np.int64)
        for name in dict.fromkeys(names.tolist()):
            seen.setdefault(name, []).append(steps[names == name])
    for name, parts in seen.items():
        steps = np.concatenate(parts)
        if len(np.unique(steps)) < len(steps):
            raise ExperimentError(
                f"{dataset.directory} is damaged, so its run cannot go on: trial {name} has a step "
                f"twice; keep each once by archgym dataset repair {dataset.directory}"
            )


def _contains(trials: Sequence[Trial], before: Sequence[Trial], exactly: bool) -> bool:
    """Whether the trials are those of the run; or, not ``exactly``, more or with more budget."""
    before, trials = _named_alike(before), _named_alike(trials)
    if exactly:
        return before == trials
    now = {trial.trial_id: trial for trial in trials}
    return all(
        (new := now.get(old.trial_id)) is not None
        and (new == old or _raised(old, new))
        and replace(new, budget=old.budget, hours=old.hours) == old
        for old in before
    )


def _named_alike(trials: Sequence[Trial]) -> list[Trial]:
    """Trials with the name of a file for its path, which depends on the working folder.

    Whether its content is the same is checked by the environment's version.
    """
    return [
        replace(trial, environment=Path(trial.environment).name)
        if is_environment_file(trial.environment)
        else trial
        for trial in trials
    ]


def _raised(old: Trial, new: Trial) -> bool:
    """Whether a trial may spend more of what limits it, and less of nothing."""
    pairs = ((old.budget, new.budget), (old.hours, new.hours))
    limits = [(was or math.inf, now or math.inf) for was, now in pairs]
    return all(now >= was for was, now in limits) and any(now > was for was, now in limits)


def _budget(trial: Trial) -> str:
    hours = "" if trial.hours is None else f"{trial.hours:g} hours"
    return " or ".join(filter(None, [str(trial.budget or ""), hours]))


def _check_writable(folder: RunFolder) -> None:
    path = folder.path
    if path.exists() and not path.is_dir():
        raise ExperimentError(f"the output folder {path} is a file")
    nearest = next(p for p in (path, *path.parents) if p.exists())
    refused = f"cannot write to the output folder {path}: "
    if not nearest.is_dir():
        raise ExperimentError(f"{refused}{nearest} is a file")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ExperimentError(f"{refused}no permission to write in {nearest}")


def _difference(folder: RunFolder, experiment: Experiment, trials: Sequence[Trial]) -> str:
    """The first difference between an experiment and the one that was run in the folder."""
    try:
        before = bounded_yaml.read(folder.path / "experiment.yaml")
    except (OSError, yaml.YAMLError):
        return "its experiment.yaml cannot be read"
    found = _first_difference(before, experiment.to_json(), "")
    return found or _other_version(folder.trials(), trials)


def _other_version(before: Sequence[Trial], trials: Sequence[Trial]) -> str:
    """How the trials of the same experiment differ from those of the version that ran it."""
    now = {trial.trial_id: trial for trial in trials}
    differences = (
        _first_difference(old.to_json(), now[old.trial_id].to_json(), "")
        if old.trial_id in now
        else f"{old.trial_id} is no trial of it now"
        for old in before
    )
    found = next(filter(None, differences), "it has more trials now")
    return f"another version of archgym began it: {found}"


def _first_difference(before: Any, now: Any, where: str) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        free = () if where else ("description", "resources", "name", "log", "durable")
        # What may grow comes last: it is the reason only if nothing else is.
        may_grow = () if where else ("environments", "agents", "seeds", "hours", "budget")
        pairs = [
            (before.get(key), now.get(key), f"{where}.{key}" if where else str(key))
            for key in sorted({**before, **now}, key=lambda key: key in may_grow)
            if key not in free
        ]
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = [(*pair, f"{where}[{i}]") for i, pair in enumerate(zip(before, now, strict=True))]
    elif before == now:
        return ""
    else:
        texts = ["left out" if value is None else repr(value) for value in (before, now)]
        return f"{where} was {texts[0]} there and is {texts[1]} now"
    found = (_first_difference(*pair) for pair in pairs)
    return next(filter(None, found), "")
