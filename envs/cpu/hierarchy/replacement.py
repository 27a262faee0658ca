"""Looking up and filling one level under its replacement policy, in compiled code."""

from __future__ import annotations

from typing import Any

from archgym.envs.cpu.hierarchy.compiled import compiled, inlined
from archgym.envs.cpu.hierarchy.layout import (
    DIRTY,
    FIRST,
    LEADERS,
    LRU,
    MASK,
    MAX_LEFT,
    POLICY,
    PREFETCH,
    PREFETCHED,
    PREFETCHES,
    RANDOM,
    REFRESHING,
    USEFUL,
    USELESS,
    WAYS,
)
from archgym.envs.cpu.hierarchy.policies import displaced, insertion, used, victim

__all__ = ["fill", "find", "remove", "touch"]


@inlined
def find(caches: Any, level: Any, line: Any) -> Any:
    """Where a level holds a line; -1 if it does not."""
    shape = caches.shape
    ways = shape[level, WAYS]
    first = shape[level, FIRST] + (line & shape[level, MASK]) * ways
    for at in range(first, first + ways):
        if caches.line[at] == line:
            return at
    return -1


@compiled
def touch(caches: Any, level: Any, at: Any, kind: Any, mark: Any) -> Any:
    """A hit: the line counts as used, and gets the bits ``mark`` (dirty or none)."""
    shape, line, note = caches.shape, caches.line, caches.note
    note[at] |= mark
    if note[at] & PREFETCHED and kind != PREFETCH:
        note[at] &= ~PREFETCHED
        caches.events[level, USEFUL] += 1
    if (shape[level, REFRESHING] >> kind) & 1 == 0:
        return
    policy = shape[level, POLICY]
    if policy == LRU:
        ways = shape[level, WAYS]
        first = shape[level, FIRST] + (line[at] & shape[level, MASK]) * ways
        if at > first:
            moved, moved_note = line[at], note[at]
            for place in range(at, first, -1):
                line[place] = line[place - 1]
                note[place] = note[place - 1]
            line[first] = moved
            note[first] = moved_note
    elif policy != RANDOM:
        note[at] = used(note[at], caches.counters[level], policy)


@compiled
def fill(caches: Any, level: Any, line_number: Any, kind: Any, ip: Any, mark: Any) -> Any:
    """A line comes into a level.

    Returns:
        The line that it displaces, -1 if none, and whether that one is dirty.
    """
    shape, line, note = caches.shape, caches.line, caches.note
    policy, ways = shape[level, POLICY], shape[level, WAYS]
    chosen_set = line_number & shape[level, MASK]
    first = shape[level, FIRST] + chosen_set * ways
    if mark & PREFETCHED:
        caches.events[level, PREFETCHES] += 1
    if policy == LRU:
        last = first + ways - 1
        before, before_note = line[last], note[last]
        for place in range(last, first, -1):
            line[place] = line[place - 1]
            note[place] = note[place - 1]
        at = first
    else:
        at = _choose_way(caches, level, first, ways, policy)
        before, before_note = line[at], note[at]
        position = chosen_set % shape[level, LEADERS]
        mark |= insertion(caches.state[level], caches.counters[level], position, kind, ip, policy)
    line[at] = line_number
    note[at] = mark
    if before < 0:
        return before, False
    caches.left[level, caches.lefts[level] % MAX_LEFT] = before
    caches.lefts[level] += 1
    if before_note & PREFETCHED:
        caches.events[level, USELESS] += 1
    displaced(before_note, caches.counters[level], policy)
    return before, before_note & DIRTY != 0


@compiled
def _choose_way(caches: Any, level: Any, first: Any, ways: Any, policy: Any) -> Any:
    """An empty way, or the victim's, of policies whose ways stay where they are."""
    for at in range(first, first + ways):
        if caches.line[at] < 0:
            return at
    return victim(caches.note, caches.state[level], first, ways, policy)


@compiled
def remove(caches: Any, level: Any, line_number: Any) -> Any:
    """A line leaves a level, if it is there; its note, 0 if it is not."""
    at = find(caches, level, line_number)
    if at < 0:
        return 0
    shape, line, note = caches.shape, caches.line, caches.note
    found = note[at]
    if found & PREFETCHED:
        caches.events[level, USELESS] += 1
    if shape[level, POLICY] == LRU:
        ways = shape[level, WAYS]
        last = shape[level, FIRST] + (line_number & shape[level, MASK]) * ways + ways - 1
        for place in range(at, last):
            line[place] = line[place + 1]
            note[place] = note[place + 1]
        at = last
    line[at] = -1
    note[at] = 0
    return found
