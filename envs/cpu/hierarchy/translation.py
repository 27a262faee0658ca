"""Translation of a program's addresses: pages, translation buffers, and walks of the page table.

Translation does not depend on the caches. So it is done once for a program, and the accesses of
the walks join its references.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.hierarchy.compiled import compiled, entry
from archgym.envs.cpu.hierarchy.frames import PAGE_SHIFT, shuffled_frames
from archgym.envs.cpu.hierarchy.layout import FETCH, TRANSLATION
from archgym.envs.cpu.hierarchy.references import References
from archgym.errors import InvalidValueError, TraceError

__all__ = ["Translated", "TranslationConfig", "translate"]

_LEVELS: Final = 5
_WALK_CACHES: Final = ((1, 2), (1, 4), (2, 4), (4, 8))
"""Sets and ways of the caches of upper levels of the page table, from its root, as in ChampSim."""


@dataclass(frozen=True)
class TranslationConfig:
    """The translation buffers, with least-recently-used replacement, and pages of 4 KiB.

    The defaults are ChampSim's.

    Attributes:
        itlb_entries: of instructions; a multiple of its ways by a power of two.
        itlb_ways: its associativity.
        dtlb_entries: of data.
        dtlb_ways: its associativity.
        stlb_entries: the second level, for both.
        stlb_ways: its associativity.
        seed: of the order in which page frames are handed out.

    Raises:
        InvalidValueError: for a size that is not possible.
    """

    itlb_entries: int = 64
    itlb_ways: int = 4
    dtlb_entries: int = 64
    dtlb_ways: int = 4
    stlb_entries: int = 1536
    stlb_ways: int = 12
    seed: int = 1

    def __post_init__(self) -> None:
        for name, entries, ways in self.buffers:
            sets, rest = divmod(entries, ways) if ways > 0 else (0, 1)
            if rest or sets < 1 or sets & (sets - 1):
                raise InvalidValueError(
                    f"{name}_entries={entries!r} must be {name}_ways={ways!r} x a power of two"
                )

    @property
    def buffers(self) -> tuple[tuple[str, int, int], ...]:
        """Name, entries and ways of each buffer."""
        return (
            ("itlb", self.itlb_entries, self.itlb_ways),
            ("dtlb", self.dtlb_entries, self.dtlb_ways),
            ("stlb", self.stlb_entries, self.stlb_ways),
        )


@dataclass(frozen=True, eq=False)
class Translated:
    """References with physical addresses.

    Attributes:
        references: with the accesses of the walks, each before the reference that needs it.
        misses: of the buffers ``itlb``, ``dtlb`` and ``stlb``.
        pages: distinct pages.
    """

    references: References
    misses: dict[str, int]
    pages: int


def translate(references: References, config: TranslationConfig, *, walks: bool) -> Translated:
    """Physical addresses by first touch.

    A reference that crosses a page becomes two.

    Args:
        references: with virtual addresses.
        config: the buffers.
        walks: whether page tables are walked, and take memory.

    Raises:
        TraceError: if the program touches more than 1 GiB of pages.
    """
    references = _split(references)
    pages, which = np.unique(references.address >> PAGE_SHIFT, return_inverse=True)
    frames = shuffled_frames(config.seed)
    if len(pages) * _LEVELS + 64 > len(frames):
        raise TraceError(
            f"the program touches {len(pages)} pages; at most 52,000 can be translated"
        )
    shape = np.zeros((7, 2), np.int64)
    for row, (_, entries, ways) in enumerate(config.buffers):
        shape[row] = entries // ways, ways
    shape[3:] = _WALK_CACHES
    first = np.concatenate([[0], np.cumsum(shape[:, 0] * shape[:, 1])])
    held = np.full((int(first[-1]), 2), -1, np.int64)
    address = np.empty(len(references), np.int64)
    room = 1 << 12
    while True:
        held[:] = -1
        walked = np.empty((room if walks else 1, 2), np.int64)
        misses = np.zeros(3, np.int64)
        count = _translate(
            references.kind,
            references.address,
            which.astype(np.int32),
            np.full(len(pages), -1, np.int64),
            frames,
            shape,
            first,
            held,
            np.full((4 * len(pages) + 8, 2), -1, np.int64),
            walks,
            address,
            walked,
            misses,
        )
        if count <= len(walked):
            break
        room = count
    names = [name for name, _, _ in config.buffers]
    return Translated(
        _with_walks(references, address, walked[:count]),
        dict(zip(names, misses.tolist(), strict=True)),
        len(pages),
    )


def _split(references: References) -> References:
    """References that cross a page, as two."""
    last = references.address + references.size - 1
    crossing = (last >> PAGE_SHIFT) != (references.address >> PAGE_SHIFT)
    if not crossing.any():
        return references
    times = 1 + crossing.astype(np.int64)
    second = np.cumsum(times)[crossing] - 1
    address = np.repeat(references.address, times)
    size = np.repeat(references.size, times)
    border = (last[crossing] >> PAGE_SHIFT) << PAGE_SHIFT
    size[second - 1] = (border - references.address[crossing]).astype(np.uint16)
    size[second] = (last[crossing] + 1 - border).astype(np.uint16)
    address[second] = border
    return References(
        np.repeat(references.kind, times),
        address,
        size,
        np.repeat(references.instruction, times),
        np.repeat(references.ip, times),
        references.instructions,
    )


def _with_walks(
    references: References, address: NDArray[np.int64], walked: NDArray[np.int64]
) -> References:
    """Physical references, each after the accesses of its walk."""
    before = walked[:, 0]
    return References(
        np.insert(references.kind, before, TRANSLATION),
        np.insert(address, before, walked[:, 1]),
        np.insert(references.size, before, 8),
        np.insert(references.instruction, before, references.instruction[before]),
        np.insert(references.ip, before, references.ip[before]),
        references.instructions,
    )


@compiled
def _hit(held: Any, shape: Any, first: Any, buffer: Any, tag: Any) -> Any:
    """Where a buffer has a tag, as its latest one; -1 if it has not."""
    ways = shape[buffer, 1]
    start = first[buffer] + (tag % shape[buffer, 0]) * ways
    for at in range(start, start + ways):
        if held[at, 0] == tag:
            value = held[at, 1]
            for place in range(at, start, -1):
                held[place, 0], held[place, 1] = held[place - 1, 0], held[place - 1, 1]
            held[start, 0], held[start, 1] = tag, value
            return start
    return -1


@compiled
def _put(held: Any, shape: Any, first: Any, buffer: Any, tag: Any, value: Any) -> Any:
    """A tag becomes a buffer's latest one."""
    at = _hit(held, shape, first, buffer, tag)
    ways = shape[buffer, 1]
    start = first[buffer] + (tag % shape[buffer, 0]) * ways
    if at < 0:
        for place in range(start + ways - 1, start, -1):
            held[place, 0], held[place, 1] = held[place - 1, 0], held[place - 1, 1]
    held[start, 0], held[start, 1] = tag, value


@compiled
def _table(tables: Any, key: Any, frame: Any) -> Any:
    """Where a table of the page table lies; a new one takes the frame."""
    place = (key * 0x9E3779B97F4A7C15 >> 20) % len(tables)
    while tables[place, 0] >= 0 and tables[place, 0] != key:
        place = (place + 1) % len(tables)
    if tables[place, 0] < 0:
        tables[place, 0], tables[place, 1] = key, frame
    return tables[place, 1]


@compiled
def _walk(
    held: Any,
    shape: Any,
    first: Any,
    tables: Any,
    frames: Any,
    page: Any,
    reference: Any,
    taken: Any,
    walked: Any,
    count: Any,
) -> Any:
    """Walk the page table, as ChampSim does, which takes a new frame at every step of a walk.

    Returns:
        The frames taken and the accesses of walks so far.
    """
    address, level = frames[0] << PAGE_SHIFT, 4
    for cached in range(4):  # from the root of the table downwards
        at = _hit(held, shape, first, 3 + cached, page >> (12 * (4 - cached)))
        if at >= 0:
            address, level = held[at, 1], 4 - cached
    offset = (page >> (12 * (level - 1))) & 0x1FF
    address = (address >> PAGE_SHIFT << PAGE_SHIFT) | (offset << 3)
    while True:
        if count < len(walked):
            walked[count, 0], walked[count, 1] = reference, address
        count += 1
        if level == 0:
            return taken, count
        key = (page >> (12 * (level - 1))) * 8 + level
        table = _table(tables, key, frames[taken % len(frames)]) << PAGE_SHIFT
        taken += 1
        offset = (page >> (12 * (level - 1))) & 0xFFF
        address = (table & ~0x7FF8) | (offset << 3)
        _put(held, shape, first, 7 - level, page >> (12 * level), address)
        level -= 1


@entry
def _translate(sources: int) -> Any:
    def translate_references(
        kind: Any,
        virtual: Any,
        which: Any,
        frame: Any,
        frames: Any,
        shape: Any,
        first: Any,
        held: Any,
        tables: Any,
        walks: Any,
        physical: Any,
        walked: Any,
        misses: Any,
    ) -> Any:
        _ = sources
        taken = 1 if walks else 0
        count = 0
        latest_fetch = -1
        latest_data = -1
        for i in range(len(kind)):
            page = virtual[i] >> PAGE_SHIFT
            number = which[i]
            fetch = kind[i] == FETCH
            if walks and page != (latest_fetch if fetch else latest_data):
                buffer = 0 if fetch else 1
                if fetch:
                    latest_fetch = page
                else:
                    latest_data = page
                if _hit(held, shape, first, buffer, page) < 0:
                    misses[buffer] += 1
                    if _hit(held, shape, first, 2, page) < 0:
                        misses[2] += 1
                        taken, count = _walk(
                            held, shape, first, tables, frames, page, i, taken, walked, count
                        )
                        _put(held, shape, first, 2, page, 0)
                    _put(held, shape, first, buffer, page, 0)
            if frame[number] < 0:
                frame[number] = frames[taken % len(frames)]
                taken += 1
            physical[i] = (frame[number] << PAGE_SHIFT) | (virtual[i] & 0xFFF)
        return count

    return translate_references
