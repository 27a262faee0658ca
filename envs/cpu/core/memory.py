"""When the caches answer: levels, requests under way, and the limit of misses at a time.

The contents of the caches follow the accesses in program order; this module adds when each line is
there. A line that an earlier access has asked for and that has not arrived yet answers on arrival.
"""

from __future__ import annotations

from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.compiled import compiled, inlined
from archgym.envs.cpu.core.dram import memory_read
from archgym.envs.cpu.core.slots import take
from archgym.envs.cpu.hierarchy.access import looked_up, serve
from archgym.envs.cpu.hierarchy.layout import PREFETCH, WAYS, Caches

_LINE_BITS = 6
_L2, _LLC = 2, 3


@compiled
def _recount(level: int, kind: int, served: int, caches: Caches) -> None:
    """The core asked for a line before the prefetch that the model took for the first one.

    So the look-up is the one that missed, and the prefetch joins it.
    """
    counts = caches.counts
    counts[level, kind, 0] -= 1
    counts[level, kind, 1] += 1
    counts[level, PREFETCH, 1] -= 1
    counts[level, PREFETCH, 0] += 1
    for lower in range(level + 1, served + 1):
        if lower <= _LLC and caches.shape[lower, WAYS] > 0:
            outcome = 0 if lower == served else 1
            counts[lower, PREFETCH, outcome] -= 1
            counts[lower, kind, outcome] += 1


@inlined
def _arrival(level: int, kind: int, line: int, at: int, m: k.Core, caches: Caches) -> int:
    """When a level has a line that it looks up at ``at``: later if the line is under way."""
    flight = m.flight[level, line & (k.RING - 1)]
    if flight[0] != line or flight[2] <= at:
        return at
    if at < flight[1]:
        # It asks before the access that the model took for the first one: it is the first.
        sooner = flight[2] - (flight[1] - at)
        flight[1] = at
        flight[2] = sooner
        if flight[3] > 0 and kind != PREFETCH:
            _recount(level, kind, flight[3], caches)
            flight[3] = 0
        return int(max(at, sooner))
    return int(flight[2])


@inlined
def _depart(level: int, line: int, asked: int, there: int, served: int, m: k.Core) -> None:
    """A line is under way to a level; ``served`` is 0 unless it is prefetched."""
    flight = m.flight[level, line & (k.RING - 1)]
    flight[0] = line
    flight[1] = asked
    flight[2] = there
    flight[3] = served


@inlined
def under_way(level: int, at: int, m: k.Core) -> int:
    """How many misses of a level are under way."""
    found = 0
    for entry in range(m.misses.shape[1]):
        found += m.misses[level, entry, 0] <= at < m.misses[level, entry, 1]
    return found


@inlined
def _room(level: int, at: int, m: k.Core) -> int:
    """The first cycle from ``at`` on in which a level can take one more miss."""
    limit = m.t[k.MSHRS + level]
    entries = m.misses.shape[1]
    if limit >= entries:
        return at
    while True:
        under_way = 0
        free = at
        for entry in range(entries):
            end = m.misses[level, entry, 1]
            if end > at and m.misses[level, entry, 0] <= at:
                if under_way == 0 or end < free:
                    free = end
                under_way += 1
        if under_way < limit:
            return at
        at = free


@inlined
def _note_miss(level: int, start: int, end: int, m: k.Core) -> None:
    entry = m.miss_at[level] % m.misses.shape[1]
    m.misses[level, entry, 0] = start
    m.misses[level, entry, 1] = end
    m.miss_at[level] += 1


@compiled
def missed(first: int, address: int, kind: int, ip: int, at: int, m: k.Core, caches: Caches) -> int:
    """When a level has filled a line that it has missed at ``at``; prefetches may begin below."""
    t = m.t
    line = address >> _LINE_BITS
    level = serve(caches, first, address, kind, ip)
    m.s[k.SERVED_BY] = level
    for request in range(1, caches.out[0] + 1):
        if caches.out[request] < 0:
            memory_read(-1 - caches.out[request], at, True, m)
    caches.out[0] = 0
    start = _room(first, at, m)
    if start > at and first == 1:
        m.counts[k.N_L1D_WAITS] += 1
        m.s[k.LAST_STUCK] = m.s[k.STUCK]
        m.s[k.STUCK] = start
        m.s[k.STUCK_FROM] = at
    served = level if kind == PREFETCH else 0
    second = start
    if first < _L2:
        second = take(k.PORT_L2, start, 1, m) + t[k.LOOK_UP + _L2]
    if level == _L2:
        m.s[k.AT_L2] = second
        second = _arrival(_L2, kind, line, second, m, caches)
    else:
        if first < _L2:
            second = _room(_L2, second, m)
        third = second
        if first < _LLC:
            third = second + 1 + t[k.LOOK_UP + _LLC]
        if level == _LLC:
            there = _arrival(_LLC, kind, line, third, m, caches)
        else:
            there = memory_read(address, third, False, m) + 1 + t[k.FILL + _LLC]
            _depart(_LLC, line, third, there, served, m)
        if first == _LLC:
            return int(there)
        arrived = there + t[k.FILL + _L2]
        _depart(_L2, line, second, arrived, served, m)
        if first < _L2:
            _note_miss(_L2, second, arrived, m)
        if first == _L2:
            _note_miss(_L2, second, arrived, m)
            return int(arrived)
        m.s[k.AT_L2] = second
        second = arrived
    there = second + 1 + t[k.FILL + first]
    _depart(first, line, start, there, served, m)
    _note_miss(first, start, there, m)
    return int(there)


@inlined
def answer(first: int, address: int, kind: int, ip: int, at: int, m: k.Core, caches: Caches) -> int:
    """When the first level has the data of an access.

    Args:
        first: level that is asked: 0 for code, 1 for data.
        address: physical address, bytes.
        kind: kind of access, as the caches number them.
        ip: address of the instruction.
        at: when the level has looked the line up.
        m: the core.
        caches: the caches.
    """
    if first == 1 and at >= m.s[k.STUCK_FROM]:
        # Two misses that find no room block every look-up behind them.
        at = max(at, min(m.s[k.STUCK], m.s[k.LAST_STUCK]))
    m.s[k.SERVED_BY] = first
    if looked_up(caches, first, address, kind):
        return _arrival(first, kind, address >> _LINE_BITS, at, m, caches)
    return missed(first, address, kind, ip, at, m, caches)
