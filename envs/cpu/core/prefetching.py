"""Prefetches: what an access makes the prefetchers ask for, and when that is there.

As in ChampSim, each level looks up one prefetch in a cycle, those of its prefetcher wait in a queue
and are dropped if it is full, and ``ip_stride`` and ``ampm`` fill the level below while half of the
misses that a level can have are under way.
"""

from __future__ import annotations

from typing import NamedTuple

from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.compiled import compiled, inlined
from archgym.envs.cpu.core.memory import missed, under_way
from archgym.envs.cpu.core.slots import take, taken_in
from archgym.envs.cpu.hierarchy.access import looked_up
from archgym.envs.cpu.hierarchy.config import PREFETCHERS
from archgym.envs.cpu.hierarchy.layout import PREFETCH, Caches
from archgym.envs.cpu.hierarchy.prefetchers import Prefetchers, wanted

_LINE_BITS = 6
_LINES_OF_PAGE = 64
_L1D, _L2, _LLC = 1, 2, 3
_L1D_QUEUE, _L2_QUEUE = 8, 16
_IP_STRIDE, _AMPM = PREFETCHERS.index("ip_stride"), PREFETCHERS.index("ampm")


class Ahead(NamedTuple):
    """The prefetchers of a core; each has its own queue, because one may set off the other."""

    l1d: Prefetchers
    l2: Prefetchers


@inlined
def _queued(row: int, at: int, places: int, m: k.Core) -> int:
    """The cycle in which a prefetch of ``at`` leaves the queue; -1 if the queue is full."""
    cycle = at + 1
    while taken_in(row, cycle, m) > 0:
        cycle += 1
        if cycle - at > places:
            return -1
    return take(row, cycle, 1, m)


@compiled
def _fetch_ahead(
    level: int, wish: int, ip: int, at: int, m: k.Core, caches: Caches, ahead: Prefetchers
) -> int:
    """Look a wish of a level's prefetcher up, and fill that level or the one below it.

    Returns:
        1 if the level below was asked; 0 if the level had the line; -1 if the queue is full.
    """
    row, places, hurried = k.PORT_L2_PREFETCH, _L2_QUEUE, False
    if level == _L1D:
        row, places = k.PORT_L1D_PREFETCH, _L1D_QUEUE
    cycle = _queued(row, at, places, m)
    if cycle < 0:
        return -1
    if ahead.kind[level] in (_IP_STRIDE, _AMPM):
        hurried = 2 * under_way(level, cycle, m) >= m.t[k.MSHRS + level]
    address = max(wish, -1 - wish) << _LINE_BITS
    looked = cycle + m.t[k.LOOK_UP + level]
    if looked_up(caches, level, address, PREFETCH):
        return 0
    into = level
    if wish < 0 or hurried:
        into = level + 1
        looked += 1 + m.t[k.LOOK_UP + into]
        m.s[k.SERVED_BY] = into
        m.s[k.AT_L2] = looked
        if looked_up(caches, into, address, PREFETCH):
            return 1
    missed(into, address, PREFETCH, ip, looked, m, caches)
    return 1


@compiled
def _prefetch_l2(
    line: int, ip: int, at: int, hit: bool, m: k.Core, caches: Caches, ahead: Ahead
) -> None:
    wanted(ahead.l2, caches, _L2, line, ip, hit, _LINES_OF_PAGE)
    for number in range(1, ahead.l2.line[0] + 1):
        if _fetch_ahead(_L2, ahead.l2.line[number], ip, at, m, caches, ahead.l2) < 0:
            return


@compiled
def _prefetch_l1d(
    line: int, ip: int, at: int, hit: bool, m: k.Core, caches: Caches, ahead: Ahead
) -> None:
    wanted(ahead.l1d, caches, _L1D, line, ip, hit, _LINES_OF_PAGE)
    for number in range(1, ahead.l1d.line[0] + 1):
        wish = ahead.l1d.line[number]
        asked = _fetch_ahead(_L1D, wish, ip, at, m, caches, ahead.l1d)
        if asked < 0:
            return
        if asked > 0 and ahead.l2.kind[_L2] > 0:
            found = m.s[k.SERVED_BY] == _L2
            _prefetch_l2(max(wish, -1 - wish), ip, m.s[k.AT_L2], found, m, caches, ahead)


@inlined
def prefetch(
    first: int, address: int, ip: int, at: int, m: k.Core, caches: Caches, ahead: Ahead
) -> None:
    """Show the prefetchers a load or a fetch that the caches have just served.

    Args:
        first: level that was asked: 0 for code, 1 for data.
        address: physical address, bytes.
        ip: address of the instruction.
        at: when the first level has looked the line up.
        m: the core.
        caches: the caches.
        ahead: the prefetchers.
    """
    served = m.s[k.SERVED_BY]
    if ahead.l2.kind[_L2] > 0 and served >= _L2:
        line = address >> _LINE_BITS
        _prefetch_l2(line, ip, m.s[k.AT_L2], served == _L2, m, caches, ahead)
    if first == _L1D and ahead.l1d.kind[_L1D] > 0:
        _prefetch_l1d(address >> _LINE_BITS, ip, at, served == _L1D, m, caches, ahead)
