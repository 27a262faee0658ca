"""Exact optima and Pareto fronts over a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import moocore
import numpy as np
from numpy.typing import NDArray

from archgym.problem.scoring import Scorer
from archgym.simulators.tabular.blocks import distinct
from archgym.simulators.tabular.table import Table
from archgym.space import DesignSpace


@dataclass(frozen=True)
class Optimum:
    """A best design, exactly.

    Attributes:
        design: the first such design.
        metrics: its metrics.
        designs: number of designs that are as good.
    """

    design: dict[str, Any]
    metrics: dict[str, float]
    designs: int


def find_optimum(table: Table, space: DesignSpace, scorer: Scorer) -> Optimum | None:
    """The best feasible design of a space for an objective with one goal.

    Args:
        table: outcomes of the space's designs, and perhaps of others.
        space: which designs count.
        scorer: the objective, bound to the metrics of an environment.

    Returns:
        ``None`` if the objective has several goals, or no design is feasible.
    """
    if len(scorer.objective.goals) != 1:
        return None
    return next(iter(pareto_front(table, space, scorer)), None)


def pareto_front(table: Table, space: DesignSpace, scorer: Scorer) -> list[Optimum]:
    """Feasible designs that no other one beats in every goal, one for each point of the front.

    Args:
        table: outcomes of the space's designs, and perhaps of others.
        space: which designs count.
        scorer: the objective, bound to the metrics of an environment; its goals are the axes.

    Returns:
        Ordered by the first goal.
    """
    positions, counts, values = _feasible(table, space, scorer)
    front = np.flatnonzero(moocore.is_nondominated(values, keep_weakly=True))
    points, first, same = np.unique(values[front], axis=0, return_index=True, return_inverse=True)
    designs = np.bincount(same.ravel(), counts[front], len(points)).astype(np.int64)
    positions = positions[front[first]]
    metrics = table.values(positions, table.metric_names).tolist()
    found = zip(table.header.space.unrank(positions), metrics, designs.tolist(), strict=True)
    return [
        Optimum(design, given_metrics(table.metric_names, row), count)
        for design, row, count in found
    ]


def _feasible(
    table: Table, space: DesignSpace, scorer: Scorer
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """First design, number of designs and goals of each distinct feasible outcome."""
    needed = scorer.objective.metric_names()
    places = _positions(table, space)
    places = places[table.failure[places] == 0]
    rows = np.zeros(len(places), dtype=np.int64)
    for block in table.blocks:
        if set(block.names) & set(needed):
            rows = distinct(rows * len(block.values) + block.index[places]).astype(np.int64)
    _, first, counts = np.unique(rows, return_index=True, return_counts=True)
    positions = places[first]
    metrics = table.values(positions, scorer.metric_names)
    feasible = ~(scorer.violations(metrics) > 0).any(axis=1)
    return positions[feasible], counts[feasible], scorer.values(metrics[feasible])


def _positions(table: Table, space: DesignSpace) -> NDArray[np.int64]:
    """Positions of a space's designs in the table."""
    own = table.header.space
    more = {name: value for name, value in space.fixed.items() if name not in own.fixed}
    if not more and own.excluded == space.excluded:
        return np.arange(len(table))
    less = own.exclude(space.excluded).fix(more)
    parts = [own.rank(designs) for designs in less.enumerate()]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def given_metrics(names: Sequence[str], row: Sequence[float]) -> dict[str, float]:
    """The metrics of a row of a table by name, without those that are NaN: not given."""
    return {name: value for name, value in zip(names, row, strict=True) if value == value}
