"""One access to the hierarchy, from its first level to memory, in compiled code.

This is what a model of the core calls::

    caches = make_caches(config)                      # arrays, see layout.Caches
    level = access(caches, 1, address, LOAD, ip)      # inside compiled code
    level = accessed(caches, 1, address, LOAD, ip)    # the same from Python

``address`` is the byte address, physical if addresses are translated, of bytes within one line of
the first level: who calls splits an access that straddles lines. ``level`` is the one that served
it: 0 or 1 a first level, 2 the second, 3 the last one, 4 memory. ``caches.out[0]`` then says how
many requests went to memory, and ``caches.out[1:]`` which (see :class:`layout.Caches`);
``caches.counts`` and ``caches.events`` have counted it.
"""

from __future__ import annotations

from typing import Any

from archgym.envs.cpu.hierarchy.compiled import compiled, entry
from archgym.envs.cpu.hierarchy.layout import (
    DIRTY,
    EXCLUSIVE,
    INCLUSION,
    INCLUSIVE,
    MEMORY,
    NEXT,
    PREFETCH,
    PREFETCHED,
    SHIFT,
    STORE,
    WAYS,
    WRITEBACK,
    WRITEBACKS,
)
from archgym.envs.cpu.hierarchy.replacement import fill, find, remove, touch

__all__ = ["access", "accessed", "below", "evict", "looked_up", "serve"]


@compiled
def looked_up(caches: Any, level: Any, address: Any, kind: Any) -> Any:
    """Whether a level has the line; counts the access, and a hit as a use of the line."""
    at = find(caches, level, address >> caches.shape[level, SHIFT])
    if at < 0:
        caches.counts[level, kind, 1] += 1
        return False
    caches.counts[level, kind, 0] += 1
    touch(caches, level, at, kind, DIRTY if kind == STORE and level < 2 else 0)
    return True


@compiled
def access(caches: Any, start: Any, address: Any, kind: Any, ip: Any) -> Any:
    """An access of the core: loads, stores and translations start at level 1, fetches at 0.

    Prefetches start at the level of their prefetcher and fill it and those below.

    Returns:
        The level that served it; 4 is memory.
    """
    caches.out[0] = 0
    if looked_up(caches, start, address, kind):
        return start
    return serve(caches, start, address, kind, ip)


@compiled
def serve(caches: Any, start: Any, address: Any, kind: Any, ip: Any) -> Any:
    """What follows a miss at level ``start``: look-ups below it, then fills from there upwards.

    Returns:
        The level that served it; 4 is memory.
    """
    level, mark = below(caches, start, address, kind, ip)
    if kind == STORE:
        mark |= DIRTY
    elif kind == PREFETCH:  # of the prefetcher at this level
        mark |= PREFETCHED
    _install(caches, start, address, kind, ip, mark)
    return level


@compiled
def below(caches: Any, start: Any, address: Any, kind: Any, ip: Any) -> Any:
    """What a miss at level ``start`` does below that level.

    Returns:
        The level that served it, and the state (dirty or 0) that the line brings along.
    """
    shape = caches.shape
    level = shape[start, NEXT]
    while level < MEMORY:
        if looked_up(caches, level, address, kind):
            break
        level = shape[level, NEXT]
    exclusive = shape[3, INCLUSION] == EXCLUSIVE and start < 3
    mark = 0
    if level == MEMORY:
        _send(caches, address >> shape[3, SHIFT] << shape[3, SHIFT])
    elif level == 3 and exclusive:
        mark = remove(caches, 3, address >> shape[3, SHIFT]) & DIRTY
    if level == MEMORY and not exclusive and start < 3:
        _install(caches, 3, address, kind, ip, 0)
    if level > 2 and start < 2 and shape[2, WAYS] > 0:
        _install(caches, 2, address, kind, ip, mark)
        mark = 0
    return level, mark


@compiled
def _install(caches: Any, level: Any, address: Any, kind: Any, ip: Any, mark: Any) -> Any:
    """Fill a level, and do with the displaced line what is due."""
    line = address >> caches.shape[level, SHIFT]
    victim, dirty = fill(caches, level, line, kind, ip, mark)
    if victim >= 0:
        evict(caches, level, victim, dirty)


@compiled
def evict(caches: Any, level: Any, victim: Any, dirty: Any) -> Any:
    """A line left a level: it goes to the levels below if it is dirty, or they are exclusive.

    A dirty part of a longer line below that is not there passes that level by.
    """
    shape = caches.shape
    address = victim << shape[level, SHIFT]
    part = shape[level, SHIFT]
    while True:
        if shape[level, INCLUSION] == INCLUSIVE and part == shape[level, SHIFT]:
            dirty |= _leave_above(caches, level, address)
        below = shape[level, NEXT]
        exclusive = below == 3 and shape[3, INCLUSION] == EXCLUSIVE
        if not dirty and not exclusive:
            return
        if dirty:
            caches.events[level, WRITEBACKS] += 1
        if below == MEMORY:
            if dirty:
                _send(caches, -1 - address)
            return
        line = address >> shape[below, SHIFT]
        at = find(caches, below, line)
        if at >= 0:
            caches.counts[below, WRITEBACK, 0] += 1
            touch(caches, below, at, WRITEBACK, DIRTY if dirty else 0)
            return
        caches.counts[below, WRITEBACK, 1] += 1
        if part != shape[below, SHIFT]:
            level = below
            continue
        if below == 2 and shape[3, INCLUSION] == EXCLUSIVE:
            remove(caches, 3, line)
        victim, dirty = fill(caches, below, line, WRITEBACK, 0, DIRTY if dirty else 0)
        if victim < 0:
            return
        level = below
        address = victim << shape[level, SHIFT]
        part = shape[level, SHIFT]


@compiled
def _leave_above(caches: Any, level: Any, address: Any) -> Any:
    """A line of an inclusive level leaves the levels above too; whether it was dirty there."""
    shape = caches.shape
    dirty = False
    end = address + (1 << shape[level, SHIFT])
    for upper in range(level):
        if shape[upper, WAYS] == 0:
            continue
        step = 1 << shape[upper, SHIFT]
        for part in range(address, end, step):
            line = part >> shape[upper, SHIFT]
            if upper < 2 and find(caches, upper, line) >= 0:
                _take(caches, line << 1 | upper)
            dirty |= remove(caches, upper, line) & DIRTY != 0
    return dirty


@compiled
def _take(caches: Any, line: Any) -> Any:
    """Notes a line that leaves a first level with one of an inclusive level, if there is room."""
    number = caches.taken[0] + 1
    if number < len(caches.taken):
        caches.taken[number] = line
        caches.taken[0] = number


@compiled
def _send(caches: Any, request: Any) -> Any:
    """A request to memory; one access makes at most as many as there is room for."""
    number = caches.out[0] + 1
    if number < len(caches.out):
        caches.out[number] = request
        caches.out[0] = number


@entry
def accessed(sources: int) -> Any:
    """:func:`access`, called from Python."""

    def accessed(caches: Any, start: Any, address: Any, kind: Any, ip: Any) -> Any:
        _ = sources
        return access(caches, start, address, kind, ip)

    return accessed
