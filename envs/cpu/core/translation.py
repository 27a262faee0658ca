"""Translation of addresses: two levels of TLBs and a page-table walk, as in ChampSim.

A page-table entry covers twelve bits of the address at each level above pages, and each page has a
table page of its own, as in ChampSim (commit 2ff2501). A walk begins at the lowest level that an
earlier walk of the region has found by then. Pages and tables are made at the first touch, which
takes the time of a minor fault each.
"""

from __future__ import annotations

from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.compiled import compiled, inlined
from archgym.envs.cpu.core.memory import answer
from archgym.envs.cpu.hierarchy.layout import TRANSLATION, Caches

_PAGE_BITS = 12
_REGION_BITS = 12
_LEVELS = 4


@inlined
def _next_frame(at: int, m: k.Core) -> int:
    """The next physical page, taken at ``at``."""
    place = m.s[k.PAGES] % m.frames.shape[0]
    frame = m.frames[place]
    m.taken_at[place] = at
    m.s[k.PAGES] += 1
    return int(frame)


@inlined
def _in_tlb(which: int, page: int, number: int, m: k.Core) -> bool:
    """Look a page up in a TLB by its address, and put it there if it was not."""
    row = m.tlb[which, number & (m.tlb_sets[which, 0] - 1)]
    m.s[k.CLOCK] += 1
    oldest = 0
    for way in range(m.tlb_sets[which, 1]):
        if row[way, 0] == page:
            row[way, 1] = m.s[k.CLOCK]
            return True
        if row[way, 1] < row[oldest, 1]:
            oldest = way
    row[oldest, 0] = page
    row[oldest, 1] = m.s[k.CLOCK]
    return False


@compiled
def _walk(page: int, ip: int, at: int, stream: k.Stream, m: k.Core, caches: Caches) -> int:
    """Walk the page table; returns when the walk is over."""
    number = stream.page[page]
    level = 1
    while level < _LEVELS and m.walked_at[level, stream.regions[page, level]] > at:
        level += 1
    table = int(m.frames[0]) << _PAGE_BITS
    if level < _LEVELS:
        table = m.walked[level, stream.regions[page, level]]
    entry = (number >> (_REGION_BITS * (level - 1))) & 0x1FF
    address = (table >> _PAGE_BITS << _PAGE_BITS) | (entry << 3)
    now = at
    while True:
        # The walker's requests wait a cycle for the data cache.
        taken = now + 1 + m.t[k.LOOK_UP + 1]
        now = answer(1, address, TRANSLATION, ip, taken, m, caches)
        if level == 0:
            break
        region = stream.regions[page, level - 1]
        frame = _next_frame(now, m)
        if m.tables[level - 1, region] < 0:
            m.tables[level - 1, region] = frame
            now += m.t[k.FAULT]
        entry = (number >> (_REGION_BITS * (level - 1))) & 0xFFF
        table = m.tables[level - 1, region] << _PAGE_BITS
        address = (table & ~0x7FF8) | (entry << 3)
        if level < _LEVELS:
            above = stream.regions[page, level]
            m.walked[level, above] = address
            m.walked_at[level, above] = min(m.walked_at[level, above], now)
        level -= 1
    if m.frame[page] < 0:
        m.frame[page] = _next_frame(now, m)
        now += m.t[k.FAULT]
    return int(now)


@inlined
def _there(which: int, page: int, at: int, m: k.Core) -> int:
    """When a TLB that holds a page, perhaps not yet, answers a question of ``at``."""
    there = m.page_there[which, page]
    asked = m.page_asked[which, page]
    if there > at and at < asked:
        # It asks before the access that the model took for the first one: it is the first.
        there -= asked - at
        m.page_there[which, page] = there
        m.page_asked[which, page] = at
    return int(max(at, there))


@compiled
def _missed(
    which: int, page: int, ip: int, at: int, stream: k.Stream, m: k.Core, caches: Caches
) -> int:
    """When a first-level TLB has a page that it has missed at ``at``."""
    m.counts[k.N_ITLB_MISS + 2 * which] += 1
    second = at + m.t[k.STLB_HIT]
    m.counts[k.N_STLB] += 1
    if _in_tlb(2, page, stream.page[page], m):
        second = _there(2, page, second, m)
    else:
        m.counts[k.N_STLB_MISS] += 1
        m.page_asked[2, page] = second
        second = _walk(page, ip, second, stream, m, caches) + 1 + m.t[k.STLB_FILL]
        m.page_there[2, page] = second
    there = second + 1 + m.t[k.TLB_FILL]
    m.page_there[which, page] = there
    m.page_asked[which, page] = at
    return int(there)


@inlined
def translated(
    which: int, page: int, ip: int, at: int, stream: k.Stream, m: k.Core, caches: Caches
) -> int:
    """When a first-level cache knows the physical page.

    Args:
        which: TLB: 0 of code, 1 of data.
        page: number of the page in the stream.
        ip: address of the instruction.
        at: when the cache takes the access.
        stream: the stream.
        m: the core.
        caches: the caches.
    """
    m.counts[k.N_ITLB + 2 * which] += 1
    soonest = at + 1 + m.t[k.TLB_HIT]
    if _in_tlb(which, page, stream.page[page], m):
        return _there(which, page, soonest, m)
    return int(_missed(which, page, ip, soonest, stream, m, caches))
