"""The way to a limit of latency: moves of layers that gain the most for their energy; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.nas.schedule.compiled import Floats, Ints, compiled
from archgym.envs.nas.schedule.orders import within
from archgym.envs.nas.schedule.timing import play, tails, times_of

__all__ = ["cheapest", "descend", "loads_of", "none_over", "relieve", "shift"]


@compiled
def cheapest(latency: Floats, energy: Floats, assignment: Ints) -> None:
    """Each layer where it takes the least energy, among equals the least time."""
    for i in range(len(assignment)):
        best = 0
        for j in range(1, latency.shape[1]):
            if energy[i, j] < energy[i, best] or (
                energy[i, j] == energy[i, best] and latency[i, j] < latency[i, best]
            ):
                best = j
        assignment[i] = best


@compiled
def loads_of(latency: Floats, chain: Ints, assignment: Ints, rows: Floats, subs: Floats) -> None:
    """Time of each network's layers, and of each sub-accelerator's, one after the other."""
    rows[:] = 0.0
    subs[:] = 0.0
    for i in range(len(assignment)):
        rows[chain[i]] += latency[i, assignment[i]]
        subs[assignment[i]] += latency[i, assignment[i]]


@compiled
def excess_gain(old: float, new: float, limit: float) -> float:
    """How much less a sum is over the limit."""
    return max(0.0, old - limit) - max(0.0, new - limit)


@compiled
def relieve(
    latency: Floats, energy: Floats, chain: Ints, limit: float, assignment: Ints, chains: int
) -> None:
    """Moves layers while a network or a sub-accelerator alone takes longer than the limit.

    No order of the layers can help there, so no order is looked at; the gain of a move is what it
    takes off the sums over the limit.
    """
    layers, subs = latency.shape
    row = np.empty(chains)
    load = np.empty(subs)
    loads_of(latency, chain, assignment, row, load)
    for _ in range(4 * layers):
        best = 0.0
        layer = -1
        place = -1
        for i in range(layers):
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
        shift(latency, chain, layer, assignment[layer], place, row, load)
        assignment[layer] = place


@compiled
def ratio(gain: float, loss: float) -> float:
    """Latency gained for each unit of energy; what also saves energy is worth more than all."""
    return gain / loss if loss > 0 else 1e300 * min(gain, 1e8)


@compiled
def on_critical_path(
    assignment: Ints, chain: Ints, start: Floats, finish: Floats, makespan: float, marked: Ints
) -> None:
    """Marks the layers of one longest line of layers without a pause between them."""
    layers = len(assignment)
    marked[:] = 0
    now = -1
    for i in range(layers):
        if finish[i] == makespan:
            now = i
    while now >= 0:
        marked[now] = 1
        before = -1
        for i in range(layers):
            follows = chain[i] == chain[now] or assignment[i] == assignment[now]
            if marked[i] == 0 and follows and finish[i] == start[now] and start[i] < start[now]:
                before = i
        now = before


@compiled
def shift(
    latency: Floats, chain: Ints, layer: int, before: int, after: int, row: Floats, load: Floats
) -> None:
    """Takes a layer's move into the sums of its network and of both sub-accelerators."""
    row[chain[layer]] += latency[layer, after] - latency[layer, before]
    load[before] -= latency[layer, before]
    load[after] += latency[layer, after]


@compiled
def none_over(limit: float, row: Floats, load: Floats) -> bool:
    """Whether no network and no sub-accelerator alone takes longer than the limit."""
    return bool(row.max() <= limit and load.max() <= limit)


@compiled
def descend(
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
    """Moves the layer with the best gain of makespan for its energy until the limit holds.

    Returns the makespan; it is over the limit if no move gains any more.
    """
    layers, subs = latency.shape
    marked = np.empty(layers, np.int64)
    row = np.empty(len(starts) - 1)
    load = np.empty(subs)
    at = np.empty(len(starts) - 1, np.int64)
    ready = np.empty(len(starts) - 1)
    free = np.empty(subs)
    tail = np.empty(layers)
    spare, other = np.empty(layers), np.empty(layers)
    hoped = np.empty(layers * subs)  # best that a move can be worth
    moves = np.empty((layers * subs, 2), np.int64)
    makespan = times_of(latency, starts, assignment, limit, start, finish)
    loads_of(latency, chain, assignment, row, load)
    for _ in range(2 * layers):
        if makespan <= limit:
            break
        if none_over(limit, row, load) and within(
            latency, starts, assignment, limit, budget, spare, other
        ):
            start[:] = spare
            finish[:] = other
            return float(finish.max())
        on_critical_path(assignment, chain, start, finish, makespan, marked)
        count = 0
        for i in range(layers):
            a = assignment[i]
            for j in range(subs):
                if marked[i] == 0 or j == a or latency[i, j] == np.inf:
                    continue
                least = max(
                    limit, row[chain[i]] - latency[i, a] + latency[i, j], load[j] + latency[i, j]
                )
                if least < makespan:
                    hoped[count] = ratio(makespan - least, energy[i, j] - energy[i, a])
                    moves[count, 0] = i
                    moves[count, 1] = j
                    count += 1
        best = 0.0
        layer = -1
        place = -1
        for n in np.argsort(-hoped[:count], kind="mergesort"):
            if hoped[n] <= best:
                break
            i, j = moves[n]
            a = assignment[i]
            assignment[i] = j
            tails(latency, starts, assignment, tail)
            after = play(latency, starts, assignment, tail, True, at, ready, free, spare)
            assignment[i] = a
            gain = makespan - max(after, limit)
            if gain > 0 and ratio(gain, energy[i, j] - energy[i, a]) > best:
                best, layer, place = ratio(gain, energy[i, j] - energy[i, a]), i, j
        if layer < 0:
            break
        shift(latency, chain, layer, assignment[layer], place, row, load)
        assignment[layer] = place
        makespan = times_of(latency, starts, assignment, limit, start, finish)
    return makespan
