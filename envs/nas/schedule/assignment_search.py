"""Branch and bound over the assignments of layers to sub-accelerators; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archgym.envs.nas.schedule.arrays import Floats, Ints, Layers, Plan
from archgym.envs.nas.schedule.compiled import compiled
from archgym.envs.nas.schedule.order_search import shortest_order
from archgym.envs.nas.schedule.plans import empty_plan, finish_of, keep
from archgym.envs.nas.schedule.timing import times_of

__all__ = ["Wanted", "best_assignment"]


class Wanted(NamedTuple):
    """Which schedule is looked for, and how far."""

    for_energy: bool
    """Whether less energy is better, or else less makespan."""
    limit: float
    """Cycles that it may take."""
    bound: float
    """Only what is better than this is of interest."""
    maximum: int
    """Nodes to visit."""


@compiled
def sorted_options(layers: Layers, for_energy: bool) -> Ints:
    """Sub-accelerators of each layer, best first."""
    latency, energy = layers.latency, layers.energy
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
def sum_min(costs: Floats, order: Ints, left: Floats) -> None:
    """Lower bound on the energy of the layers from each depth on, shape (layers + 1,)."""
    for d in range(len(order) - 1, -1, -1):
        left[d] = left[d + 1] + costs[order[d]].min()


@compiled
def min_of(
    layers: Layers, below: float, enough: float, maximum: int, plan: Plan
) -> tuple[float, int]:
    """The least makespan of an assignment, or one of at most ``enough``, if it is below ``below``.

    Its times are in the plan. Returns nodes visited as well, more than ``maximum`` if given up.
    """
    makespan = times_of(layers, enough, plan)
    if makespan <= enough:
        return makespan, 0
    found, nodes = shortest_order(
        layers, plan.assignment, min(below, makespan), enough, maximum, plan.start
    )
    finish_of(layers, plan)
    return min(makespan, found), nodes


@compiled
def best_assignment(layers: Layers, order: Ints, wanted: Wanted, plan: Plan) -> int:
    """Searches all assignments for one that is better than the bound, into the plan.

    Better is less energy, or, not ``for_energy``, less makespan; within ``limit``. ``order`` is
    that in which layers are assigned. Returns the nodes visited, more than ``maximum`` if given up.
    """
    latency, energy, starts, chain = layers
    for_energy, limit, bound, maximum = wanted
    count, subs = latency.shape
    row = np.zeros(len(starts) - 1)  # time of each network: assigned layers, the others' least
    for c in range(len(starts) - 1):
        for i in range(starts[c], starts[c + 1]):
            row[c] += latency[i].min()
    options = sorted_options(layers, for_energy)
    work_left = np.zeros(count + 1)  # least of the layers not yet assigned, by depth
    energy_left = np.zeros(count + 1)
    sum_min(latency, order, work_left)
    sum_min(energy, order, energy_left)
    load = np.zeros(subs)
    spent = np.zeros(count + 1)
    was_row = np.empty(count)
    was_load = np.empty(count)
    cursor = np.zeros(count, np.int64)
    trial = empty_plan(count)
    now = trial.assignment
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
        if nodes > maximum:
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
        if depth + 1 < count:
            depth += 1
            continue
        below = float(np.nextafter(limit, np.inf)) if for_energy else bound
        makespan, visited = min_of(
            layers, below, limit if for_energy else 0.0, maximum - nodes, trial
        )
        nodes += visited
        if nodes > maximum:
            return nodes
        if makespan < below:
            bound = float(spent[count]) if for_energy else makespan
            keep(plan, trial)
    return nodes
