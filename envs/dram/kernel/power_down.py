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
    """Power-down manager of a rank: which command it wants, in its ``power_command``.

    Power-down is entered when the rank has no request; a refresh ends it; if the rank is still
    idle after that refresh it goes into self-refresh.
    """
    power = m.ranks[r].power
    command = k.NOP
    if m.ranks[r].leave:
        if power == k.SELF_REFRESH:
            command = k.SRX
        elif power == k.LEAVING_SELF_REFRESH:
            command = k.REFAB
        else:
            command = k.PDX
    elif m.ranks[r].enter:
        command = k.PDE
    elif m.ranks[r].self_refresh:
        command = k.SRE
    m.ranks[r].power_command = command


@compiled
def power_start(r: int, m: k.Machine) -> int:
    """Earliest cycle of the command that a rank's power-down manager wants."""
    command = m.ranks[r].power_command
    if command == k.PDE:
        return int(m.ranks[r].pde)
    if command == k.SRE:
        return int(max(m.ranks[r].pde, m.ranks[r].refab))
    if command == k.REFAB:
        return int(m.ranks[r].refab)
    shortest = m.s[k.T_SRE_SRX] if command == k.SRX else m.s[k.T_PDE_PDX]
    return int(m.ranks[r].since + shortest)


@compiled
def issue_power(now: int, r: int, command: int, m: k.Machine) -> None:
    """Carry out a command of a power-down manager, with the standby times that it ends."""
    account(now, command, length_of(command, m), r, m)
    first = r * m.s[k.T_BANKS]
    m.ranks[r].pde = max(m.ranks[r].pde, now + 1)
    if command in (k.PDE, k.SRE):
        active = m.ranks[r].open_banks > 0
        until = now if active else min(now, m.ranks[r].closed_at)
        m.ranks[r].active += until - m.ranks[r].active_from
        m.ranks[r].precharged += now - until
        m.ranks[r].since = now
        m.ranks[r].enter = 0
        m.ranks[r].self_refresh = 0
        if command == k.SRE:
            m.ranks[r].power = k.SELF_REFRESH
            m.ranks[r].due = k.NEVER
        else:
            m.ranks[r].power = k.DOWN_ACTIVE if active else k.DOWN_PRECHARGED
        for b in range(first, first + m.s[k.T_BANKS]):
            hold(b, k.SLEEPING, m)
        return
    if command == k.REFAB:
        # The refresh that leaving self-refresh demands; from now on the interval counts anew.
        m.ranks[r].power = k.AWAKE
        m.ranks[r].leave = 0
        refresh_rank(now, r, m)
        m.ranks[r].pulling = 0
        m.ranks[r].due = now + m.s[k.T_REF_INTERVAL]
        m.ranks[r].remaining = (1 << set_step(m)) - 1
        m.ranks[r].chosen = 0
        return
    slept = now - m.ranks[r].since
    m.ranks[r].active_from = now
    m.ranks[r].closed_at = now
    if command == k.SRX:
        m.ranks[r].self_refreshed += slept
        m.ranks[r].power = k.LEAVING_SELF_REFRESH
        m.ranks[r].refab = max(m.ranks[r].refab, now + m.s[k.T_SRX_REF])
        m.ranks[r].ref = max(m.ranks[r].ref, now + m.s[k.T_SRX_REF])
        raise_rank(k.OF_ACT, r, now + m.s[k.T_SRX_ACT], m)
        raise_rank(k.OF_READ, r, now + m.s[k.T_SRX_COLUMN], m)
        raise_rank(k.OF_WRITE, r, now + m.s[k.T_SRX_COLUMN], m)
        return
    if m.ranks[r].power == k.DOWN_ACTIVE:
        m.ranks[r].down_active += slept
    else:
        m.ranks[r].down_precharged += slept
        m.ranks[r].self_refresh = m.ranks[r].waiting == 0
    m.ranks[r].power = k.AWAKE
    m.ranks[r].leave = 0
    after = now + m.s[k.T_PDX_ANY]
    for kind in (k.OF_PRE, k.OF_ACT, k.OF_READ, k.OF_WRITE):
        raise_rank(kind, r, after, m)
    m.ranks[r].preab = max(m.ranks[r].preab, after)
    m.ranks[r].refab = max(m.ranks[r].refab, after)
    m.ranks[r].ref = max(m.ranks[r].ref, after)
    m.ranks[r].pde = max(m.ranks[r].pde, now + m.s[k.T_PDX_PDE])
    for b in range(first, first + m.s[k.T_BANKS]):
        m.banks[b].held &= ~k.SLEEPING
