"""References of one first-level cache without those that change nothing in it.

A reference to the line that was the latest one used in its set hits in every cache with at least
as many sets, and leaves least-recently-used order as it is (Puzak, "Analysis of Cache Replacement
Algorithms", 1985). So it is counted once and simulated never. With re-reference interval
prediction the second use of a line still changes its state, a third one in a row does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.hierarchy.compiled import entry
from archgym.envs.cpu.hierarchy.layout import FETCH, STORE
from archgym.envs.cpu.hierarchy.references import References

__all__ = ["Filtered", "filtered"]

MAX_FILTER_SETS: Final = 64


@dataclass(frozen=True, eq=False)
class Filtered:
    """What is left of the references of one first-level cache.

    Attributes:
        line: line number, shape (n,).
        owner: number of the reference in :class:`References`, shape (n,).
        follows: 1 if it is a further line of the same reference as the one before, shape (n,).
        looked_up: look-ups by kind before filtering, shape (6,).
    """

    line: NDArray[np.int64]
    owner: NDArray[np.int32]
    follows: NDArray[np.uint8]
    looked_up: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.line)


def filtered(references: References, *, data: bool, shift: int, sets: int, uses: int) -> Filtered:
    """The references of the first-level cache of data, or that of instructions.

    Args:
        references: of a program.
        data: whether those of data, and not the fetches of instructions.
        shift: log2 of the bytes of a line.
        sets: the filter drops what changes nothing in caches of that number of sets or more.
        uses: how many uses in a row of a line are kept: 1 for least recently used, 2 for
            re-reference interval prediction; 0 keeps all.
    """
    room = _lines(references, data, shift)
    line = np.empty(room, np.int64)
    owner = np.empty(room, np.int32)
    follows = np.empty(room, np.uint8)
    looked_up = np.zeros(6, np.int64)
    held = np.full(sets, -1, np.int64)
    count = _filter(
        references.kind,
        references.address,
        references.size,
        data,
        shift,
        uses,
        held,
        np.zeros(sets, np.int64),
        line,
        owner,
        follows,
        looked_up,
    )
    return Filtered(line[:count].copy(), owner[:count].copy(), follows[:count].copy(), looked_up)


def _lines(references: References, data: bool, shift: int) -> int:
    """Look-ups of the cache, one for each line that a reference touches."""
    own = (references.kind == FETCH) != data
    first = references.address[own]
    last = first + references.size[own] - 1
    return int(((last >> shift) - (first >> shift) + 1).sum())


@entry
def _filter(sources: int) -> Any:
    def filter_references(
        kind: Any,
        address: Any,
        size: Any,
        data: Any,
        shift: Any,
        uses: Any,
        held: Any,
        used: Any,
        line: Any,
        owner: Any,
        follows: Any,
        looked_up: Any,
    ) -> Any:
        _ = sources
        count = 0
        mask = len(held) - 1
        for i in range(len(kind)):
            if (kind[i] == FETCH) == data:
                continue
            first, last = address[i] >> shift, (address[i] + size[i] - 1) >> shift
            kept = 0
            for one in range(first, last + 1):
                looked_up[kind[i]] += 1
                place = one & mask
                # used: uses in a row, and 256 if one of them was a store.
                if held[place] == one and uses > 0:
                    stored = used[place] >= 256
                    if used[place] & 255 >= uses and (stored or kind[i] != STORE):
                        continue
                    used[place] = min(255, (used[place] & 255) + 1) + (256 if stored else 0)
                else:
                    held[place] = one
                    used[place] = 1
                if kind[i] == STORE and used[place] < 256:
                    used[place] += 256
                line[count] = one
                owner[count] = i
                follows[count] = 1 if kept > 0 else 0
                kept += 1
                count += 1
        return count

    return filter_references
