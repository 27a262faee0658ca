"""The levels of each column of coordinates, so that covariances are looked up, not calculated.

Designs have few distinct values in each column. How alike two values are is calculated once for
each pair of them; a covariance of designs is then a product of numbers that are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from archgym.agents.common.arrays import Bools, Floats, Ints
from archgym.space import DesignSpace, Permutation

_MAX_FIXED = 32
"""Up to so many levels, a column has the same numbered values in every list of designs."""
_FAR = 1e9
"""Distance of different values of an unordered column: they have nothing in common."""


def coordinates(space: DesignSpace, codes: Ints) -> Floats:
    """What the process sees of designs: a column a free parameter, shape (n, n_free).

    Ordered parameters lie in [0, 1], 0.5 where they are inactive; unordered ones and permutations
    are their level, -1 where they are inactive.
    """
    columns = []
    for position in space.free:
        parameter, column = space.parameters[position], codes[:, position]
        if parameter.ordered:
            place = (parameter.unit_interval(column) - 0.5) * parameter.size / (parameter.size - 1)
            columns.append(np.where(column < 0, 0.5, place + 0.5))
        else:
            columns.append(column.astype(np.float64))
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Leveled:
    """Designs as numbers of levels.

    Attributes:
        values: distinct values of each column.
        index: which of them a design has, shape (n, n_columns).
    """

    values: list[Floats]
    index: Ints


@dataclass(frozen=True)
class LevelPairs:
    """Pairs of values of one list of designs with those of another, all columns one after another.

    Attributes:
        distance: between two values, shape (n_pairs,).
        column: of each pair, shape (n_pairs,).
        starts: the first pair of each column, shape (n_columns + 1,).
        widths: values of the second list in each column: the pairs of a value of the first list
            are next to each other, shape (n_columns,).
    """

    distance: Floats
    column: Ints
    starts: Ints
    widths: Ints


class Columns:
    """The columns of coordinates.

    Args:
        ordered: which are distances, shape (n_columns,).
        sizes: levels of each, 0 for very many; without it, all have very many.
        permutations: parameters behind columns that are levels of permutations.

    Attributes:
        ordered: which have distances between their values, permutations included.
    """

    def __init__(
        self,
        ordered: Bools,
        sizes: Ints | None = None,
        permutations: Mapping[int, Permutation] | None = None,
    ) -> None:
        self._permutations = dict(permutations or {})
        self.ordered = ordered.copy()
        self.ordered[list(self._permutations)] = True
        self._fixed: list[Floats | None] = [None] * len(ordered)
        sizes = np.zeros(len(ordered), dtype=np.int64) if sizes is None else sizes
        for column, size in enumerate(sizes.tolist()):
            if 2 <= size <= _MAX_FIXED and column not in self._permutations:
                levels = np.arange(size, dtype=np.float64)
                if ordered[column]:
                    self._fixed[column] = np.append(levels / (size - 1.0), 0.5)
                else:
                    self._fixed[column] = np.append(levels, -1.0)
        self._few = np.array([values is not None for values in self._fixed], dtype=np.bool_)
        last = np.maximum(sizes, 2) - 1.0
        self._scale = np.where(ordered, last, 1.0)[self._few]
        self._inactive = sizes[self._few]
        self._square: LevelPairs | None = None
        self._latest: tuple[Floats, Leveled] | None = None

    @classmethod
    def of(cls, space: DesignSpace) -> Columns:
        """Those of a space's free parameters."""
        parameters = [space.parameters[position] for position in space.free]
        ordered = np.array([parameter.ordered for parameter in parameters], dtype=np.bool_)
        sizes = [0 if p.continuous or p.size > _MAX_FIXED else p.size for p in parameters]
        permutations = {c: p for c, p in enumerate(parameters) if isinstance(p, Permutation)}
        return cls(ordered, np.array(sizes, dtype=np.int64), permutations)

    def split(self, x: Floats) -> Leveled:
        """Distinct values of each column, and which of them designs have.

        Several processes ask for the same designs one after another: the latest are remembered.
        """
        if self._latest is not None and self._latest[0] is x:
            return self._latest[1]
        index = np.empty(x.shape, dtype=np.int64)
        places = x[:, self._few] * self._scale
        nearest = np.rint(places)
        regular = (np.abs(places - nearest) < 0.25) & (nearest >= 0)
        index[:, self._few] = np.where(regular, nearest, self._inactive)
        values = list(self._fixed)
        for column in np.flatnonzero(~self._few).tolist():
            values[column], index[:, column] = np.unique(x[:, column], return_inverse=True)
        leveled = Leveled([v for v in values if v is not None], index)
        self._latest = x, leveled
        return leveled

    def pairs(self, first: Leveled, second: Leveled) -> LevelPairs:
        """All pairs of values of the one with values of the other."""
        if self._few.all() and self._square is not None:
            return self._square
        distances = []
        columns = zip(self.ordered, first.values, second.values, strict=True)
        for column, (ordered, a, b) in enumerate(columns):
            if column in self._permutations:
                distances.append(order_distance(self._permutations[column], a, b).ravel())
                continue
            apart = np.abs(a[:, None] - b)
            distances.append((apart if ordered else np.where(apart > 0, _FAR, 0.0)).ravel())
        counts = [len(apart) for apart in distances]
        pairs = LevelPairs(
            np.concatenate(distances),
            np.repeat(np.arange(len(counts)), counts),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.array([len(values) for values in second.values], dtype=np.int64),
        )
        if self._few.all():
            self._square = pairs
        return pairs


def order_distance(parameter: Permutation, first: Floats, second: Floats) -> Floats:
    """Distances of orders, shape (n, m): roots of the shares of pairs ordered differently.

    It is a Euclidean distance: of two vectors with an entry for each pair of items. An inactive
    order (-1) is the origin, half as far from each order as the farthest are from one another. So
    the Matérn kernels, which are positive definite in every dimension, are so of these distances;
    the Gaussian kernel is the Mallows kernel (Jiao and Vert, The Kendall and Mallows Kernels for
    Permutations, ICML 2015).
    """
    off = first < 0, second < 0
    codes = [np.maximum(values, 0).astype(np.int64) for values in (first, second)]
    squared = parameter.discordance(*codes)
    squared[off[0], :] = 0.25
    squared[:, off[1]] = 0.25
    squared[np.ix_(*off)] = 0.0
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)))
