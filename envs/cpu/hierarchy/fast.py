"""Hierarchies whose first levels do not depend on the lower ones, simulated level by level.

If no level is inclusive, and none is exclusive of a first level, then what a first-level cache
holds depends on its own size and policy only. Its misses and write-backs are found once for each of
its settings, from filtered references; the second and the last level see those only. The counts
are those of :mod:`archgym.envs.cpu.hierarchy.run`, reference by reference.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.hierarchy.access import below, evict
from archgym.envs.cpu.hierarchy.compiled import entry
from archgym.envs.cpu.hierarchy.config import ALL_KINDS, CacheLevel, HierarchyConfig
from archgym.envs.cpu.hierarchy.filtering import MAX_FILTER_SETS, Filtered, filtered
from archgym.envs.cpu.hierarchy.layout import (
    DIRTY,
    SHIFT,
    STORE,
    WRITEBACKS,
    Caches,
    make_caches,
)
from archgym.envs.cpu.hierarchy.references import References
from archgym.envs.cpu.hierarchy.replacement import fill, find, touch

__all__ = ["LevelByLevel", "Misses", "is_independent"]

_USES: Final = {"lru": 1, "random": 1, "srrip": 2, "drrip": 2, "ship": 0}
_KEPT_BYTES: Final = 512 << 20


def is_independent(config: HierarchyConfig) -> bool:
    """Whether the contents of the first levels depend on nothing below them."""
    lower = [level for level in (config.l2, config.llc) if level is not None]
    if any(level.inclusion == "inclusive" for level in lower):
        return False
    return config.l2 is not None or config.llc.inclusion != "exclusive"


@dataclass(frozen=True, eq=False)
class Misses:
    """What leaves a first-level cache downwards, in order.

    Attributes:
        owner: number of the reference, shape (n,).
        request: byte address of the line that is missing; ``-1 - address`` for a write-back,
            shape (n,).
        counts: look-ups by kind and outcome, shape (6, 2).
        references: references by kind that missed with one of their lines, shape (6,).
        writebacks: how many dirty lines left it.
    """

    owner: NDArray[np.int32]
    request: NDArray[np.int64]
    counts: NDArray[np.int64]
    references: NDArray[np.int64]
    writebacks: int


class LevelByLevel:
    """Simulates many hierarchies on one program.

    Args:
        references: of the program.
        kept_bytes: limit on what is kept for other designs, bytes.
    """

    def __init__(self, references: References, kept_bytes: int = _KEPT_BYTES) -> None:
        self.references = references
        self._kept_bytes = kept_bytes
        self._filtered: dict[tuple[Any, ...], Filtered] = {}
        self._misses: OrderedDict[tuple[Any, ...], Misses] = OrderedDict()
        self._size = 0

    def run(self, config: HierarchyConfig) -> Caches:
        """The counts of a hierarchy for which :func:`is_independent` holds.

        Returns:
            The caches; the first levels' contents are left empty.
        """
        caches = make_caches(config)
        above = [self.first_level(config, number) for number in (0, 1)]
        for number, misses in enumerate(above):
            caches.counts[number] = misses.counts
            caches.events[number, WRITEBACKS] = misses.writebacks
        columns = self.references
        _lower(
            caches,
            above[0].owner,
            above[0].request,
            above[1].owner,
            above[1].request,
            columns.kind,
            columns.ip,
        )
        return caches

    def first_level(self, config: HierarchyConfig, number: int) -> Misses:
        """What leaves the first level of instructions (0) or data (1)."""
        level = config.levels[number]
        assert level is not None
        key = (number, level, config.seed if level.replacement == "random" else 0)
        found = self._misses.get(key)
        if found is not None:
            self._misses.move_to_end(key)
            return found
        events = self._events(level, data=number == 1)
        caches = make_caches(replace(_alone(level), seed=config.seed))
        owner = np.empty(2 * len(events), np.int32)
        request = np.empty(2 * len(events), np.int64)
        missed = np.zeros(6, np.int64)
        columns = self.references
        count = _first(
            caches,
            number,
            events.line,
            events.owner,
            events.follows,
            columns.kind,
            columns.ip,
            owner,
            request,
            missed,
        )
        counts = caches.counts[number].copy()
        counts[:, 0] = events.looked_up - counts[:, 1]
        found = Misses(
            owner[:count].copy(),
            request[:count].copy(),
            counts,
            missed,
            int(caches.events[number, WRITEBACKS]),
        )
        self._keep(key, found)
        return found

    def _keep(self, key: tuple[Any, ...], found: Misses) -> None:
        self._misses[key] = found
        self._size += 12 * len(found.owner)
        while self._size > self._kept_bytes and len(self._misses) > 1:
            _, dropped = self._misses.popitem(last=False)
            self._size -= 12 * len(dropped.owner)

    def _events(self, level: CacheLevel, *, data: bool) -> Filtered:
        uses = _USES[level.replacement] if level.refreshing == ALL_KINDS else 0
        sets = min(level.sets, MAX_FILTER_SETS)
        key = (data, level.line_bytes, sets, uses)
        if key not in self._filtered:
            self._filtered[key] = filtered(
                self.references,
                data=data,
                shift=level.line_bytes.bit_length() - 1,
                sets=sets,
                uses=uses,
            )
        return self._filtered[key]


def _alone(level: CacheLevel) -> HierarchyConfig:
    """A hierarchy whose first levels are such caches; its last level is not used."""
    return HierarchyConfig(level, level, None, CacheLevel(4096, 1, 4096))


@entry
def _first(sources: int) -> Any:
    def first_level(
        caches: Any,
        level: Any,
        line: Any,
        reference: Any,
        follows: Any,
        kind: Any,
        ip: Any,
        owner: Any,
        request: Any,
        missed: Any,
    ) -> Any:
        _ = sources
        shift = caches.shape[level, SHIFT]
        count = 0
        counted = False
        for i in range(len(line)):
            number = reference[i]
            what = kind[number]
            if not follows[i]:
                counted = False
            at = find(caches, level, line[i])
            mark = DIRTY if what == STORE else 0
            if at >= 0:
                touch(caches, level, at, what, mark)
                continue
            caches.counts[level, what, 1] += 1
            if not counted:
                missed[what] += 1
                counted = True
            owner[count] = number
            request[count] = line[i] << shift
            count += 1
            victim, dirty = fill(caches, level, line[i], what, ip[number], mark)
            if victim >= 0 and dirty:
                caches.events[level, WRITEBACKS] += 1
                owner[count] = number
                request[count] = -1 - (victim << shift)
                count += 1
        return count

    return first_level


@entry
def _lower(sources: int) -> Any:
    def lower_levels(
        caches: Any,
        owner_i: Any,
        request_i: Any,
        owner_d: Any,
        request_d: Any,
        kind: Any,
        ip: Any,
    ) -> Any:
        _ = sources
        i = 0
        d = 0
        shape = caches.shape
        while i < len(owner_i) or d < len(owner_d):
            if d == len(owner_d) or (i < len(owner_i) and owner_i[i] < owner_d[d]):
                level, number, request = 0, owner_i[i], request_i[i]
                i += 1
            else:
                level, number, request = 1, owner_d[d], request_d[d]
                d += 1
            caches.out[0] = 0
            if request >= 0:
                below(caches, level, request, kind[number], ip[number])
            else:
                evict(caches, level, (-1 - request) >> shape[level, SHIFT], True)
                caches.events[level, WRITEBACKS] -= 1  # counted by the first level itself
        return 0

    return lower_levels
