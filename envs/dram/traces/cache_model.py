"""A cache hierarchy that turns a program's memory accesses into requests to DRAM.

Three levels: split first-level caches (instructions, data), a second level and a last level, all
set-associative, write-back, write-allocate, with least-recently-used replacement.

- A miss reads the line from DRAM once and fills every level on the way.
- No level is inclusive or exclusive of another: an eviction removes a line from its own level
  only. A dirty line evicted from a level is written to the next one, which allocates it without a
  read since the whole line is there; a dirty line evicted from the last level is written to DRAM.
- A store to a line that is not cached reads it first (write-allocate).
- Not modelled: prefetchers, non-temporal stores, coherence, translation, flushes at exit (lines
  that are dirty at the end stay in the caches).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archgym.errors import TraceError
from archgym.simulators.compilation import compiled_once

__all__ = [
    "INSTRUCTION_FETCH",
    "LOAD",
    "MODIFY",
    "STORE",
    "CacheHierarchy",
    "CacheModel",
    "DramRequests",
]

INSTRUCTION_FETCH: Final = 0
LOAD: Final = 1
STORE: Final = 2
MODIFY: Final = 3  # a load and a store of the same bytes by one instruction

MAX_ACCESS_BYTES: Final = 4096
_LEVELS: Final = ("l1i", "l1d", "l2", "llc")
_CHUNK: Final = 1 << 16  # requests that one call of the kernel can return


@dataclass(frozen=True)
class CacheHierarchy:
    """Sizes of the caches between the core and DRAM.

    The defaults are those of one core of a desktop processor of 2015, Intel's Skylake client
    (Intel 64 and IA-32 Architectures Optimization Reference Manual, table "Cache Parameters of
    the Skylake Microarchitecture": 32 KiB 8-way first levels, 256 KiB 4-way second level, up to
    2 MiB of last-level cache a core with up to 16 ways, lines of 64 bytes).

    Attributes:
        line_bytes: size of a line of every level, bytes, a power of two.
        l1i_bytes: first-level instruction cache, bytes.
        l1i_ways: its associativity.
        l1d_bytes: first-level data cache, bytes.
        l1d_ways: its associativity.
        l2_bytes: second-level cache, bytes.
        l2_ways: its associativity.
        llc_bytes: last-level cache, bytes.
        llc_ways: its associativity.

    Raises:
        TraceError: if a size is not a power-of-two number of sets of its ways and lines.
    """

    line_bytes: int = 64
    l1i_bytes: int = 32 * 1024
    l1i_ways: int = 8
    l1d_bytes: int = 32 * 1024
    l1d_ways: int = 8
    l2_bytes: int = 256 * 1024
    l2_ways: int = 4
    llc_bytes: int = 2 * 1024 * 1024
    llc_ways: int = 16

    def __post_init__(self) -> None:
        if not (8 <= self.line_bytes <= 4096 and self.line_bytes & (self.line_bytes - 1) == 0):
            raise TraceError(
                f"cache: line_bytes={self.line_bytes!r} must be a power of two from 8 to 4096"
            )
        for level in _LEVELS:
            size, ways = getattr(self, f"{level}_bytes"), getattr(self, f"{level}_ways")
            if not 1 <= ways <= 64:
                raise TraceError(f"cache: {level}_ways={ways!r} must be from 1 to 64")
            sets, rest = divmod(size, ways * self.line_bytes)
            if rest or sets < 1 or sets & (sets - 1):
                raise TraceError(
                    f"cache: {level}_bytes={size!r} must be {level}_ways={ways} x "
                    f"line_bytes={self.line_bytes} x a power of two of sets"
                )

    def sets(self, level: str) -> int:
        """Number of sets of ``"l1i"``, ``"l1d"``, ``"l2"`` or ``"llc"``."""
        return int(getattr(self, f"{level}_bytes")) // self.ways(level) // self.line_bytes

    def ways(self, level: str) -> int:
        """Associativity of a level."""
        return int(getattr(self, f"{level}_ways"))

    def as_dict(self) -> dict[str, int]:
        """The parameters by name."""
        return asdict(self)


@dataclass(frozen=True)
class DramRequests:
    """Requests that leave the last level, in order.

    Attributes:
        instruction: instructions fetched up to and including the one that caused the request,
            shape (n,).
        address: byte address of the line, shape (n,).
        is_write: 1 for the write-back of a dirty line, 0 for the read of a missing one,
            shape (n,).
    """

    instruction: NDArray[np.int64]
    address: NDArray[np.int64]
    is_write: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.address)


_NONE = DramRequests(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))


class CacheModel:
    """The caches with their contents; accesses come in chunks of any size.

    Args:
        hierarchy: the sizes.

    Example:
        >>> model = CacheModel(CacheHierarchy())
        >>> requests = model.access([LOAD, LOAD, LOAD], [0, 8, 60], [8, 8, 8])
        >>> requests.address.tolist()  # the third access crosses into the next line
        [0, 64]
    """

    def __init__(self, hierarchy: CacheHierarchy | None = None) -> None:
        self.hierarchy = hierarchy or CacheHierarchy()
        sets = [self.hierarchy.sets(level) for level in _LEVELS]
        ways = [self.hierarchy.ways(level) for level in _LEVELS]
        first = np.cumsum([0, *(s * w for s, w in zip(sets, ways, strict=True))])
        # One row a level: offset of its first entry, mask of the set index, ways.
        self._shape = np.array(
            [(first[i], sets[i] - 1, ways[i]) for i in range(len(_LEVELS))], np.int64
        )
        self._line = np.full(int(first[-1]), -1, np.int64)  # most recent way of a set first
        self._dirty = np.zeros(int(first[-1]), np.uint8)
        self._shift = self.hierarchy.line_bytes.bit_length() - 1
        self._counts = np.zeros((len(_LEVELS), 3), np.int64)  # accesses, misses, write-backs
        self._instructions = np.zeros(1, np.int64)

    @property
    def instructions(self) -> int:
        """Instructions fetched so far."""
        return int(self._instructions[0])

    @property
    def statistics(self) -> dict[str, dict[str, int]]:
        """Counts per level, for ``l1i``, ``l1d``, ``l2`` and ``llc``.

        ``accesses`` are lookups by the core's own requests (not by write-backs), ``misses`` those
        of them that found nothing, ``writebacks`` the dirty lines sent to the next level, from
        the last one to DRAM.
        """
        names = ("accesses", "misses", "writebacks")
        return {
            level: dict(zip(names, map(int, row), strict=True))
            for level, row in zip(_LEVELS, self._counts, strict=True)
        }

    def access(self, kind: ArrayLike, address: ArrayLike, size: ArrayLike) -> DramRequests:
        """Pass accesses through the caches.

        Args:
            kind: INSTRUCTION_FETCH, LOAD, STORE or MODIFY, shape (n,).
            address: first byte of each access, shape (n,).
            size: bytes of each access, 1 to 4096, shape (n,).

        Raises:
            TraceError: for arrays of unequal length, or a kind or size out of range.
        """
        kinds = np.ascontiguousarray(kind, np.uint8)
        addresses = np.ascontiguousarray(address, np.int64)
        sizes = np.ascontiguousarray(size, np.int32)
        _check(kinds, addresses, sizes)
        parts = [_NONE]
        start = 0
        while start < len(kinds):
            instruction = np.empty(_CHUNK, np.int64)
            line = np.empty(_CHUNK, np.int64)
            write = np.empty(_CHUNK, np.uint8)
            start, n = _filter(
                kinds,
                addresses,
                sizes,
                start,
                self._shape,
                self._line,
                self._dirty,
                self._shift,
                self._counts,
                self._instructions,
                instruction,
                line,
                write,
            )
            parts.append(DramRequests(instruction[:n], line[:n], write[:n]))
        return DramRequests(
            np.concatenate([part.instruction for part in parts]),
            np.concatenate([part.address for part in parts]),
            np.concatenate([part.is_write for part in parts]),
        )

    def contents(self, level: str) -> dict[int, bool]:
        """The lines that a level holds (byte address of each) and whether they are dirty."""
        first, mask, ways = (int(value) for value in self._shape[_LEVELS.index(level)])
        held = slice(first, first + (mask + 1) * ways)
        return {
            int(line) << self._shift: bool(dirty)
            for line, dirty in zip(self._line[held], self._dirty[held], strict=True)
            if line >= 0
        }


def _check(kind: NDArray[np.uint8], address: NDArray[np.int64], size: NDArray[np.int32]) -> None:
    if not len(kind) == len(address) == len(size):
        raise TraceError(
            f"cache: kind, address and size differ in length "
            f"({len(kind)}, {len(address)}, {len(size)})"
        )
    if len(kind) == 0:
        return
    if kind.max() > MODIFY:
        raise TraceError(f"cache: an access has kind {kind.max()}: it must be 0 to {MODIFY}")
    if size.min() < 1 or size.max() > MAX_ACCESS_BYTES:
        raise TraceError(
            f"cache: an access has {size.min()} to {size.max()} bytes: "
            f"it must be 1 to {MAX_ACCESS_BYTES}"
        )
    if address.min() < 0:
        raise TraceError(f"cache: an access has the negative address {address.min()}")


@compiled_once(inline="always")
def _hit(line: Any, store: Any, level: Any, shape: Any, lines: Any, dirty: Any) -> Any:
    """Look a line up; if it is there make it the most recent one, and dirty after a store."""
    ways = shape[level, 2]
    first = shape[level, 0] + (line & shape[level, 1]) * ways
    for way in range(ways):
        if lines[first + way] == line:
            mark = dirty[first + way] | store
            for other in range(way, 0, -1):
                lines[first + other] = lines[first + other - 1]
                dirty[first + other] = dirty[first + other - 1]
            lines[first] = line
            dirty[first] = mark
            return True
    return False


@compiled_once()
def _fill(line: Any, mark: Any, level: Any, shape: Any, lines: Any, dirty: Any) -> Any:
    """Make a line the most recent one of its set; the evicted dirty line, or -1."""
    ways = shape[level, 2]
    first = shape[level, 0] + (line & shape[level, 1]) * ways
    last = first + ways - 1
    victim = lines[last] if dirty[last] else -1
    for other in range(last, first, -1):
        lines[other] = lines[other - 1]
        dirty[other] = dirty[other - 1]
    lines[first] = line
    dirty[first] = mark
    return victim


@compiled_once()
def _write_back(line: Any, level: Any, shape: Any, lines: Any, dirty: Any, counts: Any) -> Any:
    """Write a dirty line that left ``level`` to the levels below; the line for DRAM, or -1."""
    while line >= 0:
        counts[level, 2] += 1
        if level == 3:
            return line
        level = max(level + 1, 2)
        if _hit(line, 1, level, shape, lines, dirty):
            return -1
        line = _fill(line, 1, level, shape, lines, dirty)
    return -1


@compiled_once()
def _filter(
    kind: Any,
    address: Any,
    size: Any,
    start: Any,
    shape: Any,
    lines: Any,
    dirty: Any,
    shift: Any,
    counts: Any,
    instructions: Any,
    out_instruction: Any,
    out_address: Any,
    out_write: Any,
) -> Any:
    """Accesses from ``start`` on, until they or the room for requests end.

    Returns the number of the next access and the number of requests written.
    """
    n = 0
    room = len(out_address)
    for i in range(start, len(kind)):
        first, last = address[i] >> shift, (address[i] + size[i] - 1) >> shift
        if n + 4 * (last - first + 1) > room:  # a read and three write-backs a line at most
            return i, n
        top = 0 if kind[i] == 0 else 1
        store = 1 if kind[i] >= 2 else 0
        instructions[0] += 1 - top
        for line in range(first, last + 1):
            counts[top, 0] += 1
            if _hit(line, store, top, shape, lines, dirty):
                continue
            counts[top, 1] += 1
            counts[2, 0] += 1
            deepest = 2
            if not _hit(line, 0, 2, shape, lines, dirty):
                counts[2, 1] += 1
                counts[3, 0] += 1
                deepest = 3
                if not _hit(line, 0, 3, shape, lines, dirty):
                    counts[3, 1] += 1
                    deepest = 4
                    out_instruction[n] = instructions[0]
                    out_address[n] = line << shift
                    out_write[n] = 0
                    n += 1
            for step in range(deepest - 1, 0, -1):  # fill the levels that missed, lowest first
                level = top if step == 1 else step
                mark = store if step == 1 else 0
                victim = _fill(line, mark, level, shape, lines, dirty)
                out = _write_back(victim, level, shape, lines, dirty, counts)
                if out >= 0:
                    out_instruction[n] = instructions[0]
                    out_address[n] = out << shift
                    out_write[n] = 1
                    n += 1
    return len(kind), n
