"""From branch prediction to the decoder: when each instruction reaches the dispatch buffer."""

from __future__ import annotations

from archgym.envs.cpu.branch import layout as b
from archgym.envs.cpu.branch.unit import observe
from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.compiled import compiled, inlined
from archgym.envs.cpu.core.memory import answer
from archgym.envs.cpu.core.prefetching import Ahead, prefetch
from archgym.envs.cpu.core.slots import in_order
from archgym.envs.cpu.core.translation import translated
from archgym.envs.cpu.hierarchy.layout import FETCH, Caches

_LINE_BITS = 6
_WINDOW_BITS = 4
_PAGE_BITS = 12
# Fetch groups that the cache of instructions takes in a cycle.
_GROUPS = 2
_RING = k.RING - 1


@inlined
def enter(i: int, m: k.Core) -> int:
    """The cycle in which an instruction is predicted and enters the fetch buffer."""
    room = m.at[k.AT_PROMOTE, (i - m.c[k.FETCH_BUFFER]) & _RING] if i >= m.c[k.FETCH_BUFFER] else 0
    if m.s[k.BREAK]:
        m.s[k.BREAK] = 0
        room = max(room, m.s[k.FETCHED] + 1)
    return in_order(k.FETCHED, k.FETCHED_IN, max(room, m.s[k.RESUME]), m.c[k.FETCH_WIDTH], m)


@inlined
def predict(code: int, taken: bool, target: int, stream: k.Stream, m: k.Core, unit: b.Unit) -> int:
    """Predict an instruction; a taken branch ends the cycle of fetch. Returns what was wrong."""
    kind = stream.kind[code]
    verdict = observe(stream.ip[code], kind, taken, target, stream.shares[code], unit)
    if verdict != b.PREDICTED or taken:
        m.s[k.BREAK] = 1
    return verdict


@inlined
def _was_decoded(ip: int, at: int, m: k.Core) -> bool:
    """Whether the buffer of decoded instructions has an instruction's window of 16 bytes."""
    window = ip >> _WINDOW_BITS
    row = m.loop[window & (m.c[k.LOOP_SETS] - 1)]
    for way in range(m.c[k.LOOP_WAYS]):
        if row[way, 0] == window and row[way, 2] <= at:
            m.s[k.CLOCK] += 1
            row[way, 1] = m.s[k.CLOCK]
            return True
    return False


@inlined
def _keep_decoded(ip: int, at: int, m: k.Core) -> None:
    window = ip >> _WINDOW_BITS
    row = m.loop[window & (m.c[k.LOOP_SETS] - 1)]
    m.s[k.CLOCK] += 1
    oldest = 0
    for way in range(m.c[k.LOOP_WAYS]):
        if row[way, 0] == window:
            row[way, 1] = m.s[k.CLOCK]
            return
        if row[way, 1] < row[oldest, 1]:
            oldest = way
    row[oldest, 0] = window
    row[oldest, 1] = m.s[k.CLOCK]
    row[oldest, 2] = at


@compiled
def _fetch_group(
    code: int, at: int, stream: k.Stream, m: k.Core, caches: Caches, ahead: Ahead
) -> int:
    """When the line of an instruction is there, asked for at ``at``."""
    m.counts[k.N_FETCH_GROUPS] += 1
    ip = stream.ip[code]
    page = stream.code_page[code]
    look_up = m.t[k.LOOK_UP]
    known = translated(0, page, ip, at, stream, m, caches)
    ready = at + look_up if known <= at + look_up else known + look_up
    address = (m.frame[page] << _PAGE_BITS) | (ip & ((1 << _PAGE_BITS) - 1))
    there = answer(0, address, FETCH, ip, ready, m, caches) + 1
    prefetch(0, address, ip, ready, m, caches, ahead)
    return there


@inlined
def _fetched(
    code: int, entered: int, stream: k.Stream, m: k.Core, caches: Caches, ahead: Ahead
) -> int:
    """When an instruction that is not decoded yet is there: with its group, or in a new one."""
    line = stream.ip[code] >> _LINE_BITS
    if line != m.s[k.GROUP_LINE] or entered >= m.s[k.GROUP_ASKED]:
        asked = in_order(k.GROUP_ASKED, k.GROUPS_IN, entered + 2, _GROUPS, m)
        m.s[k.GROUP_LINE] = line
        m.s[k.GROUP_THERE] = _fetch_group(code, asked, stream, m, caches, ahead)
    return int(m.s[k.GROUP_THERE])


@inlined
def _fetched_meanwhile(
    code: int,
    entered: int,
    promoted: int,
    stream: k.Stream,
    m: k.Core,
    caches: Caches,
    ahead: Ahead,
) -> None:
    """Ask for the line of a decoded instruction that leaves the fetch buffer at ``promoted``."""
    asked = max(entered + 2, m.s[k.GROUP_ASKED])
    if asked == m.s[k.GROUP_ASKED] and m.s[k.GROUPS_IN] >= _GROUPS:
        asked += 1
    if asked < promoted:
        _fetched(code, entered, stream, m, caches, ahead)


@inlined
def decode(
    i: int, code: int, entered: int, stream: k.Stream, m: k.Core, caches: Caches, ahead: Ahead
) -> int:
    """The cycle in which an instruction leaves the decoder.

    It is ``-1 - cycle`` for one that was decoded before: those pass the decoder by, in order.
    """
    s, c = m.s, m.c
    ip = stream.ip[code]
    quick = _was_decoded(ip, entered + 1, m)
    checked = entered + 2
    there = checked if quick else _fetched(code, entered, stream, m, caches, ahead)
    buffer = c[k.DECODE_BUFFER]
    for way in range(2):
        if s[k.QUICK + way] >= buffer:
            left = m.quick_left[way, (s[k.QUICK + way] - buffer) & _RING]
            there = max(there, left)
    promoted = in_order(k.PROMOTED, k.PROMOTED_IN, there, c[k.FETCH_WIDTH], m)
    m.at[k.AT_PROMOTE, i & _RING] = promoted
    if quick and promoted > checked:
        # It waits in the fetch buffer, where its line is asked for although nothing needs it.
        _fetched_meanwhile(code, entered, promoted, stream, m, caches, ahead)
    earliest = promoted + c[k.DECODE_LATENCY]
    if i >= c[k.DISPATCH_BUFFER]:
        earliest = max(earliest, m.at[k.AT_DISPATCH, (i - c[k.DISPATCH_BUFFER]) & _RING])
    before = s[k.DECODED]
    if not quick and earliest <= before and s[k.SLOW_IN] >= c[k.DECODE_WIDTH]:
        earliest = before + 1
    decoded = in_order(k.DECODED, k.DECODED_IN, earliest, c[k.IN_ORDER_WIDTH], m)
    if decoded != before:
        s[k.SLOW_IN] = 0
    way = 0 if quick else 1
    m.quick_left[way, s[k.QUICK + way] & _RING] = decoded
    s[k.QUICK + way] += 1
    if quick:
        m.counts[k.N_LOOP_HITS] += 1
        return -1 - decoded
    s[k.SLOW_IN] += 1
    _keep_decoded(ip, decoded, m)
    return decoded
