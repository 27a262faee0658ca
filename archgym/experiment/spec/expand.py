"""Expands an experiment to the list of its trials; trials are made nowhere else."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from archgym.errors import ArchgymError, InvalidValueError, UnknownNameError
from archgym.experiment.spec.hyperparameters import hyperparameter_sets
from archgym.experiment.spec.schema import (
    MAX_TRIALS,
    AgentEntry,
    EnvironmentEntry,
    Experiment,
)
from archgym.registry import agent_names, environment_class, is_environment_file

__all__ = ["Trial", "expand", "history_of"]


@dataclass(frozen=True)
class Trial:
    """One agent, hyperparameters, environment, seed and budget; plain values only.

    Attributes:
        trial_id: unique in the experiment, readable, usable as a file name.
        setting: name of the environment and workload that are searched.
        dataset: name of the dataset in the output folder that its evaluations go to.
        environment: registered name, or ``module:Class``.
        arguments: constructor arguments of the environment.
        agent: registered name, or ``module:Class``.
        agent_label: agent and hyperparameters, without the seed.
        hyperparameters: those given or drawn; the others have their defaults.
        seed: seed of the agent.
        budget: distinct legal designs to simulate; ``None`` for no limit.
        initial: designs that are evaluated first, or where they are read from.
        baseline_first: whether the baseline design is evaluated before these; not in runs of
            archgym 0.1.0, whose trials do not say so.
        hours: that the simulations take together; ``None`` for no limit.
        held_out: workload on which the best design is evaluated at the end, besides that of the
            environment's own.
        history: folders that the search learns from.
    """

    trial_id: str
    setting: str
    dataset: str
    environment: str
    agent: str
    agent_label: str
    seed: int
    budget: int | None
    arguments: dict[str, Any] = field(default_factory=dict)
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    initial: str | list[dict[str, Any]] = field(default_factory=list)
    baseline_first: bool = False
    hours: float | None = None
    held_out: Any = None
    history: list[str] = field(default_factory=list)

    @property
    def weight(self) -> float:
        """The work that it is, to compare trials of one experiment: designs, or hours."""
        return self.budget or self.hours or 0.0

    def to_json(self) -> dict[str, Any]:
        """A JSON object with the fields."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Trial:
        """The inverse of :meth:`to_json`."""
        return Trial(**data)


@dataclass(frozen=True)
class _Setting:
    entry: EnvironmentEntry
    workload: Any
    arguments: dict[str, Any]


@dataclass(frozen=True)
class _Searcher:
    entry: AgentEntry
    hyperparameters: dict[str, Any]


def expand(experiment: Experiment) -> list[Trial]:
    """Lists every trial of an experiment in the order of the file, the same on every machine.

    Raises:
        UnknownNameError, InvalidValueError: for impossible distributions or repeated entries.
    """
    _check_agents(experiment)
    settings = [
        _Setting(entry, workload, entry.constructor_arguments(workload))
        for entry in experiment.environments
        for workload in entry.workloads
    ]
    searchers = [
        _Searcher(entry, values)
        for number, entry in enumerate(experiment.agents)
        for values in hyperparameter_sets(entry, experiment.seed, f"agents[{number}]")
    ]
    number = len(settings) * len(searchers) * experiment.number_of_seeds
    if number > MAX_TRIALS:
        raise InvalidValueError(
            f"the experiment has {number:,} trials; at most {MAX_TRIALS:,} can be listed: give "
            "fewer seeds, environments, agents or hyperparameters"
        )
    setting_ids = _unique(
        [_setting_name(s) for s in settings],
        [_content(s.entry, s.arguments) for s in settings],
        "environments",
    )
    dataset_keys = [_dataset_key(s) for s in settings]
    distinct = {_text(key): key for key in dataset_keys}
    names = _unique([_plain(key["id"]) for key in distinct.values()], list(distinct.values()), "")
    dataset_names = dict(zip(distinct, names, strict=True))
    agent_ids = _unique(
        [_plain(s.entry.name) for s in searchers],
        [{"name": s.entry.name, **s.hyperparameters} for s in searchers],
        "agents",
        always=[bool(s.hyperparameters) for s in searchers],
    )
    return [
        Trial(
            trial_id=f"{setting_id}.{agent_id}.s{seed}",
            setting=setting_id,
            dataset=dataset_names[_text(key)],
            environment=setting.entry.id,
            arguments=setting.arguments,
            agent=searcher.entry.name,
            agent_label=agent_id,
            hyperparameters=searcher.hyperparameters,
            seed=seed,
            budget=experiment.designs,
            hours=experiment.hours,
            initial=setting.entry.initial,
            baseline_first=experiment.baseline_first,
            held_out=setting.entry.held_out,
            history=history_of(experiment, setting.entry),
        )
        for (setting, setting_id, key), (searcher, agent_id), seed in itertools.product(
            zip(settings, setting_ids, dataset_keys, strict=True),
            list(zip(searchers, agent_ids, strict=True)),
            experiment.seed_list,
        )
        if setting.entry.agents is None or searcher.entry.name in setting.entry.agents
    ]


def history_of(experiment: Experiment, entry: EnvironmentEntry) -> list[str]:
    """The folders that the searches of an entry in ``environments`` learn from."""
    return list(dict.fromkeys([*entry.history, *experiment.history]))


def _content(entry: EnvironmentEntry, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """In what settings of the same name differ."""
    learned = {"history": entry.history} if entry.history else {}
    return {"id": entry.id, **arguments, "initial": entry.initial, **learned}


def _check_agents(experiment: Experiment) -> None:
    known = [agent.name for agent in experiment.agents]
    for number, entry in enumerate(experiment.environments):
        for name in entry.agents or ():
            if name not in known:
                _check_own_names(known)
                raise UnknownNameError("agent", name, known, f"environments[{number}].agents")


def _check_own_names(agents: Sequence[str]) -> None:
    """A mistyped name in ``agents`` is why another part of the file may not find it there."""
    for number, name in enumerate(agents):
        if ":" not in name and name not in agent_names():
            raise UnknownNameError("agent", name, agent_names(), f"agents[{number}].name")


def _setting_name(setting: _Setting) -> str:
    entry, workload = setting.entry, setting.workload
    name = entry.name or _plain(entry.id)
    if workload is None or (entry.name and len(entry.workloads) == 1):
        return name
    if isinstance(workload, dict):
        workload = next(_texts(workload), "workload")
    return f"{name}.{_plain(Path(str(workload)).name)}"


def _texts(workload: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a workload from top to bottom, the first of which says what it is."""
    for value in workload.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from _texts(value)


def _dataset_key(setting: _Setting) -> dict[str, Any]:
    """The environment and the arguments that trials with the same dataset share."""
    free = {"workload", "objective", "fixed"}
    space = setting.arguments.get("space", "default")
    with suppress(ArchgymError):  # checked later, with the place of the entry
        if space in environment_class(setting.entry.id).spaces_of_workload:
            free.remove("workload")
    kept = {name: value for name, value in setting.arguments.items() if name not in free}
    return {"id": setting.entry.id, **kept}


def _unique(
    names: Sequence[str], contents: Sequence[Any], where: str, always: Sequence[bool] = ()
) -> list[str]:
    """Names, with a hash of their contents where a name would repeat, or where ``always``."""
    texts = [_text(content) for content in contents]
    for text, count in Counter(texts).items():
        if count > 1 and where:
            raise InvalidValueError(f"{where}: two entries are equal: {text}")
    often = Counter(names)
    hashed = [often[name] > 1 or (bool(always) and always[i]) for i, name in enumerate(names)]
    for length in (4, 8, 16, 64):
        found = [
            f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:length]}" if with_hash else name
            for name, text, with_hash in zip(names, texts, hashed, strict=True)
        ]
        if len(set(found)) == len(found):
            break
    return found


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _plain(name: str) -> str:
    """A name with other characters than letters, digits, _ and - replaced.

    Of a ``module:Class`` it is the class, of a file that declares an environment its stem.
    """
    if is_environment_file(name):
        name = Path(name).stem
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name.rpartition(":")[2]).strip("_") or "x"
