"""Looking up and filling one level under its replacement policy, in compiled code."""

from __future__ import annotations

from typing import Any

from archgym.envs.cpu.hierarchy.compiled import compiled, inlined
from archgym.envs.cpu.hierarchy.layout import (
    BIMODAL,
    BIMODAL_PERIOD,
    COUNTER_MAX,
    DIRTY,
    DRAWN,
    DRRIP,
    FIRST,
    LEADERS,
    LRU,
    MASK,
    MAX_LEFT,
    MAX_RRPV,
    POLICY,
    PREFETCH,
    PREFETCHED,
    PREFETCHES,
    RANDOM,
    REFRESHING,
    REUSED,
    RRPV_BITS,
    RRPV_SHIFT,
    SELECTOR,
    SELECTOR_MAX,
    SHIP,
    SIGNATURE_SHIFT,
    SIGNATURES,
    SRRIP,
    USEFUL,
    USELESS,
    WAYS,
    WRITEBACK,
)

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
        note[at] &= ~RRPV_BITS
        if policy == SHIP:
            signature = note[at] >> SIGNATURE_SHIFT
            if caches.counters[level, signature] < COUNTER_MAX:
                caches.counters[level, signature] += 1
            note[at] |= REUSED


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
        victim, victim_note = line[last], note[last]
        for place in range(last, first, -1):
            line[place] = line[place - 1]
            note[place] = note[place - 1]
        at = first
    else:
        at = _choose_way(caches, level, first, ways, policy)
        victim, victim_note = line[at], note[at]
        mark |= _insertion(caches, level, chosen_set, kind, ip, policy)
    line[at] = line_number
    note[at] = mark
    if victim < 0:
        return victim, False
    caches.left[level, caches.lefts[level] % MAX_LEFT] = victim
    caches.lefts[level] += 1
    if victim_note & PREFETCHED:
        caches.events[level, USELESS] += 1
    if policy == SHIP and victim_note & REUSED == 0:
        signature = victim_note >> SIGNATURE_SHIFT
        if caches.counters[level, signature] > 0:
            caches.counters[level, signature] -= 1
    return victim, victim_note & DIRTY != 0


@compiled
def _choose_way(caches: Any, level: Any, first: Any, ways: Any, policy: Any) -> Any:
    """An empty way, or the victim's, of policies whose ways stay where they are."""
    line, note = caches.line, caches.note
    for at in range(first, first + ways):
        if line[at] < 0:
            return at
    if policy == RANDOM:
        # Knuth's linear congruential generator of 64 bits (MMIX); its high bits are good.
        drawn = caches.state[level, DRAWN] * 6364136223846793005 + 1442695040888963407
        caches.state[level, DRAWN] = drawn
        return first + ((drawn >> 33) & 0x7FFFFFFF) % ways
    oldest, at = -1, first
    for place in range(first, first + ways):
        value = (note[place] & RRPV_BITS) >> RRPV_SHIFT
        if value > oldest:
            oldest, at = value, place
    if oldest < MAX_RRPV:
        for place in range(first, first + ways):
            note[place] += (MAX_RRPV - oldest) << RRPV_SHIFT
    return at


@compiled
def _insertion(caches: Any, level: Any, chosen_set: Any, kind: Any, ip: Any, policy: Any) -> Any:
    """The bits of a new line: its re-reference prediction value, and its signature."""
    long = (MAX_RRPV - 1) << RRPV_SHIFT
    distant = MAX_RRPV << RRPV_SHIFT
    if policy == RANDOM:
        return 0
    if policy == SRRIP or kind == WRITEBACK:
        return long | (REUSED if policy == SHIP else 0)  # a write-back has no signature
    if policy == DRRIP:
        state = caches.state
        position = chosen_set % caches.shape[level, LEADERS]
        bimodal = state[level, SELECTOR] > SELECTOR_MAX // 2
        if position == 0:  # leads for SRRIP, whose misses speak for BRRIP
            bimodal = False
            state[level, SELECTOR] = min(SELECTOR_MAX, state[level, SELECTOR] + 1)
        elif position == 1:
            bimodal = True
            state[level, SELECTOR] = max(0, state[level, SELECTOR] - 1)
        if not bimodal:
            return long
        state[level, BIMODAL] += 1
        if state[level, BIMODAL] < BIMODAL_PERIOD:
            return distant
        state[level, BIMODAL] = 0
        return long
    signature = (ip ^ (ip >> 14) ^ (ip >> 28)) & (SIGNATURES - 1)
    value = long if caches.counters[level, signature] > 0 else distant
    return value | (signature << SIGNATURE_SHIFT)


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
