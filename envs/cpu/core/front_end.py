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


@inlined
def enter(i: int, m: k.Core) -> int:
    """The cycle in which an instruction is predicted and enters the fetch buffer."""
    before = i - m.c[k.FETCH_BUFFER]
    room = m.at[k.AT_PROMOTE, before & m.c[k.RING_MASK]] if before >= 0 else 0
    if m.s[k.BREAK]:
        m.s[k.BREAK] = 0
        room = max(room, m.s[k.FETCHED] + 1)
    return in_order(k.FETCHED, k.FETCHED_IN, max(room, m.s[k.RESUME]), m.c[k.FETCH_WIDTH], m)


@inlined
def predict(static: k.Instruction, taken: bool, target: int, m: k.Core, unit: b.Unit) -> int:
    """Predict an instruction; a taken branch ends the cycle of fetch. Returns what was wrong."""
    verdict = observe(static.ip, static.kind, taken, target, static.shares != 0, unit)
    if verdict != b.PREDICTED or taken:
        m.s[k.BREAK] = 1
    return verdict


@inlined
def _was_decoded(ip: int, at: int, m: k.Core) -> bool:
    """Whether the buffer of decoded instructions has an instruction's window of 16 bytes."""
    window = ip >> _WINDOW_BITS
    row = m.loop[window & (m.c[k.LOOP_SETS] - 1)]
    for way in range(m.c[k.LOOP_WAYS]):
        if row[way, 0] == window:
            filled = row[way, 1]
            if filled > at:
                return False
            _to_front(row, way, window, filled)
            return True
    return False


@inlined
def _to_front(row: k.Array, way: int, window: int, filled: int) -> None:
    """Put a window before those of its set that have been used before it."""
    for place in range(way, 0, -1):
        row[place, 0] = row[place - 1, 0]
        row[place, 1] = row[place - 1, 1]
    row[0, 0] = window
    row[0, 1] = filled


@inlined
def _keep_decoded(ip: int, at: int, m: k.Core) -> None:
    window = ip >> _WINDOW_BITS
    row = m.loop[window & (m.c[k.LOOP_SETS] - 1)]
    last = m.c[k.LOOP_WAYS] - 1
    for way in range(last):
        if row[way, 0] == window:
            _to_front(row, way, window, row[way, 1])
            return
    _to_front(row, last, window, row[last, 1] if row[last, 0] == window else at)


@compiled
def _fetch_group(
    static: k.Instruction, at: int, stream: k.Stream, m: k.Core, caches: Caches, ahead: Ahead
) -> int:
    """When the line of an instruction is there, asked for at ``at``."""
    m.counts[k.N_FETCH_GROUPS] += 1
    ip = static.ip
    page = static.page
    look_up = m.t[k.LOOK_UP]
    known = translated(0, page, ip, at, stream, m, caches)
    ready = at + look_up if known <= at + look_up else known + look_up
    address = (m.frame[page] << _PAGE_BITS) | (ip & ((1 << _PAGE_BITS) - 1))
    there = answer(0, address, FETCH, ip, ready, m, caches) + 1
    prefetch(0, address, ip, ready, m, caches, ahead)
    return there


@inlined
def _fetched(
    static: k.Instruction, entered: int, stream: k.Stream, m: k.Core, caches: Caches, ahead: Ahead
) -> int:
    """When an instruction that is not decoded yet is there: with its group, or in a new one."""
    line = static.ip >> _LINE_BITS
    if line != m.s[k.GROUP_LINE] or entered >= m.s[k.GROUP_ASKED]:
        asked = in_order(k.GROUP_ASKED, k.GROUPS_IN, entered + 2, _GROUPS, m)
        m.s[k.GROUP_LINE] = line
        m.s[k.GROUP_THERE] = _fetch_group(static, asked, stream, m, caches, ahead)
    return int(m.s[k.GROUP_THERE])


@inlined
def _fetched_meanwhile(
    static: k.Instruction,
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
        _fetched(static, entered, stream, m, caches, ahead)


@inlined
def decode(
    i: int,
    static: k.Instruction,
    entered: int,
    stream: k.Stream,
    m: k.Core,
    caches: Caches,
    ahead: Ahead,
) -> int:
    """The cycle in which an instruction leaves the decoder.

    It is ``-1 - cycle`` for one that was decoded before: those pass the decoder by, in order.
    """
    s, c = m.s, m.c
    ip = static.ip
    quick = _was_decoded(ip, entered + 1, m)
    checked = entered + 2
    there = checked if quick else _fetched(static, entered, stream, m, caches, ahead)
    buffer = c[k.DECODE_BUFFER]
    for way in range(2):
        if s[k.QUICK + way] >= buffer:
            left = m.quick_left[way, (s[k.QUICK + way] - buffer) & c[k.RING_MASK]]
            there = max(there, left)
    promoted = in_order(k.PROMOTED, k.PROMOTED_IN, there, c[k.FETCH_WIDTH], m)
    m.at[k.AT_PROMOTE, i & c[k.RING_MASK]] = promoted
    if quick and promoted > checked:
        # It waits in the fetch buffer, where its line is asked for although nothing needs it.
        _fetched_meanwhile(static, entered, promoted, stream, m, caches, ahead)
    earliest = promoted + c[k.DECODE_LATENCY]
    if i >= c[k.DISPATCH_BUFFER]:
        before_it = i - c[k.DISPATCH_BUFFER]
        earliest = max(earliest, m.at[k.AT_DISPATCH, before_it & c[k.RING_MASK]])
    before = s[k.DECODED]
    if not quick and earliest <= before and s[k.SLOW_IN] >= c[k.DECODE_WIDTH]:
        earliest = before + 1
    decoded = in_order(k.DECODED, k.DECODED_IN, earliest, c[k.IN_ORDER_WIDTH], m)
    if decoded != before:
        s[k.SLOW_IN] = 0
    way = 0 if quick else 1
    m.quick_left[way, s[k.QUICK + way] & c[k.RING_MASK]] = decoded
    s[k.QUICK + way] += 1
    if quick:
        m.counts[k.N_LOOP_HITS] += 1
        return -1 - decoded
    s[k.SLOW_IN] += 1
    _keep_decoded(ip, decoded, m)
    return decoded
