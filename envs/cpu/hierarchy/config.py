"""Sizes and policies of the caches of a processor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from archgym.errors import InvalidValueError, UnknownNameError

__all__ = [
    "INCLUSIONS",
    "LEVELS",
    "MAX_LINES",
    "POLICIES",
    "PREFETCHERS",
    "CacheLevel",
    "HierarchyConfig",
    "PrefetcherConfig",
]

LEVELS: Final = ("l1i", "l1d", "l2", "llc")
POLICIES: Final = ("lru", "srrip", "drrip", "random", "ship")
"""Replacement policies.

- ``lru``: least recently used.
- ``srrip``, ``drrip``: static and dynamic re-reference interval prediction with hit priority and
  two bits; Jaleel, Theobald, Steely, Emer, "High Performance Cache Replacement Using Re-Reference
  Interval Prediction (RRIP)", ISCA 2010. DRRIP duels with 32 sets a policy, a counter of 10 bits
  and a long interval in one of 32 bimodal fills.
- ``random``: any way of a full set, by a generator with a fixed seed.
- ``ship``: signature-based hit prediction with program counters (SHiP-PC: 14 bits of signature,
  16,384 counters of 3 bits) on SRRIP; Wu et al., "SHiP: Signature-based Hit Predictor for High
  Performance Caching", MICRO 2011.
"""
INCLUSIONS: Final = ("non_inclusive", "inclusive", "exclusive")
"""What a level holds of the lines above it.

- ``non_inclusive``: misses fill every level on the way; evictions concern one level only.
- ``inclusive``: a line that leaves the level leaves those above it too.
- ``exclusive`` (of the last level): it is filled by evictions of the level above only, clean ones
  too, and a line that hits moves up.
"""
PREFETCHERS: Final = ("none", "next_line", "ip_stride", "stream", "spp", "spp_dev", "ampm")
"""Prefetchers; :mod:`archgym.envs.cpu.hierarchy.prefetchers` says what they do."""
ALL_KINDS: Final = 0b111111
MAX_WAYS: Final = 64
MAX_LINES: Final = 1 << 22
"""How many lines all caches of a hierarchy hold at most."""


@dataclass(frozen=True)
class CacheLevel:
    """One cache.

    Attributes:
        size_bytes: capacity, bytes: ways x line x a power of two of sets.
        ways: associativity.
        line_bytes: size of a line, bytes, a power of two.
        replacement: one of :data:`POLICIES`.
        inclusion: one of :data:`INCLUSIONS`, of the second and the last level.
        refreshing: bit mask of the kinds of access (:mod:`archgym.envs.cpu.hierarchy.layout`)
            whose hits count as a use of the line.

    Raises:
        InvalidValueError: if the numbers do not fit together.
    """

    size_bytes: int
    ways: int
    line_bytes: int = 64
    replacement: str = "lru"
    inclusion: str = "non_inclusive"
    refreshing: int = ALL_KINDS

    def __post_init__(self) -> None:
        if not (8 <= self.line_bytes <= 4096 and self.line_bytes & (self.line_bytes - 1) == 0):
            raise InvalidValueError(
                f"cache: line_bytes={self.line_bytes!r} must be a power of two from 8 to 4096"
            )
        if not 1 <= self.ways <= MAX_WAYS:
            raise InvalidValueError(f"cache: ways={self.ways!r} must be from 1 to {MAX_WAYS}")
        sets, rest = divmod(self.size_bytes, self.ways * self.line_bytes)
        if rest or sets < 1 or sets & (sets - 1):
            raise InvalidValueError(
                f"cache: size_bytes={self.size_bytes!r} must be ways={self.ways} x "
                f"line_bytes={self.line_bytes} x a power of two of sets; {self._nearest()}"
            )
        if self.replacement not in POLICIES:
            raise UnknownNameError("replacement policy", self.replacement, POLICIES)
        if self.inclusion not in INCLUSIONS:
            raise UnknownNameError("inclusion", self.inclusion, INCLUSIONS)

    def _nearest(self) -> str:
        """The possible sizes around one that is not possible."""
        one_set = self.ways * self.line_bytes
        if self.size_bytes < one_set:
            return f"the least is {one_set} bytes"
        below = one_set << (self.size_bytes // one_set).bit_length() - 1
        return f"the nearest are {below} and {2 * below} bytes"

    @property
    def sets(self) -> int:
        """Number of sets."""
        return self.size_bytes // self.ways // self.line_bytes


@dataclass(frozen=True)
class PrefetcherConfig:
    """A prefetcher.

    Attributes:
        kind: one of :data:`PREFETCHERS`.
        degree: lines that it asks for at once; of ``spp`` the steps of a path; of ``ampm`` those
            in each direction; ``spp_dev`` has none.
        distance: how many lines or strides ahead the first of them is; of the first three only.

    Raises:
        UnknownNameError, InvalidValueError: for a value that is not possible.
    """

    kind: str = "none"
    degree: int = 1
    distance: int = 1

    def __post_init__(self) -> None:
        if self.kind not in PREFETCHERS:
            raise UnknownNameError("prefetcher", self.kind, PREFETCHERS)
        for name in ("degree", "distance"):
            if not 1 <= getattr(self, name) <= MAX_WAYS:
                raise InvalidValueError(
                    f"prefetcher: {name}={getattr(self, name)!r} must be from 1 to {MAX_WAYS}"
                )


@dataclass(frozen=True)
class HierarchyConfig:
    """The caches between a core and memory.

    Attributes:
        l1i: of instructions.
        l1d: of data.
        l2: for both; there may be none.
        llc: the last level, for both.
        seed: of random replacement.

    Raises:
        InvalidValueError: if a line is shorter than one of the level above, or an inclusion is
            not possible, or the caches hold more than :data:`MAX_LINES` lines.
    """

    l1i: CacheLevel
    l1d: CacheLevel
    l2: CacheLevel | None
    llc: CacheLevel
    seed: int = 0

    def __post_init__(self) -> None:
        for name, upper in (("l1i", self.l1i), ("l1d", self.l1d)):
            if upper.inclusion != "non_inclusive":
                raise InvalidValueError(f"{name}: inclusion={upper.inclusion!r} has nothing above")
            if self.l2 is not None and upper.line_bytes > self.l2.line_bytes:
                raise InvalidValueError(_line(name, upper, "l2", self.l2))
            if upper.line_bytes > self.llc.line_bytes:
                raise InvalidValueError(_line(name, upper, "llc", self.llc))
        if self.l2 is not None:
            if self.l2.line_bytes > self.llc.line_bytes:
                raise InvalidValueError(_line("l2", self.l2, "llc", self.llc))
            if self.l2.inclusion == "exclusive":
                raise InvalidValueError("l2: inclusion='exclusive' is for the last level only")
        if self.llc.inclusion == "exclusive":
            above = [self.l2] if self.l2 is not None else [self.l1i, self.l1d]
            if any(level.line_bytes != self.llc.line_bytes for level in above):
                raise InvalidValueError(
                    "llc: inclusion='exclusive' needs lines as long as those of the level above"
                )
        lines = sum(level.sets * level.ways for level in self.levels if level is not None)
        if lines > MAX_LINES:
            raise InvalidValueError(
                f"caches: {lines} lines in all, expected {MAX_LINES} at most; "
                "take a smaller size_bytes or longer line_bytes"
            )

    @property
    def levels(self) -> Sequence[CacheLevel | None]:
        """The levels in the order of :data:`LEVELS`."""
        return (self.l1i, self.l1d, self.l2, self.llc)


def _line(name: str, upper: CacheLevel, below: str, lower: CacheLevel) -> str:
    return (
        f"{below}: line_bytes={lower.line_bytes} is shorter than line_bytes={upper.line_bytes} of "
        f"{name}, which fills it"
    )
