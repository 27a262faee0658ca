"""All references of a program through a hierarchy, one by one, in compiled code."""

from __future__ import annotations

from typing import Any

from archgym.envs.cpu.hierarchy.access import looked_up, serve
from archgym.envs.cpu.hierarchy.compiled import compiled, entry
from archgym.envs.cpu.hierarchy.frames import PAGE_SHIFT
from archgym.envs.cpu.hierarchy.layout import (
    DIRTY,
    FETCH,
    FIRST,
    LOAD,
    LRU,
    MASK,
    NEXT,
    POLICY,
    PREFETCH,
    PREFETCHED,
    SHIFT,
    STORE,
    WAYS,
)
from archgym.envs.cpu.hierarchy.prefetchers import wanted

__all__ = ["reach", "run_references"]


@compiled
def reach(caches: Any, prefetchers: Any, start: Any, address: Any, kind: Any, ip: Any) -> Any:
    """An access of the core, as :func:`archgym.envs.cpu.hierarchy.access.access`, and prefetches.

    Returns:
        The level that served the access itself.
    """
    if looked_up(caches, start, address, kind):
        level = start
    else:
        level = serve(caches, start, address, kind, ip)
    if kind == LOAD and prefetchers.kind[1] > 0:
        _prefetch(caches, prefetchers, 1, address, ip, level == 1)
    if kind in (LOAD, FETCH):
        if level >= 2 and prefetchers.kind[2] > 0:
            _prefetch(caches, prefetchers, 2, address, ip, level == 2)
        elif level >= 3 and prefetchers.kind[3] > 0:
            _prefetch(caches, prefetchers, 3, address, ip, level == 3)
    return level


@compiled
def _prefetch(caches: Any, prefetchers: Any, level: Any, address: Any, ip: Any, hit: Any) -> Any:
    """Let the prefetcher of a level see an access, and fetch what it asks for."""
    shift = caches.shape[level, SHIFT]
    wanted(prefetchers, caches, level, address >> shift, ip, hit, 1 << (PAGE_SHIFT - shift))
    queue = prefetchers.line
    for number in range(1, queue[0] + 1):
        line, into = queue[number], level
        if line < 0:
            line = -1 - line
            into = min(3, caches.shape[level, NEXT])
        if looked_up(caches, level, line << shift, PREFETCH):
            continue
        if into != level and looked_up(caches, into, line << shift, PREFETCH):
            continue
        serve(caches, into, line << shift, PREFETCH, ip)


@entry
def run_references(sources: int) -> Any:
    """Pass references through the caches in the order of the program.

    Loads reach the prefetcher of the first level of data; loads and fetches that miss those below.
    A reference that straddles lines is looked up in each of them. The compiled function takes
    caches and prefetchers (``make_caches``, ``make_prefetchers``), the columns kind, address, size
    and ip of :class:`archgym.envs.cpu.hierarchy.references.References`, and two arrays that get
    the requests to memory (``-1 - address`` for a write) and the number of the reference that
    caused each. It returns the number of requests, which may exceed the length of the arrays.
    """

    def run_references(
        caches: Any,
        prefetchers: Any,
        kind: Any,
        address: Any,
        size: Any,
        ip: Any,
        requests: Any,
        owner: Any,
    ) -> Any:
        _ = sources
        sent = 0
        shape, held, note, counts = caches.shape, caches.line, caches.note, caches.counts
        for i in range(len(kind)):
            what = kind[i]
            start = 0 if what == FETCH else 1
            shift = shape[start, SHIFT]
            plain = shape[start, POLICY] == LRU and not (what == LOAD and prefetchers.kind[1] > 0)
            for line in range(address[i] >> shift, ((address[i] + size[i] - 1) >> shift) + 1):
                at = shape[start, FIRST] + (line & shape[start, MASK]) * shape[start, WAYS]
                # The latest line of its set stays where it is.
                if plain and held[at] == line and note[at] & PREFETCHED == 0:
                    counts[start, what, 0] += 1
                    if what == STORE:
                        note[at] |= DIRTY
                    continue
                caches.out[0] = 0
                reach(caches, prefetchers, start, line << shift, kind[i], ip[i])
                for request in range(caches.out[0]):
                    if sent < len(requests):
                        requests[sent] = caches.out[1 + request]
                        owner[sent] = i
                    sent += 1
        return sent

    return run_references
