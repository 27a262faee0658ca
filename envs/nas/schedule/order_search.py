"""Branch and bound over the orders of the layers of one assignment; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.nas.schedule.arrays import Floats, Ints, Layers, Plan, Progress
from archgym.envs.nas.schedule.compiled import compiled, inlined
from archgym.envs.nas.schedule.plans import finish_of, no_progress
from archgym.envs.nas.schedule.timing import tails, times_of

__all__ = ["shortest_order", "within"]

_EACH = 100
"""Nodes that the search for an order within a limit visits."""


@inlined
def next_conflict(layers: Layers, assignment: Ints, done: Progress) -> tuple[int, float]:
    """The sub-accelerator on which a layer could finish soonest, and when that is."""
    latency, starts = layers.latency, layers.starts
    at, ready, free = done
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


@inlined
def min_makespan(
    starts: Ints,
    assignment: Ints,
    tail: Floats,
    rest: Floats,
    done: Progress,
) -> float:
    """A bound from below: every network's rest alone, and every sub-accelerator's."""
    at, ready, free = done
    minimum = 0.0
    for c in range(len(starts) - 1):
        when = ready[c]
        if at[c] < starts[c + 1]:
            when = max(when, free[assignment[at[c]]]) + tail[at[c]]
        minimum = max(minimum, when)
    for j in range(len(free)):
        minimum = max(minimum, free[j] + rest[j])
    return minimum


@compiled
def shortest_order(
    layers: Layers, assignment: Ints, below: float, enough: float, maximum: int, start: Floats
) -> tuple[float, int]:
    """Searches the orders of an assignment for a makespan below ``below``, into ``start``.

    Ends at the first of at most ``enough``. Returns the makespan, ``below`` if there is none, and
    the nodes visited, more than ``maximum`` if it was given up.
    """
    latency, starts = layers.latency, layers.starts
    count = len(assignment)
    chains = len(starts) - 1
    tail = np.empty(count)
    tails(layers, assignment, tail)
    done = no_progress(layers)
    at, ready, free = done
    rest = np.zeros(latency.shape[1])
    for i in range(count):
        rest[assignment[i]] += latency[i, assignment[i]]
    now = np.empty(count)  # start of each layer on the path
    was_ready = np.empty(count)  # what to go back to, by depth
    was_free = np.empty(count)
    chosen = np.empty(count, np.int64)
    cursor = np.zeros(count, np.int64)
    place = np.empty(count, np.int64)
    soonest = np.empty(count)
    best = below
    nodes = 0
    depth = 0
    place[0], soonest[0] = next_conflict(layers, assignment, done)
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
            if nodes > maximum:
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
            minimum = min_makespan(starts, assignment, tail, rest, done)
            if minimum < best:
                if depth + 1 < count:
                    depth += 1
                    cursor[depth] = 0
                    place[depth], soonest[depth] = next_conflict(layers, assignment, done)
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
def within(layers: Layers, limit: float, budget: Ints, plan: Plan) -> bool:
    """Whether an order of a plan's assignment within the limit is found; its times are in the plan.

    List schedules first, then a search of at most `_EACH` nodes, taken from ``budget``, shape (1,).
    """
    if times_of(layers, limit, plan) <= limit:
        return True
    if budget[0] <= 0:
        return False
    found, nodes = shortest_order(
        layers, plan.assignment, np.nextafter(limit, np.inf), limit, _EACH, plan.start
    )
    budget[0] -= nodes
    if found > limit:
        return False
    finish_of(layers, plan)
    return True
