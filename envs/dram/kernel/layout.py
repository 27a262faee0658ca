"""Shared by the compiled modules: codes, positions in the tables, and the tables of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = Any

# Codes of the settings, which `controller.config` gives to the names of their values.
OPEN, OPEN_ADAPTIVE, CLOSED, CLOSED_ADAPTIVE, TIMEOUT = range(5)
FIFO, FR_FCFS, FR_FCFS_GRP, GRP_FR_FCFS, GRP_FR_FCFS_WM = range(5)
# Schedulers whose banks keep reads and writes in two lists; those that prefer the direction of the
# last column command.
TWO_LISTS = GRP_FR_FCFS, GRP_FR_FCFS_WM
BY_DIRECTION = FR_FCFS_GRP, GRP_FR_FCFS
BANKWISE, READ_WRITE, SHARED = range(3)
IN_ORDER_OF_DATA, IN_ORDER_OF_ARRIVAL = range(2)
ARB_SIMPLE, ARB_FIFO, ARB_REORDER = range(3)
NO_REFRESH, ALL_BANK, PER_BANK, SAME_BANK = range(4)
# Codes of the commands in the command log.
NOP, ACT, PRE, RD, RDA, WR, WRA, PREAB, REFAB, PRESB, REFPB, REFSB, PDE, PDX, SRE, SRX = range(16)
N_COMMANDS = 16

# Entries of the vector `s`: settings, timings, state. The settings:
C_PAGE, C_SCHEDULER, C_BUFFER, C_BUFFER_SIZE, C_RESPONSE, C_REFRESH, C_POSTPONED = range(7)
C_PULLED_IN, C_ARBITER, C_MAX_ACTIVE, C_STRICT, C_HIGH, C_LOW, C_THINK_FW = range(7, 14)
C_RETURN, C_ARB_FW, C_ARB_BW, C_END_RESPONSE, C_DRAMSYS_RULES = range(14, 19)
C_TIMEOUT, C_POWER_DOWN, C_POSTED = range(19, 22)
N_SETTINGS = 22
# The timings: geometry, then distances of `timing_constraints.Constraints`.
T_RANKS, T_BANKS, T_GROUPS, T_LINE, T_SEPARATE, T_UNIFORM, T_RP = range(N_SETTINGS, N_SETTINGS + 7)
FIRST_DISTANCE = N_SETTINGS + 7
DISTANCES = (
    "act_length", "column_length", "pre_length", "ref_length", "act_rd", "act_wr", "act_pre",
    "act_act", "act_act_l", "act_act_s", "act_window", "act_ref", "act_ref_other", "rd_rd_l",
    "rd_rd_s", "rd_rd_r", "rd_wr_l", "rd_wr_s", "rd_wr_r", "wr_wr_l", "wr_wr_s", "wr_wr_r",
    "wr_rd_l", "wr_rd_s", "wr_rd_r", "rd_pre", "rd_auto_pre", "wr_pre", "wr_preab", "rd_data",
    "wr_data", "pre_act", "pre_ref", "pre_pre", "preab_act", "preab_ref", "refab_act", "refab_ref",
    "ref_act", "ref_act_other", "ref_ref", "ref_refab", "ref_interval", "act_pde", "rd_pde",
    "wr_pde", "wra_pde", "pre_pde", "ref_pde", "pde_pdx", "pdx_pde", "pdx_any", "sre_srx",
    "srx_act", "srx_ref", "srx_column",
)  # fmt: skip
(
    T_ACT_LENGTH, T_COLUMN_LENGTH, T_PRE_LENGTH, T_REF_LENGTH, T_ACT_RD, T_ACT_WR, T_ACT_PRE,
    T_ACT_ACT, T_ACT_ACT_L, T_ACT_ACT_S, T_ACT_WINDOW, T_ACT_REF, T_ACT_REF_OTHER, T_RD_RD_L,
    T_RD_RD_S, T_RD_RD_R, T_RD_WR_L, T_RD_WR_S, T_RD_WR_R, T_WR_WR_L, T_WR_WR_S, T_WR_WR_R,
    T_WR_RD_L, T_WR_RD_S, T_WR_RD_R, T_RD_PRE, T_RD_AUTO_PRE, T_WR_PRE, T_WR_PREAB, T_RD_DATA,
    T_WR_DATA, T_PRE_ACT, T_PRE_REF, T_PRE_PRE, T_PREAB_ACT, T_PREAB_REF, T_REFAB_ACT, T_REFAB_REF,
    T_REF_ACT, T_REF_ACT_OTHER, T_REF_REF, T_REF_REFAB, T_REF_INTERVAL, T_ACT_PDE, T_RD_PDE,
    T_WR_PDE, T_WRA_PDE, T_PRE_PDE, T_REF_PDE, T_PDE_PDX, T_PDX_PDE, T_PDX_ANY, T_SRE_SRX,
    T_SRX_ACT, T_SRX_REF, T_SRX_COLUMN,
) = range(FIRST_DISTANCE, FIRST_DISTANCE + len(DISTANCES))  # fmt: skip
FIRST_STATE = FIRST_DISTANCE + len(DISTANCES)
# The state.
(
    S_READS, S_WRITES, S_LAST_BANK, S_DIRECTION, S_ALL_DIRTY, S_ROW_BUS, S_COLUMN_BUS, S_DOOR,
    S_DOOR_AT, S_ARBITER_AT, S_COLUMNS, S_SERVED, S_NEXT_DUE, S_PENDING, S_LAST_C, S_LAST_END,
    S_ENDED, S_NEXT_C, S_NEXT_I, S_FINISH, S_HITS, S_LOGGED, S_OVERDUE, S_WAKE, S_CONFLICTS,
    S_FORWARDED, S_MERGED, S_MAX_QUEUED, S_MAX_ACTIVE, S_ENDED_BY, S_LAST_IN_CYCLE,
    S_POWER_DIRTY,
) = range(FIRST_STATE, FIRST_STATE + 32)  # fmt: skip
# The last requests with a column command, in a ring.
S_RECENT = FIRST_STATE + 32
N_RECENT = 8
N_ENTRIES = S_RECENT + N_RECENT
# Bits of `held`: by a refresh that must come first, by power-down.
BLOCKED, SLEEPING = 1, 2
# Rows of the proposal table. Each has places for `LANES` banks, more than a channel can have: with
# this known distance compilers see that rows do not overlap, and use vector instructions.
LANES = 520
PROPOSED, READY, KIND, FOR_REQUEST, LENGTH, RANK_OF, GROUP_OF = range(0, 7 * LANES, LANES)
# Limits of the kinds of commands, which are their codes too.
OF_PRE, OF_ACT, OF_READ, OF_WRITE = range(7 * LANES, 11 * LANES, LANES)
PROPOSAL_ENTRIES = 11 * LANES
# Rows of the table of times: what the initiator sees, then what only counting and reordering
# front ends need.
DONE, FREE_AT, ENDS, HELD_DATA, AT_ARBITER = range(5)
SIMPLE_TIMES, ALL_TIMES = 2, 5
# Columns of the link table.
AFTER, BEFORE = range(2)
# Power states of a rank.
AWAKE, DOWN_ACTIVE, DOWN_PRECHARGED, SELF_REFRESH, LEAVING_SELF_REFRESH = range(5)
# Entries of the output vector; the first ones count the commands by their code.
O_PRECHARGES, O_HITS, O_CONFLICTS, O_ACTIVE, O_PRECHARGED, O_DOWN_ACTIVE = range(
    N_COMMANDS, N_COMMANDS + 6
)
O_DOWN_PRECHARGED, O_SELF_REFRESHED, O_END, O_LOGGED, O_STATUS, O_FORWARDED, O_MERGED = range(
    N_COMMANDS + 6, N_COMMANDS + 13
)
O_MAX_QUEUED, O_MAX_ACTIVE, O_MAX_OWED, O_MIN_OWED = range(N_COMMANDS + 13, N_COMMANDS + 17)
N_OUTPUTS = N_COMMANDS + 17
FINISHED, STUCK = range(2)
LOG_COLUMNS = 5

# Proposals are compared as (cycle in which the command is through, request number) in one integer.
ID_BITS = 24
# A bank that closes its row by a time-out does so for the request FIRST_TIMEOUT + bank.
FIRST_TIMEOUT = (1 << ID_BITS) - 1024
MAX_REQUESTS = FIRST_TIMEOUT
ID_MASK = (1 << ID_BITS) - 1
NEVER = 1 << 38
NO_PROPOSAL = NEVER << ID_BITS


def _record(*names: str) -> np.dtype[np.void]:
    """A record of whole numbers; a rank's number has no sign, so that indexing need not ask."""
    fields = [(name, np.uint16 if name == "rank" else np.int64) for name in names]
    return np.dtype(fields, align=True)


BANK = _record(
    "is_open", "open_row", "keep", "current", "next_act", "next_pre", "next_rda", "act_at",
    "pre_at", "rank", "held", "used_at", "ref_at",
)  # fmt: skip
"""State of a bank."""
QUEUE = _record("head", "tail", "count", "hits", "first_hit")
"""A list of requests that wait for a bank."""
RANK = _record(
    "busy", "open_banks", "preab", "refab", "ref", "due", "pulling", "owed", "refresh", "target",
    "chosen", "remaining", "act0", "act1", "act2", "act3", "active_from", "closed_at", "active",
    "precharged", "precharges", "max_owed", "min_owed", "waiting", "power", "power_command",
    "enter", "leave", "self_refresh", "pde", "since", "down_active", "down_precharged",
    "self_refreshed",
)  # fmt: skip
"""State of a rank."""


class Machine(NamedTuple):
    """All that a run reads and writes.

    Attributes:
        arrival: cycle in which each request is offered, shape (n,).
        bank_of: bank of each request, shape (n,).
        rows: row of each request, shape (n,).
        is_write: 1 for a write, shape (n,).
        address: byte address, shape (n,).
        out: filled: command counts and totals, shape (N_OUTPUTS,).
        log: filled as far as it reaches: cycle, command, rank, bank within the rank and row of
            each command, shape (capacity, LOG_COLUMNS); bank and row are -1 where they do not
            apply; the bank of PRESB and REFSB is that of the first group.
        s: settings, timings and state, shape (N_ENTRIES,).
        banks: the banks of all ranks, records of :data:`BANK`, shape (ranks * banks,).
        ranks: records of :data:`RANK`, shape (ranks,).
        proposals: rows over the banks of all ranks: next command, its earliest cycle, kind,
            request and length; the bank's rank and its group, over all ranks; and the earliest
            cycle of each kind of command, as commands of other banks set it; shape
            (PROPOSAL_ENTRIES,).
        queues: records of :data:`QUEUE`, lists 2 b and 2 b + 1 of bank b, shape
            (2 * ranks * banks,).
        links: neighbours of each request in its list, shape (n, 2).
        times: filled: cycle in which the initiator has each response; cycle from which it could
            offer each request, when the one before had left it; cycles in which the arbiter's
            active transactions ended, in order; data that wait in a reordering response queue;
            responses that wait in a reordering arbiter; shape (SIMPLE_TIMES or ALL_TIMES, n).
    """

    arrival: Array
    bank_of: Array
    rows: Array
    is_write: Array
    address: Array
    times: Array
    out: Array
    log: Array
    s: Array
    banks: Array
    ranks: Array
    proposals: Array
    queues: Array
    links: Array
