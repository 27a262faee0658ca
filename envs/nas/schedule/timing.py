"""Start times for a given assignment, and the earliest-finish-time list scheduler; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.nas.schedule.arrays import Floats, Ints, Layers, Plan, Progress
from archgym.envs.nas.schedule.compiled import compiled, inlined
from archgym.envs.nas.schedule.plans import finish_of, no_progress

__all__ = ["earliest_finish", "play", "tails", "times_of"]


@inlined
def tails(layers: Layers, assignment: Ints, tail: Floats) -> None:
    """Time from the start of each layer to the end of its network, nothing else running."""
    latency, starts = layers.latency, layers.starts
    for c in range(len(starts) - 1):
        rest = 0.0
        for i in range(starts[c + 1] - 1, starts[c] - 1, -1):
            rest += latency[i, assignment[i]]
            tail[i] = rest


@inlined
def play(
    layers: Layers,
    assignment: Ints,
    tail: Floats,
    waits: bool,
    work: Progress,
    start: Floats,
) -> float:
    """List scheduling of an assignment into ``start``; returns the makespan.

    Of the layers that compete for a sub-accelerator the one with the longest rest of its network
    goes first. With ``waits`` a sub-accelerator may stay idle for it, as long as nothing could
    finish meanwhile (Giffler and Thompson, Operations Research 1960); without, never.
    ``work`` is work space.
    """
    latency, starts = layers.latency, layers.starts
    at, ready, free = work.at, work.ready, work.free
    chains = len(starts) - 1
    for c in range(chains):
        at[c] = starts[c]
        ready[c] = 0.0
    for j in range(len(free)):
        free[j] = 0.0
    makespan = 0.0
    for _ in range(starts[chains]):
        soonest = np.inf  # finish with waits, start without
        place = -1
        chosen = -1
        for c in range(chains):
            i = at[c]
            if i < starts[c + 1]:
                when = max(ready[c], free[assignment[i]])
                if waits:
                    when += latency[i, assignment[i]]
                if when < soonest:
                    soonest = when
                    place = assignment[i]
                    chosen = c
        longest = -1.0
        for c in range(chains):
            i = at[c]
            if i >= starts[c + 1] or (waits and assignment[i] != place):
                continue
            when = max(ready[c], free[assignment[i]])
            goes = when < soonest if waits else when <= soonest
            if goes and tail[i] > longest:
                longest = tail[i]
                chosen = c
        i = at[chosen]
        j = assignment[i]
        start[i] = max(ready[chosen], free[j])
        ready[chosen] = free[j] = start[i] + latency[i, j]
        at[chosen] += 1
        makespan = max(makespan, free[j])
    return makespan


@compiled
def times_of(layers: Layers, enough: float, plan: Plan) -> float:
    """Times of a plan's assignment into the plan; returns the makespan.

    The better of both list schedules, or the first if it takes at most ``enough``.
    """
    assignment, start, finish = plan
    tail = np.empty(len(assignment))
    work = no_progress(layers)
    tails(layers, assignment, tail)
    makespan = play(layers, assignment, tail, True, work, start)
    if makespan > enough:
        other = play(layers, assignment, tail, False, work, finish)
        if other < makespan:
            makespan = other
            start[:] = finish
    finish_of(layers, plan)
    return makespan


@compiled
def mean_tails(layers: Layers, rank: Floats) -> None:
    """Mean time of each layer and of those after it, over the places where each can run."""
    latency, starts = layers.latency, layers.starts
    for c in range(len(starts) - 1):
        rest = 0.0
        for i in range(starts[c + 1] - 1, starts[c] - 1, -1):
            total = 0.0
            count = 0
            for j in range(latency.shape[1]):
                if latency[i, j] < np.inf:
                    total += latency[i, j]
                    count += 1
            rest += total / count
            rank[i] = rest


@compiled
def earliest_finish(layers: Layers, plan: Plan) -> float:
    """HEFT: layers by the mean rest of their network, each where it finishes first.

    A layer may fill a gap between two others (insertion; Topcuoglu, Hariri and Wu, TPDS 2002).
    Returns the makespan.
    """
    latency, starts = layers.latency, layers.starts
    assignment, start, finish = plan
    count, subs = latency.shape
    chains = len(starts) - 1
    rank = np.empty(count)
    mean_tails(layers, rank)
    at, ready, _ = no_progress(layers)
    begins = np.empty((subs, count))  # of what is on a sub-accelerator, in order of time
    ends = np.empty((subs, count))
    placed = np.zeros(subs, np.int64)
    makespan = 0.0
    for _ in range(count):
        chosen = -1
        for c in range(chains):
            if at[c] < starts[c + 1] and (chosen < 0 or rank[at[c]] > rank[at[chosen]]):
                chosen = c
        i = at[chosen]
        at[chosen] += 1
        best = np.inf
        best_gap = 0
        for j in range(subs):
            took = latency[i, j]
            if took == np.inf:
                continue
            gap = 0
            when = ready[chosen]
            while gap < placed[j] and when + took > begins[j, gap]:
                when = max(when, ends[j, gap])
                gap += 1
            if when + took < best:
                best = when + took
                best_gap = gap
                assignment[i] = j
                start[i] = when
        j = assignment[i]
        for p in range(placed[j], best_gap, -1):
            begins[j, p] = begins[j, p - 1]
            ends[j, p] = ends[j, p - 1]
        begins[j, best_gap] = start[i]
        ends[j, best_gap] = best
        placed[j] += 1
        finish[i] = best
        ready[chosen] = best
        makespan = max(makespan, best)
    return makespan
