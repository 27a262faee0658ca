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

from archgym.envs.nas.schedule.compiled import Floats, Ints, compiled, entry
from archgym.envs.nas.schedule.improve import energy_of, exchange_all, hurry, move_back
from archgym.envs.nas.schedule.moves import cheapest, descend, relieve
from archgym.envs.nas.schedule.problem import Schedule, SchedulingProblem
from archgym.envs.nas.schedule.timing import earliest_finish, times_of

__all__ = ["solve"]

_MOST_WORK = 50_000
"""Layers that searches for an order within the limit put in place, all searches together."""
_MOST_FORCED = 3000
"""Layers put elsewhere by force, times the square of the problem's layers."""


def solve(problem: SchedulingProblem, latency_limit: float = math.inf) -> Schedule:
    """Return a schedule of little energy within the limit.

    Args:
        problem: what to schedule.
        latency_limit: cycles. Where no schedule within it is found, the result is the fastest that
            was found, and its ``meets_limit`` is false.
    """
    layers = len(problem.latency)
    assignment = np.empty(layers, np.int64)
    start, finish = np.empty(layers), np.empty(layers)
    _compiled(
        problem.latency,
        problem.energy,
        problem.starts,
        float(latency_limit),
        assignment,
        start,
        finish,
    )
    return problem.scheduled(assignment, start, finish, latency_limit)


@compiled
def from_fast(
    latency: Floats,
    energy: Floats,
    starts: Ints,
    chain: Ints,
    limit: float,
    budget: Ints,
    assignment: Ints,
    start: Floats,
    finish: Floats,
) -> float:
    """The list scheduler's schedule, or what moves make of it; returns the makespan."""
    makespan = earliest_finish(latency, starts, assignment, start, finish)
    if makespan > limit:
        other = assignment.copy()
        other_start, other_finish = start.copy(), finish.copy()
        after = descend(
            latency, energy, starts, chain, limit, budget, other, other_start, other_finish
        )
        if after < makespan:
            makespan = after
            assignment[:] = other
            start[:] = other_start
            finish[:] = other_finish
    return makespan


@compiled
def lowered(
    latency: Floats,
    energy: Floats,
    starts: Ints,
    chain: Ints,
    limit: float,
    budget: Ints,
    assignment: Ints,
    start: Floats,
    finish: Floats,
) -> float:
    """Moves layers back; returns the energy, infinite for a schedule over the limit."""
    if finish.max() > limit:
        return float(np.inf)
    move_back(latency, energy, starts, chain, limit, budget, assignment, start, finish)
    return energy_of(energy, assignment)


@compiled
def force(
    latency: Floats,
    energy: Floats,
    starts: Ints,
    chain: Ints,
    limit: float,
    budget: Ints,
    assignment: Ints,
    start: Floats,
    finish: Floats,
) -> None:
    """Puts one layer elsewhere, lets the others give way, and keeps what is better.

    The place that saves the layer the most energy comes first.
    """
    layers, subs = latency.shape
    left = _MOST_FORCED // layers**2
    total = energy_of(energy, assignment) if finish.max() <= limit else np.inf
    spare, other = np.empty(layers), np.empty(layers)
    moved = True
    while moved and left > 0:
        moved = False
        gains = np.empty(layers * subs)
        for i in range(layers):
            gains[i * subs : (i + 1) * subs] = energy[i, assignment[i]] - energy[i]
        for n in np.argsort(-gains, kind="mergesort"):
            i, j = divmod(n, subs)
            if j == assignment[i] or latency[i, j] == np.inf:
                continue
            if left == 0:
                break
            left -= 1
            forced = latency.copy()
            forced[i, :] = np.inf
            forced[i, j] = latency[i, j]
            tried = assignment.copy()
            tried[i] = j
            relieve(forced, energy, chain, limit, tried, len(starts) - 1)
            descend(forced, energy, starts, chain, limit, budget, tried, spare, other)
            after = lowered(latency, energy, starts, chain, limit, budget, tried, spare, other)
            if after < total:
                total = after
                assignment[:] = tried
                start[:] = spare
                finish[:] = other
                moved = True
                break


def _run(sources: int) -> Callable[..., None]:
    def run(
        latency: Floats,
        energy: Floats,
        starts: Ints,
        limit: float,
        assignment: Ints,
        start: Floats,
        finish: Floats,
    ) -> None:
        """The schedule of a problem into the last three, shape (layers,) each."""
        assert sources
        layers = len(latency)
        chain = np.empty(layers, np.int64)
        for c in range(len(starts) - 1):
            chain[starts[c] : starts[c + 1]] = c
        budget = np.array([_MOST_WORK // layers])
        cheapest(latency, energy, assignment)
        if times_of(latency, starts, assignment, limit, start, finish) <= limit:
            return
        relieve(latency, energy, chain, limit, assignment, len(starts) - 1)
        makespan = descend(latency, energy, starts, chain, limit, budget, assignment, start, finish)
        fast = np.empty(layers, np.int64)
        fast_start, fast_finish = np.empty(layers), np.empty(layers)
        soonest = from_fast(
            latency, energy, starts, chain, limit, budget, fast, fast_start, fast_finish
        )
        if min(makespan, soonest) > limit:
            makespan = hurry(latency, starts, chain, limit, budget, assignment, start, finish)
            soonest = hurry(latency, starts, chain, limit, budget, fast, fast_start, fast_finish)
        total = lowered(latency, energy, starts, chain, limit, budget, assignment, start, finish)
        other = lowered(
            latency, energy, starts, chain, limit, budget, fast, fast_start, fast_finish
        )
        if other < total or (total == np.inf and soonest < makespan):
            assignment[:] = fast
            start[:] = fast_start
            finish[:] = fast_finish
        if min(makespan, soonest) <= limit:
            exchange_all(latency, energy, starts, chain, limit, budget, assignment, start, finish)
        force(latency, energy, starts, chain, limit, budget, assignment, start, finish)

    return run


_compiled = entry(_run)
