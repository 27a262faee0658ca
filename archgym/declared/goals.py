"""The metrics, the objective and the fidelities of a declared environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archgym.declared.load import Source
from archgym.declared.units import unit_hint
from archgym.errors import InvalidValueError
from archgym.problem.fidelity import FULL, Fidelity, check_fidelities
from archgym.problem.metrics import Metric, metric_named
from archgym.problem.objective import Objective
from archgym.problem.spread import SPREAD

__all__ = ["fidelities_of", "metrics_of", "objective_of"]


def metrics_of(source: Source) -> tuple[Metric, ...]:
    """The declared metrics, and behind them the spread of those that vary.

    Raises:
        InvalidValueError, UnknownNameError: for what is not possible, with its line.
    """
    metrics = []
    for name, entry in source.declaration.metrics.items():
        with source.at("metrics", name):
            if name in source.declaration.parameters or name in source.declaration.derived:
                raise InvalidValueError("a parameter or a derived value has this name, too")
            try:
                metrics.append(Metric(name, entry.unit, entry.goal, entry.doc, entry.signed))
            except InvalidValueError as error:
                raise InvalidValueError(f"{error}{unit_hint(entry.unit)}") from None
    noise = source.declaration.noise
    if noise is None:
        return tuple(metrics)
    wanted = noise.spread
    if wanted is None:
        objective = Objective.parse(objective_of(source, metrics))
        wanted = sorted(objective.metric_names())
    for name in wanted:
        with source.at("noise", "spread"):
            metric_named(name, metrics)
        doc = f"standard deviation of {name} over its median, between runs of a design"
        metrics.append(Metric(f"{name}{SPREAD}", "", "minimize", doc))
    return tuple(metrics)


def objective_of(source: Source, metrics: Sequence[Metric]) -> str | dict[str, Any]:
    """What is sought where the user says nothing: as declared, or the first metric.

    Raises:
        InvalidValueError, UnknownNameError: for what is not possible, with its line.
    """
    given = source.declaration.objective
    found = given if given is not None else f"{metrics[0].direction} {metrics[0].name}"
    objective = Objective.parse(found)
    objective.check(tuple(metrics))
    for name in objective.metric_names():
        entry = source.declaration.metrics.get(name)
        if entry is not None and entry.optional:
            raise InvalidValueError(f"metric {name!r} is optional, so it cannot be in an objective")
    return found


def fidelities_of(source: Source) -> tuple[Fidelity, ...]:
    """At which designs can be simulated.

    Raises:
        InvalidValueError, UnknownNameError: for what is not possible, with its line.
    """
    entries = source.declaration.fidelities
    if not entries:
        return (FULL,)
    found = []
    for number, entry in enumerate(entries):
        with source.at("fidelities", number):
            found.append(Fidelity(entry.value, entry.cost, entry.doc))
    with source.at("fidelities"):
        return check_fidelities(found, source.path.name)
