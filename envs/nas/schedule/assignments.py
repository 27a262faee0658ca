"""Branch and bound over the assignments of layers to sub-accelerators; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.nas.schedule.compiled import Floats, Ints, compiled
from archgym.envs.nas.schedule.orders import shortest_order
from archgym.envs.nas.schedule.timing import times_of

__all__ = ["best_assignment"]


@compiled
def sorted_options(latency: Floats, energy: Floats, for_energy: bool) -> Ints:
    """Sub-accelerators of each layer, best first."""
    options = np.empty(latency.shape, np.int64)
    for i in range(len(latency)):
        first, second = latency[i], energy[i]
        if for_energy:
            first, second = second, first
        for n in range(latency.shape[1]):
            p = n
            while p > 0 and (
                first[n] < first[options[i, p - 1]]
                or (first[n] == first[options[i, p - 1]] and second[n] < second[options[i, p - 1]])
            ):
                options[i, p] = options[i, p - 1]
                p -= 1
            options[i, p] = n
    return options


@compiled
def sum_least(costs: Floats, order: Ints, left: Floats) -> None:
    """What the layers from each depth on cost at least, shape (layers + 1,)."""
    for d in range(len(order) - 1, -1, -1):
        left[d] = left[d + 1] + costs[order[d]].min()


@compiled
def least_of(
    latency: Floats,
    starts: Ints,
    assignment: Ints,
    below: float,
    enough: float,
    most: int,
    start: Floats,
    finish: Floats,
) -> tuple[float, int]:
    """The least makespan of an assignment, or one of at most ``enough``, if it is below ``below``.

    Its times are in the last two. Returns nodes visited as well, more than ``most`` if given up.
    """
    makespan = times_of(latency, starts, assignment, enough, start, finish)
    if makespan <= enough:
        return makespan, 0
    found, nodes = shortest_order(
        latency, starts, assignment, min(below, makespan), enough, most, start
    )
    for i in range(len(assignment)):
        finish[i] = start[i] + latency[i, assignment[i]]
    return min(makespan, found), nodes


@compiled
def best_assignment(
    latency: Floats,
    energy: Floats,
    starts: Ints,
    order: Ints,
    limit: float,
    for_energy: bool,
    bound: float,
    most: int,
    assignment: Ints,
    start: Floats,
    finish: Floats,
) -> int:
    """Searches all assignments for one that is better than ``bound``, into the last three.

    Better is less energy, or, not ``for_energy``, less makespan; within ``limit``. ``order`` is
    that in which layers are assigned. Returns the nodes visited, more than ``most`` if given up.
    """
    layers, subs = latency.shape
    chain = np.empty(layers, np.int64)
    row = np.zeros(len(starts) - 1)  # time of each network: assigned layers, the others' least
    for c in range(len(starts) - 1):
        for i in range(starts[c], starts[c + 1]):
            chain[i] = c
            row[c] += latency[i].min()
    options = sorted_options(latency, energy, for_energy)
    work_left = np.zeros(layers + 1)  # least of the layers not yet assigned, by depth
    energy_left = np.zeros(layers + 1)
    sum_least(latency, order, work_left)
    sum_least(energy, order, energy_left)
    load = np.zeros(subs)
    spent = np.zeros(layers + 1)
    was_row = np.empty(layers)
    was_load = np.empty(layers)
    cursor = np.zeros(layers, np.int64)
    now = np.empty(layers, np.int64)
    now_start, now_finish = np.empty(layers), np.empty(layers)
    nodes = 0
    depth = 0
    while depth >= 0:
        i = order[depth]
        n = cursor[depth]
        if n > 0:  # take back the option tried before
            row[chain[i]] = was_row[depth]
            load[now[i]] = was_load[depth]
        if n == subs or latency[i, options[i, n]] == np.inf:
            cursor[depth] = 0
            depth -= 1
            continue
        cursor[depth] = n + 1
        nodes += 1
        if nodes > most:
            return nodes
        j = options[i, n]
        now[i] = j
        was_row[depth] = row[chain[i]]
        was_load[depth] = load[j]
        row[chain[i]] += latency[i, j] - latency[i].min()
        load[j] += latency[i, j]
        spent[depth + 1] = spent[depth] + energy[i, j]
        longest = max(row.max(), load.max(), (load.sum() + work_left[depth + 1]) / subs)
        # Sums in another order than a schedule's may be off by rounding.
        slack = 1.0 - 1e-12
        price = longest
        if for_energy:
            price = spent[depth + 1] + energy_left[depth + 1]
        if price >= bound * slack or longest * slack > limit:
            continue
        if depth + 1 < layers:
            depth += 1
            continue
        below = float(np.nextafter(limit, np.inf)) if for_energy else bound
        makespan, visited = least_of(
            latency,
            starts,
            now,
            below,
            limit if for_energy else 0.0,
            most - nodes,
            now_start,
            now_finish,
        )
        nodes += visited
        if nodes > most:
            return nodes
        if makespan < below:
            bound = float(spent[layers]) if for_energy else makespan
            assignment[:] = now
            start[:] = now_start
            finish[:] = now_finish
    return nodes
