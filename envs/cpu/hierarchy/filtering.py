"""References of one first-level cache without those that change nothing in it.

A reference to the line that was the latest one used in its set hits in every cache with at least
as many sets, and leaves least-recently-used order as it is (Puzak, "Analysis of Cache Replacement
Algorithms", 1985). So it is counted once and simulated never. With re-reference interval
prediction the second use of a line still changes its state, a third one in a row does not.

What one filter drops, another one may drop too. A filter has lines, and classes of addresses that
share some bits; it drops a reference to the latest line of its class. One with lines at least as
long, with all those bits and perhaps more, and that keeps as few uses in a row or fewer, drops all
that the first one does: between the two uses nothing else has come into the larger class, so
nothing has into the smaller one. So only one filter for each first level reads the whole program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.hierarchy.compiled import entry, inlined
from archgym.envs.cpu.hierarchy.layout import FETCH, STORE
from archgym.envs.cpu.hierarchy.references import References

__all__ = ["GOES_ON", "KIND_BITS", "LONG", "MAX_FILTER_CLASSES", "Filtered", "Filters"]

MAX_FILTER_CLASSES: Final = 64
GOES_ON: Final = 8
"""Added to the kind of a request whose reference goes on in the next line."""
LONG: Final = 16
"""Added to the kind of a request whose reference may lie in more than two lines."""
KIND_BITS: Final = 7
"""The rest of it."""
_BASE_SHIFT: Final = 5
_BASE_BITS: Final = (7, 10)
"""Bits of an address that every filter of the space ``caches`` has: its lines have at most 128
bytes, its ways at least 1 KiB."""
_BASE_USES: Final = 2


@dataclass(frozen=True, eq=False)
class Filtered:
    """What is left of the references of one first-level cache.

    Attributes:
        request: byte address of the line, shape (n,).
        owner: number of the reference in :class:`References`, ascending, shape (n,). A reference
            that straddles lines may have one request for each of them.
        kind: kind of the reference, and :data:`GOES_ON` or :data:`LONG`, shape (n,).
        run: number of the run of each request, shape (n,): the uses in a row of its line, dropped
            ones included; -1 where nothing is dropped.
        last: latest reference of each run, shape (runs,).
        last_store: latest store of each run, -1 if there is none, shape (runs,).
    """

    request: NDArray[np.int64]
    owner: NDArray[np.int32]
    kind: NDArray[np.uint8]
    run: NDArray[np.int32]
    last: NDArray[np.int32]
    last_store: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.request)


class _Filter(NamedTuple):
    """A filter.

    Attributes:
        data: whether of the references of data, and not the fetches of instructions.
        shift: log2 of the bytes of a line.
        low: lowest bit of an address that tells classes apart.
        high: the bit after the highest one.
        uses: how many uses in a row of a line are kept; 0 keeps all.
    """

    data: bool
    shift: int
    low: int
    high: int
    uses: int

    def drops_all_of(self, other: _Filter) -> bool:
        """Whether it drops all that another one drops."""
        return (
            self.data == other.data
            and self.shift >= other.shift
            and self.low <= other.low
            and other.high <= self.high
            and 0 < self.uses <= other.uses
        )


class Filters:
    """The references of a program, filtered for first-level caches; all that was made is kept.

    Args:
        references: of the program.
    """

    def __init__(self, references: References) -> None:
        self._references = references
        self._made: dict[_Filter, Filtered] = {}
        self._looked_up: dict[int, NDArray[np.int64]] = {}

    def filtered(self, *, data: bool, shift: int, classes: int, uses: int) -> Filtered:
        """The references of the first-level cache of data, or that of instructions.

        Args:
            data: whether those of data, and not the fetches of instructions.
            shift: log2 of the bytes of a line.
            classes: of addresses, a power of two, not more than the cache has sets.
            uses: how many uses in a row of a line are kept: 1 for least recently used, 2 for
                re-reference interval prediction; 0 keeps all.
        """
        high = shift + classes.bit_length() - 1
        wanted = _Filter(data, shift, shift, high if uses else shift, uses)
        if wanted not in self._made:
            self._made[wanted] = self._make(wanted)
        return self._made[wanted]

    def looked_up(self, *, data: bool, shift: int) -> NDArray[np.int64]:
        """Look-ups by kind before filtering, shape (6,)."""
        if shift not in self._looked_up:
            counts = np.zeros(6, np.int64)
            columns = self._references
            _count(columns.kind, columns.address, columns.size, shift, counts)
            self._looked_up[shift] = counts
        counts = self._looked_up[shift].copy()
        fetches = counts[FETCH]
        if data:
            counts[FETCH] = 0
        else:
            counts[:] = 0
            counts[FETCH] = fetches
        return counts

    def _make(self, wanted: _Filter) -> Filtered:
        if wanted.uses == 0:
            return self._from_references(wanted)
        fitting = [made for made in self._made if wanted.drops_all_of(made) and made.uses > 0]
        if fitting:
            base = min(fitting, key=lambda one: len(self._made[one]))
            source = self._made[base]
        else:
            low = min(max(_BASE_BITS[0], wanted.low), wanted.high)
            base = _Filter(
                wanted.data,
                min(wanted.shift, _BASE_SHIFT),
                low,
                max(low, min(_BASE_BITS[1], wanted.high)),
                max(wanted.uses, _BASE_USES),
            )
            source = self._made[base] = self._from_references(base)
        room = _room(len(source))
        count, runs = _refilter(
            source.request,
            source.owner,
            source.kind,
            source.run,
            source.last,
            source.last_store,
            base.shift,
            *_arguments(wanted),
            *room,
        )
        return _cut(room, count, runs)

    def _from_references(self, wanted: _Filter) -> Filtered:
        columns = self._references
        room = _room(int(self.looked_up(data=wanted.data, shift=wanted.shift).sum()))
        count, runs = _filter(
            columns.kind,
            columns.address,
            columns.size,
            wanted.data,
            *_arguments(wanted),
            *room,
        )
        return _cut(room, count, runs)


def _room(most: int) -> tuple[NDArray[Any], ...]:
    """Room for the columns of filtered references."""
    kinds = (np.int64, np.int32, np.uint8, np.int32, np.int32, np.int32)
    return tuple(np.empty(most, kind) for kind in kinds)


def _cut(room: tuple[NDArray[Any], ...], count: int, runs: int) -> Filtered:
    lengths = (count, count, count, count, runs, runs)
    return Filtered(*(column[:n].copy() for column, n in zip(room, lengths, strict=True)))


def _arguments(wanted: _Filter) -> tuple[Any, ...]:
    """What compiled code takes of a filter, with the latest line and its uses by class."""
    classes = 1 << (wanted.high - wanted.low)
    held = np.full(classes, -1, np.int64)
    used, run = np.zeros(classes, np.int64), np.full(classes, -1, np.int64)
    return wanted.shift, wanted.low, wanted.uses, held, used, run


@inlined
def _changes(line: Any, place: Any, stores: Any, uses: Any, held: Any, used: Any) -> Any:
    """Whether a use of a line may change something; counts it.

    ``used`` has the uses in a row, twice, and 1 more if one of them was a store.
    """
    if held[place] != line:
        held[place] = line
        used[place] = 2 + stores
        return True
    before = used[place]
    if before >> 1 >= uses and before & 1 >= stores:
        return False
    used[place] = min(before + 2, 254 + (before & 1)) | stores
    return True


@entry
def _filter(sources: int) -> Any:
    def filter_references(
        kind: Any,
        address: Any,
        size: Any,
        data: Any,
        shift: Any,
        low: Any,
        uses: Any,
        held: Any,
        used: Any,
        current: Any,
        request: Any,
        owner: Any,
        asked: Any,
        run: Any,
        last: Any,
        last_store: Any,
    ) -> Any:
        _ = sources
        count, runs = 0, 0
        mask = len(held) - 1
        for i in range(len(kind)):
            if (kind[i] == FETCH) == data:
                continue
            stores = 1 if kind[i] == STORE else 0
            first, end = address[i] >> shift, (address[i] + size[i] - 1) >> shift
            for line in range(first, end + 1):
                at = line << shift
                place = (at >> low) & mask
                if uses > 0 and held[place] != line:
                    current[place] = runs
                    last_store[runs] = -1
                    runs += 1
                if uses > 0:
                    last[current[place]] = i
                    if stores == 1:
                        last_store[current[place]] = i
                if uses == 0 or _changes(line, place, stores, uses, held, used):
                    request[count] = at
                    owner[count] = i
                    asked[count] = kind[i]
                    if end > first + 1:
                        asked[count] |= LONG
                    elif line < end:
                        asked[count] |= GOES_ON
                    run[count] = current[place]
                    count += 1
        return count, runs

    return filter_references


@entry
def _refilter(sources: int) -> Any:
    def filter_requests(
        given: Any,
        given_owner: Any,
        given_kind: Any,
        given_run: Any,
        given_last: Any,
        given_store: Any,
        given_shift: Any,
        shift: Any,
        low: Any,
        uses: Any,
        held: Any,
        used: Any,
        current: Any,
        request: Any,
        owner: Any,
        asked: Any,
        run: Any,
        last: Any,
        last_store: Any,
    ) -> Any:
        _ = sources
        count, runs = 0, 0
        mask = len(held) - 1
        number, line = -1, -1
        for i in range(len(given)):
            before, line_before = number, line
            number, line = given_owner[i], given[i] >> shift
            at = line << shift
            place = (at >> low) & mask
            if held[place] != line:
                current[place] = runs
                last[runs], last_store[runs] = -1, -1
                runs += 1
            one, part = current[place], given_run[i]
            last[one] = max(last[one], given_last[part])
            last_store[one] = max(last_store[one], given_store[part])
            if number == before and line == line_before:
                continue  # two short lines of one reference in one longer line
            stores = 1 if given_kind[i] & KIND_BITS == STORE else 0
            if _changes(line, place, stores, uses, held, used):
                request[count] = at
                owner[count] = number
                asked[count] = given_kind[i]
                if (given[i] + (1 << given_shift)) >> shift == line:
                    asked[count] &= ~GOES_ON
                run[count] = one
                count += 1
        return count, runs

    return filter_requests


@entry
def _count(sources: int) -> Any:
    def count_look_ups(kind: Any, address: Any, size: Any, shift: Any, counts: Any) -> Any:
        _ = sources
        for i in range(len(kind)):
            last = address[i] + size[i] - 1
            counts[kind[i]] += (last >> shift) - (address[i] >> shift) + 1
        return 0

    return count_look_ups
