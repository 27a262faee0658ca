"""NASAIC's scheduler: least energy under a limit of latency, by moves of single layers.

The heterogeneous assignment problem (Shao et al., TPDS 2005; used so by NASAIC, Jiang et al., DAC
2020): all layers start where they take the least energy; then, again and again, the layer moves
that gains the most latency for each unit of energy, until the limit holds. Added here: the limit is
approached from the list scheduler's fast assignment as well, and the cheaper outcome is taken;
layers move back, alone and in pairs, while that saves energy and the limit still holds; in small
problems each layer is put elsewhere once, and the others give way.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from archgym.envs.nas.schedule.arrays import Floats, Ints, Layers, Plan
from archgym.envs.nas.schedule.compiled import compiled, entry
from archgym.envs.nas.schedule.energy_moves import energy_of, exchange_all, hurry, move_back
from archgym.envs.nas.schedule.latency_moves import cheapest, descend, relieve
from archgym.envs.nas.schedule.plans import empty_plan, keep, times_for
from archgym.envs.nas.schedule.problem import Schedule, SchedulingProblem
from archgym.envs.nas.schedule.timing import earliest_finish, times_of

__all__ = ["solve"]

_MAX_WORK = 50_000
"""Layers that searches for an order within the limit put in place, all searches together."""
_MAX_FORCED = 3000
"""Layers put elsewhere by force, times the square of the problem's layers."""


def solve(problem: SchedulingProblem, latency_limit: float = math.inf) -> Schedule:
    """Return a schedule of little energy within the limit.

    Args:
        problem: what to schedule.
        latency_limit: cycles. Where no schedule within it is found, the result is the fastest that
            was found, and its ``meets_limit`` is false.
    """
    plan = problem.empty_plan()
    _compiled(*problem.layers, float(latency_limit), *plan)
    return problem.scheduled(*plan, latency_limit)


@compiled
def from_fast(layers: Layers, limit: float, budget: Ints, plan: Plan) -> float:
    """The list scheduler's schedule, improved by moves if they help; returns the makespan."""
    makespan = earliest_finish(layers, plan)
    if makespan > limit:
        other = times_for(plan.assignment.copy())
        after = descend(layers, limit, budget, other)
        if after < makespan:
            makespan = after
            keep(plan, other)
    return makespan


@compiled
def lowered(layers: Layers, limit: float, budget: Ints, plan: Plan) -> float:
    """Moves layers back; returns the energy, infinite for a schedule over the limit."""
    if plan.finish.max() > limit:
        return float(np.inf)
    move_back(layers, limit, budget, plan)
    return energy_of(layers.energy, plan.assignment)


@compiled
def force(layers: Layers, limit: float, budget: Ints, plan: Plan) -> None:
    """Puts one layer elsewhere, lets the others give way, and keeps what is better.

    The place that saves the layer the most energy comes first.
    """
    latency, energy, assignment = layers.latency, layers.energy, plan.assignment
    count, subs = latency.shape
    left = _MAX_FORCED // count**2
    total = energy_of(energy, assignment) if plan.finish.max() <= limit else np.inf
    moved = True
    while moved and left > 0:
        moved = False
        gains = np.empty(count * subs)
        for i in range(count):
            gains[i * subs : (i + 1) * subs] = energy[i, assignment[i]] - energy[i]
        for n in np.argsort(-gains, kind="mergesort"):
            i, j = divmod(n, subs)
            if j == assignment[i] or latency[i, j] == np.inf:
                continue
            if left == 0:
                break
            left -= 1
            there = latency.copy()
            there[i, :] = np.inf
            there[i, j] = latency[i, j]
            forced = Layers(there, energy, layers.starts, layers.chain)
            trial = times_for(assignment.copy())
            trial.assignment[i] = j
            relieve(forced, limit, trial.assignment)
            descend(forced, limit, budget, trial)
            after = lowered(layers, limit, budget, trial)
            if after < total:
                total = after
                keep(plan, trial)
                moved = True
                break


def _run(sources: int) -> Callable[..., None]:
    def run(
        latency: Floats,
        energy: Floats,
        starts: Ints,
        chain: Ints,
        limit: float,
        assignment: Ints,
        start: Floats,
        finish: Floats,
    ) -> None:
        """The schedule of a problem; arrays one by one, as a call with named tuples is slower."""
        assert sources
        layers = Layers(latency, energy, starts, chain)
        plan = Plan(assignment, start, finish)
        count = len(layers.latency)
        budget = np.array([_MAX_WORK // count])
        cheapest(layers, plan.assignment)
        if times_of(layers, limit, plan) <= limit:
            return
        relieve(layers, limit, plan.assignment)
        makespan = descend(layers, limit, budget, plan)
        fast = empty_plan(count)
        soonest = from_fast(layers, limit, budget, fast)
        if min(makespan, soonest) > limit:
            makespan = hurry(layers, limit, budget, plan)
            soonest = hurry(layers, limit, budget, fast)
        total = lowered(layers, limit, budget, plan)
        other = lowered(layers, limit, budget, fast)
        if other < total or (total == np.inf and soonest < makespan):
            keep(plan, fast)
        if min(makespan, soonest) <= limit:
            exchange_all(layers, limit, budget, plan)
        force(layers, limit, budget, plan)

    return run


_compiled = entry(_run)
