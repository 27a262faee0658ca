"""Branch and bound over the orders of the layers of one assignment; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.nas.schedule.compiled import Floats, Ints, compiled
from archgym.envs.nas.schedule.timing import tails, times_of

__all__ = ["shortest_order", "within"]

_EACH = 100
"""Nodes that the search for an order within a limit visits."""


@compiled
def next_conflict(
    latency: Floats, starts: Ints, assignment: Ints, at: Ints, ready: Floats, free: Floats
) -> tuple[int, float]:
    """The sub-accelerator on which a layer could finish soonest, and when that is."""
    soonest = np.inf
    place = -1
    for c in range(len(starts) - 1):
        i = at[c]
        if i < starts[c + 1]:
            j = assignment[i]
            when = max(ready[c], free[j]) + latency[i, j]
            if when < soonest:
                soonest = when
                place = j
    return place, soonest


@compiled
def least_makespan(
    starts: Ints,
    assignment: Ints,
    tail: Floats,
    rest: Floats,
    at: Ints,
    ready: Floats,
    free: Floats,
) -> float:
    """A bound from below: every network's rest alone, and every sub-accelerator's."""
    least = 0.0
    for c in range(len(starts) - 1):
        when = ready[c]
        if at[c] < starts[c + 1]:
            when = max(when, free[assignment[at[c]]]) + tail[at[c]]
        least = max(least, when)
    for j in range(len(free)):
        least = max(least, free[j] + rest[j])
    return least


@compiled
def shortest_order(
    latency: Floats,
    starts: Ints,
    assignment: Ints,
    below: float,
    enough: float,
    most: int,
    start: Floats,
) -> tuple[float, int]:
    """Searches the orders of an assignment for a makespan below ``below``, into ``start``.

    Ends at the first of at most ``enough``. Returns the makespan, ``below`` if there is none, and
    the nodes visited, more than ``most`` if it was given up.
    """
    layers = len(assignment)
    chains = len(starts) - 1
    tail = np.empty(layers)
    tails(latency, starts, assignment, tail)
    at = starts[:-1].copy()
    ready = np.zeros(chains)
    free = np.zeros(latency.shape[1])
    rest = np.zeros(latency.shape[1])
    for i in range(layers):
        rest[assignment[i]] += latency[i, assignment[i]]
    now = np.empty(layers)  # start of each layer on the path
    was_ready = np.empty(layers)  # what to go back to, by depth
    was_free = np.empty(layers)
    chosen = np.empty(layers, np.int64)
    cursor = np.zeros(layers, np.int64)
    place = np.empty(layers, np.int64)
    soonest = np.empty(layers)
    best = below
    nodes = 0
    depth = 0
    place[0], soonest[0] = next_conflict(latency, starts, assignment, at, ready, free)
    while depth >= 0:
        c = cursor[depth]
        while c < chains and not (
            at[c] < starts[c + 1]
            and assignment[at[c]] == place[depth]
            and max(ready[c], free[place[depth]]) < soonest[depth]
        ):
            c += 1
        if c < chains:
            cursor[depth] = c + 1
            nodes += 1
            if nodes > most:
                return best, nodes
            i = at[c]
            j = place[depth]
            chosen[depth] = c
            was_ready[depth] = ready[c]
            was_free[depth] = free[j]
            now[i] = max(ready[c], free[j])
            ready[c] = free[j] = now[i] + latency[i, j]
            at[c] += 1
            rest[j] -= latency[i, j]
            least = least_makespan(starts, assignment, tail, rest, at, ready, free)
            if least < best:
                if depth + 1 < layers:
                    depth += 1
                    cursor[depth] = 0
                    place[depth], soonest[depth] = next_conflict(
                        latency, starts, assignment, at, ready, free
                    )
                    continue
                best = float(ready.max())
                start[:] = now
                if best <= enough:
                    return best, nodes
        else:
            depth -= 1
        if depth >= 0:
            c = chosen[depth]
            at[c] -= 1
            j = place[depth]
            rest[j] += latency[at[c], j]
            ready[c] = was_ready[depth]
            free[j] = was_free[depth]
    return best, nodes


@compiled
def within(
    latency: Floats,
    starts: Ints,
    assignment: Ints,
    limit: float,
    budget: Ints,
    start: Floats,
    finish: Floats,
) -> bool:
    """Whether an order of an assignment within the limit is found; its times are in the last two.

    List schedules first, then a search of at most `_EACH` nodes, taken from ``budget``, shape (1,).
    """
    if times_of(latency, starts, assignment, limit, start, finish) <= limit:
        return True
    if budget[0] <= 0:
        return False
    found, nodes = shortest_order(
        latency, starts, assignment, np.nextafter(limit, np.inf), limit, _EACH, start
    )
    budget[0] -= nodes
    if found > limit:
        return False
    for i in range(len(assignment)):
        finish[i] = start[i] + latency[i, assignment[i]]
    return True
