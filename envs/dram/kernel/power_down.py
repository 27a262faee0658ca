"""Power-down and self-refresh of a rank."""

from __future__ import annotations

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.bank_proposals import hold
from archgym.envs.dram.kernel.commands import account, length_of
from archgym.envs.dram.kernel.compiled import compiled
from archgym.envs.dram.kernel.refresh import refresh_rank, set_step
from archgym.envs.dram.kernel.timing_limits import raise_rank


@compiled
def manage_power(r: int, m: k.Machine) -> None:
    """Power-down manager of a rank: which command it wants, in ``R_POWER_COMMAND``.

    Power-down is entered when the rank has no request; a refresh ends it; if the rank is still
    idle after that refresh it goes into self-refresh.
    """
    power = m.ranks[r, k.R_POWER]
    command = k.NOP
    if m.ranks[r, k.R_LEAVE]:
        if power == k.SELF_REFRESH:
            command = k.SRX
        elif power == k.LEAVING_SELF_REFRESH:
            command = k.REFAB
        else:
            command = k.PDX
    elif m.ranks[r, k.R_ENTER]:
        command = k.PDE
    elif m.ranks[r, k.R_SELF_REFRESH]:
        command = k.SRE
    m.ranks[r, k.R_POWER_COMMAND] = command


@compiled
def power_start(r: int, m: k.Machine) -> int:
    """Earliest cycle of the command that a rank's power-down manager wants."""
    command = m.ranks[r, k.R_POWER_COMMAND]
    if command == k.PDE:
        return int(m.ranks[r, k.R_PDE])
    if command == k.SRE:
        return int(max(m.ranks[r, k.R_PDE], m.ranks[r, k.R_REFAB]))
    if command == k.REFAB:
        return int(m.ranks[r, k.R_REFAB])
    shortest = m.s[k.T_SRE_SRX] if command == k.SRX else m.s[k.T_PDE_PDX]
    return int(m.ranks[r, k.R_SINCE] + shortest)


@compiled
def issue_power(now: int, r: int, command: int, m: k.Machine) -> None:
    """Carry out a command of a power-down manager, with the standby times that it ends."""
    account(now, command, length_of(command, m), r, m)
    first = r * m.s[k.T_BANKS]
    m.ranks[r, k.R_PDE] = max(m.ranks[r, k.R_PDE], now + 1)
    if command in (k.PDE, k.SRE):
        active = m.ranks[r, k.R_OPEN_BANKS] > 0
        until = now if active else min(now, m.ranks[r, k.R_CLOSED_AT])
        m.ranks[r, k.R_ACTIVE] += until - m.ranks[r, k.R_ACTIVE_FROM]
        m.ranks[r, k.R_PRECHARGED] += now - until
        m.ranks[r, k.R_SINCE] = now
        m.ranks[r, k.R_ENTER] = 0
        m.ranks[r, k.R_SELF_REFRESH] = 0
        if command == k.SRE:
            m.ranks[r, k.R_POWER] = k.SELF_REFRESH
            m.ranks[r, k.R_DUE] = k.NEVER
        else:
            m.ranks[r, k.R_POWER] = k.DOWN_ACTIVE if active else k.DOWN_PRECHARGED
        for b in range(first, first + m.s[k.T_BANKS]):
            hold(b, k.SLEEPING, m)
        return
    if command == k.REFAB:
        # The refresh that leaving self-refresh demands; from now on the interval counts anew.
        m.ranks[r, k.R_POWER] = k.AWAKE
        m.ranks[r, k.R_LEAVE] = 0
        refresh_rank(now, r, m)
        m.ranks[r, k.R_PULLING] = 0
        m.ranks[r, k.R_DUE] = now + m.s[k.T_REF_INTERVAL]
        m.ranks[r, k.R_REMAINING] = (1 << set_step(m)) - 1
        m.ranks[r, k.R_CHOSEN] = 0
        return
    slept = now - m.ranks[r, k.R_SINCE]
    m.ranks[r, k.R_ACTIVE_FROM] = now
    m.ranks[r, k.R_CLOSED_AT] = now
    if command == k.SRX:
        m.ranks[r, k.R_SELF_REFRESHED] += slept
        m.ranks[r, k.R_POWER] = k.LEAVING_SELF_REFRESH
        m.ranks[r, k.R_REFAB] = max(m.ranks[r, k.R_REFAB], now + m.s[k.T_SRX_REF])
        m.ranks[r, k.R_REF] = max(m.ranks[r, k.R_REF], now + m.s[k.T_SRX_REF])
        raise_rank(1 * m.s[k.T_ALL_GROUPS], r, now + m.s[k.T_SRX_ACT], m)
        raise_rank(2 * m.s[k.T_ALL_GROUPS], r, now + m.s[k.T_SRX_COLUMN], m)
        raise_rank(3 * m.s[k.T_ALL_GROUPS], r, now + m.s[k.T_SRX_COLUMN], m)
        return
    if m.ranks[r, k.R_POWER] == k.DOWN_ACTIVE:
        m.ranks[r, k.R_DOWN_ACTIVE] += slept
    else:
        m.ranks[r, k.R_DOWN_PRECHARGED] += slept
        m.ranks[r, k.R_SELF_REFRESH] = m.ranks[r, k.R_WAITING] == 0
    m.ranks[r, k.R_POWER] = k.AWAKE
    m.ranks[r, k.R_LEAVE] = 0
    after = now + m.s[k.T_PDX_ANY]
    for kind in range(4):
        raise_rank(kind * m.s[k.T_ALL_GROUPS], r, after, m)
    m.ranks[r, k.R_PREAB] = max(m.ranks[r, k.R_PREAB], after)
    m.ranks[r, k.R_REFAB] = max(m.ranks[r, k.R_REFAB], after)
    m.ranks[r, k.R_REF] = max(m.ranks[r, k.R_REF], after)
    m.ranks[r, k.R_PDE] = max(m.ranks[r, k.R_PDE], now + m.s[k.T_PDX_PDE])
    for b in range(first, first + m.s[k.T_BANKS]):
        m.banks[b, k.HELD] &= ~k.SLEEPING
