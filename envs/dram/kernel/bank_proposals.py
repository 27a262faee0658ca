"""The command that each bank proposes next, and the choice among the proposals.

A bank proposes one command, whose earliest cycle (``READY``) is the later of the bank's own and
that of its kind of command (``OF_ACT`` and so on). Proposals change only when something happens
to the bank, so that a command costs one scan over the banks.
"""

from __future__ import annotations

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.compiled import compiled, inlined
from archgym.envs.dram.kernel.request_queues import closes_row, next_request


@inlined
def _next_command(b: int, direction: int, m: k.Machine) -> int:
    """Choose the bank's request (``current``) and return the command that it needs now.

    Once a row was opened for a request, only a request for the same row replaces it.
    """
    request = next_request(b, direction, m)
    page = m.s[k.C_PAGE]
    if request < 0:
        return k.PRE if page == k.TIMEOUT and m.banks[b].is_open else k.NOP
    open_row = m.banks[b].open_row
    if m.banks[b].keep == 0 or m.rows[request] == open_row:
        m.banks[b].current = request
    else:
        request = m.banks[b].current
    if m.banks[b].is_open == 0:
        return k.ACT
    write = int(m.is_write[request])
    if page == k.CLOSED:
        return k.RDA + 2 * write
    if m.rows[request] != open_row:
        return k.PRE
    if page in (k.OPEN_ADAPTIVE, k.CLOSED_ADAPTIVE):
        q = 2 * b
        if m.s[k.C_SCHEDULER] == k.GRP_FR_FCFS:
            q += write
        elif m.s[k.C_SCHEDULER] == k.GRP_FR_FCFS_WM:
            q += direction
        if closes_row(q, open_row, m):
            return k.RDA + 2 * write
    return k.RD + 2 * write


@inlined
def propose(b: int, m: k.Machine) -> None:
    """Let a bank choose its command anew and note from when the bank itself allows it."""
    command = k.NOP
    if not m.banks[b].held:
        was_idle = m.banks[b].current < 0
        command = _next_command(b, m.s[k.S_DIRECTION], m)
        if was_idle and m.banks[b].current >= 0:
            m.ranks[m.banks[b].rank].busy += 1
    request = m.banks[b].current
    ready = k.NEVER
    kind = k.OF_PRE
    length = 0
    if command >= k.RD:
        length = m.s[k.T_COLUMN_LENGTH]
        if command >= k.WR:
            ready = m.banks[b].act_at + m.s[k.T_ACT_WR]
            kind = k.OF_WRITE
        else:
            ready = m.banks[b].act_at + m.s[k.T_ACT_RD]
            kind = k.OF_READ
            if command == k.RDA:
                ready = max(ready, m.banks[b].next_rda)
        if m.s[k.C_STRICT] and request != m.s[k.S_COLUMNS]:
            ready = k.NEVER
    elif command == k.ACT:
        length = m.s[k.T_ACT_LENGTH]
        ready = m.banks[b].next_act
        kind = k.OF_ACT
    elif command == k.PRE:
        length = m.s[k.T_PRE_LENGTH]
        ready = m.banks[b].next_pre
        if request < 0:
            ready = max(ready, m.banks[b].used_at + m.s[k.C_TIMEOUT])
            request = k.FIRST_TIMEOUT + b
    m.proposals[k.PROPOSED + b] = command
    m.proposals[k.READY + b] = max(ready, m.proposals[kind + b])
    m.proposals[k.KIND + b] = kind
    m.proposals[k.FOR_REQUEST + b] = request if command != k.NOP else 0
    m.proposals[k.LENGTH + b] = length


@inlined
def through(b: int, row_bus: int, column_bus: int, m: k.Machine) -> int:
    """Proposal of one bank: cycle in which its command would be through, and its request."""
    bus = column_bus if m.proposals[k.KIND + b] >= k.OF_READ else row_bus
    start = max(m.proposals[k.READY + b], bus)
    return int(((start + m.proposals[k.LENGTH + b]) << k.ID_BITS) | m.proposals[k.FOR_REQUEST + b])


@inlined
def pick(now: int, besides: int, m: k.Machine) -> int:
    """Best proposal from cycle ``now`` on: first through, then oldest.

    Bank ``besides``, if it is not -1, does not count, and has no proposal until it chooses anew.
    """
    if besides >= 0:
        m.proposals[k.READY + besides] = k.NEVER  # what it proposes next is yet to be chosen
    best = k.NO_PROPOSAL
    row_bus = max(now, m.s[k.S_ROW_BUS])
    if m.s[k.T_UNIFORM]:  # every command takes one clock of the one bus
        best -= 1 << k.ID_BITS
        for b in range(m.banks.shape[0]):
            start = max(m.proposals[k.READY + b], row_bus)
            best = min(best, (start << k.ID_BITS) | m.proposals[k.FOR_REQUEST + b])
        return best + (1 << k.ID_BITS)
    column_bus = max(now, m.s[k.S_COLUMN_BUS])
    for b in range(m.banks.shape[0]):
        best = min(best, through(b, row_bus, column_bus, m))
    return best


@inlined
def pick_with(best: int, b: int, now: int, m: k.Machine) -> int:
    """Better one of a proposal and that of a bank."""
    row_bus = max(now, m.s[k.S_ROW_BUS])
    column_bus = max(now, m.s[k.S_COLUMN_BUS])
    return min(best, through(b, row_bus, column_bus, m))


@inlined
def bank_of(request: int, m: k.Machine) -> int:
    """Bank of a request, or of the time-out that the number stands for."""
    return int(m.bank_of[request]) if request < k.FIRST_TIMEOUT else request - k.FIRST_TIMEOUT


@inlined
def start_of(best: int, m: k.Machine) -> int:
    """First cycle of the chosen proposal, NEVER if there is none."""
    if best >= k.NO_PROPOSAL:
        return k.NEVER
    if m.s[k.T_UNIFORM]:
        return (best >> k.ID_BITS) - 1
    return int((best >> k.ID_BITS) - m.proposals[k.LENGTH + bank_of(best & k.ID_MASK, m)])


@compiled
def next_ready(now: int, m: k.Machine) -> int:
    """Earliest cycle after ``now`` in which a proposal becomes legal."""
    soonest = k.NEVER
    for b in range(m.banks.shape[0]):
        column = m.proposals[k.KIND + b] >= k.OF_READ
        bus = m.s[k.S_COLUMN_BUS] if column else m.s[k.S_ROW_BUS]
        ready = max(m.proposals[k.READY + b], bus)
        if ready > now:
            soonest = min(soonest, ready)
    return soonest


@inlined
def hold(b: int, bit: int, m: k.Machine) -> None:
    """Keep a bank from proposing."""
    m.banks[b].held |= bit
    m.proposals[k.PROPOSED + b] = k.NOP
    m.proposals[k.READY + b] = k.NEVER
    m.proposals[k.KIND + b] = k.OF_PRE
    m.proposals[k.FOR_REQUEST + b] = 0
