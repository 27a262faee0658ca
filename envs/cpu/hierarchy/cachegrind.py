"""Counts as valgrind's tool cachegrind makes them, for comparison with it.

Two levels, least recently used, no write-backs, no translation. A reference that misses in its
first level with any of its lines is passed on to the last level as a whole; each level counts a
reference once. An access of data that is longer than the shortest line is cut to its length. After
cachegrind/cg_sim.c and cg_main.c of valgrind 3.19.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archgym.envs.cpu.hierarchy.compiled import entry
from archgym.envs.cpu.hierarchy.config import CacheLevel, HierarchyConfig
from archgym.envs.cpu.hierarchy.fast import LevelByLevel
from archgym.envs.cpu.hierarchy.layout import FETCH, LOAD, SHIFT, STORE, make_caches
from archgym.envs.cpu.hierarchy.references import References
from archgym.envs.cpu.hierarchy.replacement import fill, find, touch

__all__ = ["CachegrindCounts", "Cachegrind"]


@dataclass(frozen=True)
class CachegrindCounts:
    """What cachegrind prints, under its names.

    Attributes:
        Ir: instructions.
        I1mr: of them those that miss in the first level.
        ILmr: those that miss in the last level.
        Dr: reads of data; an access that reads and writes is one of them.
        D1mr: reads that miss in the first level.
        DLmr: reads that miss in the last level.
        Dw: writes of data.
        D1mw: writes that miss in the first level.
        DLmw: writes that miss in the last level.
    """

    Ir: int
    I1mr: int
    ILmr: int
    Dr: int
    D1mr: int
    DLmr: int
    Dw: int
    D1mw: int
    DLmw: int


class Cachegrind:
    """Cachegrind's caches on one program.

    Args:
        references: of the program.
        modified: how many of its stores belong to an access that reads and writes.
    """

    def __init__(self, references: References, modified: int) -> None:
        self._references = references
        self._modified = modified
        self._by_cut: dict[int, LevelByLevel] = {}

    def counts(self, i1: CacheLevel, d1: CacheLevel, ll: CacheLevel) -> CachegrindCounts:
        """The counts of two first levels and a last one."""
        cut = min(i1.line_bytes, d1.line_bytes, ll.line_bytes)
        if cut not in self._by_cut:
            self._by_cut[cut] = LevelByLevel(_cut(self._references, cut))
        levels = self._by_cut[cut]
        longest = max(i1.line_bytes, d1.line_bytes)
        if ll.line_bytes < longest:  # cachegrind allows what no inclusive fill could serve
            ways = ll.ways
            lower = CacheLevel(ways * longest, ways, longest)
            config = HierarchyConfig(i1, d1, None, lower)
        else:
            config = HierarchyConfig(i1, d1, None, ll)
        above = [levels.first_level(config, number) for number in (0, 1)]
        owners = np.unique(np.concatenate([m.owner[m.request >= 0] for m in above]))
        caches = make_caches(HierarchyConfig(_TINY, _TINY, None, ll))
        columns = levels.references
        missed = np.zeros(6, np.int64)
        _last_level(caches, owners, columns.kind, columns.address, columns.size, missed)
        stores = int((columns.kind == STORE).sum())
        first = above[0].references + above[1].references
        return CachegrindCounts(
            Ir=columns.instructions,
            I1mr=int(first[FETCH]),
            ILmr=int(missed[FETCH]),
            Dr=int((columns.kind == LOAD).sum()),
            D1mr=int(first[LOAD]),
            DLmr=int(missed[LOAD]),
            Dw=stores - self._modified,
            D1mw=int(first[STORE]),
            DLmw=int(missed[STORE]),
        )


_TINY = CacheLevel(8, 1, 8)


def _cut(references: References, longest: int) -> References:
    fetch = references.kind == FETCH
    size = np.where(fetch, references.size, np.minimum(references.size, longest))
    return replace(references, size=size.astype(np.uint16))


@entry
def _last_level(sources: int) -> Any:
    def last_level(
        caches: Any, owners: Any, kind: Any, address: Any, size: Any, missed: Any
    ) -> Any:
        _ = sources
        shift = caches.shape[3, SHIFT]
        for number in owners:
            what = kind[number]
            first = address[number] >> shift
            last = (address[number] + size[number] - 1) >> shift
            miss = False
            for line in range(first, last + 1):
                at = find(caches, 3, line)
                if at >= 0:
                    touch(caches, 3, at, what, 0)
                else:
                    fill(caches, 3, line, what, 0, 0)
                    miss = True
            if miss:
                missed[what] += 1

    return last_level
