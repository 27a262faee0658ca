"""Blocks of prefixes in the cache of a replica, and in the tier behind it, least recently used out.

Arrays have a row by replica and a column by block: ``users`` counts sequences that use it, or is -1
where it is not in the cache and -2 where the tier has it; ``older`` and ``newer`` link the blocks
that nobody uses in order of their last use.
"""

from __future__ import annotations

from typing import Any

from archgym.envs.llm.serving.compiled import compiled

__all__ = ["ABSENT", "IN_TIER", "claim", "drop", "held", "make_room", "register"]

ABSENT, IN_TIER = -1, -2


@compiled
def _unlink(older: Any, newer: Any, one: int, oldest: int, newest: int) -> tuple[int, int]:
    before, after = older[one], newer[one]
    if before >= 0:
        newer[before] = after
    else:
        oldest = after
    if after >= 0:
        older[after] = before
    else:
        newest = before
    return oldest, newest


@compiled
def _append(older: Any, newer: Any, one: int, oldest: int, newest: int) -> tuple[int, int]:
    older[one], newer[one] = newest, -1
    if newest >= 0:
        newer[newest] = one
    else:
        oldest = one
    return oldest, one


@compiled
def held(users: Any, ids: Any, start: int, end: int, tier: bool) -> int:
    """Leading blocks of a prefix that the cache holds, or the cache and the tier."""
    count = 0
    for i in range(start, end):
        here = users[ids[i]]
        if here == ABSENT or (here == IN_TIER and not tier):
            break
        count += 1
    return count


@compiled
def claim(pool: Any, replica: Any, users: Any, older: Any, newer: Any, one: int) -> None:
    """A sequence begins to use a block that is in the cache."""
    if users[one] == 0:
        ends = _unlink(older, newer, one, replica.oldest, replica.newest)
        replica.oldest, replica.newest = ends
        replica.idle_prefixes -= 1
        replica.used += pool.prefix_blocks
    users[one] += 1


@compiled
def drop(pool: Any, replica: Any, users: Any, older: Any, newer: Any, one: int) -> None:
    """A sequence no longer uses a block; the last one leaves it to later prompts."""
    users[one] -= 1
    if users[one] == 0:
        ends = _append(older, newer, one, replica.oldest, replica.newest)
        replica.oldest, replica.newest = ends
        replica.idle_prefixes += 1
        replica.used -= pool.prefix_blocks


@compiled
def register(replica: Any, users: Any, older: Any, newer: Any, one: int) -> None:
    """A block of a sequence's own becomes one that others may share."""
    if users[one] == IN_TIER:
        ends = _unlink(older, newer, one, replica.tier_oldest, replica.tier_newest)
        replica.tier_oldest, replica.tier_newest = ends
        replica.tier_count -= 1
    users[one] = 1


@compiled
def make_room(
    pool: Any, cost: Any, replica: Any, users: Any, older: Any, newer: Any, blocks: int
) -> None:
    """Evicts unused prefixes until ``blocks`` blocks hold nothing; the tier takes what it can."""
    free = pool.blocks - replica.used - replica.idle_prefixes * pool.prefix_blocks
    while free < blocks and replica.idle_prefixes > 0:
        one = replica.oldest
        ends = _unlink(older, newer, one, replica.oldest, replica.newest)
        replica.oldest, replica.newest = ends
        replica.idle_prefixes -= 1
        free += pool.prefix_blocks
        users[one] = ABSENT
        if pool.tier_prefixes > 0:
            if replica.tier_count >= pool.tier_prefixes:
                last = replica.tier_oldest
                ends = _unlink(older, newer, last, replica.tier_oldest, replica.tier_newest)
                replica.tier_oldest, replica.tier_newest = ends
                replica.tier_count -= 1
                users[last] = ABSENT
            ends = _append(older, newer, one, replica.tier_oldest, replica.tier_newest)
            replica.tier_oldest, replica.tier_newest = ends
            replica.tier_count += 1
            users[one] = IN_TIER
            replica.moved += pool.prefix_blocks * cost.swap_bytes
