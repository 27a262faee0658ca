"""Problems on tabulated spaces, under limits that cut the easy optima away.

The limits of a problem are quantiles of uniform draws. All its limits sit at the same share of
draws, the largest one of :data:`SHARES` at which random search needs enough evaluations; so they
follow from the table alone, by one rule, and nothing that is measured here moves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.problem.objective import Objective
from archgym.problem.scoring import Scorer
from archgym.simulators.tabular import PREFIX, Table, shipped_tables, table_named
from archgym.space import DesignSpace
from benchmarks.search_quality.facts import (
    COUNTS_FROM,
    Facts,
    pareto_facts,
    weighted_facts,
    weighted_quantile,
)

__all__ = [
    "OBJECTIVES",
    "PARETO",
    "WORKLOADS",
    "choose_limits",
    "table_environment",
    "table_facts",
    "table_fingerprint",
    "table_name",
    "uniform_weights",
]

WORKLOADS = ("dijkstra", "fft", "sort", "matmul")
SHARES = (0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.015, 0.01, 0.005, 0.002)
"""Shares of uniform draws that each limit may leave, tried in this order."""
MOST_NEAR = 0.25
"""Most of the feasible draws that may be within 1 % of the optimum."""
ENVIRONMENT = "DRAM-v0"


@dataclass(frozen=True)
class LimitedObjective:
    """A goal, as archgym's objectives are written, and the metrics to limit."""

    goal: Mapping[str, Any]
    limited: tuple[str, ...]


OBJECTIVES = {
    "latency": LimitedObjective(
        {"minimize": "read_latency_mean_ns"}, ("energy_per_bit_pj", "buffer_bits")
    ),
    "energy": LimitedObjective({"minimize": "energy_pj"}, ("read_latency_p99_ns", "buffer_bits")),
    "product": LimitedObjective(
        {"product": {"read_latency_mean_ns": 1, "energy_per_bit_pj": 1}},
        ("power_mw", "buffer_bits"),
    ),
}
PARETO = {"minimize": ["read_latency_mean_ns", "energy_per_bit_pj", "buffer_bits"]}


def table_name(workload: str) -> str | None:
    """The name of a workload's table as a simulator; ``None`` if it does not ship."""
    name = f"dram-archgym-{workload}"
    return f"{PREFIX}{name}" if name in shipped_tables() else None


def table_fingerprint(workload: str) -> str:
    """Changes with anything that the workload's table holds."""
    return _table(workload).fingerprint


def table_environment(workload: str, objective: Mapping[str, Any]) -> archgym.Environment:
    """The environment of a workload's table."""
    name = table_name(workload)
    assert name is not None
    return archgym.make(ENVIRONMENT, simulator=name, objective=objective)


def table_facts(workload: str, kind: str) -> Facts:
    """Exact facts of an objective on a table; ``kind`` names it, or is ``pareto``.

    ``notes`` hold the objective, limits and all.
    """
    table = _table(workload)
    space = table.header.space
    weights = np.concatenate([uniform_weights(space, d.codes) for d in space.enumerate()])
    weights = np.where(table.failure == 0, weights, 0.0)
    names = [metric.name for metric in table.header.metrics]
    values = table.values(np.arange(len(table)), names)
    held = dict(zip(names, values.T, strict=True))
    goal = PARETO if kind == "pareto" else OBJECTIVES[kind].goal
    environment = table_environment(workload, goal)
    missing = np.full(len(table), np.nan)
    columns = np.stack([held.get(m.name, missing) for m in environment.metrics], axis=1)
    scorer = Scorer(Objective.parse(goal), environment.metrics, environment.baseline_metrics)
    goals = scorer.values(columns)
    sound = (table.failure == 0) & ~np.isnan(goals).any(axis=1)
    dead = _dead(table)
    if kind == "pareto":
        facts = pareto_facts(goals[sound], weights[sound])
        return replace(facts, dead=dead, notes={**facts.notes, "objective": dict(goal)})
    limited = OBJECTIVES[kind].limited
    facts, limits = choose_limits(goals[:, 0], weights, {m: held[m] for m in limited}, sound)
    return replace(facts, dead=dead, notes={"objective": {**goal, "limits": limits}})


def choose_limits(
    goal: NDArray[np.float64],
    weights: NDArray[np.float64],
    limited: Mapping[str, NDArray[np.float64]],
    sound: NDArray[np.bool_],
) -> tuple[Facts, list[str]]:
    """The widest limits that make random search need enough evaluations, and what holds then.

    If none do, those that make it need the most. Limits under which keeping them is all there is
    to it, so that too many feasible designs are as good as optimal, are passed over.

    Args:
        goal: what is minimised, shape (n_designs,).
        weights: how often a uniform draw gives each design, shape (n_designs,).
        limited: values of the metrics to limit, by name.
        sound: which designs could be simulated, shape (n_designs,).
    """
    hardest: tuple[Facts, list[str]] | None = None
    for share in SHARES:
        bounds = {m: weighted_quantile(v, weights, share) for m, v in limited.items()}
        kept = sound.copy()
        for name, values in limited.items():
            kept &= values <= bounds[name]
        if not kept.any():
            break
        facts = weighted_facts(goal, weights, kept)
        limits = [f"{name} <= {bound!r}" for name, bound in bounds.items()]
        if hardest is not None and _near(facts) > MOST_NEAR:
            continue
        if hardest is None or (facts.random_evaluations or 0) > (
            hardest[0].random_evaluations or 0
        ):
            hardest = facts, limits
        if (facts.random_evaluations or 0) >= COUNTS_FROM:
            return facts, limits
    assert hardest is not None, "no designs at all"
    return hardest


def _near(facts: Facts) -> float:
    """Share of feasible draws that are within 1 % of the optimum."""
    return 1.0 / ((facts.random_evaluations or 1.0) * facts.feasible)


def uniform_weights(space: DesignSpace, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Chance of each canonical design in a uniform draw of all parameters, shape (n,).

    Up to a common factor where rules sift the draws.
    """
    sizes = np.array([len(space.allowed_codes(i)) for i in range(len(space.names))])
    chances: NDArray[np.float64] = np.where(codes >= 0, 1.0 / sizes, 1.0).prod(axis=1)
    return chances


@cache
def _table(workload: str) -> Table:
    name = table_name(workload)
    assert name is not None
    return table_named(name)


def _dead(table: Table) -> tuple[str, ...]:
    """Parameters that never change a metric; one that others depend on counts as alive."""
    space = table.header.space
    outcome = np.stack([b.index for b in table.blocks] + [table.failure], axis=1)
    parents = {name for p in space.parameters if p.when is not None for name in p.when.names}
    ruled = {name for rule in space.rules for name in rule.expression.names}
    return tuple(
        space.names[position]
        for position in space.free
        if space.names[position] not in parents | ruled
        and all(_same(space, outcome, position, part.codes) for part in space.enumerate())
    )


def _same(
    space: DesignSpace, outcome: NDArray[np.int32], position: int, codes: NDArray[np.int64]
) -> bool:
    """Whether designs have the outcome that they have with a parameter at its first level."""
    active = codes[codes[:, position] > space.allowed_codes(position)[0]]
    moved = active.copy()
    moved[:, position] = space.allowed_codes(position)[0]
    here, there = (space.rank(space.canonicalise(c)) for c in (active, moved))
    return bool((outcome[here] == outcome[there]).all())
