"""Check of a run's settings: how many random draws each takes to come near its optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table

from archgym.analysis.difficulty import expected_draws
from archgym.analysis.measures import WITHIN
from archgym.environment.environment import Environment
from archgym.errors import ExperimentError
from archgym.experiment.spec.checks import entry_position
from archgym.experiment.spec.expand import Trial
from archgym.experiment.spec.schema import Experiment


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


def draws_table(draws: Mapping[str, float]) -> Table:
    """A table of :func:`random_draws`."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("setting")
    table.add_column(f"random draws to come within {WITHIN:.0%} of the optimum", justify="right")
    for setting, number in draws.items():
        table.add_row(setting, f"{number:,.0f}")
    return table
