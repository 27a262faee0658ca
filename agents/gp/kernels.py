"""Covariances that are sums of products of how alike designs are in single columns, compiled.

Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.agents.common.arrays import Bools, Floats, Ints
from archgym.agents.gp.levels import LevelPairs
from archgym.simulators.compilation import compiled_once


class Terms:
    """Weighted sets of columns, each of which stands for a product over its columns.

    Args:
        sets: which columns are in each, shape (n_sets, n_columns).
        weights: of each, shape (n_sets,).
    """

    def __init__(self, sets: Bools, weights: Floats) -> None:
        order = np.lexsort(~sets.T[::-1])  # sets that begin alike are next to each other
        self.sets, self.weights = sets[order], np.ascontiguousarray(weights[order], np.float64)
        members = [np.flatnonzero(one) for one in self.sets]
        self.ends = np.cumsum([0, *(len(one) for one in members)], dtype=np.int64)
        self.columns = np.concatenate([np.empty(0, np.int64), *members]).astype(np.int64)


class Against:
    """How alike each value is to those of some designs, looked up once for many lists of others.

    Args:
        designs: numbers of their values, shape (n, n_columns).
        pairs: of values of others with theirs.
        alike: how alike the two values of each pair are, shape (n_pairs,).
    """

    def __init__(self, designs: Ints, pairs: LevelPairs, alike: Floats) -> None:
        rows: list[Floats] = []
        starts = np.zeros(designs.shape[1], dtype=np.int64)
        for column, width in enumerate(pairs.widths.tolist()):
            table = alike[pairs.starts[column] : pairs.starts[column + 1]]
            table = table.reshape(len(table) // max(1, width), width)
            starts[column] = 0 if not rows else starts[column - 1] + len(rows[-1])
            rows.append(table.take(designs[:, column], axis=1))
        self.pairs = pairs
        self._n, self._starts, self._rows = len(designs), starts, np.concatenate(rows)

    def sum_of_products(self, others: Ints, terms: Terms, *, lower: bool = False) -> Floats:
        """Sum over the sets of weight times product of how alike others and the designs are.

        Args:
            others: numbers of their values, shape (m, n_columns).
            terms: the sets.
            lower: whether only the part left of and on the diagonal is needed; the rest is
                undefined.

        Returns:
            Shape (m, n).
        """
        out = np.empty((len(others), self._n))
        if out.size:
            sets = terms.ends, terms.columns, terms.weights
            _add_up(others + self._starts, self._rows, sets, lower, out)
        return out


@compiled_once()
def sums_by_pair(index: Ints, weights: Floats, starts: Ints, widths: Ints, out: Floats) -> None:
    """Adds up numbers of pairs of designs for each pair of values that they have in a column.

    Args:
        index: numbers of the values of designs, shape (n, n_columns).
        weights: of pairs of designs, in the part left of the diagonal, shape (n, n).
        starts: the first pair of values of each column.
        widths: values in each column.
        out: what is added to, shape (n_pairs,).
    """
    n_columns = index.shape[1]
    for i in range(len(index)):
        for c in range(n_columns):
            row = starts[c] + index[i, c] * widths[c]
            for j in range(i):
                out[row + index[j, c]] += weights[i, j]


@compiled_once(fastmath={"contract"})
def _add_up(first: Ints, alike: Floats, terms: Any, lower: bool, out: Floats) -> None:
    """Rows of ``alike``: values of the first list by designs of the second."""
    ends, columns, weights = terms
    products = np.empty((first.shape[1], out.shape[1]))
    for i in range(len(out)):
        m = i + 1 if lower else out.shape[1]
        out[i, :m] = 0.0
        before, length = 0, 0
        for t in range(len(weights)):
            start, size = ends[t], ends[t + 1] - ends[t]
            same = 0  # columns at the start of the set before, whose products are there
            while same < min(size, length) and columns[start + same] == columns[before + same]:
                same += 1
            before, length = start, size
            weight = weights[t]
            for depth in range(same, size):
                near = alike[first[i, columns[start + depth]]]
                if depth == 0:
                    for j in range(m):
                        products[0, j] = near[j]
                else:
                    for j in range(m):
                        products[depth, j] = products[depth - 1, j] * near[j]
            if size == 0:
                out[i, :m] += weight
            else:
                for j in range(m):
                    out[i, j] += weight * products[size - 1, j]
