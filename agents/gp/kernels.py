"""Covariances that are sums of products of how alike designs are in single parameters, compiled.

Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from archgym.agents.common.arrays import Bools, Floats, Ints


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


def sum_of_products(
    a: Floats,
    b: Floats,
    unlike: Floats,
    tables: dict[int, tuple[Floats, Ints, Ints]],
    terms: Terms,
) -> Floats:
    """Sum over the sets of weight times product of how alike two lists of designs are.

    Args:
        a: coordinates of the ones, shape (n, n_columns).
        b: of the others, shape (m, n_columns).
        unlike: of each column, how alike two designs are whose values differ, if the column is
            unordered, shape (n_columns,).
        tables: of ordered columns by their number: distinct values of ``a``, row by row, against
            those of ``b``, with the number of the value of each design.
        terms: the sets.

    Returns:
        Shape (n, m).
    """
    n_columns = a.shape[1]
    a_values = np.zeros((len(a), n_columns), dtype=np.int64)
    b_values = np.zeros((n_columns, len(b)), dtype=np.int64)
    starts, widths = np.full((2, n_columns), [[-1], [0]], dtype=np.int64)
    flat, size = [np.empty(0)], 0
    for column, (table, rows, columns) in tables.items():
        a_values[:, column], b_values[column] = rows, columns
        starts[column], widths[column] = size, table.shape[1]
        flat.append(table.ravel())
        size += table.size
    out = np.empty((len(a), len(b)))
    _add_up(
        (np.ascontiguousarray(a), a_values),
        (np.ascontiguousarray(b.T), b_values),
        (unlike, starts, widths, np.concatenate(flat)),
        (terms.ends, terms.columns, terms.weights),
        out,
    )
    return out


@njit(cache=True)  # type: ignore[untyped-decorator]
def _add_up(first: Any, second: Any, tables: Any, terms: Any, out: Floats) -> None:
    ends, columns, weights = terms
    b, _ = second
    near, products = np.empty(b.shape), np.empty(b.shape)
    for i in range(len(out)):
        _compare(i, first, second, tables, near)
        out[i] = 0.0
        before, length = 0, 0
        for t in range(len(weights)):
            start, size = ends[t], ends[t + 1] - ends[t]
            same = 0  # columns at the start of the set before, whose products are there
            while same < min(size, length) and columns[start + same] == columns[before + same]:
                same += 1
            before, length = start, size
            for depth in range(same, size):
                _multiply(depth, near[columns[start + depth]], products)
            if size == 0:
                out[i] += weights[t]
            else:
                out[i] += weights[t] * products[size - 1]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _compare(i: int, first: Any, second: Any, tables: Any, near: Floats) -> None:
    """How alike one design is to all others in each column."""
    a, a_values = first
    b, b_values = second
    unlike, starts, widths, table = tables
    for c in range(len(near)):
        if starts[c] < 0:
            value, other = a[i, c], unlike[c]
            for j in range(near.shape[1]):
                near[c, j] = 1.0 if b[c, j] == value else other
        else:
            row = starts[c] + a_values[i, c] * widths[c]
            for j in range(near.shape[1]):
                near[c, j] = table[row + b_values[c, j]]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _multiply(depth: int, factor: Floats, products: Floats) -> None:
    """Product of the first columns of a set, one column more."""
    for j in range(len(factor)):
        products[depth, j] = factor[j] if depth == 0 else products[depth - 1, j] * factor[j]
