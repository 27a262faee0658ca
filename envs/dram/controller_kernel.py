"""Compiled event loop of the memory controller; :mod:`archgym.envs.dram.controller` calls it.

Time is in clock cycles. The loop jumps to the next cycle in which a request arrives, a refresh is
due or a command becomes legal, so idle time costs nothing. In one cycle, in this order: the
request at the door is taken if a buffer has room; the refresh manager acts; one command is issued,
which may free the slot that the request at the door waits for; the banks choose their next
commands.

Each bank keeps its queued requests in a doubly linked list over request numbers (two lists, reads
and writes, for the schedulers that keep them apart), its row hits counted and the oldest of them
known. It proposes one command, whose earliest cycle is the later of the bank's own (``READY``) and
that of its command kind and bank group (``limits``). Proposals change only when something happens
to the bank, so that a cycle costs one scan over the banks.

All compiled code stays in this file: numba's cache notices changes of no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from numba import njit

Array = Any
Compiled = TypeVar("Compiled", bound=Callable[..., Any])

# Page policies, schedulers, scheduler buffers, response queues, arbiters: codes of the settings.
OPEN, OPEN_ADAPTIVE, CLOSED, CLOSED_ADAPTIVE = range(4)
FIFO, FR_FCFS, FR_FCFS_GRP, GRP_FR_FCFS, GRP_FR_FCFS_WM = range(5)
BANKWISE, READ_WRITE, SHARED = range(3)
IN_ORDER_OF_DATA, IN_ORDER_OF_ARRIVAL = range(2)
ARB_SIMPLE, ARB_FIFO, ARB_REORDER = range(3)
# Commands, as they stand in the command log.
NOP, ACT, PRE, RD, RDA, WR, WRA, PREAB, REFAB = range(9)
N_COMMANDS = 9

# Entries of the settings vector `c`.
C_PAGE, C_SCHEDULER, C_BUFFER, C_BUFFER_SIZE, C_RESPONSE, C_REFRESH, C_POSTPONED = range(7)
C_PULLED_IN, C_ARBITER, C_MAX_ACTIVE, C_STRICT, C_HIGH, C_LOW, C_THINK_FW = range(7, 14)
C_RETURN, C_ARB_FW, C_ARB_BW, C_END_RESPONSE, C_DRAMSYS_RULES = range(14, 19)
N_SETTINGS = 19
# Entries of the timing vector `t`.
T_BANKS, T_GROUPS, T_RCD, T_RP, T_RAS, T_RC, T_CCD_S, T_CCD_L = range(8)
T_RRD_S, T_RRD_L, T_FAW, T_RTP, T_RD_WR, T_WR_RD_S, T_WR_RD_L, T_WR_PRE = range(8, 16)
T_RD_DATA, T_WR_DATA, T_REFI, T_RFC = range(16, 20)
N_TIMINGS = 20
# Columns of the bank table.
IS_OPEN, OPEN_ROW, KEEP, CURRENT, NEXT_ACT, NEXT_PRE, NEXT_COL, NEXT_RDA, ACT_AT = range(9)
GROUP = 9
BANK_COLUMNS = 10
# Rows of the proposal table.
PROPOSED, READY, LIMIT_AT, FOR_REQUEST = range(4)
PROPOSAL_ROWS = 4
# Columns of the queue and the link table.
HEAD, TAIL, COUNT, HITS, FIRST_HIT = range(5)
QUEUE_COLUMNS = 5
AFTER, BEFORE = range(2)
# Entries of the state vector `s`.
S_READS, S_WRITES, S_LAST_BANK, S_DIRECTION, S_ALL_DIRTY, S_BUSY, S_OPEN_BANKS = range(7)
S_DOOR, S_DOOR_AT, S_ARBITER_AT, S_BUS, S_PREAB, S_REFAB, S_COLUMNS = range(7, 14)
S_LAST_C, S_LAST_END, S_ENDED, S_NEXT_C, S_NEXT_I, S_FINISH, S_BLOCKED = range(14, 21)
S_DUE, S_PULLING, S_OWED, S_REFRESH, S_ACT0, S_ACT1, S_ACT2, S_ACT3 = range(21, 29)
S_ACTIVE_FROM, S_CLOSED_AT, S_ACTIVE, S_PRECHARGED, S_HITS, S_PRECHARGES, S_LOGGED = range(29, 36)
S_OVERDUE, S_WAKE = range(36, 38)
# The last requests with a column command, in a ring.
S_RECENT = 38
N_RECENT = 8
N_STATE = S_RECENT + N_RECENT
# Entries of the output vector; the first ones count the commands by their code.
O_PRECHARGES, O_HITS, O_ACTIVE, O_PRECHARGED, O_END, O_LOGGED, O_STATUS = range(
    N_COMMANDS, N_COMMANDS + 7
)
N_OUTPUTS = N_COMMANDS + 7
FINISHED, STUCK = range(2)

# Proposals are compared as (cycle, request number) in one integer.
ID_BITS = 24
MAX_REQUESTS = 1 << ID_BITS
NEVER = 1 << 38
NO_PROPOSAL = NEVER << ID_BITS


class Machine(NamedTuple):
    """All that a run reads and writes.

    Attributes:
        arrival: cycle in which each request is offered, shape (n,).
        bank_of: bank of each request, shape (n,).
        rows: row of each request, shape (n,).
        is_write: 1 for a write, shape (n,).
        address: byte address, shape (n,).
        t: timing vector, shape (N_TIMINGS,).
        c: settings vector, shape (N_SETTINGS,).
        done: filled: cycle in which the initiator has each response, shape (n,).
        free_at: filled: cycle from which the initiator could offer each request, when the one
            before had left it, shape (n,).
        out: filled: command counts and totals, shape (N_OUTPUTS,).
        log: filled as far as it reaches: cycle, command, bank and row of each command, shape
            (capacity, 4); bank and row are -1 for PREAB and REFAB.
        s: state vector, shape (N_STATE,).
        limits: earliest cycle by command kind (none or PRE, ACT, read, write) and bank group,
            shape (4 * groups,).
        banks: bank table, shape (banks, BANK_COLUMNS).
        proposals: next command of each bank, its earliest cycle, place in ``limits`` and request,
            shape (PROPOSAL_ROWS, banks).
        queues: queue table, lists 2 b and 2 b + 1 of bank b, shape (2 * banks, QUEUE_COLUMNS).
        links: neighbours of each request in its list, shape (n, 2).
        ends: cycles in which the arbiter's active transactions ended, in order, shape (n,).
        held: data that wait in a reordering response queue, shape (n,).
        at_arbiter: responses that wait in a reordering arbiter, shape (n,).
    """

    arrival: Array
    bank_of: Array
    rows: Array
    is_write: Array
    address: Array
    t: Array
    c: Array
    done: Array
    free_at: Array
    out: Array
    log: Array
    s: Array
    limits: Array
    banks: Array
    proposals: Array
    queues: Array
    links: Array
    ends: Array
    held: Array
    at_arbiter: Array


# Without numba's reference counting: compiled code makes no array here, and counting references to
# those passed around would take most of the time.
_OPTIONS = {"cache": True, "nogil": True, "_nrt": False}


def _compiled(function: Compiled) -> Compiled:
    return cast(Compiled, njit(**_OPTIONS)(function))


def _inlined(function: Compiled) -> Compiled:
    return cast(Compiled, njit(forceinline=True, **_OPTIONS)(function))


@_inlined
def _enqueue(q: int, request: int, hit: bool, m: Machine) -> None:
    tail = m.queues[q, TAIL]
    m.links[request, AFTER] = -1
    m.links[request, BEFORE] = tail
    if tail >= 0:
        m.links[tail, AFTER] = request
    else:
        m.queues[q, HEAD] = request
    m.queues[q, TAIL] = request
    m.queues[q, COUNT] += 1
    if hit:
        if m.queues[q, HITS] == 0:
            m.queues[q, FIRST_HIT] = request
        m.queues[q, HITS] += 1


@_inlined
def _dequeue(q: int, request: int, m: Machine) -> None:
    """Take a request, which is a row hit, out of its list."""
    after = m.links[request, AFTER]
    before = m.links[request, BEFORE]
    if before >= 0:
        m.links[before, AFTER] = after
    else:
        m.queues[q, HEAD] = after
    if after >= 0:
        m.links[after, BEFORE] = before
    else:
        m.queues[q, TAIL] = before
    m.queues[q, COUNT] -= 1
    m.queues[q, HITS] -= 1
    if m.queues[q, HITS] > 0 and m.queues[q, FIRST_HIT] == request:
        while m.rows[after] != m.rows[request]:
            after = m.links[after, AFTER]
        m.queues[q, FIRST_HIT] = after


@_inlined
def _find_hits(q: int, open_row: int, m: Machine) -> None:
    hits = 0
    request = m.queues[q, HEAD]
    while request >= 0:
        if m.rows[request] == open_row:
            if hits == 0:
                m.queues[q, FIRST_HIT] = request
            hits += 1
        request = int(m.links[request, AFTER])
    m.queues[q, HITS] = hits


@_inlined
def _head_or_hit(q: int, is_open: int, m: Machine) -> int:
    if is_open and m.queues[q, HITS] > 0:
        return int(m.queues[q, FIRST_HIT])
    return int(m.queues[q, HEAD])


@_compiled
def _same_direction_hit(first: int, direction: int, open_row: int, m: Machine) -> int:
    """Oldest row hit of the wanted direction that no older hit of the same address precedes."""
    request = first
    while request >= 0:
        if m.rows[request] == open_row and m.is_write[request] == direction:
            older = first
            while older != request and not (
                m.rows[older] == open_row and m.address[older] == m.address[request]
            ):
                older = int(m.links[older, AFTER])
            if older == request:
                return request
        request = int(m.links[request, AFTER])
    return first


@_inlined
def _next_request(b: int, direction: int, m: Machine) -> int:
    """Request that the scheduler offers to a bank, -1 if none."""
    scheduler = m.c[C_SCHEDULER]
    is_open = m.banks[b, IS_OPEN]
    q = 2 * b
    if scheduler == FR_FCFS:
        return _head_or_hit(q, is_open, m)
    if scheduler == FIFO:
        return int(m.queues[q, HEAD])
    if scheduler == FR_FCFS_GRP:
        if is_open and m.queues[q, HITS] > 0:
            return _same_direction_hit(m.queues[q, FIRST_HIT], direction, m.banks[b, OPEN_ROW], m)
        return int(m.queues[q, HEAD])
    if m.queues[q + direction, COUNT] > 0:
        return _head_or_hit(q + direction, is_open, m)
    if scheduler == GRP_FR_FCFS:
        return _head_or_hit(q + 1 - direction, is_open, m)
    return -1


@_inlined
def _closes_row(q: int, open_row: int, m: Machine) -> bool:
    """Whether an adaptive page policy closes the row with the next column command."""
    if m.c[C_SCHEDULER] == FIFO:
        second = int(m.links[m.queues[q, HEAD], AFTER])
        more_hits = second >= 0 and m.rows[second] == open_row
    else:
        more_hits = m.queues[q, HITS] >= 2
    if m.c[C_PAGE] == CLOSED_ADAPTIVE:
        return not more_hits
    return m.queues[q, COUNT] >= 2 and not more_hits


@_inlined
def _next_command(b: int, direction: int, m: Machine) -> int:
    """Choose the bank's request (``CURRENT``) and return the command that it needs now.

    Once a row was opened for a request, only a request for the same row replaces it.
    """
    request = _next_request(b, direction, m)
    if request < 0:
        return NOP
    open_row = m.banks[b, OPEN_ROW]
    if m.banks[b, KEEP] == 0 or m.rows[request] == open_row:
        m.banks[b, CURRENT] = request
    else:
        request = m.banks[b, CURRENT]
    if m.banks[b, IS_OPEN] == 0:
        return ACT
    write = int(m.is_write[request])
    page = m.c[C_PAGE]
    if page == CLOSED:
        return RDA + 2 * write
    if m.rows[request] != open_row:
        return PRE
    if page != OPEN:
        q = 2 * b
        if m.c[C_SCHEDULER] == GRP_FR_FCFS:
            q += write
        elif m.c[C_SCHEDULER] == GRP_FR_FCFS_WM:
            q += direction
        if _closes_row(q, open_row, m):
            return RDA + 2 * write
    return RD + 2 * write


@_inlined
def _propose(b: int, m: Machine) -> None:
    """Let a bank choose its command anew and note from when the bank itself allows it."""
    command = NOP
    if not m.s[S_BLOCKED]:
        was_idle = m.banks[b, CURRENT] < 0
        command = _next_command(b, m.s[S_DIRECTION], m)
        if was_idle and m.banks[b, CURRENT] >= 0:
            m.s[S_BUSY] += 1
    groups = m.t[T_GROUPS]
    g = m.banks[b, GROUP]
    ready = NEVER
    at = 0
    if command >= RD:
        ready = m.banks[b, NEXT_COL]
        if command == RDA:
            ready = max(ready, m.banks[b, NEXT_RDA])
        at = g + (3 * groups if command >= WR else 2 * groups)
        if m.c[C_STRICT] and m.banks[b, CURRENT] != m.s[S_COLUMNS]:
            ready = NEVER
    elif command == ACT:
        ready = m.banks[b, NEXT_ACT]
        at = g + groups
    elif command == PRE:
        ready = m.banks[b, NEXT_PRE]
    m.proposals[PROPOSED, b] = command
    m.proposals[READY, b] = ready
    m.proposals[LIMIT_AT, b] = at
    m.proposals[FOR_REQUEST, b] = m.banks[b, CURRENT] if command != NOP else 0


@_inlined
def _pick(least: int, m: Machine) -> int:
    """Earliest proposal from cycle ``least`` on, then oldest: ``cycle << ID_BITS | request``."""
    best = NO_PROPOSAL
    for b in range(m.banks.shape[0]):
        ready = max(m.proposals[READY, b], m.limits[m.proposals[LIMIT_AT, b]], least)
        best = min(best, (ready << ID_BITS) | m.proposals[FOR_REQUEST, b])
    return best


@_compiled
def _next_ready(now: int, m: Machine) -> int:
    """Earliest cycle after ``now`` in which a proposal becomes legal."""
    soonest = NEVER
    for b in range(m.banks.shape[0]):
        ready = max(m.proposals[READY, b], m.limits[m.proposals[LIMIT_AT, b]], m.s[S_BUS])
        if ready > now:
            soonest = min(soonest, ready)
    return soonest


@_compiled
def _next_response(now: int, m: Machine) -> int:
    """Next cycle after ``now`` in which the controller handles a response (in data order)."""
    soonest = NEVER
    if m.c[C_RESPONSE] == IN_ORDER_OF_DATA:
        for i in range(min(N_RECENT, m.s[S_COLUMNS])):
            recent = m.s[S_RECENT + i]
            if m.c[C_ARBITER] == ARB_REORDER:
                sent = m.at_arbiter[recent]  # it may still wait for its turn there
            else:
                sent = m.done[recent] - m.c[C_ARB_BW]
            if sent <= now and m.c[C_ARBITER] == ARB_SIMPLE:
                sent += m.c[C_ARB_BW] + m.c[C_END_RESPONSE]
            if sent > now:
                soonest = min(soonest, sent)
    return soonest


@_inlined
def _raise(start: int, groups: int, own: int, same: int, other: int, m: Machine) -> None:
    """Raise the limits of one command kind: ``same`` in the own bank group, ``other`` elsewhere."""
    for g in range(groups):
        m.limits[start + g] = max(m.limits[start + g], same if g == own else other)


@_inlined
def _has_space(m: Machine) -> bool:
    """Whether the buffers take one more request, of whatever bank and direction.

    The bankwise buffer looks at the bank of the request that came last.
    """
    size = m.c[C_BUFFER_SIZE]
    if m.c[C_BUFFER] == BANKWISE:
        q = 2 * m.s[S_LAST_BANK]
        return bool(m.queues[q, COUNT] + m.queues[q + 1, COUNT] < size)
    if m.c[C_BUFFER] == SHARED:
        return bool(m.s[S_READS] + m.s[S_WRITES] < size)
    return bool(m.s[S_READS] < size and m.s[S_WRITES] < size)


@_inlined
def _update_write_mode(m: Machine) -> None:
    """Watermark scheduler: switch between serving reads and serving writes."""
    if m.s[S_DIRECTION] == 1:
        if m.s[S_WRITES] <= m.c[C_LOW] and m.s[S_READS] != 0:
            m.s[S_DIRECTION] = 0
            m.s[S_ALL_DIRTY] = 1
    elif m.s[S_WRITES] > m.c[C_HIGH] or m.s[S_READS] == 0:
        m.s[S_DIRECTION] = 1
        m.s[S_ALL_DIRTY] = 1


@_inlined
def _offer_next(now: int, end: int, m: Machine) -> None:
    """Bring the next request to the door; ``end`` is when the one before left it."""
    door = m.s[S_DOOR] + 1
    m.s[S_DOOR] = door
    if door == m.arrival.shape[0]:
        m.s[S_DOOR_AT] = NEVER
    elif m.c[C_ARBITER] == ARB_SIMPLE:
        offered = max(m.arrival[door], end)
        m.free_at[door] = end
        m.s[S_DOOR_AT] = max(offered + m.c[C_ARB_FW] + m.c[C_THINK_FW], now + 1)
    else:
        m.free_at[door] = m.s[S_ARBITER_AT]
        m.s[S_DOOR_AT] = NEVER
        m.s[S_ARBITER_AT] = end
        _pass_arbiter(m)


@_inlined
def _pass_arbiter(m: Machine) -> None:
    """Take the waiting request into the arbiter if fewer than the allowed ones are active.

    Until then ``S_DOOR_AT`` is NEVER and ``S_ARBITER_AT`` holds when the door was left.
    """
    door = m.s[S_DOOR]
    waits_for = door - m.c[C_MAX_ACTIVE]
    if waits_for < m.s[S_ENDED]:
        taken = max(m.arrival[door], m.free_at[door])
        if waits_for >= 0:
            taken = max(taken, m.ends[waits_for])
        m.s[S_DOOR_AT] = max(taken + m.c[C_ARB_FW], m.s[S_ARBITER_AT] + 1) + m.c[C_THINK_FW]
        m.s[S_ARBITER_AT] = taken


@_inlined
def _take_request(now: int, end: int, m: Machine) -> int:
    """Store the request at the door; returns its bank."""
    request = m.s[S_DOOR]
    b = int(m.bank_of[request])
    write = int(m.is_write[request])
    scheduler = m.c[C_SCHEDULER]
    q = 2 * b + (write if scheduler >= GRP_FR_FCFS else 0)
    hit = m.banks[b, IS_OPEN] == 1 and m.rows[request] == m.banks[b, OPEN_ROW]
    _enqueue(q, request, hit, m)
    m.s[S_LAST_BANK] = b
    m.s[S_READS] += 1 - write
    m.s[S_WRITES] += write
    if scheduler == GRP_FR_FCFS_WM:
        _update_write_mode(m)
    _offer_next(now, end, m)
    return b


@_inlined
def _deliver(r: int, at: int, m: Machine) -> None:
    """Hand a response from the arbiter to the initiator, which takes one a clock."""
    if m.c[C_ARBITER] == ARB_SIMPLE:
        m.done[r] = at + m.c[C_ARB_BW]
        m.s[S_LAST_END] = m.done[r] + m.c[C_END_RESPONSE]
    else:
        m.done[r] = max(at + m.c[C_ARB_BW], m.s[S_LAST_END] + 1)
        m.s[S_LAST_END] = m.done[r] + m.c[C_END_RESPONSE]
        m.ends[m.s[S_ENDED]] = m.s[S_LAST_END]
        m.s[S_ENDED] += 1
    m.s[S_FINISH] = max(m.s[S_FINISH], m.done[r])


@_inlined
def _leave_controller(r: int, data_end: int, m: Machine) -> None:
    """Send a response from the response queue to the arbiter."""
    if m.c[C_ARBITER] == ARB_SIMPLE:
        at = max(data_end, m.s[S_LAST_END])
    else:
        at = max(data_end, m.s[S_LAST_C])
        m.s[S_LAST_C] = at
    if m.c[C_ARBITER] == ARB_REORDER:
        m.at_arbiter[r] = at
        while m.s[S_NEXT_I] < m.at_arbiter.shape[0] and m.at_arbiter[m.s[S_NEXT_I]] >= 0:
            _deliver(m.s[S_NEXT_I], m.at_arbiter[m.s[S_NEXT_I]], m)
            m.s[S_NEXT_I] += 1
    else:
        _deliver(r, at, m)


@_inlined
def _respond(r: int, data_end: int, m: Machine) -> None:
    """Queue the response of a request whose data are through at ``data_end``."""
    if m.c[C_RESPONSE] == IN_ORDER_OF_DATA:
        _leave_controller(r, data_end, m)
    else:
        m.held[r] = data_end
        while m.s[S_NEXT_C] < m.held.shape[0] and m.held[m.s[S_NEXT_C]] >= 0:
            _leave_controller(m.s[S_NEXT_C], m.held[m.s[S_NEXT_C]], m)
            m.s[S_NEXT_C] += 1
    if m.c[C_ARBITER] != ARB_SIMPLE and m.s[S_DOOR_AT] == NEVER and m.s[S_DOOR] < m.done.shape[0]:
        _pass_arbiter(m)


@_inlined
def _manage_refresh(now: int, m: Machine) -> None:
    """All-bank refresh manager: postpone, pull in or force; sets ``S_REFRESH``."""
    m.s[S_REFRESH] = NOP
    if now < m.s[S_DUE]:
        return
    if now >= m.s[S_DUE] + m.t[T_REFI]:
        m.s[S_DUE] += m.t[T_REFI]
        m.s[S_PULLING] = 0
    idle = m.s[S_BUSY] == 0
    if m.s[S_PULLING]:
        if idle:
            m.s[S_REFRESH] = REFAB
        else:
            m.s[S_PULLING] = 0
            m.s[S_DUE] += m.t[T_REFI]
        return
    if m.s[S_OWED] == m.c[C_POSTPONED]:
        if not m.s[S_BLOCKED]:
            m.s[S_BLOCKED] = 1
            for b in range(m.t[T_BANKS]):
                m.proposals[PROPOSED, b] = NOP
                m.proposals[READY, b] = NEVER
                m.proposals[LIMIT_AT, b] = 0
                m.proposals[FOR_REQUEST, b] = 0
    elif not idle:
        m.s[S_OWED] += 1
        m.s[S_DUE] += m.t[T_REFI]
        return
    m.s[S_REFRESH] = PREAB if m.s[S_OPEN_BANKS] > 0 else REFAB


@_compiled
def _skip_idle_refreshes(m: Machine) -> None:
    """Count at once the refreshes of a long idle time, all but the last, if each is like the other.

    They are when no request waits, the refresh manager is where refreshes keep it, and the last
    refresh came exactly one interval before the next one is due.
    """
    refi = m.t[T_REFI]
    opened = m.t[T_RFC] - m.t[T_RP]
    closed_at = m.s[S_DUE] - refi + opened
    times = (m.s[S_DOOR_AT] - m.s[S_DUE]) // refi - 1
    steady = m.s[S_OWED] == -m.c[C_PULLED_IN] and m.s[S_PULLING] == 0 and m.s[S_OPEN_BANKS] == 0
    waiting = m.s[S_READS] + m.s[S_WRITES] > 0 or m.s[S_DOOR_AT] >= NEVER
    if times <= 0 or waiting or not steady or m.s[S_CLOSED_AT] != closed_at:
        return
    if m.s[S_ACTIVE_FROM] != closed_at:
        return
    m.out[REFAB] += times
    m.s[S_ACTIVE] += times * opened
    m.s[S_PRECHARGED] += times * (refi - opened)
    for i in (S_CLOSED_AT, S_ACTIVE_FROM, S_DUE, S_REFAB):
        m.s[i] += times * refi


@_inlined
def _bank_opened(now: int, m: Machine) -> None:
    """Standby accounting: a bank opens."""
    if m.s[S_OPEN_BANKS] == 0 and now >= m.s[S_CLOSED_AT]:
        m.s[S_ACTIVE] += m.s[S_CLOSED_AT] - m.s[S_ACTIVE_FROM]
        m.s[S_PRECHARGED] += now - m.s[S_CLOSED_AT]
        m.s[S_ACTIVE_FROM] = now
    m.s[S_OPEN_BANKS] += 1


@_compiled
def _issue_refresh(now: int, m: Machine) -> None:
    """PREAB or REFAB."""
    nb, groups = m.t[T_BANKS], m.t[T_GROUPS]
    if m.s[S_REFRESH] == PREAB:
        for b in range(nb):
            m.banks[b, IS_OPEN] = 0
            m.banks[b, KEEP] = 0
        m.s[S_PRECHARGES] += m.s[S_OPEN_BANKS]
        m.s[S_OPEN_BANKS] = 0
        m.s[S_CLOSED_AT] = max(m.s[S_CLOSED_AT], now)
        _raise(groups, groups, 0, now + m.t[T_RP], now + m.t[T_RP], m)
        m.s[S_REFAB] = max(m.s[S_REFAB], now + m.t[T_RP])
        return
    m.s[S_ACTIVE] += m.s[S_CLOSED_AT] - m.s[S_ACTIVE_FROM] + m.t[T_RFC] - m.t[T_RP]
    m.s[S_PRECHARGED] += max(0, now - m.s[S_CLOSED_AT])
    m.s[S_CLOSED_AT] = now + m.t[T_RFC] - m.t[T_RP]
    m.s[S_ACTIVE_FROM] = m.s[S_CLOSED_AT]
    _raise(groups, groups, 0, now + m.t[T_RFC], now + m.t[T_RFC], m)
    m.s[S_REFAB] = now + m.t[T_RFC]
    m.s[S_BLOCKED] = 0
    m.s[S_ALL_DIRTY] = 1
    if m.s[S_PULLING]:
        m.s[S_OWED] -= 1
    else:
        m.s[S_PULLING] = 1
    if m.s[S_OWED] == -m.c[C_PULLED_IN]:
        m.s[S_PULLING] = 0
        m.s[S_DUE] += m.t[T_REFI]


@_inlined
def _issue_row(now: int, b: int, g: int, command: int, m: Machine) -> None:
    """ACT or PRE."""
    groups = m.t[T_GROUPS]
    if command == PRE:
        m.banks[b, IS_OPEN] = 0
        m.banks[b, KEEP] = 0
        m.banks[b, NEXT_ACT] = max(m.banks[b, NEXT_ACT], now + m.t[T_RP])
        m.s[S_REFAB] = max(m.s[S_REFAB], now + m.t[T_RP])
        m.s[S_OPEN_BANKS] -= 1
        m.s[S_PRECHARGES] += 1
        m.s[S_CLOSED_AT] = max(m.s[S_CLOSED_AT], now)
        return
    _bank_opened(now, m)
    row = int(m.rows[m.banks[b, CURRENT]])
    m.banks[b, IS_OPEN] = 1
    m.banks[b, OPEN_ROW] = row
    m.banks[b, KEEP] = 1
    m.banks[b, ACT_AT] = now
    m.banks[b, NEXT_PRE] = now + m.t[T_RAS]
    m.banks[b, NEXT_COL] = now + m.t[T_RCD]
    m.banks[b, NEXT_RDA] = 0
    loose = m.c[C_DRAMSYS_RULES] and groups > 1
    m.banks[b, NEXT_ACT] = now + (m.t[T_RCD] if loose else m.t[T_RC])
    # The fourth activate from here must lie outside the window.
    m.s[S_ACT0] = m.s[S_ACT1]
    m.s[S_ACT1] = m.s[S_ACT2]
    m.s[S_ACT2] = m.s[S_ACT3]
    m.s[S_ACT3] = now
    window = m.s[S_ACT0] + m.t[T_FAW]
    _raise(groups, groups, g, max(now + m.t[T_RRD_L], window), max(now + m.t[T_RRD_S], window), m)
    m.s[S_PREAB] = max(m.s[S_PREAB], now + m.t[T_RAS])
    m.s[S_REFAB] = max(m.s[S_REFAB], now + m.t[T_RC])
    _find_hits(2 * b, row, m)
    if m.c[C_SCHEDULER] >= GRP_FR_FCFS:
        _find_hits(2 * b + 1, row, m)


@_inlined
def _issue_column(now: int, b: int, g: int, command: int, m: Machine) -> None:
    """RD, RDA, WR or WRA: bank state and the limits that follow."""
    groups = m.t[T_GROUPS]
    m.s[S_HITS] += 1 - m.banks[b, KEEP]
    m.banks[b, CURRENT] = -1
    m.banks[b, KEEP] = 0
    m.s[S_BUSY] -= 1
    if command >= WR:
        to_pre = m.t[T_WR_PRE]
        _raise(3 * groups, groups, g, now + m.t[T_CCD_L], now + m.t[T_CCD_S], m)
        _raise(2 * groups, groups, g, now + m.t[T_WR_RD_L], now + m.t[T_WR_RD_S], m)
        m.banks[b, NEXT_RDA] = now + to_pre - m.t[T_RTP]
    else:
        to_pre = m.t[T_RTP]
        _raise(2 * groups, groups, g, now + m.t[T_CCD_L], now + m.t[T_CCD_S], m)
        _raise(3 * groups, groups, g, now + m.t[T_RD_WR], now + m.t[T_RD_WR], m)
    # DRAMSys's DDR3 rules forget the write recovery before a precharge of all banks.
    if not (m.c[C_DRAMSYS_RULES] and command == WR and groups == 1):
        m.s[S_PREAB] = max(m.s[S_PREAB], now + to_pre)
    if command in (RD, WR):
        m.banks[b, NEXT_PRE] = max(m.banks[b, NEXT_PRE], now + to_pre)
        return
    closes = max(now + to_pre, m.banks[b, ACT_AT] + m.t[T_RAS])
    m.banks[b, IS_OPEN] = 0
    m.s[S_OPEN_BANKS] -= 1
    m.s[S_PRECHARGES] += 1
    m.s[S_CLOSED_AT] = max(m.s[S_CLOSED_AT], closes)
    if m.c[C_DRAMSYS_RULES]:
        closes = now + to_pre
    m.banks[b, NEXT_ACT] = max(m.banks[b, NEXT_ACT], closes + m.t[T_RP])
    m.s[S_REFAB] = max(m.s[S_REFAB], closes + m.t[T_RP])


@_inlined
def _account(now: int, command: int, bank: int, row: int, m: Machine) -> None:
    """Count and log a command, which takes the command bus for its clock."""
    m.s[S_BUS] = now + 1
    m.out[command] += 1
    place = m.s[S_LOGGED]
    m.s[S_LOGGED] = place + 1
    if place < m.log.shape[0]:
        m.log[place, 0] = now
        m.log[place, 1] = command
        m.log[place, 2] = bank
        m.log[place, 3] = row


@_inlined
def _serve(now: int, request: int, b: int, m: Machine) -> None:
    """After a column command: free the buffer slot, send the response on its way."""
    write = int(m.is_write[request])
    scheduler = m.c[C_SCHEDULER]
    _dequeue(2 * b + (write if scheduler >= GRP_FR_FCFS else 0), request, m)
    m.s[S_READS] -= 1 - write
    m.s[S_WRITES] -= write
    if scheduler == GRP_FR_FCFS_WM:
        _update_write_mode(m)
    elif scheduler >= FR_FCFS_GRP and m.s[S_DIRECTION] != write:
        m.s[S_DIRECTION] = write
        m.s[S_ALL_DIRTY] = 1
    if m.c[C_STRICT]:
        m.s[S_ALL_DIRTY] = 1
    m.s[S_RECENT + m.s[S_COLUMNS] % N_RECENT] = request
    m.s[S_COLUMNS] += 1
    data = m.t[T_WR_DATA] if write else m.t[T_RD_DATA]
    _respond(request, now + data + m.c[C_RETURN], m)


@_inlined
def _issue_refresh_if_ready(now: int, m: Machine) -> bool:
    ready = m.s[S_PREAB] if m.s[S_REFRESH] == PREAB else m.s[S_REFAB]
    if m.s[S_REFRESH] == NOP or now < max(ready, m.s[S_BUS]):
        return False
    _account(now, m.s[S_REFRESH], -1, -1, m)
    _issue_refresh(now, m)
    m.s[S_ALL_DIRTY] = 1
    return True


@_inlined
def _issue(now: int, best: int, m: Machine) -> int:
    """Issue the chosen bank's command; returns the bank."""
    request = best & (MAX_REQUESTS - 1)
    b = int(m.bank_of[request])
    g = m.banks[b, GROUP]
    command = m.proposals[PROPOSED, b]
    row = m.banks[b, OPEN_ROW] if command == PRE else m.rows[request]
    _account(now, command, b, row, m)
    if command <= PRE:
        _issue_row(now, b, g, command, m)
    else:
        _issue_column(now, b, g, command, m)
        _serve(now, request, b, m)
    return b


@_inlined
def _store_waiting(now: int, late: bool, best: int, m: Machine) -> int:
    """Store the request at the door and let its bank choose; returns the best proposal then."""
    b = _take_request(now, now + m.c[C_THINK_FW] if late else now, m)
    had = m.proposals[PROPOSED, b]
    had_for = m.proposals[FOR_REQUEST, b]
    _propose(b, m)
    least = max(now, m.s[S_BUS])
    if had == NOP:
        ready = max(m.proposals[READY, b], m.limits[m.proposals[LIMIT_AT, b]], least)
        return int(min(best, (ready << ID_BITS) | m.proposals[FOR_REQUEST, b]))
    if had != m.proposals[PROPOSED, b] or had_for != m.proposals[FOR_REQUEST, b]:
        return _pick(least, m)
    return best


@_inlined
def _begin_cycle(now: int, late: bool, best: int, m: Machine) -> int:
    """Take the request at the door if there is room; returns the best proposal."""
    if m.s[S_OVERDUE]:
        m.s[S_OVERDUE] = 0
        best = _pick(max(now, m.s[S_BUS]), m)
    if m.s[S_DOOR_AT] <= now and (late or _has_space(m)):
        best = _store_waiting(now, late, best, m)
    return best


@_inlined
def _settle(now: int, best: int, issued: int, m: Machine) -> None:
    """Let the banks that something happened to choose anew, then the refresh manager."""
    if m.s[S_ALL_DIRTY]:
        m.s[S_ALL_DIRTY] = 0
        # A change of mode without a command: banks that could now issue at once do so in this
        # cycle if no other command was waiting, else when the controller next has an event.
        quiet = m.s[S_BUS] <= now
        m.s[S_OVERDUE] = quiet and (best < NO_PROPOSAL or m.s[S_REFRESH] != NOP)
        m.s[S_WAKE] = best >> ID_BITS if best >> ID_BITS > now else NEVER
        for b in range(m.banks.shape[0]):
            _propose(b, m)
    else:
        _propose(issued, m)
    if now >= m.s[S_DUE] or m.s[S_REFRESH] != NOP:
        _manage_refresh(now, m)


@_inlined
def _next_cycle(now: int, best: int, m: Machine) -> int:
    """Next cycle in which a command, a refresh or the request at the door is due."""
    ahead = best >> ID_BITS
    if m.s[S_OVERDUE]:
        ahead = min(m.s[S_WAKE], _next_ready(now, m), _next_response(now, m))
    if m.s[S_REFRESH] == PREAB:
        ahead = min(ahead, max(m.s[S_PREAB], m.s[S_BUS]))
    elif m.s[S_REFRESH] == REFAB:
        ahead = min(ahead, max(m.s[S_REFAB], m.s[S_BUS]))
    elif ahead >= m.s[S_DUE]:
        if m.log.shape[0] == 0:
            _skip_idle_refreshes(m)
        ahead = m.s[S_DUE]
    if m.s[S_DOOR_AT] < ahead and _has_space(m):
        ahead = m.s[S_DOOR_AT]
    return ahead


@_compiled
def _reset(m: Machine) -> None:
    m.s[:] = 0
    m.limits[:] = 0
    m.banks[:] = 0
    m.proposals[:] = 0
    m.queues[:] = 0
    m.held[:] = -1
    m.at_arbiter[:] = -1
    nb = m.t[T_BANKS]
    for b in range(nb):
        m.banks[b, CURRENT] = -1
        m.banks[b, OPEN_ROW] = -1
        m.proposals[READY, b] = NEVER
        m.banks[b, GROUP] = b * m.t[T_GROUPS] // nb
    for q in range(2 * nb):
        m.queues[q, HEAD] = -1
        m.queues[q, TAIL] = -1
    for i in range(S_ACT0, S_ACT3 + 1):
        m.s[i] = -m.t[T_FAW]
    m.s[S_LAST_END] = -1
    m.s[S_DUE] = m.t[T_REFI] if m.c[C_REFRESH] else NEVER
    m.free_at[0] = 0
    m.s[S_ARBITER_AT] = m.arrival[0]
    m.s[S_DOOR_AT] = m.arrival[0] + m.c[C_ARB_FW] + m.c[C_THINK_FW]


@_compiled
def _finish(status: int, m: Machine) -> None:
    """Close the standby accounts and write the totals."""
    until = m.s[S_FINISH]
    if m.s[S_OPEN_BANKS] == 0:
        until = min(m.s[S_CLOSED_AT], m.s[S_FINISH])
        m.s[S_PRECHARGED] += m.s[S_FINISH] - until
    m.out[O_PRECHARGES] = m.s[S_PRECHARGES]
    m.out[O_HITS] = m.s[S_HITS]
    m.out[O_ACTIVE] = m.s[S_ACTIVE] + until - m.s[S_ACTIVE_FROM]
    m.out[O_PRECHARGED] = m.s[S_PRECHARGED]
    m.out[O_END] = m.s[S_FINISH]
    m.out[O_LOGGED] = m.s[S_LOGGED]
    m.out[O_STATUS] = status


@_compiled
def simulate_kernel(m: Machine) -> None:
    """Run a decoded trace; fills ``done``, ``free_at``, ``out`` and ``log``."""
    _reset(m)
    n = m.arrival.shape[0]
    best = NO_PROPOSAL
    now = 0
    same_cycle = 0
    status = FINISHED
    # Whether the request at the door gets the slot that a command of this cycle has freed.
    late = False
    issued = -1
    while True:
        if not late:
            ahead = _next_cycle(now, best, m)
            if m.s[S_COLUMNS] == n and ahead >= m.s[S_FINISH]:
                break
            same_cycle = same_cycle + 1 if ahead <= now else 0
            if ahead >= NEVER or ahead < now or same_cycle > 3:
                status = STUCK
                break
            now = ahead
        best = _begin_cycle(now, late, best, m)
        if not late:
            issued = -1
            if now >= m.s[S_DUE] or m.s[S_REFRESH] != NOP:
                _manage_refresh(now, m)
                if m.s[S_BLOCKED]:
                    best = NO_PROPOSAL
            if not _issue_refresh_if_ready(now, m) and best >> ID_BITS <= now:
                served = m.s[S_COLUMNS]
                issued = _issue(now, best, m)
                if m.s[S_COLUMNS] > served and m.s[S_DOOR_AT] <= now and _has_space(m):
                    late = True
                    continue
        late = False
        if issued >= 0 or m.s[S_ALL_DIRTY]:
            _settle(now, best, issued, m)
            best = _pick(max(now, m.s[S_BUS]), m)
    _finish(status, m)


# Entries of the totals of `sum_latencies`, ps except for the first.
L_READS, L_READ, L_READ_ACCEPTED, L_READ_MAX, L_WRITE = range(5)
N_LATENCIES = 5


@_compiled
def sum_latencies(
    m: Machine, arrival_ps: Array, t_ck_ps: int, read_latency: Array, totals: Array
) -> None:
    """Latencies of a run, ps: those of the reads, closed up, and totals.

    A request is offered when it has arrived and the one ahead of it has left the initiator.
    """
    reads = 0
    read = 0
    write = 0
    accepted = 0
    longest = 0
    for i in range(m.done.shape[0]):
        end = m.done[i] * t_ck_ps
        latency = end - arrival_ps[i]
        if m.is_write[i]:
            write += latency
        else:
            read_latency[reads] = latency
            reads += 1
            read += latency
            accepted += end - max(arrival_ps[i], m.free_at[i] * t_ck_ps)
            longest = max(longest, latency)
    totals[L_READS] = reads
    totals[L_READ] = read
    totals[L_READ_ACCEPTED] = accepted
    totals[L_READ_MAX] = longest
    totals[L_WRITE] = write
