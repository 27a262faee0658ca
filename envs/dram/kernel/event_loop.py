"""The event loop of the memory controller.

Time is in clock cycles. The loop jumps to the next cycle in which a request arrives, a refresh is
due or a command becomes legal, so idle time costs nothing. In one cycle, in this order: the
request at the door is taken if a buffer has room; the managers act; one command is issued, which
may free the slot that the request at the door waits for; the banks choose their next commands. A
request without any delay on its way is taken last, in a second round of the same cycle.
"""

from __future__ import annotations

from collections.abc import Callable

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.bank_proposals import (
    next_ready,
    pick,
    pick_with,
    propose,
    start_of,
)
from archgym.envs.dram.kernel.commands import issue
from archgym.envs.dram.kernel.compiled import compiled, entry, inlined
from archgym.envs.dram.kernel.front_end import has_space, next_response, take_request
from archgym.envs.dram.kernel.rank_managers import (
    choose_managed,
    issue_managed,
    manage,
    needs_managing,
    next_managed,
)
from archgym.envs.dram.kernel.refresh import set_step, skip_idle_refreshes


@inlined
def _store_waiting(now: int, late: bool, best: int, besides: int, m: k.Machine) -> int:
    """Store the request at the door and let its bank choose; returns the best proposal then.

    Bank ``besides`` is yet to choose: its proposal counts neither before nor after.
    """
    b = take_request(now, now + m.s[k.C_THINK_FW] if late else now, m)
    if b == besides:
        return best
    had = m.proposals[k.PROPOSED + b]
    had_for = m.proposals[k.FOR_REQUEST + b]
    propose(b, m)
    if had == k.NOP:
        return pick_with(best, b, now, m)
    if had != m.proposals[k.PROPOSED + b] or had_for != m.proposals[k.FOR_REQUEST + b]:
        return pick(now, besides, m)
    return best


@inlined
def _begin_cycle(now: int, late: bool, best: int, besides: int, m: k.Machine) -> int:
    """Take the request at the door if it is there and there is room; returns the best proposal."""
    if m.s[k.S_OVERDUE]:
        m.s[k.S_OVERDUE] = 0
        best = pick(now, -1, m)
    if m.s[k.S_LAST_IN_CYCLE] and m.s[k.S_DOOR_AT] == now:
        return best
    if m.s[k.S_DOOR_AT] <= now and (late or has_space(m)):
        best = _store_waiting(now, late, best, besides, m)
    return best


@inlined
def _heeds_direction(b: int, m: k.Machine) -> bool:
    """Whether a bank's choice may change with the direction of the last column command."""
    if m.s[k.C_SCHEDULER] == k.FR_FCFS_GRP:
        return bool(m.queues[2 * b].hits > 1)
    if m.s[k.C_SCHEDULER] == k.GRP_FR_FCFS:
        return bool(m.queues[2 * b].count > 0 and m.queues[2 * b + 1].count > 0)
    return True


@inlined
def _settle(now: int, best: int, issued: int, apart: bool, m: k.Machine) -> int:
    """Let the banks that something happened to choose anew, then the managers.

    Args:
        now: the cycle.
        best: best proposal; with ``apart``, of all banks but ``issued``.
        issued: bank of the command of this cycle, -1 if there was none.
        apart: whether ``best`` leaves out that bank.
        m: the machine.

    Returns:
        The best proposal then.
    """
    if m.s[k.S_ALL_DIRTY]:
        m.s[k.S_ALL_DIRTY] = 0
        # A change of mode without a command: banks that could now issue at once do so in this
        # cycle if no other command was waiting, else when the controller next has an event.
        quiet = m.s[k.S_ROW_BUS] <= now
        m.s[k.S_OVERDUE] = quiet and (best < k.NO_PROPOSAL or m.s[k.S_PENDING] > 0)
        start = start_of(best, m) if best < k.NO_PROPOSAL else k.NEVER
        m.s[k.S_WAKE] = start if start > now else k.NEVER
        for b in range(m.banks.shape[0]):
            if issued < 0 or b == issued or _heeds_direction(b, m):
                propose(b, m)
    else:
        propose(issued, m)
    if needs_managing(now, m) and manage(now, m):
        apart = False
    return pick_with(best, issued, now, m) if apart else pick(now, -1, m)


@inlined
def _next_cycle(now: int, best: int, m: k.Machine) -> int:
    """Next cycle in which a command, a refresh or the request at the door is due."""
    ahead = start_of(best, m)
    if m.s[k.S_OVERDUE]:
        ahead = min(m.s[k.S_WAKE], next_ready(now, m), next_response(now, m))
        ahead = min(ahead, next_managed(now, m))
        if ahead >= k.NEVER and best < k.NO_PROPOSAL:
            ahead = now + 1
    elif m.s[k.S_PENDING]:
        rank, start, _ = choose_managed(now, best, m)
        if rank >= 0:
            ahead = start
    if m.s[k.S_NEXT_DUE] <= ahead:
        if m.log.shape[0] == 0:
            skip_idle_refreshes(m)
        for r in range(m.ranks.shape[0]):
            if now < m.ranks[r].due:
                ahead = min(ahead, m.ranks[r].due)
    if m.s[k.S_DOOR_AT] < ahead and has_space(m):
        ahead = m.s[k.S_DOOR_AT]
        m.s[k.S_LAST_IN_CYCLE] = 0  # nothing else happens in that cycle
    return ahead


@compiled
def _reset(m: k.Machine) -> None:
    m.s[k.FIRST_STATE :] = 0
    if m.times.shape[0] == k.ALL_TIMES:
        m.times[k.HELD_DATA, :] = -1
        m.times[k.AT_ARBITER, :] = -1
    nb = m.s[k.T_BANKS]
    for b in range(m.banks.shape[0]):
        m.banks[b].current = -1
        m.banks[b].open_row = -1
        m.banks[b].act_at = -m.s[k.T_ACT_REF]
        m.banks[b].pre_at = -m.s[k.T_PRE_REF]
        m.banks[b].ref_at = -m.s[k.T_REF_REFAB]
        m.banks[b].rank = b // nb
        m.proposals[k.RANK_OF + b] = b // nb
        m.proposals[k.GROUP_OF + b] = b * m.s[k.T_GROUPS] // nb
        m.proposals[k.READY + b] = k.NEVER
    for q in range(m.queues.shape[0]):
        m.queues[q].head = -1
        m.queues[q].tail = -1
    m.s[k.S_LAST_END] = -1
    m.s[k.S_NEXT_DUE] = k.NEVER
    n_ranks = m.ranks.shape[0]
    for r in range(n_ranks):
        window = -m.s[k.T_ACT_WINDOW]
        m.ranks[r].act0 = window
        m.ranks[r].act1 = window
        m.ranks[r].act2 = window
        m.ranks[r].act3 = window
        m.ranks[r].remaining = (1 << set_step(m)) - 1
        m.ranks[r].due = k.NEVER
        if m.s[k.C_REFRESH] != k.NO_REFRESH:
            # The ranks' refreshes are spread over the interval, in bit-reversed order.
            reverse, bits, step = 0, r, n_ranks // 2
            while bits > 0:
                reverse += (bits & 1) * step
                bits >>= 1
                step //= 2
            interval = m.s[k.T_REF_INTERVAL]
            m.ranks[r].due = interval - reverse * interval // n_ranks
            m.s[k.S_NEXT_DUE] = min(m.s[k.S_NEXT_DUE], m.ranks[r].due)
    m.times[k.FREE_AT, 0] = 0
    m.s[k.S_ARBITER_AT] = m.arrival[0]
    m.s[k.S_DOOR_AT] = m.arrival[0] + m.s[k.C_ARB_FW] + m.s[k.C_THINK_FW]
    m.s[k.S_LAST_IN_CYCLE] = m.s[k.C_THINK_FW] == 0


@compiled
def _finish(status: int, m: k.Machine) -> None:
    """Close the standby accounts and write the totals."""
    end = m.s[k.S_FINISH]
    for r in range(m.ranks.shape[0]):
        power = m.ranks[r].power
        slept = end - m.ranks[r].since
        if power == k.DOWN_ACTIVE:
            m.ranks[r].down_active += slept
        elif power == k.DOWN_PRECHARGED:
            m.ranks[r].down_precharged += slept
        elif power == k.SELF_REFRESH:
            m.ranks[r].self_refreshed += slept
        else:
            until = end
            if m.ranks[r].open_banks == 0:
                until = min(m.ranks[r].closed_at, end)
                m.ranks[r].precharged += end - until
            m.ranks[r].active += until - m.ranks[r].active_from
        m.out[k.O_PRECHARGES] += m.ranks[r].precharges
        m.out[k.O_ACTIVE] += m.ranks[r].active
        m.out[k.O_PRECHARGED] += m.ranks[r].precharged
        m.out[k.O_DOWN_ACTIVE] += m.ranks[r].down_active
        m.out[k.O_DOWN_PRECHARGED] += m.ranks[r].down_precharged
        m.out[k.O_SELF_REFRESHED] += m.ranks[r].self_refreshed
        m.out[k.O_MAX_OWED] = max(m.out[k.O_MAX_OWED], m.ranks[r].max_owed)
        m.out[k.O_MIN_OWED] = min(m.out[k.O_MIN_OWED], m.ranks[r].min_owed)
    m.out[k.O_HITS] = m.s[k.S_HITS]
    m.out[k.O_CONFLICTS] = m.s[k.S_CONFLICTS]
    m.out[k.O_FORWARDED] = m.s[k.S_FORWARDED]
    m.out[k.O_MERGED] = m.s[k.S_MERGED]
    m.out[k.O_MAX_QUEUED] = m.s[k.S_MAX_QUEUED]
    m.out[k.O_MAX_ACTIVE] = m.s[k.S_MAX_ACTIVE]
    m.out[k.O_END] = end
    m.out[k.O_LOGGED] = m.s[k.S_LOGGED]
    m.out[k.O_STATUS] = status


def _make_simulate(sources: int) -> Callable[[k.Machine], None]:
    def simulate_kernel(m: k.Machine) -> None:
        _ = sources
        _reset(m)
        n = m.arrival.shape[0]
        best = k.NO_PROPOSAL
        now = m.s[k.S_FINISH]
        same_cycle = 0
        status = k.FINISHED
        # Whether the request at the door gets the slot that a command of this cycle has freed.
        late = False
        issued = -1
        # Where a command can only change the choice of its own bank, the bank chooses last, and
        # `best` is meanwhile that of the others.
        apart = m.s[k.C_SCHEDULER] != k.GRP_FR_FCFS_WM
        besides = -1
        while True:
            if not late:
                ahead = _next_cycle(now, best, m)
                if m.s[k.S_SERVED] == n and ahead >= m.s[k.S_FINISH]:
                    break
                same_cycle = same_cycle + 1 if ahead <= now else 0
                if ahead >= k.NEVER or ahead < now or same_cycle > 5:
                    status = k.STUCK
                    break
                now = ahead
            best = _begin_cycle(now, late, best, besides, m)
            if not late:
                issued = -1
                if needs_managing(now, m) and manage(now, m):
                    best = pick(now, -1, m)
                waits = m.s[k.S_PENDING] > 0 and issue_managed(now, best, m)
                if not waits and start_of(best, m) <= now:
                    served = m.s[k.S_SERVED]
                    issued = issue(now, best, m)
                    if apart and not m.s[k.S_ALL_DIRTY]:
                        besides = issued
                        best = pick(now, issued, m)
                    there = m.s[k.S_DOOR_AT] < now + 1 - m.s[k.S_LAST_IN_CYCLE]
                    if m.s[k.S_SERVED] > served and there and has_space(m):
                        late = True
                        continue
            late = False
            if issued >= 0 or m.s[k.S_ALL_DIRTY]:
                best = _settle(now, best, issued, besides >= 0, m)
                besides = -1
        _finish(status, m)

    return simulate_kernel


simulate_kernel = entry(_make_simulate)
"""Run a decoded trace; fills ``times``, ``out`` and ``log`` of the machine."""
