"""One level by itself, in compiled code: the requests that reach it, and those that it passes on.

For levels that depend on nothing below them. The policies are those of
:mod:`archgym.envs.cpu.hierarchy.replacement`, and so are the counts; what only prefetchers,
inclusive and exclusive levels need is left out, and the state of a level lies closely together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.hierarchy.compiled import entry, inlined
from archgym.envs.cpu.hierarchy.config import POLICIES, CacheLevel
from archgym.envs.cpu.hierarchy.filtering import KIND_BITS
from archgym.envs.cpu.hierarchy.layout import (
    DIRTY,
    DRAWN,
    LRU,
    RANDOM,
    SHIP,
    SIGNATURES,
    STORE,
    WRITEBACK,
    leading_sets,
)
from archgym.envs.cpu.hierarchy.policies import displaced, insertion, used, victim

__all__ = ["Passed", "merged", "through"]


@dataclass(frozen=True, eq=False)
class Passed:
    """What leaves a level downwards, in order.

    Attributes:
        owner: number of the reference, shape (n,).
        request: byte address that is missing; ``-1 - address`` for a write-back, shape (n,).
        kind: kind of the access, shape (n,).
        displaced: line number that each missing one displaces, -1 if none, shape (misses,).
        counts: look-ups by kind and outcome, shape (6, 2).
        references: references by kind that missed with one of their lines, shape (6,).
        writebacks: how many dirty lines left it.
    """

    owner: NDArray[np.int32]
    request: NDArray[np.int64]
    kind: NDArray[np.uint8]
    displaced: NDArray[np.int64]
    counts: NDArray[np.int64]
    references: NDArray[np.int64]
    writebacks: int


def through(
    level: CacheLevel,
    number: int,
    seed: int,
    ip: NDArray[np.int64],
    owner: NDArray[np.int32],
    request: NDArray[np.int64],
    kind: NDArray[np.uint8],
) -> Passed:
    """Requests through a level that is empty at first.

    Args:
        level: the level; whether it is inclusive or exclusive does not matter.
        number: 0 or 1 a first level, 2 the second, 3 the last one.
        seed: of random replacement.
        ip: address of the instruction of each reference of the program.
        owner: number of the reference of each request, shape (n,).
        request: byte addresses, ``-1 - address`` for a write-back, shape (n,).
        kind: kind of each request, and perhaps more in the bits beside ``KIND_BITS``, shape (n,).
    """
    policy = POLICIES.index(level.replacement)
    lines = level.sets * level.ways
    passed_owner = np.empty(2 * len(request), np.int32)
    passed = np.empty(2 * len(request), np.int64)
    passed_kind = np.empty(2 * len(request), np.uint8)
    displaced_lines = np.empty(len(request), np.int64)
    counts = np.zeros((6, 2), np.int64)
    missed = np.zeros(6, np.int64)
    state = np.zeros(3, np.int64)
    state[DRAWN] = seed + 1 + number
    common = (
        level.sets - 1,
        level.ways,
        level.line_bytes.bit_length() - 1,
        level.refreshing,
        1 if number < 2 else 0,
        np.full(lines, -1, np.int64),
    )
    rest = (
        owner, request, kind, passed_owner, passed, passed_kind, displaced_lines, counts, missed,
    )  # fmt: skip
    if policy == LRU:
        count, misses, writebacks = _through_lru(*common, *rest)
    else:
        count, misses, writebacks = _through(
            *common,
            policy,
            np.zeros(lines, np.int32),
            state,
            leading_sets(level.sets),
            np.ones(SIGNATURES if policy == SHIP else 1, np.uint8),
            ip,
            *rest,
        )
    return Passed(
        passed_owner[:count].copy(),
        passed[:count].copy(),
        passed_kind[:count].copy(),
        displaced_lines[:misses].copy(),
        counts,
        missed,
        int(writebacks),
    )


def merged(
    one: Passed, other: Passed
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]:
    """What leaves two levels, in the order of the program: owners, requests and kinds."""
    total = len(one.owner) + len(other.owner)
    columns = np.empty(total, np.int32), np.empty(total, np.int64), np.empty(total, np.uint8)
    streams = [(passed.owner, passed.request, passed.kind) for passed in (one, other)]
    _merge(*streams[0], *streams[1], *columns)
    return columns


@entry
def _merge(sources: int) -> Any:
    def merge(
        owner_i: Any,
        request_i: Any,
        kind_i: Any,
        owner_d: Any,
        request_d: Any,
        kind_d: Any,
        owner: Any,
        request: Any,
        kind: Any,
    ) -> Any:
        _ = sources
        i, d = 0, 0
        for at in range(len(owner)):
            if d == len(owner_d) or (i < len(owner_i) and owner_i[i] < owner_d[d]):
                owner[at], request[at], kind[at] = owner_i[i], request_i[i], kind_i[i]
                i += 1
            else:
                owner[at], request[at], kind[at] = owner_d[d], request_d[d], kind_d[d]
                d += 1
        return 0

    return merge


@entry
def _through_lru(sources: int) -> Any:
    """Least recently used: a set's ways stand in the order of their use, the latest first.

    A way is one word: twice the line number, and 1 more if it is dirty.
    """

    def through_lru(
        mask: Any,
        ways: Any,
        shift: Any,
        refreshing: Any,
        marking: Any,
        held: Any,
        owner: Any,
        request: Any,
        kind: Any,
        passed_owner: Any,
        passed: Any,
        passed_kind: Any,
        displaced_lines: Any,
        counts: Any,
        missed: Any,
    ) -> Any:
        _ = sources
        count, misses, writebacks, latest = 0, 0, 0, -1
        for i in range(len(request)):
            number = owner[i]
            address, what, dirty = _asked(request[i], kind[i] & KIND_BITS, marking)
            line = address >> shift
            first = (line & mask) * ways
            end = first + ways
            stays = first
            if (refreshing >> what) & 1 == 0:
                stays = end - 1
            at = first
            while at <= stays and held[at] >> 1 != line:
                at += 1
            if at <= stays:  # found, and not to be moved
                held[at] |= dirty
                counts[what, 0] += 1
                continue
            at, carried = _to_the_front(held, first, end, line)
            if at < end:
                held[first] = carried | dirty
                counts[what, 0] += 1
                continue
            held[first] = line << 1 | dirty
            counts[what, 1] += 1
            if what != WRITEBACK:
                missed[what] += number != latest
                latest = number
                passed_owner[count] = number
                passed[count] = address
                passed_kind[count] = what
                count += 1
                displaced_lines[misses] = carried >> 1
                misses += 1
            passed_owner[count] = number
            passed[count] = -1 - ((carried >> 1) << shift)
            passed_kind[count] = WRITEBACK
            leaves = 1 if carried >= 0 and carried & 1 == 1 else 0
            count += leaves
            writebacks += leaves
        return count, misses, writebacks

    return through_lru


@inlined
def _asked(request: Any, kind: Any, marking: Any) -> Any:
    """Address and kind of a request, and whether a line that it reaches gets dirty."""
    if request < 0:
        return -1 - request, WRITEBACK, DIRTY
    return request, np.int64(kind), (DIRTY if kind == STORE and marking == 1 else 0)


@inlined
def _to_the_front(held: Any, first: Any, end: Any, line: Any) -> Any:
    """Makes room at the front of a set for a line.

    Returns:
        Where the line was, ``end`` if it was not there; and its word, or that of the last line.
    """
    carried = held[first]
    at = first + 1
    while at < end:
        word = held[at]
        held[at] = carried
        carried = word
        if word >> 1 == line:
            break
        at += 1
    return at, carried


@entry
def _through(sources: int) -> Any:
    """The policies whose ways stay where they are."""

    def through_level(
        mask: Any,
        ways: Any,
        shift: Any,
        refreshing: Any,
        marking: Any,
        held: Any,
        policy: Any,
        note: Any,
        state: Any,
        leaders: Any,
        counters: Any,
        ip: Any,
        owner: Any,
        request: Any,
        kind: Any,
        passed_owner: Any,
        passed: Any,
        passed_kind: Any,
        displaced_lines: Any,
        counts: Any,
        missed: Any,
    ) -> Any:
        _ = sources
        count, misses, writebacks, latest = 0, 0, 0, -1
        for i in range(len(request)):
            number = owner[i]
            address, what, dirty = _asked(request[i], kind[i] & KIND_BITS, marking)
            line = address >> shift
            chosen_set = line & mask
            at = chosen_set * ways
            end = at + ways
            while at < end and held[at] != line:
                at += 1
            if at < end:
                counts[what, 0] += 1
                note[at] |= dirty
                if policy != RANDOM and (refreshing >> what) & 1 == 1:
                    note[at] = used(note[at], counters, policy)
                continue
            counts[what, 1] += 1
            if what != WRITEBACK:
                missed[what] += number != latest
                latest = number
                passed_owner[count] = number
                passed[count] = address
                passed_kind[count] = what
                count += 1
            at = _way(held, note, state, end - ways, ways, policy)
            before, before_note = held[at], note[at]
            if what != WRITEBACK:
                displaced_lines[misses] = before
                misses += 1
            position = chosen_set % leaders
            caller = ip[number] if policy == SHIP else 0
            mark = insertion(state, counters, position, what, caller, policy)
            held[at] = line
            note[at] = mark | dirty
            if before < 0:
                continue
            passed_owner[count] = number
            passed[count] = -1 - (before << shift)
            passed_kind[count] = WRITEBACK
            count += before_note & DIRTY
            writebacks += before_note & DIRTY
            displaced(before_note, counters, policy)
        return count, misses, writebacks

    return through_level


@inlined
def _way(held: Any, note: Any, state: Any, first: Any, ways: Any, policy: Any) -> Any:
    """An empty way, which are the last ones of a set, or that of the victim."""
    if held[first + ways - 1] >= 0:
        return victim(note, state, first, ways, policy)
    at = first
    while held[at] >= 0:
        at += 1
    return at
