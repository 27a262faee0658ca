"""Start times for a given assignment, and the earliest-finish-time list scheduler; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.nas.schedule.compiled import Floats, Ints, compiled

__all__ = ["earliest_finish", "play", "tails", "times_of"]


@compiled
def tails(latency: Floats, starts: Ints, assignment: Ints, tail: Floats) -> None:
    """Time from the start of each layer to the end of its network, nothing else running."""
    for c in range(len(starts) - 1):
        rest = 0.0
        for i in range(starts[c + 1] - 1, starts[c] - 1, -1):
            rest += latency[i, assignment[i]]
            tail[i] = rest


@compiled
def play(
    latency: Floats,
    starts: Ints,
    assignment: Ints,
    tail: Floats,
    waits: bool,
    at: Ints,
    ready: Floats,
    free: Floats,
    start: Floats,
) -> float:
    """List scheduling of an assignment into ``start``; returns the makespan.

    Of the layers that compete for a sub-accelerator the one with the longest rest of its network
    goes first. With ``waits`` a sub-accelerator may stay idle for it, as long as nothing could
    finish meanwhile (Giffler and Thompson, Operations Research 1960); without, never.
    ``at``, ``ready`` and ``free`` are work space, one for each network, network, sub-accelerator.
    """
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
def times_of(
    latency: Floats, starts: Ints, assignment: Ints, enough: float, start: Floats, finish: Floats
) -> float:
    """Times of an assignment into ``start`` and ``finish``; returns the makespan.

    The better of both list schedules, or the first if it takes at most ``enough``.
    """
    tail = np.empty(len(assignment))
    at = np.empty(len(starts) - 1, np.int64)
    ready = np.empty(len(starts) - 1)
    free = np.empty(latency.shape[1])
    tails(latency, starts, assignment, tail)
    makespan = play(latency, starts, assignment, tail, True, at, ready, free, start)
    if makespan > enough:
        other = play(latency, starts, assignment, tail, False, at, ready, free, finish)
        if other < makespan:
            makespan = other
            start[:] = finish
    for i in range(len(assignment)):
        finish[i] = start[i] + latency[i, assignment[i]]
    return makespan


@compiled
def mean_tails(latency: Floats, starts: Ints, rank: Floats) -> None:
    """Mean time of each layer and of those after it, over the places where each can run."""
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
def earliest_finish(
    latency: Floats, starts: Ints, assignment: Ints, start: Floats, finish: Floats
) -> float:
    """HEFT: layers by the mean rest of their network, each where it finishes first.

    A layer may fill a gap between two others (insertion; Topcuoglu, Hariri and Wu, TPDS 2002).
    Returns the makespan.
    """
    layers, subs = latency.shape
    chains = len(starts) - 1
    rank = np.empty(layers)
    mean_tails(latency, starts, rank)
    at = starts[:-1].copy()
    ready = np.zeros(chains)
    begins = np.empty((subs, layers))  # of what is on a sub-accelerator, in order of time
    ends = np.empty((subs, layers))
    placed = np.zeros(subs, np.int64)
    makespan = 0.0
    for _ in range(layers):
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
