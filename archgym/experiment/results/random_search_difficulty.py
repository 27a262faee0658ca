"""How hard a run's settings are: how many random draws each takes to come near its optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.table import Table

from archgym.analysis.dataset_rows import metric_vector
from archgym.analysis.measures import WITHIN, reaches, regret
from archgym.environment.environment import Environment
from archgym.errors import ExperimentError
from archgym.experiment.spec.checks import entry_position
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.schema import Experiment
from archgym.problem.scoring import Scorer

_DRAWS = 1 << 17
_AT_ONCE = 1 << 14


def random_draws(
    experiment: Experiment, trials: Sequence[Trial], environments: Mapping[str, Environment]
) -> dict[str, float]:
    """Expected draws of each setting with a known optimum, if the experiment asks for a least.

    Args:
        experiment: where the settings come from.
        trials: its trials.
        environments: of each setting.

    Raises:
        ExperimentError: if a setting takes fewer than the experiment asks for.
    """
    if all(entry.least_random_draws is None for entry in experiment.environments):
        return {}
    found: dict[str, float] = {}
    for trial in {trial.setting: trial for trial in trials}.values():
        setting, environment = trial.setting, environments[trial.setting]
        least = experiment.environments[entry_position(experiment, trial)].least_random_draws
        if environment.optimum is None:
            if least is not None:
                raise ExperimentError(
                    f"{setting}: least_random_draws cannot be {least}: its optimum is not known"
                )
            continue
        found[setting] = round(expected_draws(environment), 1)
        if least is not None and found[setting] < least:
            raise ExperimentError(
                f"{setting} is too easy: random search comes within {WITHIN:.0%} of its optimum "
                f"after {found[setting]:,.0f} draws in the mean, and least_random_draws is {least}"
            )
    return found


def expected_draws(environment: Environment, draws: int = _DRAWS) -> float:
    """Mean number of random draws until one is within 1 % of the optimum.

    It is estimated from designs that are drawn as random search draws them, with a fixed seed;
    ``inf`` if none of them is near enough.

    Args:
        environment: on a table, with one goal.
        draws: designs to draw.
    """
    optimum = environment.optimum
    assert optimum is not None
    names = [metric.name for metric in environment.metrics]
    scorer = Scorer(environment.objective, environment.metrics, environment.baseline_metrics)
    best = scorer.costs(metric_vector(optimum.metrics, names)[None])[0, 0]
    rng = np.random.default_rng(0)
    near = 0
    table = getattr(environment.simulator, "table", None)
    for start in range(0, draws, _AT_ONCE):
        designs = environment.design_space.sample(min(_AT_ONCE, draws - start), rng)
        if table is not None:
            positions = table.header.space.rank(designs)
            values = table.values(positions, names)
            values[table.failure[positions] != 0] = np.nan
        else:
            results = [result for result, _ in environment.simulator.simulate(designs)]
            known = [result if isinstance(result, Mapping) else {} for result in results]
            values = np.array([metric_vector(metrics, names) for metrics in known])
        feasible = ~(scorer.violations(values) > 0).any(axis=1)
        near += int((feasible & reaches(regret(scorer.costs(values)[:, 0], best))).sum())
    return draws / near if near else math.inf


def draws_table(draws: Mapping[str, float]) -> Table:
    """A table of :func:`random_draws`."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("setting")
    table.add_column(f"random draws to come within {WITHIN:.0%} of the optimum", justify="right")
    for setting, number in draws.items():
        table.add_row(setting, f"{number:,.0f}")
    return table
