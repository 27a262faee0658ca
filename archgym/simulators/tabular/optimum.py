"""Exact optima and Pareto fronts over a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import moocore
import numpy as np
from numpy.typing import NDArray

from archgym.problem.scorer import Scorer
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
    positions, counts, values = _feasible(table, space, scorer)
    if not len(positions):
        return None
    goal = values[:, 0]
    best = int(goal.argmin())
    (found,) = _as_optima(table, positions[[best]], [int(counts[goal == goal[best]].sum())])
    return found


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
    return _as_optima(table, positions[front[first]], designs.tolist())


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
    if not more:
        return np.arange(len(table))
    parts = [own.rank(designs) for designs in own.fix(more).enumerate()]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _as_optima(table: Table, positions: NDArray[np.int64], counts: Sequence[int]) -> list[Optimum]:
    values = table.values(positions, table.metric_names).tolist()
    return [
        Optimum(design, _given(table.metric_names, row), count)
        for design, row, count in zip(
            table.header.space.unrank(positions), values, counts, strict=True
        )
    ]


def _given(names: Sequence[str], row: Sequence[float]) -> dict[str, float]:
    return {name: value for name, value in zip(names, row, strict=True) if value == value}
