"""Goals as people read them: value, unit, direction and label.

Inside, every goal is minimised. A goal that is only maximised (a metric, or a product of such
metrics) is shown as it is: larger is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.problem.metrics import Metric
from archgym.problem.objective import Goal

Values = TypeVar("Values", float, NDArray[np.float64])


def direction(goal: Goal, metrics: Sequence[Metric]) -> Literal["minimize", "maximize"]:
    """Whether a larger or a smaller shown value is better.

    A product is maximised if every metric in it is. A product of both kinds is minimised, with the
    maximised metrics in the denominator.

    Args:
        goal: what is sought.
        metrics: all metrics of the environment.
    """
    if goal.kind == "product":
        signs = {metric.name: metric.sign for metric in metrics}
        return "maximize" if all(signs[name] < 0 for name, _ in goal.terms) else "minimize"
    return "maximize" if goal.kind == "maximize" else "minimize"


def checked_directions(directions: Sequence[str]) -> tuple[str, ...]:
    """The directions of an agent's goals.

    Raises:
        InvalidValueError: unless they are a list of ``minimize`` and ``maximize``.
    """
    if isinstance(directions, Iterable) and not isinstance(directions, str | bytes | Mapping):
        given = tuple(directions)
        if given and all(one in ("minimize", "maximize") for one in given):
            return given
    raise InvalidValueError(
        "directions must be a list with 'minimize' or 'maximize' for each goal, as in "
        f"['minimize'], not {directions!r:.80}"
    )


def natural(goal: Goal, metrics: Sequence[Metric], values: Values) -> Values:
    """The values of a goal as people read them, from its minimised values.

    ``inf``, which stands for nothing found, becomes the worst value.

    Args:
        goal: what is sought.
        metrics: all metrics of the environment.
        values: a number or an array.
    """
    if direction(goal, metrics) == "minimize":
        return values
    if goal.kind == "maximize":
        return -values
    if isinstance(values, float):
        return 1.0 / values if math.isfinite(values) else -values
    return np.where(np.isfinite(values), 1.0 / values, -values)


def goal_unit(goal: Goal, metrics: Sequence[Metric]) -> str:
    """Unit of a goal's value; empty for none."""
    units = {metric.name: metric.unit for metric in metrics}
    if goal.kind == "target":
        return ""
    if goal.kind != "product":
        return units[goal.terms[0][0]]
    return " ".join(
        _unit_power(units[name], power) for name, power in _powers(goal, metrics) if units[name]
    )


def goal_label(goal: Goal, metrics: Sequence[Metric]) -> str:
    """A goal with its unit, as in ``energy_pj [pJ]``; a product with the powers that are shown."""
    name = goal.name
    if goal.kind == "target":
        name = f"log distance to {goal.name}"
    elif goal.kind == "product":
        powers = _powers(goal, metrics)
        name = "*".join(term if power == 1 else f"{term}^{power:g}" for term, power in powers)
    unit = goal_unit(goal, metrics)
    return f"{name} [{unit}]" if unit else name


def _powers(goal: Goal, metrics: Sequence[Metric]) -> list[tuple[str, float]]:
    """Metrics of a product, each with its power in the shown value."""
    signs = {metric.name: metric.sign for metric in metrics}
    turned = -1 if direction(goal, metrics) == "maximize" else 1
    return [(name, turned * signs[name] * weight) for name, weight in goal.terms]


def _unit_power(unit: str, power: float) -> str:
    """A unit to a power, as in ``mm2/TOPS`` for the first negative one of ``TOPS/mm2``."""
    if power == 1:
        return unit
    if power == -1 and unit.count("/") < 2:
        above, _, below = unit.partition("/")
        return f"{below or 1}/{above}"
    return f"({unit})^{power:g}"
