"""Shared by the compiled modules: positions in the tables, and the tables of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = Any

# Settings, the vector `c`: widths, sizes and latencies of the core.
SETTINGS = (
    "rob_size", "lq_size", "sq_size", "fetch_width", "decode_width", "dispatch_width",
    "execute_width", "retire_width", "scheduler_size", "mispredict_penalty", "fetch_buffer",
    "decode_buffer", "dispatch_buffer", "registers", "load_width", "store_width",
    "in_order_width", "decode_latency", "dispatch_latency", "loop_sets", "loop_ways",
)  # fmt: skip
# Behind them: the mask of the rings of the last instructions, registers and stores, as short as
# the largest buffer allows, so that they stay in the first cache of whoever simulates.
(
    ROB, LQ, SQ, FETCH_WIDTH, DECODE_WIDTH, DISPATCH_WIDTH, EXECUTE_WIDTH, RETIRE_WIDTH, SCHEDULER,
    PENALTY, FETCH_BUFFER, DECODE_BUFFER, DISPATCH_BUFFER, REGISTERS, LOAD_WIDTH, STORE_WIDTH,
    IN_ORDER_WIDTH, DECODE_LATENCY, DISPATCH_LATENCY, LOOP_SETS, LOOP_WAYS, RING_MASK,
) = range(len(SETTINGS) + 1)  # fmt: skip

# State, the vector `s`.
(
    # Cycle of the last instruction in each stage, and instructions that it has in that cycle.
    FETCHED, FETCHED_IN, PROMOTED, PROMOTED_IN, DECODED, DECODED_IN, SLOW_IN, DISPATCHED,
    DISPATCHED_IN, SCHEDULED, RETIRED, RETIRED_IN, DRAINED,
    # When fetch may go on after a misprediction; whether the next instruction begins a new cycle.
    RESUME, BREAK,
    # The current fetch group: its line, when it was asked for and when it is there.
    GROUP_LINE, GROUP_ASKED, GROUP_THERE, GROUPS_IN,
    # Instructions by way: decoded before, or not. Loads and stores that were dispatched.
    QUICK, SLOW, LOADS, LOADS_LEFT, LOADS_SEEN, STORES, STORE_READY, EXECUTED, EXECUTED_SEEN,
    # Physical registers: renamed so far, given back so far.
    RENAMED, RETURNED, CLOCK,
    # Memory.
    LAST_STUCK, STUCK, STUCK_FROM, PAGES,
    # The last cycle in which an instruction executes, and a load leaves its queue.
    LAST_EXECUTED, LAST_LEFT,
    # The last access: which level served it, and when the second level looked it up.
    SERVED_BY, AT_L2,
) = range(39)  # fmt: skip
N_STATE = 39

# Rows of `at`: cycle of each of the last instructions in a stage, a ring.
AT_PROMOTE, AT_DISPATCH, AT_RETIRE = range(3)
# Rows of `slots`: what is taken in each cycle, a ring. The bus counts in bursts, not in cycles.
(
    SLOT_EXECUTE, SLOT_COMPLETE, SLOT_LOAD, SLOT_STORE, SLOT_LEFT, PORT_L1D_READ, PORT_L1D_WRITE,
    PORT_L1D_TAG, PORT_L2, PORT_BUS, PORT_L1D_PREFETCH, PORT_L2_PREFETCH,
) = range(12)  # fmt: skip
N_SLOTS = 12
SLOT_RING = 1 << 15
# Rows begin in different sets of a cache: without the padding all would compete for one.
SLOT_PADDING = 72
# A slot's entry is a cycle shifted by this, plus a count.
COUNT_BITS = 10
RING = 1 << 12
MAX_LOOP_SETS, MAX_LOOP_WAYS = 256, 16
MAX_TLB_SETS, MAX_TLB_WAYS = 512, 16
MAX_MISSES = 64
MAX_PAGES = 1 << 15
MAX_FRAMES = 1 << 18
MAX_GROUPS = 32
MAX_BANKS = 512

# Timing of the memory system, the vector `t`. Look-up, fill (cycles) and MSHRs of each level (L1I,
# L1D, L2, LLC in rows of four), then the TLBs (cycles), then DRAM (ticks of its clock; the cycles
# of a tick are a fraction).
LOOK_UP, FILL, MSHRS = 0, 4, 8
TLB_HIT, TLB_FILL, STLB_HIT, STLB_FILL, FAULT = range(12, 17)
(
    DRAM_CAS, DRAM_RCD, DRAM_RP, DRAM_TURN, DRAM_BURST, DRAM_SAME_GROUP, DRAM_REFRESH,
    DRAM_REFRESHED, TICK_NUMERATOR, TICK_DENOMINATOR, DRAM_GROUP_BITS, DRAM_BANK_BITS,
    DRAM_COLUMN_BITS, DRAM_ROW_BITS,
) = range(17, 31)  # fmt: skip
N_TIMINGS = 31

# Positions in the vector of counts.
(
    N_CYCLES, N_L1D_WAITS, N_FORWARDED, N_ROW_HITS, N_ROW_MISSES, N_DRAM_WRITES, N_ITLB,
    N_ITLB_MISS, N_DTLB, N_DTLB_MISS, N_STLB, N_STLB_MISS, N_LOOP_HITS, N_FETCH_GROUPS,
) = range(14)  # fmt: skip
N_COUNTS = 14

UNKNOWN = -1
NEVER = 1 << 60


# What is known of an instruction before it runs: 32 bytes, so that all lies in one line of a cache.
INSTRUCTION = np.dtype(
    [
        ("ip", np.int64),  # address
        ("page", np.int32),  # number of its page
        ("kind", np.uint8),  # kind of branch
        ("shares", np.uint8),  # whether a branch lies in the same word of four bytes
        ("n_destinations", np.uint8),
        ("n_sources", np.uint8),
        ("destinations", np.uint8, 2),  # registers written, then zeros
        ("sources", np.uint8, 4),  # registers read, then zeros
        ("padding", np.uint8, 10),
    ],
    align=True,
)
Instruction = Any
"""A record of :data:`INSTRUCTION`."""


class Stream(NamedTuple):
    """An instruction stream; static instructions first, then executed ones."""

    static: Array
    """Records of :data:`INSTRUCTION`."""
    code: Array
    """Number of the static instruction of each executed one, int32."""
    taken: Array
    """Whether each executed one jumped, bool."""
    data_first: Array
    """Where the data accesses of each executed one begin, int64, one longer."""
    data_kind: Array
    """0 load, 1 store, 2 both, uint8."""
    data_address: Array
    """Address, int64."""
    data_page: Array
    """Number of its page, int32."""
    page: Array
    """Number of each virtual page, address over 4096, int64."""
    regions: Array
    """Number of each page's region at each level of the page table, int32, shape (pages, 4)."""


# The tables of a core during a run are one record of this type: compiled functions take it as one
# pointer, and sizes that the compiler knows make faster code.
_WORD = np.int64
CORE = np.dtype(
    [
        ("c", _WORD, len(SETTINGS) + 1),  # settings, and RING_MASK
        ("s", _WORD, N_STATE),  # state
        ("t", _WORD, N_TIMINGS),  # timing of memory
        ("counts", _WORD, N_COUNTS),
        ("at", _WORD, (3, RING)),  # cycles of the last instructions in their stages
        ("slots", _WORD, (N_SLOTS, SLOT_RING + SLOT_PADDING)),  # what is taken in each cycle
        ("quick_left", _WORD, (2, RING)),  # when the last ones of each way left the decoder
        ("ready", _WORD, 256),  # when each architectural register is ready
        ("mapped", np.int32, 256),  # physical register of each architectural one; -1: none
        ("free", np.int32, RING),  # physical registers in the order in which they come back
        ("freed_at", _WORD, RING),  # when the last physical registers came back
        ("last_need", _WORD, 8),  # last instruction that keeps n registers free
        ("store_left", _WORD, RING),  # when the last stores left the store queue
        ("forward", _WORD, (RING, 3)),  # stores: address, finished, left
        ("answered", _WORD, (RING, 4)),  # data lines: line, last answer, taken, issued
        # Windows that are decoded, the last one used first: tag, filled at.
        ("loop", _WORD, (MAX_LOOP_SETS, MAX_LOOP_WAYS, 2)),
        # Lines under way to each level: line, asked, there, level that served a prefetch or 0.
        ("flight", _WORD, (4, RING, 4)),
        ("misses", _WORD, (4, MAX_MISSES, 2)),  # each level's last misses: from, to
        ("miss_at", _WORD, 4),  # where the next miss of each level is noted
        ("tlb", _WORD, (3, MAX_TLB_SETS, MAX_TLB_WAYS, 2)),  # L1 code, L1 data, L2: tag, last use
        ("tlb_sets", _WORD, (3, 2)),  # sets and ways of each TLB
        ("page_there", _WORD, (3, MAX_PAGES)),  # when each TLB has each page
        ("page_asked", _WORD, (3, MAX_PAGES)),  # when each TLB was asked for it
        ("frame", _WORD, MAX_PAGES),  # physical page of each page; -1: not touched yet
        ("frames", np.int32, MAX_FRAMES),  # physical pages in the order of their use
        ("taken_at", _WORD, MAX_FRAMES),  # cycle in which each of them was taken
        ("walked", _WORD, (4, MAX_PAGES)),  # where the last walk of each region went on
        ("walked_at", _WORD, (4, MAX_PAGES)),  # when a walk of the region first knew that
        ("tables", _WORD, (4, MAX_PAGES)),  # physical page of each table; -1: not made yet
        ("banks", _WORD, (MAX_BANKS, 4)),  # DRAM: open row, ready, refreshes seen, asked last
        ("group_used", _WORD, MAX_GROUPS),  # when each bank group began its last transfer, ticks
    ],
    align=True,
)
Core = Any
"""A record of :data:`CORE`."""
