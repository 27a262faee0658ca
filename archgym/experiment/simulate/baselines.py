"""Baseline designs are simulated once per setting, before the trials begin."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from archgym.environment.environment import Environment
from archgym.experiment.simulate.simulators import Simulators
from archgym.experiment.spec.checks import entry_position, first_of_each, located
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.schema import Experiment

__all__ = ["simulate_baselines"]


def simulate_baselines(
    experiment: Experiment,
    trials: Sequence[Trial],
    environments: Mapping[str, Environment],
    known: Mapping[str, list[float]],
    network: bool = False,
) -> dict[str, list[float]]:
    """Simulates the baseline of each setting as the experiment simulates designs.

    All trials of a setting use the result, whichever process they run in. Settings whose
    simulator compiles in the process of a trial are left out: compiling there before the search
    is better. Where workers simulate that others start, the first trial of a setting has them
    simulate it. What a run that is resumed has recorded is not simulated again.

    Args:
        experiment: where the trials come from.
        trials: all trials of the experiment.
        environments: the environment of each setting; it gets the metrics.
        known: metrics by setting that are recorded already.
        network: whether several machines use the cache.

    Returns:
        The metrics by setting, NaN for a metric that the simulator does not give.

    Raises:
        SimulationError: for the first baseline that cannot be simulated, with its place in the
            file.
    """
    if experiment.simulation.leased:
        return dict(known)
    baselines: dict[str, list[float]] = {}
    with contextlib.closing(Simulators(experiment.simulation, network=network)) as simulators:
        for trial in first_of_each(trials, "setting"):
            environment = environments[trial.setting]
            if trial.setting in known:
                environment.baseline_metrics = known[trial.setting]
            with located(f"environments[{entry_position(experiment, trial)}]"):
                simulators.serve(environment, trial.environment, trial.arguments)
                simulators.simulate_baseline(environment)
            simulators.close()  # one setting's processes at a time
            if not getattr(environment.simulator, "compiles", False):
                baselines[trial.setting] = environment.baseline_metrics.tolist()
    return baselines
