"""Refresh: managers for all banks, one bank and the same bank of every group."""

from __future__ import annotations

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.bank_proposals import hold
from archgym.envs.dram.kernel.commands import (
    account,
    bank_closed,
    bank_opened,
    length_of,
    log_bank,
    precharge,
)
from archgym.envs.dram.kernel.compiled import compiled, inlined
from archgym.envs.dram.kernel.timing_limits import note_activate, raise_rank


@inlined
def refresh_all_banks(now: int, r: int, m: k.Machine) -> bool:
    """All-bank refresh manager: postpone, pull in or force; returns whether it blocked banks."""
    if m.ranks[r].pulling:
        if m.ranks[r].busy == 0:
            m.ranks[r].refresh = k.REFAB
        else:
            m.ranks[r].pulling = 0
            m.ranks[r].due += m.s[k.T_REF_INTERVAL]
        return False
    m.ranks[r].max_owed = max(m.ranks[r].max_owed, m.ranks[r].owed)
    blocked = False
    if m.ranks[r].owed == m.s[k.C_POSTPONED]:
        first = r * m.s[k.T_BANKS]
        if not m.banks[first].held & k.BLOCKED:
            blocked = True
            for b in range(first, first + m.s[k.T_BANKS]):
                hold(b, k.BLOCKED, m)
    elif m.ranks[r].busy > 0:
        m.ranks[r].owed += 1
        m.ranks[r].due += m.s[k.T_REF_INTERVAL]
        return False
    m.ranks[r].refresh = k.PREAB if m.ranks[r].open_banks > 0 else k.REFAB
    return blocked


@compiled
def refresh_some_banks(r: int, m: k.Machine) -> bool:
    """Per-bank and same-bank refresh manager; returns whether it blocked banks.

    The first idle bank of those still to come in this round is refreshed; while all are busy the
    refresh is postponed, up to the limit, when the first of them must.
    """
    step = set_step(m)
    first = r * m.s[k.T_BANKS]
    pulling = m.ranks[r].pulling
    forced = not pulling and m.ranks[r].owed == m.s[k.C_POSTPONED] * step
    if not pulling:
        m.ranks[r].max_owed = max(m.ranks[r].max_owed, m.ranks[r].owed)
    if not m.ranks[r].chosen:
        which = _idle_set(r, m)
        if which < 0 and not forced:
            if pulling:
                m.ranks[r].pulling = 0
            else:
                m.ranks[r].owed += 1
            m.ranks[r].due += m.s[k.T_REF_INTERVAL]
            return False
        if which < 0:
            which = 0
            while not m.ranks[r].remaining >> which & 1:
                which += 1
        m.ranks[r].target = which
    same = m.s[k.C_REFRESH] == k.SAME_BANK
    for b in range(first + m.ranks[r].target, first + m.s[k.T_BANKS], step):
        if m.banks[b].is_open:
            m.ranks[r].refresh = k.PRESB if same else k.PRE
            return False
    m.ranks[r].refresh = k.REFSB if same else k.REFPB
    if forced and not m.ranks[r].chosen:
        m.ranks[r].chosen = 1
        for b in range(first + m.ranks[r].target, first + m.s[k.T_BANKS], step):
            hold(b, k.BLOCKED, m)
        return True
    return False


@compiled
def _idle_set(r: int, m: k.Machine) -> int:
    """First of the sets of banks still to be refreshed whose banks are all idle, -1 if none."""
    step = set_step(m)
    first = r * m.s[k.T_BANKS]
    for which in range(step):
        if m.ranks[r].remaining >> which & 1:
            idle = True
            for b in range(first + which, first + m.s[k.T_BANKS], step):
                idle = idle and m.banks[b].current < 0
            if idle:
                return which
    return -1


@inlined
def set_step(m: k.Machine) -> int:
    """Banks that are refreshed together are this far apart (one alone: the whole rank)."""
    if m.s[k.C_REFRESH] == k.SAME_BANK:
        return int(m.s[k.T_BANKS] // m.s[k.T_GROUPS])
    return int(m.s[k.T_BANKS])


@inlined
def refresh_start(r: int, m: k.Machine) -> int:
    """Earliest cycle of the command that a rank's refresh manager wants."""
    command = m.ranks[r].refresh
    if command == k.PREAB:
        return int(m.ranks[r].preab)
    if command == k.REFAB:
        return int(m.ranks[r].refab)
    ready = m.ranks[r].ref if command in (k.REFPB, k.REFSB) else 0
    first = r * m.s[k.T_BANKS]
    for b in range(first + m.ranks[r].target, first + m.s[k.T_BANKS], set_step(m)):
        if command in (k.REFPB, k.REFSB):
            ready = max(ready, m.banks[b].act_at + m.s[k.T_ACT_REF])
            ready = max(ready, m.banks[b].pre_at + m.s[k.T_PRE_REF])
            ready = max(ready, m.banks[b].ref_at + m.s[k.T_REF_REFAB])
        elif m.banks[b].is_open:
            ready = max(ready, m.banks[b].next_pre, m.proposals[k.OF_PRE + b])
    return int(ready)


@compiled
def issue_refresh(now: int, r: int, command: int, m: k.Machine) -> None:
    """Carry out a command of a refresh manager."""
    first = r * m.s[k.T_BANKS]
    place = account(now, command, length_of(command, m), r, m)
    if command not in (k.PREAB, k.REFAB):
        log_bank(place, m.ranks[r].target, m)
    if command == k.PREAB:
        for b in range(first, first + m.s[k.T_BANKS]):
            if m.banks[b].is_open:
                bank_closed(now, b, m)
        raise_rank(k.OF_ACT, r, now + m.s[k.T_PREAB_ACT], m)
        after = now + m.s[k.T_PREAB_REF]
        m.ranks[r].refab = max(m.ranks[r].refab, after)
        m.ranks[r].ref = max(m.ranks[r].ref, after)
        m.ranks[r].pde = max(m.ranks[r].pde, now + m.s[k.T_PRE_PDE])
    elif command == k.REFAB:
        refresh_rank(now, r, m)
        _count_refresh(r, m.s[k.C_PULLED_IN], m)
    elif command in (k.PRE, k.PRESB):
        for b in range(first + m.ranks[r].target, first + m.s[k.T_BANKS], set_step(m)):
            if m.banks[b].is_open:
                precharge(now, b, m)
    else:
        _refresh_set(now, r, m)


@compiled
def refresh_rank(now: int, r: int, m: k.Machine) -> None:
    """REFAB."""
    m.ranks[r].active += m.ranks[r].closed_at - m.ranks[r].active_from
    m.ranks[r].active += m.s[k.T_REFAB_REF] - m.s[k.T_RP]
    m.ranks[r].precharged += max(0, now - m.ranks[r].closed_at)
    m.ranks[r].closed_at = now + m.s[k.T_REFAB_REF] - m.s[k.T_RP]
    m.ranks[r].active_from = m.ranks[r].closed_at
    raise_rank(k.OF_ACT, r, now + m.s[k.T_REFAB_ACT], m)
    m.ranks[r].refab = now + m.s[k.T_REFAB_REF]
    m.ranks[r].ref = max(m.ranks[r].ref, now + m.s[k.T_REFAB_REF])
    m.ranks[r].pde = max(m.ranks[r].pde, now + m.s[k.T_REF_PDE])
    first = r * m.s[k.T_BANKS]
    for b in range(first, first + m.s[k.T_BANKS]):
        m.banks[b].held = 0


@compiled
def _refresh_set(now: int, r: int, m: k.Machine) -> None:
    """REFPB or REFSB."""
    step = set_step(m)
    first = r * m.s[k.T_BANKS]
    bank_opened(now, r, m)
    opened = now + m.s[k.T_REF_REFAB] - m.s[k.T_RP]
    m.ranks[r].closed_at = max(m.ranks[r].closed_at, opened)
    for b in range(first + m.ranks[r].target, first + m.s[k.T_BANKS], step):
        m.banks[b].next_act = max(m.banks[b].next_act, now + m.s[k.T_REF_ACT])
        m.banks[b].ref_at = now
        m.banks[b].held = 0
    window = note_activate(now, m.s[k.T_REF_LENGTH], r, m) if m.s[k.C_REFRESH] == k.PER_BANK else 0
    raise_rank(k.OF_ACT, r, max(now + m.s[k.T_REF_ACT_OTHER], window), m)
    m.ranks[r].ref = max(m.ranks[r].ref, now + m.s[k.T_REF_REF])
    m.ranks[r].refab = max(m.ranks[r].refab, now + m.s[k.T_REF_REFAB])
    m.ranks[r].preab = max(m.ranks[r].preab, now + m.s[k.T_REF_REFAB])
    m.ranks[r].pde = max(m.ranks[r].pde, now + m.s[k.T_REF_PDE])
    m.ranks[r].remaining &= ~(1 << m.ranks[r].target)
    if m.ranks[r].remaining == 0:
        m.ranks[r].remaining = (1 << step) - 1
    m.ranks[r].chosen = 0
    _count_refresh(r, m.s[k.C_PULLED_IN] * step, m)


@compiled
def _count_refresh(r: int, limit: int, m: k.Machine) -> None:
    """After a refresh: the number owed, and whether more are pulled in."""
    if m.ranks[r].pulling:
        m.ranks[r].owed -= 1
    else:
        m.ranks[r].pulling = 1
    m.ranks[r].min_owed = min(m.ranks[r].min_owed, m.ranks[r].owed)
    if m.ranks[r].owed == -limit:
        m.ranks[r].pulling = 0
        m.ranks[r].due += m.s[k.T_REF_INTERVAL]
    if m.s[k.C_POWER_DOWN] and m.ranks[r].waiting == 0:
        m.ranks[r].enter = 1


@compiled
def skip_idle_refreshes(m: k.Machine) -> None:
    """Count at once the refreshes of a long idle time, if each round of them is like the other.

    All but the last round are counted. They are alike when no request waits, the refresh manager of
    every rank is where refreshes keep it, and the last round came when it had to.
    """
    waiting = m.s[k.S_READS] + m.s[k.S_WRITES] > 0 or m.s[k.S_DOOR_AT] >= k.NEVER
    if waiting or m.s[k.C_POWER_DOWN] or m.s[k.C_REFRESH] == k.NO_REFRESH:
        return
    command, in_round, lasts = k.REFAB, 1, m.s[k.T_REFAB_REF]
    if m.s[k.C_REFRESH] != k.ALL_BANK:
        command = k.REFPB if m.s[k.C_REFRESH] == k.PER_BANK else k.REFSB
        in_round, lasts = set_step(m), m.s[k.T_REF_REFAB]
    opened = lasts - m.s[k.T_RP]  # cycles of a refresh that count as active
    for r in range(m.ranks.shape[0]):
        if not _is_steady(r, command, in_round, opened, m):
            return
    next_due = k.NEVER
    for r in range(m.ranks.shape[0]):
        _skip_rounds(r, command, in_round, opened, m)
        next_due = min(next_due, m.ranks[r].due)
    m.s[k.S_NEXT_DUE] = next_due


@compiled
def _is_steady(r: int, command: int, in_round: int, opened: int, m: k.Machine) -> bool:
    """Whether a rank's last round of refreshes came as all others will, were it idle for ever."""
    interval = m.s[k.T_REF_INTERVAL]
    due = m.ranks[r].due
    if m.ranks[r].pulling or m.ranks[r].open_banks > 0:
        return False
    if m.ranks[r].owed != -m.s[k.C_PULLED_IN] * in_round:
        return False
    closed_at = due - interval + opened
    active_from = closed_at if command == k.REFAB else closed_at - opened
    if m.ranks[r].closed_at != closed_at or m.ranks[r].active_from != active_from:
        return False
    if command != k.REFAB:
        if m.ranks[r].remaining != (1 << in_round) - 1:
            return False
        first = r * m.s[k.T_BANKS]
        for b in range(first, first + m.s[k.T_BANKS]):
            place = (b - first) % in_round
            if m.banks[b].ref_at != due + (place - in_round) * interval:
                return False
    return True


@compiled
def _skip_rounds(r: int, command: int, in_round: int, opened: int, m: k.Machine) -> None:
    """Count the rounds of a rank that come before the next request, all but the last."""
    interval = m.s[k.T_REF_INTERVAL]
    rounds = (m.s[k.S_DOOR_AT] - m.ranks[r].due) // (in_round * interval) - 1
    if rounds <= 0:
        return
    refreshes = rounds * in_round
    m.out[command] += refreshes
    m.s[k.S_LOGGED] += refreshes
    m.ranks[r].active += refreshes * opened
    m.ranks[r].precharged += refreshes * (interval - opened)
    later = refreshes * interval
    m.ranks[r].closed_at += later
    m.ranks[r].active_from += later
    m.ranks[r].due += later
    m.ranks[r].refab += later
    m.ranks[r].pde += later
    if command != k.REFAB:
        m.ranks[r].ref += later
        m.ranks[r].preab += later
        m.ranks[r].act0 += later
        m.ranks[r].act1 += later
        m.ranks[r].act2 += later
        m.ranks[r].act3 += later
        first = r * m.s[k.T_BANKS]
        for b in range(first, first + m.s[k.T_BANKS]):
            m.banks[b].next_act += later
            m.banks[b].ref_at += later
