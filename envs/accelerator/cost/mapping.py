"""Two-level mappings of a layer onto an array, in the form of GAMMA and MAESTRO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

import numpy as np
import numpy.typing as npt

from archgym.errors import InvalidValueError

__all__ = ["LOOPS", "ORDERS", "Level", "Mapping", "loops_of"]

LOOPS: Final = ("K", "C", "R", "S", "P", "Q")
"""Loops of a layer: output and input channels, filter rows and columns, output rows and columns."""

ORDERS: Final = tuple("".join(order) for order in permutations("KCRSPQ"))
"""The 720 orders of the loops, outermost first."""

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a mapping.

    Attributes:
        spread: the loop that runs over the level's parts side by side.
        order: the loops, outermost first.
        tiles: what one part holds of each loop, in the order of `LOOPS`.
    """

    spread: str
    order: str
    tiles: tuple[int, int, int, int, int, int]

    def __post_init__(self) -> None:
        if self.spread not in LOOPS:
            raise InvalidValueError(
                f"spread is {self.spread!r}; it must be one of {', '.join(LOOPS)}"
            )
        if sorted(self.order) != sorted(LOOPS):
            raise InvalidValueError(f"order is {self.order!r}; it names each of KCRSPQ once")
        if len(self.tiles) != len(LOOPS) or min(self.tiles) < 1:
            raise InvalidValueError(f"tiles is {self.tiles}; six whole numbers of at least 1")


@dataclass(frozen=True, slots=True)
class Mapping:
    """Clusters of PEs, and what each level does.

    Attributes:
        clusters: clusters, the parts of the outer level.
        cluster_size: PEs of a cluster, the parts of the inner level.
        outer: from the global buffer to the clusters.
        inner: from a cluster to its PEs; its tiles are cut to the outer ones.
    """

    clusters: int
    cluster_size: int
    outer: Level
    inner: Level

    def __post_init__(self) -> None:
        for field in ("clusters", "cluster_size"):
            if getattr(self, field) < 1:
                raise InvalidValueError(f"{field} is {getattr(self, field)}; at least 1")


def loops_of(mappings: Sequence[Mapping]) -> tuple[_Integers, _Integers, _Integers]:
    """Return mappings as the kernel reads them: loops of both levels, shape (n, 6, 3), and parts.

    The parts, shape (n, 3), are clusters, PEs of one, and the number of levels.
    """
    outer = np.empty((len(mappings), len(LOOPS), 3), dtype=np.int64)
    inner = np.empty_like(outer)
    parts = np.empty((len(mappings), 3), dtype=np.int64)
    for i, mapping in enumerate(mappings):
        for level, loops in ((mapping.outer, outer[i]), (mapping.inner, inner[i])):
            for position, name in enumerate(level.order):
                loop = LOOPS.index(name)
                loops[position] = (loop, name == level.spread, level.tiles[loop])
        parts[i] = (mapping.clusters, mapping.cluster_size, 2)
    return outer, inner, parts
