"""Moves of layers until a limit of latency holds, the most latency per energy first; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archgym.envs.nas.schedule.arrays import Floats, Ints, Layers, Plan
from archgym.envs.nas.schedule.compiled import compiled, inlined
from archgym.envs.nas.schedule.order_search import within
from archgym.envs.nas.schedule.plans import keep, no_progress, times_for
from archgym.envs.nas.schedule.timing import play, tails, times_of

__all__ = ["Loads", "cheapest", "descend", "loads_of", "none_over", "relieve", "shift"]


class Loads(NamedTuple):
    """Time of layers one after the other, whatever their order."""

    row: Floats
    """Of each network, shape (n_networks,)."""
    load: Floats
    """Of each sub-accelerator, shape (n_sub_accelerators,)."""


@compiled
def cheapest(layers: Layers, assignment: Ints) -> None:
    """Each layer where it takes the least energy, among equals the least time."""
    latency, energy = layers.latency, layers.energy
    for i in range(len(assignment)):
        best = 0
        for j in range(1, latency.shape[1]):
            if energy[i, j] < energy[i, best] or (
                energy[i, j] == energy[i, best] and latency[i, j] < latency[i, best]
            ):
                best = j
        assignment[i] = best


@inlined
def loads_of(layers: Layers, assignment: Ints) -> Loads:
    """The loads of an assignment."""
    latency, chain = layers.latency, layers.chain
    row = np.zeros(len(layers.starts) - 1)
    load = np.zeros(latency.shape[1])
    for i in range(len(assignment)):
        row[chain[i]] += latency[i, assignment[i]]
        load[assignment[i]] += latency[i, assignment[i]]
    return Loads(row, load)


@inlined
def excess_gain(old: float, new: float, limit: float) -> float:
    """How much less a sum is over the limit."""
    return max(0.0, old - limit) - max(0.0, new - limit)


@compiled
def relieve(layers: Layers, limit: float, assignment: Ints) -> None:
    """Moves layers while a network or a sub-accelerator alone takes longer than the limit.

    No order of the layers can help there, so no order is looked at; the gain of a move is what it
    takes off the sums over the limit.
    """
    latency, energy, chain = layers.latency, layers.energy, layers.chain
    count, subs = latency.shape
    loads = loads_of(layers, assignment)
    row, load = loads
    for _ in range(4 * count):
        best = 0.0
        layer = -1
        place = -1
        for i in range(count):
            c = chain[i]
            a = assignment[i]
            if row[c] <= limit and load[a] <= limit:
                continue
            for j in range(subs):
                if j == a or latency[i, j] == np.inf:
                    continue
                gain = (
                    excess_gain(row[c], row[c] - latency[i, a] + latency[i, j], limit)
                    + excess_gain(load[a], load[a] - latency[i, a], limit)
                    + excess_gain(load[j], load[j] + latency[i, j], limit)
                )
                if gain <= 0:
                    continue
                worth = ratio(gain, energy[i, j] - energy[i, a])
                if worth > best:
                    best, layer, place = worth, i, j
        if layer < 0:
            return
        shift(layers, layer, assignment[layer], place, loads)
        assignment[layer] = place


@inlined
def ratio(gain: float, loss: float) -> float:
    """Latency gained for each unit of energy; what also saves energy is worth more than all."""
    return gain / loss if loss > 0 else 1e300 * min(gain, 1e8)


@compiled
def on_critical_path(layers: Layers, plan: Plan, makespan: float, marked: Ints) -> None:
    """Marks the layers of one longest line of layers without a pause between them."""
    chain = layers.chain
    assignment, start, finish = plan
    count = len(assignment)
    marked[:] = 0
    now = -1
    for i in range(count):
        if finish[i] == makespan:
            now = i
    while now >= 0:
        marked[now] = 1
        before = -1
        for i in range(count):
            follows = chain[i] == chain[now] or assignment[i] == assignment[now]
            if marked[i] == 0 and follows and finish[i] == start[now] and start[i] < start[now]:
                before = i
        now = before


@inlined
def shift(layers: Layers, layer: int, before: int, after: int, loads: Loads) -> None:
    """Takes a layer's move into the sums of its network and of both sub-accelerators."""
    latency = layers.latency
    loads.row[layers.chain[layer]] += latency[layer, after] - latency[layer, before]
    loads.load[before] -= latency[layer, before]
    loads.load[after] += latency[layer, after]


@inlined
def none_over(limit: float, loads: Loads) -> bool:
    """Whether no network and no sub-accelerator alone takes longer than the limit."""
    return bool(loads.row.max() <= limit and loads.load.max() <= limit)


@compiled
def descend(layers: Layers, limit: float, budget: Ints, plan: Plan) -> float:
    """Moves the layer with the best gain of makespan for its energy until the limit holds.

    Returns the makespan; it is over the limit if no move gains any more.
    """
    latency, energy, chain = layers.latency, layers.energy, layers.chain
    assignment = plan.assignment
    count, subs = latency.shape
    marked = np.empty(count, np.int64)
    work = no_progress(layers)
    tail = np.empty(count)
    trial = times_for(assignment)
    hoped = np.empty(count * subs)  # best that a move can be worth
    moves = np.empty((count * subs, 2), np.int64)
    makespan = times_of(layers, limit, plan)
    loads = loads_of(layers, assignment)
    row, load = loads
    for _ in range(2 * count):
        if makespan <= limit:
            break
        if none_over(limit, loads) and within(layers, limit, budget, trial):
            keep(plan, trial)
            return float(plan.finish.max())
        on_critical_path(layers, plan, makespan, marked)
        found = 0
        for i in range(count):
            a = assignment[i]
            for j in range(subs):
                if marked[i] == 0 or j == a or latency[i, j] == np.inf:
                    continue
                minimum = max(
                    limit, row[chain[i]] - latency[i, a] + latency[i, j], load[j] + latency[i, j]
                )
                if minimum < makespan:
                    hoped[found] = ratio(makespan - minimum, energy[i, j] - energy[i, a])
                    moves[found, 0] = i
                    moves[found, 1] = j
                    found += 1
        best = 0.0
        layer = -1
        place = -1
        for n in np.argsort(-hoped[:found], kind="mergesort"):
            if hoped[n] <= best:
                break
            i, j = moves[n]
            a = assignment[i]
            assignment[i] = j
            tails(layers, assignment, tail)
            after = play(layers, assignment, tail, True, work, trial.start)
            assignment[i] = a
            gain = makespan - max(after, limit)
            if gain > 0 and ratio(gain, energy[i, j] - energy[i, a]) > best:
                best, layer, place = ratio(gain, energy[i, j] - energy[i, a]), i, j
        if layer < 0:
            break
        shift(layers, layer, assignment[layer], place, loads)
        assignment[layer] = place
        makespan = times_of(layers, limit, plan)
    return makespan
