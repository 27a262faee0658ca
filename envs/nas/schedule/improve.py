"""Moves of layers that save energy within a limit of latency, or time outside it; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.nas.schedule.compiled import Floats, Ints, compiled
from archgym.envs.nas.schedule.moves import loads_of, none_over, shift
from archgym.envs.nas.schedule.orders import within

__all__ = ["energy_of", "exchange_all", "hurry", "move_back"]

_MOST_WORK = 6000
"""Layers that are put in order for pairs of moves; beyond it no more pairs are tried."""


@compiled
def hurry(
    latency: Floats,
    starts: Ints,
    chain: Ints,
    limit: float,
    budget: Ints,
    assignment: Ints,
    start: Floats,
    finish: Floats,
) -> float:
    """Single moves and pairs of moves that shorten the schedule, until the limit holds.

    Returns the makespan.
    """
    layers, subs = latency.shape
    row = np.empty(len(starts) - 1)
    load = np.empty(subs)
    spare, other = np.empty(layers), np.empty(layers)
    makespan = float(finish.max())
    left = _MOST_WORK // layers
    moved = True
    while moved and makespan > limit:
        moved = False
        below = np.nextafter(makespan, 0.0)
        loads_of(latency, chain, assignment, row, load)
        for m in range(layers * subs):
            i, j = divmod(m, subs)
            a = assignment[i]
            if latency[i, j] == np.inf:
                continue
            # Staying where it is makes the other move a single one.
            shift(latency, chain, i, a, j, row, load)
            assignment[i] = j
            for n in range((i + 1) * subs, layers * subs):
                p, q = divmod(n, subs)
                b = assignment[p]
                if latency[p, q] == np.inf or (a == j and b == q):
                    continue
                shift(latency, chain, p, b, q, row, load)
                assignment[p] = q
                if none_over(below, row, load) and left > 0:
                    left -= 1
                    # Any order that is shorter will do.
                    if within(latency, starts, assignment, below, budget, spare, other):
                        makespan = float(other.max())
                        start[:] = spare
                        finish[:] = other
                        moved = True
                        break
                assignment[p] = b
                shift(latency, chain, p, q, b, row, load)
            if moved:
                break
            assignment[i] = a
            shift(latency, chain, i, j, a, row, load)
    return makespan


@compiled
def move_back(
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
    """Single moves that save energy within the limit, the largest saving first."""
    layers, subs = latency.shape
    row = np.empty(len(starts) - 1)
    load = np.empty(subs)
    spare, other = np.empty(layers), np.empty(layers)
    loads_of(latency, chain, assignment, row, load)
    moved = True
    while moved:
        moved = False
        tried = np.zeros((layers, subs), np.bool_)
        while True:
            most = 0.0
            layer = -1
            place = -1
            for i in range(layers):
                for j in range(subs):
                    saved = energy[i, assignment[i]] - energy[i, j]
                    if saved > most and not tried[i, j]:
                        most, layer, place = saved, i, j
            if layer < 0:
                break
            tried[layer, place] = True
            a = assignment[layer]
            assignment[layer] = place
            shift(latency, chain, layer, a, place, row, load)
            if none_over(limit, row, load) and within(
                latency, starts, assignment, limit, budget, spare, other
            ):
                start[:] = spare
                finish[:] = other
                moved = True
            else:
                assignment[layer] = a
                shift(latency, chain, layer, place, a, row, load)


@compiled
def exchange(
    latency: Floats,
    energy: Floats,
    starts: Ints,
    chain: Ints,
    limit: float,
    most: int,
    budget: Ints,
    assignment: Ints,
    start: Floats,
    finish: Floats,
) -> int:
    """Makes the first pair of moves that saves energy together within the limit.

    One of the two has to save energy itself. Returns how many of the ``most`` list schedules are
    left, or -1 if no pair was found.
    """
    layers, subs = latency.shape
    row = np.empty(len(starts) - 1)
    load = np.empty(subs)
    spare, other = np.empty(layers), np.empty(layers)
    savers = np.empty((layers * subs, 2), np.int64)
    count = 0
    for p in range(layers):
        for q in range(subs):
            if energy[p, q] < energy[p, assignment[p]]:
                savers[count, 0] = p
                savers[count, 1] = q
                count += 1
    loads_of(latency, chain, assignment, row, load)
    for i in range(layers):
        a = assignment[i]
        for j in range(subs):
            if j == a or latency[i, j] == np.inf:
                continue
            lost = energy[i, j] - energy[i, a]
            shift(latency, chain, i, a, j, row, load)
            assignment[i] = j
            for s in range(count):
                p, q = savers[s]
                b = assignment[p]
                if p == i or energy[p, b] - energy[p, q] <= lost:
                    continue
                shift(latency, chain, p, b, q, row, load)
                if none_over(limit, row, load):
                    if most == 0:
                        assignment[i] = a
                        return -1
                    most -= 1
                    assignment[p] = q
                    if within(latency, starts, assignment, limit, budget, spare, other):
                        start[:] = spare
                        finish[:] = other
                        return most
                    assignment[p] = b
                shift(latency, chain, p, q, b, row, load)
            shift(latency, chain, i, j, a, row, load)
            assignment[i] = a
    return -1


@compiled
def exchange_all(
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
    """Lowers the energy of a schedule within the limit by pairs of moves."""
    left = _MOST_WORK // len(assignment)
    while left >= 0:
        left = exchange(
            latency, energy, starts, chain, limit, left, budget, assignment, start, finish
        )
        if left >= 0:
            move_back(latency, energy, starts, chain, limit, budget, assignment, start, finish)


@compiled
def energy_of(energy: Floats, assignment: Ints) -> float:
    """Sum over the layers."""
    total = 0.0
    for i in range(len(assignment)):
        total += energy[i, assignment[i]]
    return total
