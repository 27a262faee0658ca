"""Effects of the commands of the banks: bank state and the timing limits that follow."""

from __future__ import annotations

from archgym.envs.dram.kernel import layout as k
from archgym.envs.dram.kernel.bank_proposals import bank_of
from archgym.envs.dram.kernel.compiled import inlined
from archgym.envs.dram.kernel.front_end import respond, update_write_mode
from archgym.envs.dram.kernel.request_queues import dequeue, find_hits
from archgym.envs.dram.kernel.timing_limits import note_activate, raise_limits, raise_rank


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
    if m.ranks[r, k.R_OPEN_BANKS] == 0 and now >= m.ranks[r, k.R_CLOSED_AT]:
        m.ranks[r, k.R_ACTIVE] += m.ranks[r, k.R_CLOSED_AT] - m.ranks[r, k.R_ACTIVE_FROM]
        m.ranks[r, k.R_PRECHARGED] += now - m.ranks[r, k.R_CLOSED_AT]
        m.ranks[r, k.R_ACTIVE_FROM] = now


@inlined
def bank_closed(at: int, b: int, m: k.Machine) -> None:
    """A bank's precharge begins, by whatever command."""
    r = m.banks[b, k.RANK]
    m.banks[b, k.IS_OPEN] = 0
    m.banks[b, k.KEEP] = 0
    m.banks[b, k.PRE_AT] = at
    m.ranks[r, k.R_OPEN_BANKS] -= 1
    m.ranks[r, k.R_PRECHARGES] += 1
    m.ranks[r, k.R_CLOSED_AT] = max(m.ranks[r, k.R_CLOSED_AT], at)
    m.ranks[r, k.R_REFAB] = max(m.ranks[r, k.R_REFAB], at + m.s[k.T_PRE_REF])


@inlined
def precharge(now: int, b: int, m: k.Machine) -> None:
    """PRE, or a bank's part of PRESB."""
    r = m.banks[b, k.RANK]
    bank_closed(now, b, m)
    m.banks[b, k.NEXT_ACT] = max(m.banks[b, k.NEXT_ACT], now + m.s[k.T_PRE_ACT])
    m.ranks[r, k.R_PDE] = max(m.ranks[r, k.R_PDE], now + m.s[k.T_PRE_PDE])
    if m.s[k.T_PRE_PRE] > 1:
        raise_rank(0 * m.s[k.T_ALL_GROUPS], r, now + m.s[k.T_PRE_PRE], m)
        m.ranks[r, k.R_PREAB] = max(m.ranks[r, k.R_PREAB], now + m.s[k.T_PRE_PRE])


@inlined
def _activate(now: int, b: int, g: int, m: k.Machine) -> None:
    """ACT."""
    r = m.banks[b, k.RANK]
    bank_opened(now, r, m)
    m.ranks[r, k.R_OPEN_BANKS] += 1
    row = int(m.rows[m.banks[b, k.CURRENT]])
    m.banks[b, k.IS_OPEN] = 1
    m.banks[b, k.OPEN_ROW] = row
    m.banks[b, k.KEEP] = 1
    m.banks[b, k.ACT_AT] = now
    m.banks[b, k.NEXT_PRE] = now + m.s[k.T_ACT_PRE]
    m.banks[b, k.NEXT_RDA] = 0
    m.banks[b, k.NEXT_ACT] = now + m.s[k.T_ACT_ACT]
    window = note_activate(now, m.s[k.T_ACT_LENGTH], r, m)
    near = max(now + m.s[k.T_ACT_ACT_L], window)
    far = max(now + m.s[k.T_ACT_ACT_S], window)
    raise_limits(1 * m.s[k.T_ALL_GROUPS], r, g, near, far, now, m)
    m.ranks[r, k.R_PREAB] = max(m.ranks[r, k.R_PREAB], now + m.s[k.T_ACT_PRE])
    m.ranks[r, k.R_REFAB] = max(m.ranks[r, k.R_REFAB], now + m.s[k.T_ACT_REF])
    m.ranks[r, k.R_REF] = max(m.ranks[r, k.R_REF], now + m.s[k.T_ACT_REF_OTHER])
    m.ranks[r, k.R_PDE] = max(m.ranks[r, k.R_PDE], now + m.s[k.T_ACT_PDE])
    find_hits(2 * b, row, m)
    if m.s[k.C_SCHEDULER] >= k.GRP_FR_FCFS:
        find_hits(2 * b + 1, row, m)


@inlined
def _issue_column(now: int, b: int, g: int, command: int, m: k.Machine) -> None:
    """RD, RDA, WR or WRA: bank state and the limits that follow."""
    r = m.banks[b, k.RANK]
    m.s[k.S_HITS] += 1 - m.banks[b, k.KEEP]
    m.banks[b, k.CURRENT] = -1
    m.banks[b, k.KEEP] = 0
    m.banks[b, k.USED_AT] = now
    m.ranks[r, k.R_BUSY] -= 1
    reads, writes = 2 * m.s[k.T_ALL_GROUPS], 3 * m.s[k.T_ALL_GROUPS]
    if command >= k.WR:
        to_pre = m.s[k.T_WR_PRE]
        to_own_pre = to_pre
        to_preab = m.s[k.T_WR_PREAB] if command == k.WR else to_pre
        near, far, elsewhere = m.s[k.T_WR_WR_L], m.s[k.T_WR_WR_S], m.s[k.T_WR_WR_R]
        raise_limits(writes, r, g, now + near, now + far, now + elsewhere, m)
        near, far, elsewhere = m.s[k.T_WR_RD_L], m.s[k.T_WR_RD_S], m.s[k.T_WR_RD_R]
        raise_limits(reads, r, g, now + near, now + far, now + elsewhere, m)
        m.banks[b, k.NEXT_RDA] = now + to_pre - m.s[k.T_RD_AUTO_PRE]
        asleep = m.s[k.T_WR_PDE] if command == k.WR else m.s[k.T_WRA_PDE]
    else:
        to_pre = m.s[k.T_RD_AUTO_PRE]
        to_own_pre = m.s[k.T_RD_PRE]
        to_preab = to_pre
        near, far, elsewhere = m.s[k.T_RD_RD_L], m.s[k.T_RD_RD_S], m.s[k.T_RD_RD_R]
        raise_limits(reads, r, g, now + near, now + far, now + elsewhere, m)
        near, far, elsewhere = m.s[k.T_RD_WR_L], m.s[k.T_RD_WR_S], m.s[k.T_RD_WR_R]
        raise_limits(writes, r, g, now + near, now + far, now + elsewhere, m)
        asleep = m.s[k.T_RD_PDE]
    m.ranks[r, k.R_PDE] = max(m.ranks[r, k.R_PDE], now + asleep)
    m.ranks[r, k.R_PREAB] = max(m.ranks[r, k.R_PREAB], now + to_preab)
    if command in (k.RD, k.WR):
        m.banks[b, k.NEXT_PRE] = max(m.banks[b, k.NEXT_PRE], now + to_own_pre)
        return
    # With auto-precharge the chip itself waits until the row was open for tRAS.
    closes = max(now + to_pre, m.banks[b, k.ACT_AT] + m.s[k.T_ACT_PRE])
    if m.s[k.C_DRAMSYS_RULES]:
        m.ranks[r, k.R_CLOSED_AT] = max(m.ranks[r, k.R_CLOSED_AT], closes)
        closes = now + to_pre
    bank_closed(closes, b, m)
    m.banks[b, k.NEXT_ACT] = max(m.banks[b, k.NEXT_ACT], closes + m.s[k.T_PRE_ACT])


@inlined
def _serve(now: int, request: int, b: int, m: k.Machine) -> None:
    """After a column command: free the buffer slot, send the response on its way."""
    write = int(m.is_write[request])
    scheduler = m.s[k.C_SCHEDULER]
    dequeue(2 * b + (write if scheduler >= k.GRP_FR_FCFS else 0), request, m)
    m.s[k.S_READS] -= 1 - write
    m.s[k.S_WRITES] -= write
    if scheduler == k.GRP_FR_FCFS_WM:
        update_write_mode(m)
    elif scheduler >= k.FR_FCFS_GRP and m.s[k.S_DIRECTION] != write:
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
        r = m.banks[b, k.RANK]
        m.ranks[r, k.R_WAITING] -= 1
        if m.ranks[r, k.R_WAITING] == 0:
            m.ranks[r, k.R_ENTER] = 1


@inlined
def issue(now: int, best: int, m: k.Machine) -> int:
    """Issue the chosen bank's command; returns the bank."""
    request = best & k.ID_MASK
    b = bank_of(request, m)
    g = m.banks[b, k.GROUP]
    r = m.banks[b, k.RANK]
    command = m.proposals[k.PROPOSED, b]
    row = m.banks[b, k.OPEN_ROW] if command == k.PRE else m.rows[request]
    place = account(now, command, m.proposals[k.LENGTH, b], r, m)
    log_bank(place, b - r * m.s[k.T_BANKS], m)
    if place < m.log.shape[0]:
        m.log[place, 4] = row
    if command == k.ACT:
        _activate(now, b, g, m)
    elif command == k.PRE:
        m.s[k.S_CONFLICTS] += request < k.FIRST_TIMEOUT
        precharge(now, b, m)
    else:
        _issue_column(now, b, g, command, m)
        _serve(now, request, b, m)
    return b
