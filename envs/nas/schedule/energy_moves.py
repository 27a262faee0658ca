"""Moves of layers that save energy within a limit of latency, or time outside it; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.nas.schedule.arrays import Floats, Ints, Layers, Plan
from archgym.envs.nas.schedule.compiled import compiled
from archgym.envs.nas.schedule.latency_moves import loads_of, none_over, shift
from archgym.envs.nas.schedule.order_search import within
from archgym.envs.nas.schedule.plans import keep, times_for

__all__ = ["energy_of", "exchange_all", "hurry", "move_back"]

_MAX_WORK = 6000
"""Number of layers that are sorted for pairs of moves; further layers form no pairs."""


@compiled
def hurry(layers: Layers, limit: float, budget: Ints, plan: Plan) -> float:
    """Single moves and pairs of moves that shorten the schedule, until the limit holds.

    Returns the makespan.
    """
    latency, assignment = layers.latency, plan.assignment
    count, subs = latency.shape
    trial = times_for(assignment)
    makespan = float(plan.finish.max())
    left = _MAX_WORK // count
    moved = True
    while moved and makespan > limit:
        moved = False
        below = np.nextafter(makespan, 0.0)
        loads = loads_of(layers, assignment)
        for m in range(count * subs):
            i, j = divmod(m, subs)
            a = assignment[i]
            if latency[i, j] == np.inf:
                continue
            # Staying where it is makes the other move a single one.
            shift(layers, i, a, j, loads)
            assignment[i] = j
            for n in range((i + 1) * subs, count * subs):
                p, q = divmod(n, subs)
                b = assignment[p]
                if latency[p, q] == np.inf or (a == j and b == q):
                    continue
                shift(layers, p, b, q, loads)
                assignment[p] = q
                if none_over(below, loads) and left > 0:
                    left -= 1
                    # Any order that is shorter will do.
                    if within(layers, below, budget, trial):
                        makespan = float(trial.finish.max())
                        keep(plan, trial)
                        moved = True
                        break
                assignment[p] = b
                shift(layers, p, q, b, loads)
            if moved:
                break
            assignment[i] = a
            shift(layers, i, j, a, loads)
    return makespan


@compiled
def move_back(layers: Layers, limit: float, budget: Ints, plan: Plan) -> None:
    """Single moves that save energy within the limit, the largest saving first."""
    energy, assignment = layers.energy, plan.assignment
    count, subs = energy.shape
    trial = times_for(assignment)
    loads = loads_of(layers, assignment)
    moved = True
    while moved:
        moved = False
        tried = np.zeros((count, subs), np.bool_)
        while True:
            maximum = 0.0
            layer = -1
            place = -1
            for i in range(count):
                for j in range(subs):
                    saved = energy[i, assignment[i]] - energy[i, j]
                    if saved > maximum and not tried[i, j]:
                        maximum, layer, place = saved, i, j
            if layer < 0:
                break
            tried[layer, place] = True
            a = assignment[layer]
            assignment[layer] = place
            shift(layers, layer, a, place, loads)
            if none_over(limit, loads) and within(layers, limit, budget, trial):
                keep(plan, trial)
                moved = True
            else:
                assignment[layer] = a
                shift(layers, layer, place, a, loads)


@compiled
def exchange(layers: Layers, limit: float, maximum: int, budget: Ints, plan: Plan) -> int:
    """Makes the first pair of moves that saves energy together within the limit.

    One of the two moves has to save energy alone. Returns how many of the ``maximum`` list
    schedules are left, or -1 if no pair was found.
    """
    latency, energy = layers.latency, layers.energy
    assignment = plan.assignment
    count, subs = latency.shape
    trial = times_for(assignment)
    savers = np.empty((count * subs, 2), np.int64)
    found = 0
    for p in range(count):
        for q in range(subs):
            if energy[p, q] < energy[p, assignment[p]]:
                savers[found, 0] = p
                savers[found, 1] = q
                found += 1
    loads = loads_of(layers, assignment)
    for i in range(count):
        a = assignment[i]
        for j in range(subs):
            if j == a or latency[i, j] == np.inf:
                continue
            lost = energy[i, j] - energy[i, a]
            shift(layers, i, a, j, loads)
            assignment[i] = j
            for s in range(found):
                p, q = savers[s]
                b = assignment[p]
                if p == i or energy[p, b] - energy[p, q] <= lost:
                    continue
                shift(layers, p, b, q, loads)
                if none_over(limit, loads):
                    if maximum == 0:
                        assignment[i] = a
                        return -1
                    maximum -= 1
                    assignment[p] = q
                    if within(layers, limit, budget, trial):
                        keep(plan, trial)
                        return maximum
                    assignment[p] = b
                shift(layers, p, q, b, loads)
            shift(layers, i, j, a, loads)
            assignment[i] = a
    return -1


@compiled
def exchange_all(layers: Layers, limit: float, budget: Ints, plan: Plan) -> None:
    """Lowers the energy of a schedule within the limit by pairs of moves."""
    left = _MAX_WORK // len(plan.assignment)
    while left >= 0:
        left = exchange(layers, limit, left, budget, plan)
        if left >= 0:
            move_back(layers, limit, budget, plan)


@compiled
def energy_of(energy: Floats, assignment: Ints) -> float:
    """Sum over the layers."""
    total = 0.0
    for i in range(len(assignment)):
        total += energy[i, assignment[i]]
    return total
