"""Prefetches: what an access makes the prefetchers ask for, and when that is there."""

from __future__ import annotations

from typing import NamedTuple

from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.compiled import compiled, inlined
from archgym.envs.cpu.core.memory import missed
from archgym.envs.cpu.hierarchy.access import looked_up
from archgym.envs.cpu.hierarchy.layout import PREFETCH, Caches
from archgym.envs.cpu.hierarchy.prefetchers import Prefetchers, wanted

_LINE_BITS = 6
_LINES_OF_PAGE = 64
_L1D, _L2, _LLC = 1, 2, 3


class Ahead(NamedTuple):
    """The prefetchers of a core; each has its own queue, because one may set off the other."""

    l1d: Prefetchers
    l2: Prefetchers


@compiled
def _prefetch_l2(
    line: int, ip: int, at: int, hit: bool, m: k.Core, caches: Caches, ahead: Ahead
) -> None:
    wanted(ahead.l2, _L2, line, ip, hit, _LINES_OF_PAGE)
    for number in range(1, ahead.l2.line[0] + 1):
        wish = ahead.l2.line[number]
        into = _L2
        if wish < 0:
            wish = -1 - wish
            into = _LLC
        looked = at + number + m.t[k.LOOK_UP + _L2]
        if into == _LLC:
            looked += 1 + m.t[k.LOOK_UP + _LLC]
        if not looked_up(caches, into, wish << _LINE_BITS, PREFETCH):
            missed(into, wish << _LINE_BITS, PREFETCH, ip, looked, m, caches)


@compiled
def _prefetch_l1d(
    line: int, ip: int, at: int, hit: bool, m: k.Core, caches: Caches, ahead: Ahead
) -> None:
    wanted(ahead.l1d, _L1D, line, ip, hit, _LINES_OF_PAGE)
    for number in range(1, ahead.l1d.line[0] + 1):
        wish = ahead.l1d.line[number]
        into = _L1D
        if wish < 0:
            wish = -1 - wish
            into = _L2
        looked = at + number + m.t[k.LOOK_UP + 1]
        if not looked_up(caches, into, wish << _LINE_BITS, PREFETCH):
            missed(into, wish << _LINE_BITS, PREFETCH, ip, looked, m, caches)
            if ahead.l2.kind[_L2] > 0 and into == _L1D:
                found = m.s[k.SERVED_BY] == _L2
                _prefetch_l2(wish, ip, m.s[k.AT_L2], found, m, caches, ahead)


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
