"""The front end: input of requests, buffers, arbiter, response queue."""

from __future__ import annotations

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.compiled import compiled, inlined
from archgym.envs.dram.kernel.request_queues import enqueue


@inlined
def has_space(m: k.Machine) -> bool:
    """Whether the buffers take one more request, of whatever bank and direction.

    The bankwise buffer looks at the bank of the request that came last.
    """
    size = m.s[k.C_BUFFER_SIZE]
    if m.s[k.C_BUFFER] == k.BANKWISE:
        q = 2 * m.s[k.S_LAST_BANK]
        return bool(m.queues[q].count + m.queues[q + 1].count < size)
    if m.s[k.C_BUFFER] == k.SHARED:
        return bool(m.s[k.S_READS] + m.s[k.S_WRITES] < size)
    return bool(m.s[k.S_READS] < size and m.s[k.S_WRITES] < size)


@inlined
def update_write_mode(m: k.Machine) -> None:
    """Watermark scheduler: switch between serving reads and serving writes."""
    if m.s[k.S_DIRECTION] == 1:
        if m.s[k.S_WRITES] <= m.s[k.C_LOW] and m.s[k.S_READS] != 0:
            m.s[k.S_DIRECTION] = 0
            m.s[k.S_ALL_DIRTY] = 1
    elif m.s[k.S_WRITES] > m.s[k.C_HIGH] or m.s[k.S_READS] == 0:
        m.s[k.S_DIRECTION] = 1
        m.s[k.S_ALL_DIRTY] = 1


@inlined
def _offer_next(now: int, end: int, m: k.Machine) -> None:
    """Bring the next request to the door; ``end`` is when the one before left it.

    A request that comes without any delay is there only after what else the controller does in
    that cycle (``S_LAST_IN_CYCLE``).
    """
    door = m.s[k.S_DOOR] + 1
    m.s[k.S_DOOR] = door
    if door == m.arrival.shape[0]:
        m.s[k.S_DOOR_AT] = k.NEVER
    elif m.s[k.C_ARBITER] == k.ARB_SIMPLE:
        offered = max(m.arrival[door], end)
        m.times[k.FREE_AT, door] = end
        m.s[k.S_DOOR_AT] = max(offered + m.s[k.C_ARB_FW] + m.s[k.C_THINK_FW], now + 1)
        m.s[k.S_LAST_IN_CYCLE] = m.s[k.C_ARB_FW] + m.s[k.C_THINK_FW] == 0
    else:
        m.times[k.FREE_AT, door] = m.s[k.S_ARBITER_AT]
        m.s[k.S_DOOR_AT] = k.NEVER
        m.s[k.S_ARBITER_AT] = end
        _pass_arbiter(m)


@inlined
def _pass_arbiter(m: k.Machine) -> None:
    """Take the waiting request into the arbiter if fewer than the allowed ones are active.

    Until then ``S_DOOR_AT`` is NEVER and ``S_ARBITER_AT`` holds when the door was left.
    """
    door = m.s[k.S_DOOR]
    waits_for = door - m.s[k.C_MAX_ACTIVE]
    if waits_for < m.s[k.S_ENDED]:
        taken = max(m.arrival[door], m.times[k.FREE_AT, door])
        if waits_for >= 0:
            taken = max(taken, m.times[k.ENDS, waits_for])
        offered = taken + m.s[k.C_ARB_FW]
        m.s[k.S_DOOR_AT] = max(offered, m.s[k.S_ARBITER_AT] + 1) + m.s[k.C_THINK_FW]
        m.s[k.S_LAST_IN_CYCLE] = m.s[k.C_THINK_FW] == 0 and offered > m.s[k.S_ARBITER_AT]
        m.s[k.S_ARBITER_AT] = taken
        while m.s[k.S_ENDED_BY] < m.s[k.S_ENDED] and m.times[k.ENDS, m.s[k.S_ENDED_BY]] <= taken:
            m.s[k.S_ENDED_BY] += 1
        m.s[k.S_MAX_ACTIVE] = max(m.s[k.S_MAX_ACTIVE], door + 1 - m.s[k.S_ENDED_BY])


@compiled
def _in_write_buffer(q: int, request: int, m: k.Machine) -> bool:
    """Whether a write to the request's line waits in a list."""
    line = m.address[request] >> m.s[k.T_LINE]
    queued = m.queues[q].head
    while queued >= 0:
        if m.is_write[queued] and m.address[queued] >> m.s[k.T_LINE] == line:
            return True
        queued = int(m.links[queued, k.AFTER])
    return False


@inlined
def take_request(now: int, end: int, m: k.Machine) -> int:
    """Take the request at the door, into the buffer if it has to wait there; returns its bank."""
    request = m.s[k.S_DOOR]
    b = int(m.bank_of[request])
    write = int(m.is_write[request])
    scheduler = m.s[k.C_SCHEDULER]
    m.s[k.S_LAST_BANK] = b
    if m.s[k.C_POSTED] and _in_write_buffer(2 * b + (scheduler in k.TWO_LISTS), request, m):
        # The buffered line answers a read, and takes in the data of a write.
        m.s[k.S_MERGED] += write
        m.s[k.S_FORWARDED] += 1 - write
        m.s[k.S_SERVED] += 1
        respond(request, now + 1 + m.s[k.C_RETURN], m)
        _offer_next(now, end, m)
        return b
    q = 2 * b + (write if scheduler in k.TWO_LISTS else 0)
    hit = m.banks[b].is_open == 1 and m.rows[request] == m.banks[b].open_row
    enqueue(q, request, hit, m)
    m.s[k.S_READS] += 1 - write
    m.s[k.S_WRITES] += write
    if m.s[k.C_BUFFER] == k.BANKWISE:
        queued = m.queues[2 * b].count + m.queues[2 * b + 1].count
    elif m.s[k.C_BUFFER] == k.SHARED:
        queued = m.s[k.S_READS] + m.s[k.S_WRITES]
    else:
        queued = max(m.s[k.S_READS], m.s[k.S_WRITES])
    m.s[k.S_MAX_QUEUED] = max(m.s[k.S_MAX_QUEUED], queued)
    if scheduler == k.GRP_FR_FCFS_WM:
        update_write_mode(m)
    if m.s[k.C_POWER_DOWN]:
        r = m.banks[b].rank
        m.ranks[r].waiting += 1
        _wake(r, m)
    if m.s[k.C_POSTED] and write:
        respond(request, now + 1 + m.s[k.C_RETURN], m)
    _offer_next(now, end, m)
    return b


@inlined
def _deliver(r: int, at: int, m: k.Machine) -> None:
    """Hand a response from the arbiter to the initiator, which takes one a clock."""
    if m.s[k.C_ARBITER] == k.ARB_SIMPLE:
        m.times[k.DONE, r] = at + m.s[k.C_ARB_BW]
        m.s[k.S_LAST_END] = m.times[k.DONE, r] + m.s[k.C_END_RESPONSE]
    else:
        m.times[k.DONE, r] = max(at + m.s[k.C_ARB_BW], m.s[k.S_LAST_END] + 1)
        m.s[k.S_LAST_END] = m.times[k.DONE, r] + m.s[k.C_END_RESPONSE]
        m.times[k.ENDS, m.s[k.S_ENDED]] = m.s[k.S_LAST_END]
        m.s[k.S_ENDED] += 1
    m.s[k.S_FINISH] = max(m.s[k.S_FINISH], m.times[k.DONE, r])


@inlined
def _leave_controller(r: int, data_end: int, m: k.Machine) -> None:
    """Send a response from the response queue to the arbiter."""
    if m.s[k.C_ARBITER] == k.ARB_SIMPLE:
        at = max(data_end, m.s[k.S_LAST_END])
    else:
        at = max(data_end, m.s[k.S_LAST_C])
        m.s[k.S_LAST_C] = at
    if m.s[k.C_ARBITER] == k.ARB_REORDER:
        m.times[k.AT_ARBITER, r] = at
        while m.s[k.S_NEXT_I] < m.arrival.shape[0] and m.times[k.AT_ARBITER, m.s[k.S_NEXT_I]] >= 0:
            _deliver(m.s[k.S_NEXT_I], m.times[k.AT_ARBITER, m.s[k.S_NEXT_I]], m)
            m.s[k.S_NEXT_I] += 1
    else:
        _deliver(r, at, m)


@inlined
def respond(r: int, data_end: int, m: k.Machine) -> None:
    """Queue the response of a request whose data are through at ``data_end``."""
    if m.s[k.C_RESPONSE] == k.IN_ORDER_OF_DATA:
        _leave_controller(r, data_end, m)
    else:
        m.times[k.HELD_DATA, r] = data_end
        while m.s[k.S_NEXT_C] < m.arrival.shape[0] and m.times[k.HELD_DATA, m.s[k.S_NEXT_C]] >= 0:
            _leave_controller(m.s[k.S_NEXT_C], m.times[k.HELD_DATA, m.s[k.S_NEXT_C]], m)
            m.s[k.S_NEXT_C] += 1
    if (
        m.s[k.C_ARBITER] != k.ARB_SIMPLE
        and m.s[k.S_DOOR_AT] == k.NEVER
        and m.s[k.S_DOOR] < m.arrival.shape[0]
    ):
        _pass_arbiter(m)


@compiled
def next_response(now: int, m: k.Machine) -> int:
    """Next cycle after ``now`` in which the controller handles a response (in data order)."""
    soonest = k.NEVER
    if m.s[k.C_RESPONSE] == k.IN_ORDER_OF_DATA:
        for i in range(min(k.N_RECENT, m.s[k.S_COLUMNS])):
            recent = m.s[k.S_RECENT + i]
            if m.s[k.C_ARBITER] == k.ARB_REORDER:
                sent = m.times[k.AT_ARBITER, recent]  # it may still wait for its turn there
            else:
                sent = m.times[k.DONE, recent] - m.s[k.C_ARB_BW]
            if sent <= now and m.s[k.C_ARBITER] == k.ARB_SIMPLE:
                sent += m.s[k.C_ARB_BW] + m.s[k.C_END_RESPONSE]
            if sent > now:
                soonest = min(soonest, sent)
    return soonest


@inlined
def _wake(r: int, m: k.Machine) -> None:
    """A request has come for a rank, or a refresh is due: leave power-down."""
    if m.ranks[r].self_refresh or m.ranks[r].enter or m.ranks[r].power != k.AWAKE:
        m.s[k.S_POWER_DIRTY] = 1
    m.ranks[r].self_refresh = 0
    m.ranks[r].enter = 0
    if m.ranks[r].power != k.AWAKE:
        m.ranks[r].leave = 1


@inlined
def is_asleep(r: int, m: k.Machine) -> bool:
    """Whether a rank is in power-down or self-refresh."""
    return bool(m.ranks[r].power != k.AWAKE)
