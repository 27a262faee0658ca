"""Effects of the commands of the banks: bank state and the timing limits that follow."""

from __future__ import annotations

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.bank_proposals import bank_of
from archgym.envs.dram.kernel.compiled import inlined
from archgym.envs.dram.kernel.front_end import respond, update_write_mode
from archgym.envs.dram.kernel.request_queues import dequeue, find_hits
from archgym.envs.dram.kernel.timing_limits import (
    note_activate,
    raise_columns,
    raise_limits,
    raise_rank,
)


@inlined
def length_of(command: int, m: k.Machine) -> int:
    """Clocks for which a command of a manager holds the bus."""
    if command in (k.PRE, k.PREAB, k.PRESB):
        return int(m.s[k.T_PRE_LENGTH])
    if command in (k.PDE, k.PDX):
        return 1
    return int(m.s[k.T_REF_LENGTH])


@inlined
def account(now: int, command: int, length: int, rank: int, m: k.Machine) -> int:
    """Count and log a command, which takes its command bus for its clocks.

    Returns:
        Its place in the log, for :func:`log_bank`.
    """
    if not m.s[k.T_SEPARATE]:
        m.s[k.S_ROW_BUS] = now + length
        m.s[k.S_COLUMN_BUS] = now + length
    elif k.RD <= command <= k.WRA:
        m.s[k.S_COLUMN_BUS] = now + length
    else:
        m.s[k.S_ROW_BUS] = now + length
    m.out[command] += 1
    place = m.s[k.S_LOGGED]
    m.s[k.S_LOGGED] = place + 1
    if place < m.log.shape[0]:
        m.log[place, 0] = now
        m.log[place, 1] = command
        m.log[place, 2] = rank
        m.log[place, 3] = -1
        m.log[place, 4] = -1
    return int(place)


@inlined
def log_bank(place: int, bank: int, m: k.Machine) -> None:
    """Add to the log which bank of the rank a command was for."""
    if place < m.log.shape[0]:
        m.log[place, 3] = bank


@inlined
def bank_opened(now: int, r: int, m: k.Machine) -> None:
    """Standby accounting: a bank opens, or is refreshed."""
    if m.ranks[r].open_banks == 0 and now >= m.ranks[r].closed_at:
        m.ranks[r].active += m.ranks[r].closed_at - m.ranks[r].active_from
        m.ranks[r].precharged += now - m.ranks[r].closed_at
        m.ranks[r].active_from = now


@inlined
def bank_closed(at: int, b: int, m: k.Machine) -> None:
    """A bank's precharge begins, by whatever command."""
    r = m.banks[b].rank
    m.banks[b].is_open = 0
    m.banks[b].keep = 0
    m.banks[b].pre_at = at
    m.ranks[r].open_banks -= 1
    m.ranks[r].precharges += 1
    m.ranks[r].closed_at = max(m.ranks[r].closed_at, at)
    m.ranks[r].refab = max(m.ranks[r].refab, at + m.s[k.T_PRE_REF])


@inlined
def precharge(now: int, b: int, m: k.Machine) -> None:
    """PRE, or a bank's part of PRESB."""
    r = m.banks[b].rank
    bank_closed(now, b, m)
    m.banks[b].next_act = max(m.banks[b].next_act, now + m.s[k.T_PRE_ACT])
    m.ranks[r].pde = max(m.ranks[r].pde, now + m.s[k.T_PRE_PDE])
    if m.s[k.T_PRE_PRE] > 1:
        raise_rank(k.OF_PRE, r, now + m.s[k.T_PRE_PRE], m)
        m.ranks[r].preab = max(m.ranks[r].preab, now + m.s[k.T_PRE_PRE])


@inlined
def _activate(now: int, b: int, m: k.Machine) -> None:
    """ACT."""
    r = m.banks[b].rank
    bank_opened(now, r, m)
    m.ranks[r].open_banks += 1
    row = int(m.rows[m.banks[b].current])
    m.banks[b].is_open = 1
    m.banks[b].open_row = row
    m.banks[b].keep = 1
    m.banks[b].act_at = now
    m.banks[b].next_pre = now + m.s[k.T_ACT_PRE]
    m.banks[b].next_rda = 0
    m.banks[b].next_act = now + m.s[k.T_ACT_ACT]
    window = note_activate(now, m.s[k.T_ACT_LENGTH], r, m)
    near = max(now + m.s[k.T_ACT_ACT_L], window)
    far = max(now + m.s[k.T_ACT_ACT_S], window)
    raise_limits(k.OF_ACT, b, near, far, now, m)
    m.ranks[r].preab = max(m.ranks[r].preab, now + m.s[k.T_ACT_PRE])
    m.ranks[r].refab = max(m.ranks[r].refab, now + m.s[k.T_ACT_REF])
    m.ranks[r].ref = max(m.ranks[r].ref, now + m.s[k.T_ACT_REF_OTHER])
    m.ranks[r].pde = max(m.ranks[r].pde, now + m.s[k.T_ACT_PDE])
    find_hits(2 * b, row, m)
    if m.s[k.C_SCHEDULER] in k.TWO_LISTS:
        find_hits(2 * b + 1, row, m)


@inlined
def _issue_column(now: int, b: int, command: int, m: k.Machine) -> None:
    """RD, RDA, WR or WRA: bank state and the limits that follow."""
    r = m.banks[b].rank
    m.s[k.S_HITS] += 1 - m.banks[b].keep
    m.banks[b].current = -1
    m.banks[b].keep = 0
    m.banks[b].used_at = now
    m.ranks[r].busy -= 1
    if command >= k.WR:
        to_pre = m.s[k.T_WR_PRE]
        to_own_pre = to_pre
        to_preab = m.s[k.T_WR_PREAB] if command == k.WR else to_pre
        same = now + m.s[k.T_WR_RD_L], now + m.s[k.T_WR_WR_L]
        other = now + m.s[k.T_WR_RD_S], now + m.s[k.T_WR_WR_S]
        elsewhere = now + m.s[k.T_WR_RD_R], now + m.s[k.T_WR_WR_R]
        m.banks[b].next_rda = now + to_pre - m.s[k.T_RD_AUTO_PRE]
        asleep = m.s[k.T_WR_PDE] if command == k.WR else m.s[k.T_WRA_PDE]
    else:
        to_pre = m.s[k.T_RD_AUTO_PRE]
        to_own_pre = m.s[k.T_RD_PRE]
        to_preab = to_pre
        same = now + m.s[k.T_RD_RD_L], now + m.s[k.T_RD_WR_L]
        other = now + m.s[k.T_RD_RD_S], now + m.s[k.T_RD_WR_S]
        elsewhere = now + m.s[k.T_RD_RD_R], now + m.s[k.T_RD_WR_R]
        asleep = m.s[k.T_RD_PDE]
    raise_columns(b, same, other, elsewhere, m)
    m.ranks[r].pde = max(m.ranks[r].pde, now + asleep)
    m.ranks[r].preab = max(m.ranks[r].preab, now + to_preab)
    if command in (k.RD, k.WR):
        m.banks[b].next_pre = max(m.banks[b].next_pre, now + to_own_pre)
        return
    # With auto-precharge the chip itself waits until the row was open for tRAS.
    closes = max(now + to_pre, m.banks[b].act_at + m.s[k.T_ACT_PRE])
    if m.s[k.C_DRAMSYS_RULES]:
        m.ranks[r].closed_at = max(m.ranks[r].closed_at, closes)
        closes = now + to_pre
    bank_closed(closes, b, m)
    m.banks[b].next_act = max(m.banks[b].next_act, closes + m.s[k.T_PRE_ACT])


@inlined
def _serve(now: int, request: int, b: int, m: k.Machine) -> None:
    """After a column command: free the buffer slot, send the response on its way."""
    write = int(m.is_write[request])
    scheduler = m.s[k.C_SCHEDULER]
    dequeue(2 * b + (write if scheduler in k.TWO_LISTS else 0), request, m)
    m.s[k.S_READS] -= 1 - write
    m.s[k.S_WRITES] -= write
    if scheduler == k.GRP_FR_FCFS_WM:
        update_write_mode(m)
    elif scheduler in k.BY_DIRECTION and m.s[k.S_DIRECTION] != write:
        m.s[k.S_DIRECTION] = write
        m.s[k.S_ALL_DIRTY] = 1
    if m.s[k.C_STRICT]:
        m.s[k.S_ALL_DIRTY] = 1
    m.s[k.S_SERVED] += 1
    data = m.s[k.T_WR_DATA] if write else m.s[k.T_RD_DATA]
    if m.s[k.C_POSTED] and write:
        m.s[k.S_FINISH] = max(m.s[k.S_FINISH], now + data)
    else:
        m.s[k.S_RECENT + m.s[k.S_COLUMNS] % k.N_RECENT] = request
        m.s[k.S_COLUMNS] += 1
        respond(request, now + data + m.s[k.C_RETURN], m)
    if m.s[k.C_POWER_DOWN]:
        r = m.banks[b].rank
        m.ranks[r].waiting -= 1
        if m.ranks[r].waiting == 0:
            m.ranks[r].enter = 1
            m.s[k.S_POWER_DIRTY] = 1


@inlined
def issue(now: int, best: int, m: k.Machine) -> int:
    """Issue the chosen bank's command; returns the bank."""
    request = best & k.ID_MASK
    b = bank_of(request, m)
    r = m.banks[b].rank
    command = m.proposals[k.PROPOSED + b]
    row = m.banks[b].open_row if command == k.PRE else m.rows[request]
    place = account(now, command, m.proposals[k.LENGTH + b], r, m)
    log_bank(place, b - r * m.s[k.T_BANKS], m)
    if place < m.log.shape[0]:
        m.log[place, 4] = row
    if command == k.ACT:
        _activate(now, b, m)
    elif command == k.PRE:
        m.s[k.S_CONFLICTS] += request < k.FIRST_TIMEOUT
        precharge(now, b, m)
    else:
        _issue_column(now, b, command, m)
        _serve(now, request, b, m)
    return b
