"""Everything that can be known to be wrong with an experiment before it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, ExperimentError
from archgym.experiment.simulate.executors import Simulators
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.schema import Experiment
from archgym.registry import agent_class, environment_class, make, make_agent

__all__ = [
    "check_experiment",
    "check_raised_budgets",
    "check_workloads",
    "entry_position",
    "make_environment",
    "simulate_baselines",
]


def make_environment(name: str, arguments: Mapping[str, Any], where: str = "") -> Environment:
    """An environment by name; every problem with its arguments is one clear error.

    Args:
        name: registered name, or ``module:Class``.
        arguments: keyword arguments of its constructor.
        where: what to call the place of the arguments in messages.

    Raises:
        ArchgymError: if the environment or an argument is not possible.
    """
    with located(where):
        try:
            return make(name, **arguments)
        except ArchgymError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise ExperimentError(f"{name} cannot be made: {kind}: {error}") from error


@contextlib.contextmanager
def located(where: str) -> Iterator[None]:
    """Puts a place before the message of any archgym error."""
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
        trials: all of them.

    Returns:
        The environment of each setting.

    Raises:
        ArchgymError: for the first environment, agent, workload, metric, parameter or value that
            is not possible, with its place in the file.
    """
    for number, environment in enumerate(experiment.environments):
        with located(f"environments[{number}].id"):
            environment_class(environment.id)
    for number, agent in enumerate(experiment.agents):
        with located(f"agents[{number}].name"):
            agent_class(agent.name)
    _check_hyperparameters(experiment, trials)
    environments: dict[str, Environment] = {}
    for trial in _first_of_each(trials, "setting"):
        where = f"environments[{entry_position(experiment, trial)}]"
        environments[trial.setting] = make_environment(trial.environment, trial.arguments, where)
    for trial in _first_of_each(trials, "setting", "agent_label"):
        _check_agent(trial, environments[trial.setting])
    return environments


def simulate_baselines(
    experiment: Experiment,
    trials: Sequence[Trial],
    environments: Mapping[str, Environment],
    network: bool = False,
) -> dict[str, list[float]]:
    """Simulates each setting's baseline as the experiment says that designs are simulated.

    Once for all its trials, in whichever processes they run: these are told its metrics. Left
    out are settings whose simulator compiles in the process of a trial, which it does best before
    the search.

    Args:
        experiment: where the trials come from.
        trials: all of them.
        environments: of each setting.
        network: whether the cache is used by several machines.

    Returns:
        The metrics by setting, NaN for one that the simulator does not give.

    Raises:
        SimulationError: for the first one that cannot be simulated, with its place in the file.
    """
    known: dict[str, list[float]] = {}
    with contextlib.closing(Simulators(experiment.simulation, network=network)) as simulators:
        for trial in _first_of_each(trials, "setting"):
            environment = environments[trial.setting]
            with located(f"environments[{entry_position(experiment, trial)}]"):
                simulators.serve(environment, trial.environment, trial.arguments)
                simulators.simulate_baseline(environment)
            simulators.close()  # one setting's processes at a time
            if not getattr(environment.simulator, "compiles", False):
                known[trial.setting] = environment.baseline_metrics.tolist()
    return known


def check_raised_budgets(before: Sequence[Trial], trials: Sequence[Trial]) -> None:
    """Refuses more budget for trials whose agents would have searched otherwise with it.

    Args:
        before: trials of the run that goes on.
        trials: as they are to be now.

    Raises:
        ExperimentError: for the first such trial.
    """
    had = {trial.trial_id: trial.budget for trial in before}
    for trial in trials:
        raised = trial.budget > had.get(trial.trial_id, trial.budget)
        if raised and agent_class(trial.agent).plans_by_budget:
            raise ExperimentError(
                f"budget: agent {trial.agent!r} plans by its budget, so its trials cannot go on "
                f"from {had[trial.trial_id]} to {trial.budget}; run it in another folder"
            )


def check_workloads(folder: Path, trials: Sequence[Trial], made: Mapping[str, Environment]) -> None:
    """Refuses to go on with a run whose environments are not what they were.

    Args:
        folder: of the datasets.
        trials: of the run.
        made: the environment of each setting, as it is now.

    Raises:
        ExperimentError: if a workload, a design space, the metrics or a simulator changed.
    """
    from archgym.data import Dataset, Sidecar

    for dataset_name in dict.fromkeys(trial.dataset for trial in trials):
        if not (folder / dataset_name).is_dir():
            continue
        dataset = Dataset(folder / dataset_name)
        table = dataset.trials().select(["trial_id", "workload_sha256"]).to_pylist()
        hashes = {row["trial_id"]: row["workload_sha256"] for row in table}
        differences = {
            setting: Sidecar.of(made[setting].description).difference(dataset.sidecar)
            for setting in {trial.setting for trial in trials if trial.dataset == dataset_name}
        }
        for trial in trials:
            if trial.dataset != dataset_name:
                continue
            environment = made[trial.setting]
            difference = differences[trial.setting]
            now = environment.workload_sha256
            if hashes.get(trial.trial_id, now) != now:
                difference = f"workload {environment.workload_name!r} has changed"
            if difference:
                raise ExperimentError(
                    f"the run in {folder.parent} cannot go on with {trial.setting}: {difference}"
                )


def _check_hyperparameters(experiment: Experiment, trials: Sequence[Trial]) -> None:
    entries = {agent.name: number for number, agent in reversed(list(enumerate(experiment.agents)))}
    for trial in _first_of_each(trials, "agent_label"):
        with located(f"agents[{entries[trial.agent]}].hyperparameters"):
            agent_class(trial.agent).check_hyperparameters(trial.hyperparameters)


def _check_agent(trial: Trial, environment: Environment) -> None:
    with located(f"agent {trial.agent!r} on {trial.setting}"):
        try:
            environment.design_space.designs(trial.initial_designs)
            make_agent(
                trial.agent,
                environment.design_space,
                goal_directions(environment),
                seed=trial.seed,
                **trial.hyperparameters,
            )
        except ArchgymError:
            raise
        except Exception as error:
            raise ExperimentError(f"cannot be made: {type(error).__name__}: {error}") from error


def goal_directions(environment: Environment) -> list[str]:
    """What an agent is told of the goals: their values are always minimised."""
    return ["minimize"] * len(environment.objective.goals)


def _first_of_each(trials: Sequence[Trial], *fields: str) -> Iterable[Trial]:
    seen: dict[tuple[str, ...], Trial] = {}
    for trial in trials:
        seen.setdefault(tuple(getattr(trial, field) for field in fields), trial)
    return seen.values()


def entry_position(experiment: Experiment, trial: Trial) -> int:
    """Which entry of the file a trial's environment comes from."""
    return next(
        number
        for number, entry in enumerate(experiment.environments)
        for workload in entry.workloads
        if entry.id == trial.environment
        and entry.constructor_arguments(workload) == trial.arguments
    )
