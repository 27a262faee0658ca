"""Hierarchies without prefetchers, simulated level by level where that is possible.

If no level is inclusive, and none is exclusive of a first level, then what a first-level cache
holds depends on its own size and policy only. Its misses and write-backs are found once for each of
its settings, from filtered references; the second and the last level see those only. The same holds
of an inclusive level for as long as every line that it loses has left the first levels before: that
is tried where it is likely. Other hierarchies are simulated as a whole, from filtered references
too. The counts are those of :mod:`archgym.envs.cpu.hierarchy.run`, reference by reference.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.hierarchy.access import below, evict
from archgym.envs.cpu.hierarchy.compiled import entry, inlined
from archgym.envs.cpu.hierarchy.config import ALL_KINDS, CacheLevel, HierarchyConfig
from archgym.envs.cpu.hierarchy.dependent import run_filtered
from archgym.envs.cpu.hierarchy.filtering import MAX_FILTER_CLASSES, Filtered, Filters
from archgym.envs.cpu.hierarchy.layout import (
    EVENTS,
    FIRST,
    MASK,
    SHIFT,
    WAYS,
    WRITEBACKS,
    make_caches,
)
from archgym.envs.cpu.hierarchy.one_level import Passed, merged, through
from archgym.envs.cpu.hierarchy.references import References

__all__ = ["Counts", "LevelByLevel"]

_USES: Final = {"lru": 1, "random": 1, "srrip": 2, "drrip": 2, "ship": 0}
_KEPT_BYTES: Final = 512 << 20


def _is_exclusive_of_first(config: HierarchyConfig) -> bool:
    """Whether the first levels get lines back that are dirty."""
    return config.l2 is None and config.llc.inclusion == "exclusive"


def _inclusive_bytes(config: HierarchyConfig) -> int:
    """Capacity of the smallest inclusive level; 0 if there is none."""
    lower = [level for level in (config.l2, config.llc) if level is not None]
    return min((one.size_bytes for one in lower if one.inclusion == "inclusive"), default=0)


@dataclass(frozen=True, eq=False)
class Counts:
    """What a hierarchy counted, as :class:`archgym.envs.cpu.hierarchy.layout.Caches` has it.

    Attributes:
        counts: look-ups by level, kind and outcome, shape (4, 6, 2).
        events: write-backs and prefetches by level, shape (4, 4).
    """

    counts: NDArray[np.int64]
    events: NDArray[np.int64]


class LevelByLevel:
    """Simulates many hierarchies on one program.

    Args:
        references: of the program.
        kept_bytes: limit on what is kept for other designs, bytes.
    """

    def __init__(self, references: References, kept_bytes: int = _KEPT_BYTES) -> None:
        self.references = references
        self._kept_bytes = kept_bytes
        self._filters = Filters(references)
        self._passed: OrderedDict[tuple[Any, ...], Passed] = OrderedDict()
        self._size = 0
        self._disturbed_bytes = 0

    def run(self, config: HierarchyConfig) -> Counts:
        """The counts of a hierarchy without prefetchers."""
        inclusive = _inclusive_bytes(config)
        if _is_exclusive_of_first(config) or 0 < inclusive <= self._disturbed_bytes:
            return self._dependent(config)
        above = [self.first_level(config, number) for number in (0, 1)]
        if _is_separable(config):
            requests = merged(*above)
            found = Counts(np.zeros((4, 6, 2), np.int64), np.zeros((4, EVENTS), np.int64))
            for number in (2, 3):
                level = config.levels[number]
                if level is not None:
                    passed = through(level, number, config.seed, self.references.ip, *requests)
                    requests = passed.owner, passed.request, passed.kind
                    found.counts[number] = passed.counts
                    found.events[number, WRITEBACKS] = passed.writebacks
        else:
            caches = make_caches(config)
            streams = [(one.owner, one.request, one.kind, one.displaced) for one in above]
            ships = any(
                level is not None and level.replacement == "ship" for level in config.levels
            )
            ip = self.references.ip
            if not _lower(caches, inclusive > 0, *streams[0], *streams[1], ip, ships):
                # Smaller ones are not tried any more. Results do not depend on it.
                self._disturbed_bytes = inclusive
                return self._dependent(config)
            found = Counts(caches.counts, caches.events)
        for number, passed in enumerate(above):
            found.counts[number] = passed.counts
            found.events[number, WRITEBACKS] = passed.writebacks
        return found

    def first_level(self, config: HierarchyConfig, number: int) -> Passed:
        """What leaves the first level of instructions (0) or data (1)."""
        level = config.levels[number]
        assert level is not None
        key = (number, level, config.seed if level.replacement == "random" else 0)
        found = self._passed.get(key)
        if found is not None:
            self._passed.move_to_end(key)
            return found
        asked = self._filtered(level, data=number == 1)
        requests = asked.owner, asked.request, asked.kind
        found = through(level, number, config.seed, self.references.ip, *requests)
        found.counts[:, 0] = self._looked_up(level, data=number == 1) - found.counts[:, 1]
        self._keep(key, found)
        return found

    def _dependent(self, config: HierarchyConfig) -> Counts:
        """The counts of a hierarchy whose first levels depend on what is below them."""
        caches = make_caches(config)
        above = (config.l1i, config.l1d)
        run_filtered(
            caches,
            self.references,
            (self._filtered(config.l1i, data=False), self._filtered(config.l1d, data=True)),
            (_classes(config.l1i), _classes(config.l1d)),
            (_uses(config.l1i), _uses(config.l1d)),
        )
        for number, level in enumerate(above):
            missed = caches.counts[number, :, 1]
            caches.counts[number, :, 0] = self._looked_up(level, data=number == 1) - missed
        return Counts(caches.counts, caches.events)

    def _filtered(self, level: CacheLevel, *, data: bool) -> Filtered:
        shift = level.line_bytes.bit_length() - 1
        return self._filters.filtered(
            data=data, shift=shift, classes=_classes(level), uses=_uses(level)
        )

    def _looked_up(self, level: CacheLevel, *, data: bool) -> NDArray[np.int64]:
        return self._filters.looked_up(data=data, shift=level.line_bytes.bit_length() - 1)

    def _keep(self, key: tuple[Any, ...], found: Passed) -> None:
        self._passed[key] = found
        self._size += _bytes(found)
        while self._size > self._kept_bytes and len(self._passed) > 1:
            _, dropped = self._passed.popitem(last=False)
            self._size -= _bytes(dropped)


def _bytes(passed: Passed) -> int:
    """Memory of what is kept."""
    return sum(c.nbytes for c in (passed.owner, passed.request, passed.kind, passed.displaced))


def _uses(level: CacheLevel) -> int:
    """How many uses in a row of a line may change something."""
    return _USES[level.replacement] if level.refreshing == ALL_KINDS else 0


def _classes(level: CacheLevel) -> int:
    """Classes of addresses of its filter."""
    return min(level.sets, MAX_FILTER_CLASSES)


def _is_separable(config: HierarchyConfig) -> bool:
    """Whether the second level does not depend on the last one either.

    An inclusive level takes lines away from those above, whose misses then differ. An exclusive
    level gives its dirty lines back. Of longer lines below, what is written back may be only a
    part, which is not filled.
    """
    below = [level for level in (config.l2, config.llc) if level is not None]
    lines = {level.line_bytes for level in config.levels if level is not None}
    return len(lines) == 1 and all(level.inclusion == "non_inclusive" for level in below)


@entry
def _lower(sources: int) -> Any:
    """What leaves the first levels, through the levels below.

    With ``watching``, a line in a first level that one below takes away ends it: what left the
    first levels is then not true any more. Returns whether that did not happen.
    """

    def lower_levels(
        caches: Any,
        watching: Any,
        owner_i: Any,
        request_i: Any,
        kind_i: Any,
        displaced_i: Any,
        owner_d: Any,
        request_d: Any,
        kind_d: Any,
        displaced_d: Any,
        ip: Any,
        with_callers: Any,
    ) -> Any:
        _ = sources
        i, d, missed_i, missed_d = 0, 0, 0, 0
        caches.taken[0] = 0
        for _at in range(len(owner_i) + len(owner_d)):
            if d == len(owner_d) or (i < len(owner_i) and owner_i[i] < owner_d[d]):
                level, number, what, kind = 0, owner_i[i], request_i[i], kind_i[i]
                i += 1
            else:
                level, number, what, kind = 1, owner_d[d], request_d[d], kind_d[d]
                d += 1
            shift = caches.shape[level, SHIFT]
            caches.out[0] = 0
            if what < 0:
                evict(caches, level, (-1 - what) >> shift, True)
            else:
                below(caches, level, what, kind, ip[number] if with_callers else 0)
            if not watching:
                continue
            if caches.taken[0] > 0:
                return False
            if what >= 0:
                displaced = displaced_i[missed_i] if level == 0 else displaced_d[missed_d]
                missed_i += 1 - level
                missed_d += level
                _replace(caches, level, displaced, what >> shift)
        return True

    return lower_levels


@inlined
def _replace(caches: Any, level: Any, displaced: Any, line: Any) -> Any:
    """Puts a line in the place of another one of its set, or in an empty place for -1."""
    shape = caches.shape
    at = shape[level, FIRST] + (line & shape[level, MASK]) * shape[level, WAYS]
    while caches.line[at] != displaced:
        at += 1
    caches.line[at] = line
