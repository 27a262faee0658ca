"""The refresh and power-down managers together, and their place among the banks' commands."""

from __future__ import annotations

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.commands import length_of
from archgym.envs.dram.kernel.compiled import compiled, inlined
from archgym.envs.dram.kernel.front_end import is_asleep
from archgym.envs.dram.kernel.power_down import issue_power, manage_power, power_start
from archgym.envs.dram.kernel.refresh import (
    issue_refresh,
    refresh_all_banks,
    refresh_some_banks,
    refresh_start,
)


@inlined
def needs_managing(now: int, m: k.Machine) -> bool:
    """Whether a refresh is due, a command of a manager waits or a rank may sleep or must wake."""
    return bool(now >= m.s[k.S_NEXT_DUE] or m.s[k.S_PENDING] or m.s[k.S_POWER_DIRTY])


@inlined
def manage(now: int, m: k.Machine) -> bool:
    """Run the refresh and power-down managers; returns whether a bank was blocked anew."""
    blocked = False
    pending = 0
    next_due = k.NEVER
    for r in range(m.ranks.shape[0]):
        m.ranks[r].refresh = k.NOP
        if now >= m.ranks[r].due:
            if m.s[k.C_POWER_DOWN]:
                m.ranks[r].enter = 0
                if is_asleep(r, m):
                    m.ranks[r].leave = 1
            if not is_asleep(r, m):
                if now >= m.ranks[r].due + m.s[k.T_REF_INTERVAL]:
                    m.ranks[r].due += m.s[k.T_REF_INTERVAL]
                    m.ranks[r].pulling = 0
                if m.s[k.C_REFRESH] == k.ALL_BANK:
                    blocked = refresh_all_banks(now, r, m) or blocked
                else:
                    blocked = refresh_some_banks(r, m) or blocked
        pending += m.ranks[r].refresh != k.NOP
        if m.s[k.C_POWER_DOWN]:
            manage_power(r, m)
            pending += m.ranks[r].power_command != k.NOP
        next_due = min(next_due, m.ranks[r].due)
    m.s[k.S_POWER_DIRTY] = 0
    m.s[k.S_PENDING] = pending
    m.s[k.S_NEXT_DUE] = next_due
    return blocked


@compiled
def choose_managed(now: int, best: int, m: k.Machine) -> tuple[int, int, bool]:
    """The managers' best command: its rank and start, and whether it is of the power-down manager.

    The rank is -1 if a bank's proposal ``best`` comes first. Refresh goes before banks and banks
    before power-down where two would be through in the same cycle.
    """
    refresh_first, banks, power_last = range(3)
    first = 3 * (best >> k.ID_BITS) + banks
    bus = max(now, m.s[k.S_ROW_BUS])
    chosen = -1
    start = k.NEVER
    power = False
    for r in range(m.ranks.shape[0]):
        if m.s[k.C_POWER_DOWN] and m.ranks[r].power_command != k.NOP:
            begin = max(power_start(r, m), bus)
            end = 3 * (begin + length_of(m.ranks[r].power_command, m)) + power_last
            if end < first:
                chosen, start, power, first = r, begin, True, end
        elif m.ranks[r].refresh != k.NOP:
            begin = max(refresh_start(r, m), bus)
            end = 3 * (begin + length_of(m.ranks[r].refresh, m)) + refresh_first
            if end < first:
                chosen, start, power, first = r, begin, False, end
    return chosen, start, power


@compiled
def next_managed(now: int, m: k.Machine) -> int:
    """Earliest cycle after ``now`` in which a manager's command becomes legal."""
    soonest = k.NEVER
    for r in range(m.ranks.shape[0]):
        start = k.NEVER
        if m.s[k.C_POWER_DOWN] and m.ranks[r].power_command != k.NOP:
            start = max(power_start(r, m), m.s[k.S_ROW_BUS])
        elif m.ranks[r].refresh != k.NOP:
            start = max(refresh_start(r, m), m.s[k.S_ROW_BUS])
        if start > now:
            soonest = min(soonest, start)
    return soonest


@inlined
def issue_managed(now: int, best: int, m: k.Machine) -> bool:
    """Issue a manager's command if one comes first; returns whether the banks have to wait."""
    rank, start, power = choose_managed(now, best, m)
    if rank < 0:
        return False
    if start <= now:
        if power:
            issue_power(now, rank, m.ranks[rank].power_command, m)
        else:
            issue_refresh(now, rank, m.ranks[rank].refresh, m)
        m.s[k.S_ALL_DIRTY] = 1
    return True
