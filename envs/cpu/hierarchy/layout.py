"""The record in which compiled code holds a hierarchy of caches, and the numbers that index them.

Levels are numbered: 0 the first level of instructions (L1I), 1 that of data (L1D), 2 the second
level (L2), 3 the last level (LLC), 4 memory. An access starts at level 0 or 1 and goes down.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from archgym.envs.cpu.hierarchy.config import (
    INCLUSIONS,
    LEVELS,
    MAX_LINES,
    POLICIES,
    HierarchyConfig,
)

__all__ = [
    "CACHES",
    "FETCH",
    "KINDS",
    "LOAD",
    "MEMORY",
    "PREFETCH",
    "STORE",
    "TRANSLATION",
    "WRITEBACK",
    "Caches",
    "leading_sets",
    "make_caches",
]

LOAD: Final = 0
STORE: Final = 1
FETCH: Final = 2
PREFETCH: Final = 3
WRITEBACK: Final = 4
TRANSLATION: Final = 5
KINDS: Final = ("load", "store", "fetch", "prefetch", "writeback", "translation")
"""Kinds of an access by their number."""

MEMORY: Final = 4
"""The level below the last cache."""

# Columns of Caches.shape, one row a level.
FIRST: Final = 0  # where its ways begin in Caches.line
MASK: Final = 1  # sets - 1
WAYS: Final = 2  # 0: the level is absent
SHIFT: Final = 3  # log2 of the bytes of a line
POLICY: Final = 4
INCLUSION: Final = 5
REFRESHING: Final = 6  # bit mask of the kinds whose hits count as a use
NEXT: Final = 7  # the level below
LEADERS: Final = 8  # set duelling: a set in so many leads
COLUMNS: Final = 9

LRU, SRRIP, DRRIP, RANDOM, SHIP = range(5)
NON_INCLUSIVE, INCLUSIVE, EXCLUSIVE = range(3)

# Bits of Caches.note, one number a way.
DIRTY: Final = 1
PREFETCHED: Final = 2  # by a prefetcher, and not used since
REUSED: Final = 4  # SHiP: used since it was filled
RRPV_SHIFT: Final = 3  # two bits: the re-reference prediction value
RRPV_BITS: Final = 3 << RRPV_SHIFT
SIGNATURE_SHIFT: Final = 5
MAX_RRPV: Final = 3

# Columns of Caches.state, one row a level.
SELECTOR: Final = 0  # DRRIP: above its middle, followers insert as BRRIP
BIMODAL: Final = 1  # DRRIP: fills since the last one with a long interval
DRAWN: Final = 2  # random: state of the generator

# Columns of Caches.events, one row a level.
WRITEBACKS: Final = 0  # dirty lines that left the level
USEFUL: Final = 1  # prefetched lines that were used
USELESS: Final = 2  # prefetched lines that were evicted unused
PREFETCHES: Final = 3  # lines that a prefetcher filled
EVENTS: Final = 4

SIGNATURES: Final = 1 << 14
COUNTER_MAX: Final = 7
SELECTOR_MAX: Final = 1023
BIMODAL_PERIOD: Final = 32
_LEADER_SETS: Final = 32  # a policy, of each level
_OUT: Final = 64
_TAKEN: Final = 256
MAX_LEFT: Final = 64

_WORD: Final = np.int64
CACHES: Final = np.dtype(
    [
        # Sizes and policies.
        ("shape", _WORD, (len(LEVELS), COLUMNS)),
        # Of each level's policy.
        ("state", _WORD, (len(LEVELS), 3)),
        # Accesses by level, kind and whether they missed.
        ("counts", _WORD, (len(LEVELS), len(KINDS), 2)),
        # Write-backs, useful, useless and all prefetches of each level.
        ("events", _WORD, (len(LEVELS), EVENTS)),
        # What the latest access sent to memory: out[0] requests, then for each of them the byte
        # address, as -1 - address for a write.
        ("out", _WORD, _OUT),
        # What an inclusive level has taken away from the first levels since taken[0] was set to 0:
        # taken[0] lines, then each of them as twice its number, and 1 more if it was data.
        ("taken", _WORD, _TAKEN),
        # The latest lines that new ones have displaced from each level, a ring; and how many have.
        ("left", _WORD, (len(LEVELS), MAX_LEFT)),
        ("lefts", _WORD, len(LEVELS)),
        # SHiP's counters.
        ("counters", np.uint8, (len(LEVELS), SIGNATURES)),
        # The line number (address over line size) that each way holds, -1 if none. With LRU the
        # ways of a set stand in the order of their use, the latest first.
        ("line", _WORD, MAX_LINES),
        # Dirty, prefetched, reused, re-reference prediction value and signature of each way.
        ("note", _WORD, MAX_LINES),
    ],
    align=True,
)
"""A hierarchy with its contents.

Compiled functions take a record of it as one pointer: a tuple of arrays takes the compiler several
times as long, and each call copies it. There is room for the largest hierarchy; what is not used of
it is never written, and takes no memory.
"""
Caches = Any
"""A record of :data:`CACHES`."""


def leading_sets(sets: int) -> int:
    """With set duelling, one set in so many leads for a policy."""
    return max(2, min(sets, sets // _LEADER_SETS))


def make_caches(config: HierarchyConfig) -> Caches:
    """An empty hierarchy."""
    caches = np.zeros(1, CACHES).view(np.recarray)[0]
    shape = caches["shape"]
    first = 0
    for number, level in enumerate(config.levels):
        if level is None:
            continue
        shape[number] = (
            first,
            level.sets - 1,
            level.ways,
            level.line_bytes.bit_length() - 1,
            POLICIES.index(level.replacement),
            INCLUSIONS.index(level.inclusion),
            level.refreshing,
            (2, 2, 3, MEMORY)[number],
            leading_sets(level.sets),
        )
        first += level.sets * level.ways
    if config.levels[2] is None:
        shape[:2, NEXT] = 3
    caches["state"][:, DRAWN] = config.seed + 1 + np.arange(len(LEVELS))
    if (shape[:, POLICY] == SHIP).any():
        caches["counters"] = 1
    caches["line"][:first] = -1
    return caches
