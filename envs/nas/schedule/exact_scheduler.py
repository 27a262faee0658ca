"""The exact scheduler for small problems: branch and bound over assignments and orders.

Assignments are walked depth first, layers with the most at stake first; for one that no sum
excludes, the order of the layers is searched among the active schedules (Giffler and Thompson,
Operations Research 1960; Brucker, Jurisch and Sievers, Discrete Applied Mathematics 1994, for the
bounds), of which one is always the shortest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from archgym.envs.nas.schedule import hap_scheduler
from archgym.envs.nas.schedule.arrays import Ints, Layers, Plan
from archgym.envs.nas.schedule.assignment_search import Wanted, best_assignment
from archgym.envs.nas.schedule.compiled import entry
from archgym.envs.nas.schedule.problem import Schedule, SchedulingProblem
from archgym.errors import InvalidValueError, SpaceTooLargeError

__all__ = ["MAX_NODES", "fastest", "solve"]

MAX_NODES = 20_000_000
"""Nodes that are visited before a problem counts as too large; a few seconds."""


def solve(
    problem: SchedulingProblem, latency_limit: float = math.inf, *, max_nodes: int = MAX_NODES
) -> Schedule:
    """Return a schedule of the least energy whose makespan is within the limit.

    Args:
        problem: what to schedule; some ten layers.
        latency_limit: cycles. If no schedule is within it, the result is a fastest one, and its
            ``meets_limit`` is false.
        max_nodes: nodes to visit at most.

    Raises:
        SpaceTooLargeError: if more nodes would be needed.
    """
    known = hap_scheduler.solve(problem, latency_limit)
    found = _search(problem, latency_limit, known, True, max_nodes)
    if found.meets_limit:
        return found
    return _search(problem, latency_limit, known, False, max_nodes)


def fastest(problem: SchedulingProblem, *, max_nodes: int = MAX_NODES) -> Schedule:
    """Return a schedule of the least makespan, whatever its energy.

    Raises:
        SpaceTooLargeError: if more than ``max_nodes`` nodes would be needed.
    """
    # A limit that no schedule meets makes the heuristic look for the fastest.
    known = hap_scheduler.solve(problem, 0.0)
    found = _search(problem, math.inf, known, False, max_nodes)
    return problem.scheduled(found.assignment, found.start, found.finish, math.inf)


def _search(
    problem: SchedulingProblem,
    limit: float,
    known: Schedule,
    for_energy: bool,
    max_nodes: int,
) -> Schedule:
    """Improves a known schedule to the optimum of energy within the limit, or of makespan."""
    if max_nodes < 1:
        raise InvalidValueError(f"max_nodes is {max_nodes}; it must be at least 1")
    plan = Plan(known.assignment.copy(), known.start.copy(), known.finish.copy())
    bound = math.inf
    if not for_energy:
        bound = known.makespan
    elif known.meets_limit:
        bound = known.energy
    spread = np.where(np.isfinite(problem.energy), problem.energy, -np.inf).max(axis=1)
    spread = spread - problem.energy.min(axis=1) if for_energy else -problem.latency.min(axis=1)
    order = np.argsort(-spread if for_energy else spread, kind="stable")
    wanted = Wanted(for_energy, float(limit) if for_energy else math.inf, bound, max_nodes)
    nodes = _compiled(problem.layers, order.astype(np.int64), wanted, plan)
    if nodes > max_nodes:
        raise SpaceTooLargeError(
            f"{problem.latency.shape[0]} layers on {problem.latency.shape[1]} sub-accelerators: "
            f"the exact schedule takes more than {max_nodes} nodes; use hap, or fewer layers"
        )
    return problem.scheduled(*plan, limit)


def _run(sources: int) -> Callable[..., int]:
    def run(layers: Layers, order: Ints, wanted: Wanted, plan: Plan) -> int:
        """The best schedule below the bound into the plan, if any; returns nodes visited."""
        assert sources
        return best_assignment(layers, order, wanted, plan)

    return run


_compiled = entry(_run)
