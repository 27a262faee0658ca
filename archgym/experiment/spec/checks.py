"""Everything that can be known to be wrong with an experiment before it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from archgym.environment.arguments import own_arguments
from archgym.environment.environment import Environment
from archgym.environment.provenance import PROVENANCE
from archgym.errors import ArchgymError, ExperimentError, InvalidValueError
from archgym.evaluation.budget import check_budget
from archgym.experiment.spec.expand import Trial, history_of
from archgym.experiment.spec.schema import Experiment
from archgym.registry import agent_class, environment_class, make, make_agent

__all__ = [
    "check_experiment",
    "check_stop_early",
    "entry_position",
    "first_of_each",
    "goal_directions",
    "located",
    "make_environment",
]


def make_environment(name: str, arguments: Mapping[str, Any], where: str = "") -> Environment:
    """Makes an environment by name; each problem with its arguments is one clear error.

    Args:
        name: registered name, or ``module:Class``.
        arguments: keyword arguments of its constructor.
        where: place of the arguments, for messages.

    Raises:
        ArchgymError: if the environment or an argument is not possible.
    """
    with located(where), _made(f"{name} "):
        return make(name, **arguments)


@contextlib.contextmanager
def located(where: str) -> Iterator[None]:
    """Puts a place, such as ``agents[0].name``, before the message of any archgym error."""
    try:
        yield
    except ArchgymError as error:
        if where:
            error.args = (f"{where}: {error}",)
        raise


def check_experiment(experiment: Experiment, trials: Sequence[Trial]) -> dict[str, Environment]:
    """Makes every environment and every agent once; nothing is written.

    Args:
        experiment: where the trials come from.
        trials: all trials of the experiment.

    Returns:
        The environment of each setting.

    Raises:
        ArchgymError: for the first environment, agent, workload, metric, parameter or value that
            is not possible, with its place in the file.
    """
    for number, environment in enumerate(experiment.environments):
        with located(f"environments[{number}].id"):
            cls = environment_class(environment.id)
        taken = own_arguments(cls, Environment)
        for name in PROVENANCE:
            if name in environment.arguments and name not in taken:
                raise InvalidValueError(
                    f"environments[{number}].arguments: {name} is not taken, since every trial of "
                    "an experiment is recorded with its own"
                )
    for number, agent in enumerate(experiment.agents):
        with located(f"agents[{number}].name"):
            agent_class(agent.name)
    _check_hyperparameters(experiment, trials)
    environments: dict[str, Environment] = {}
    for trial in first_of_each(trials, "setting"):
        where = f"environments[{entry_position(experiment, trial)}]"
        environments[trial.setting] = make_environment(trial.environment, trial.arguments, where)
        if trial.held_out is not None:
            other = {**trial.arguments, "workload": trial.held_out}
            make_environment(trial.environment, other, f"{where}.held_out")
        space = environments[trial.setting].design_space
        check_budget(trial.budget, trial.hours, space.raw_cardinality)
        if experiment.simulation.stop_early:
            with located(where):
                check_stop_early(environments[trial.setting])
    for trial in first_of_each(trials, "setting", "agent_label"):
        _check_agent(trial, environments[trial.setting])
    return environments


def check_stop_early(environment: Environment) -> None:
    """Refuses an environment whose runs cannot be stopped early.

    Raises:
        InvalidValueError: if not every metric that the objective looks at is known on the way.
    """
    what = "simulation.stop_early"
    name = environment.simulator.name
    if name != "embedded":
        raise InvalidValueError(f"{what}: simulator {name!r} gives no metrics on the way")
    known = environment.metrics_so_far
    if not known:
        raise InvalidValueError(
            f"{what}: {environment.name} gives no metrics while a design is simulated: a declared "
            "environment says with 'partial' what it prints, or has 'noise' or several workloads"
        )
    for metric in environment.objective.metric_names():
        if metric not in known:
            raise InvalidValueError(
                f"{what}: the objective looks at {metric}, which is not known before the end; "
                f"known are {', '.join(known)}"
            )


def goal_directions(environment: Environment) -> list[str]:
    """Directions of an environment's goals as agents see them: always minimised."""
    return ["minimize"] * len(environment.objective.goals)


def first_of_each(trials: Sequence[Trial], *fields: str) -> Iterable[Trial]:
    """The first trial of each combination of values of some fields, such as ``setting``."""
    seen: dict[tuple[str, ...], Trial] = {}
    for trial in trials:
        seen.setdefault(tuple(getattr(trial, field) for field in fields), trial)
    return seen.values()


def entry_position(experiment: Experiment, trial: Trial) -> int:
    """Index of the entry in ``environments`` that a trial's environment comes from."""
    return next(
        number
        for number, entry in enumerate(experiment.environments)
        for workload in entry.workloads
        if entry.id == trial.environment
        and entry.constructor_arguments(workload) == trial.arguments
        and entry.initial == trial.initial
        and history_of(experiment, entry) == trial.history
    )


def _check_hyperparameters(experiment: Experiment, trials: Sequence[Trial]) -> None:
    entries = {agent.name: number for number, agent in reversed(list(enumerate(experiment.agents)))}
    for trial in first_of_each(trials, "agent_label"):
        with located(f"agents[{entries[trial.agent]}].hyperparameters"):
            agent_class(trial.agent).check_hyperparameters(trial.hyperparameters)


def _check_agent(trial: Trial, environment: Environment) -> None:
    with located(f"agent {trial.agent!r} on {trial.setting}"), _made():
        make_agent(
            trial.agent,
            environment.design_space,
            goal_directions(environment),
            seed=trial.seed,
            **trial.hyperparameters,
        )


@contextlib.contextmanager
def _made(what: str = "") -> Iterator[None]:
    """Replaces an error of another kind, such as a TypeError for an argument, by one of archgym."""
    try:
        yield
    except ArchgymError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise ExperimentError(f"{what}cannot be made: {kind}: {error}") from error
