"""Earliest cycles by kind of command and bank, and the window of four activates.

What a bank proposes never comes before its limit for that kind of command: raising a limit raises
the banks' own earliest cycles too, so that the choice among them need not look at the limits.
"""

from __future__ import annotations

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.compiled import inlined


@inlined
def raise_limits(kind: int, b: int, same: int, other: int, elsewhere: int, m: k.Machine) -> None:
    """Raise the limits of one kind of command after a command of a bank.

    Args:
        kind: ``OF_PRE``, ``OF_ACT``, ``OF_READ`` or ``OF_WRITE``.
        b: the bank.
        same: limit in its bank group.
        other: limit in the other groups of its rank.
        elsewhere: limit in the other ranks.
        m: the machine.
    """
    rank = m.proposals[k.RANK_OF + b]
    group = m.proposals[k.GROUP_OF + b]
    for i in range(m.banks.shape[0]):
        limit = other if m.proposals[k.RANK_OF + i] == rank else elsewhere
        limit = same if m.proposals[k.GROUP_OF + i] == group else limit
        m.proposals[kind + i] = max(m.proposals[kind + i], limit)
        limit = limit if m.proposals[k.KIND + i] == kind else 0
        m.proposals[k.READY + i] = max(m.proposals[k.READY + i], limit)


@inlined
def raise_columns(
    b: int,
    same: tuple[int, int],
    other: tuple[int, int],
    elsewhere: tuple[int, int],
    m: k.Machine,
) -> None:
    """Raise the limits of reads and of writes (a pair of each) after a command of a bank."""
    rank = m.proposals[k.RANK_OF + b]
    group = m.proposals[k.GROUP_OF + b]
    for i in range(m.banks.shape[0]):
        in_rank = m.proposals[k.RANK_OF + i] == rank
        in_group = m.proposals[k.GROUP_OF + i] == group
        kind = m.proposals[k.KIND + i]
        read = other[0] if in_rank else elsewhere[0]
        read = same[0] if in_group else read
        write = other[1] if in_rank else elsewhere[1]
        write = same[1] if in_group else write
        m.proposals[k.OF_READ + i] = max(m.proposals[k.OF_READ + i], read)
        m.proposals[k.OF_WRITE + i] = max(m.proposals[k.OF_WRITE + i], write)
        limit = read if kind == k.OF_READ else 0
        limit = write if kind == k.OF_WRITE else limit
        m.proposals[k.READY + i] = max(m.proposals[k.READY + i], limit)


@inlined
def raise_rank(kind: int, r: int, limit: int, m: k.Machine) -> None:
    """Raise the limit of one kind of command in all banks of a rank."""
    first = r * m.s[k.T_BANKS]
    last = first + m.s[k.T_BANKS]
    for i in range(first, last):
        m.proposals[kind + i] = max(m.proposals[kind + i], limit)
        raised = limit if m.proposals[k.KIND + i] == kind else 0
        m.proposals[k.READY + i] = max(m.proposals[k.READY + i], raised)


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
    m.ranks[r].act0 = m.ranks[r].act1
    m.ranks[r].act1 = m.ranks[r].act2
    m.ranks[r].act2 = m.ranks[r].act3
    m.ranks[r].act3 = now + late
    window = int(m.ranks[r].act0 + m.s[k.T_ACT_WINDOW]) - late
    if m.s[k.C_DRAMSYS_RULES]:
        m.ranks[r].ref = max(m.ranks[r].ref, window)
    return window
