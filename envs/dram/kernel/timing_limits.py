"""Earliest cycles by command kind and bank group, and the window of four activates."""

from __future__ import annotations

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.compiled import inlined


@inlined
def raise_limits(
    start: int, rank: int, own: int, same: int, other: int, elsewhere: int, m: k.Machine
) -> None:
    """Raise the limits of one command kind.

    Args:
        start: first limit of the kind: the bank groups of all ranks times 0 for PRE, 1 for ACT,
            2 for reads, 3 for writes.
        rank: rank of the command.
        own: its bank group, over all ranks.
        same: limit in that group.
        other: limit in the other groups of its rank.
        elsewhere: limit in the other ranks, not above the two.
        m: the machine.
    """
    groups = m.s[k.T_GROUPS]
    total = m.s[k.T_ALL_GROUPS]
    if groups < total:
        for g in range(total):
            m.limits[start + g] = max(m.limits[start + g], elsewhere)
    first = rank * groups
    for g in range(first, first + groups):
        m.limits[start + g] = max(m.limits[start + g], same if g == own else other)


@inlined
def raise_rank(start: int, r: int, limit: int, m: k.Machine) -> None:
    """Raise the limits of one command kind in all bank groups of a rank."""
    groups = m.s[k.T_GROUPS]
    first = start + r * groups
    for g in range(first, first + groups):
        m.limits[g] = max(m.limits[g], limit)


@inlined
def note_activate(now: int, length: int, r: int, m: k.Machine) -> int:
    """Enter an activate into the window of four; returns until when it bars the next one.

    Args:
        now: first cycle of the activate, or of a refresh of one bank, which counts as one.
        length: cycles that the command takes. DRAMSys has the window begin at the end of one
            command, and ends it, whatever comes next, earlier by the length of the fourth.
        r: the rank.
        m: the machine.
    """
    late = length if m.s[k.C_DRAMSYS_RULES] else 0
    m.ranks[r, k.R_ACT0] = m.ranks[r, k.R_ACT1]
    m.ranks[r, k.R_ACT1] = m.ranks[r, k.R_ACT2]
    m.ranks[r, k.R_ACT2] = m.ranks[r, k.R_ACT3]
    m.ranks[r, k.R_ACT3] = now + late
    window = int(m.ranks[r, k.R_ACT0] + m.s[k.T_ACT_WINDOW]) - late
    if m.s[k.C_DRAMSYS_RULES]:
        m.ranks[r, k.R_REF] = max(m.ranks[r, k.R_REF], window)
    return window
