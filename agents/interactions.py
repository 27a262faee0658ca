"""Which parameters act together: a Markov chain over decompositions of a cost into components.

A cost that is a sum of components, each a function of few parameters, has a covariance that is
the sum of those of its components: the additive kernel of Duvenaud, Nickisch and Rasmussen
(Additive Gaussian Processes, NeurIPS 2011) on unknown groups. The groups overlap here, and are
drawn from their posterior by a Metropolis-Hastings walk as in Gardner, Guo, Weinberger, Garnett
and Grosse (Discovering and Exploiting Additive Structure for Bayesian Optimization, AISTATS
2017). The mean covariance of the latest states of the walk predicts as well as the mean of their
predictions does, at the price of one process.

SciPy is imported when a walk is made, not with this module.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NUGGET", "Interactions"]

Array = NDArray[np.float64]
Floats = NDArray[np.float32]

NUGGET = 1e-3
"""Variance of what no component explains, as a share of the signal's."""
_MOST_COMPONENTS = 32
_LOG_PRIOR = np.array([-np.inf, -0.5, 0.0, 0.0, 0.0, -1.0])
"""Of a set of parameters by its size: those of two to four are alike, others rarer."""
_LARGEST = len(_LOG_PRIOR) - 1
_REDRAWN = (2, 3, 4)
"""Sizes of sets that are drawn anew."""
_SWAP, _FLIP, _REDRAW = 0.5, 0.8, 0.9
"""Cumulative odds of the moves; the rest exchanges parameters between two components."""
_MEMORY = 10
"""States of the walk, the latest one of each call, that count."""
_BLOCK = 20_000
"""Pairs of designs that are worked on at once, so that they stay in the cache."""
_MOST_STEPS, _WORK = 150, 2e6
"""Steps a call, and squared number of designs times steps."""


Terms = list[tuple[tuple[int, ...], float]]


class Interactions:
    """A walk over sets of parameters, as many sets as there are parameters (at most 32).

    Sets may be the same, which makes the weight of a component.

    Args:
        n_columns: how many parameters there are, in :attr:`columns`.
        rng: the only source of randomness.
    """

    columns = range(_LARGEST + 1, 65)
    """Numbers of parameters for which it is made: more than a set has, and not so many that
    how alike designs are in each does not fit in memory."""

    def __init__(self, n_columns: int, rng: np.random.Generator) -> None:
        from scipy import linalg

        self._lapack: Any = linalg.lapack
        self._rng, self._n = rng, n_columns
        members = [self._drawn() for _ in range(min(n_columns, _MOST_COMPONENTS))]
        self._members = np.array(members)
        self._states: list[NDArray[np.bool_]] = []

    def walk(self, alike: Floats, y: Array) -> None:
        """Some steps, the fewer the more designs there are.

        Args:
            alike: how alike designs are in each parameter, shape (n_columns, n, n).
            y: their targets, shape (n,).
        """
        scale = float(y.std()) or 1.0
        y = (y - y.mean()) / scale
        members, count = self._members, len(self._members)
        parts = np.array([self._product(alike, one) for one in members])
        total = parts.sum(axis=0)
        now = self._log_likelihood(total, y)
        for _ in range(max(1, min(_MOST_STEPS, int(_WORK / len(y) ** 2)))):
            moved = self._move(int(self._rng.integers(count)))
            if moved is None:
                continue
            changed, sets, log_odds = moved
            news = [self._product(alike, one) for one in sets]
            proposed = total + sum(new - parts[row] for row, new in zip(changed, news, strict=True))
            likelihood = self._log_likelihood(proposed, y)
            if math.log(self._rng.random()) < likelihood - now + log_odds:
                total, now = proposed, likelihood
                for row, one, new in zip(changed, sets, news, strict=True):
                    members[row], parts[row] = one, new
        self._states = [*self._states[1 - _MEMORY :], members.copy()]

    def correlation(self, alike: Floats) -> Array:
        """Mean covariance of the latest states; 1 where designs are alike in all parameters.

        Args:
            alike: how alike designs are in each parameter, shape (n_columns, n, m).
        """
        sets, counts = np.unique(np.concatenate(self._states), axis=0, return_counts=True)
        columns = [tuple(np.flatnonzero(one).tolist()) for one in sets]
        terms = list(zip(columns, (counts / counts.sum()).tolist(), strict=True))
        rows = max(1, _BLOCK // max(1, alike.shape[2]))
        blocks = [
            _sum_of_products(alike[:, start : start + rows], terms)
            for start in range(0, alike.shape[1], rows)
        ]
        return np.asarray(np.concatenate(blocks or [alike[0]]), dtype=np.float64)

    def _drawn(self) -> NDArray[np.bool_]:
        """A random set."""
        members = np.zeros(self._n, dtype=np.bool_)
        size = int(self._rng.choice(_REDRAWN))
        members[self._rng.permutation(self._n)[:size]] = True
        return members

    def _move(self, row: int) -> tuple[list[int], list[NDArray[np.bool_]], float] | None:
        """Which sets change, what they become, and the logarithm of the odds but the data's."""
        old = self._members[row]
        new, kind = old.copy(), self._rng.random()
        log_odds = 0.0
        if kind < _SWAP:
            new[self._one_of(old)], new[self._one_of(~old)] = False, True
        elif kind < _FLIP:
            new[int(self._rng.integers(self._n))] ^= True
        elif kind < _REDRAW:
            if int(old.sum()) not in _REDRAWN:
                return None
            new = self._drawn()
            log_odds = math.log(
                math.comb(self._n, int(new.sum())) / math.comb(self._n, int(old.sum()))
            )
        else:
            other = int(self._rng.integers(len(self._members)))
            second = self._members[other].copy()
            mine, its = old & ~second, second & ~old
            if not mine.any() or not its.any():
                return None
            given, taken = self._one_of(mine), self._one_of(its)
            new[given], new[taken] = False, True
            second[given], second[taken] = True, False
            return [row, other], [new, second], 0.0
        size = int(new.sum())
        if not 1 <= size <= _LARGEST:
            return None
        return [row], [new], log_odds + float(_LOG_PRIOR[size] - _LOG_PRIOR[int(old.sum())])

    def _one_of(self, members: NDArray[np.bool_]) -> int:
        columns = np.flatnonzero(members)
        return int(columns[self._rng.integers(len(columns))])

    @staticmethod
    def _product(alike: Floats, members: NDArray[np.bool_]) -> Floats:
        columns = np.flatnonzero(members)
        product: Floats = alike[columns[0]]
        for column in columns[1:]:
            product = product * alike[column]
        return product

    def _log_likelihood(self, total: Floats, y: Array) -> float:
        """Up to a constant; mean and variance are integrated out and profiled, respectively."""
        n = len(y)
        covariance = total.astype(np.float64) / len(self._members)
        covariance[np.diag_indices(n)] = 1.0 + NUGGET
        factor, failed = self._lapack.dpotrf(covariance.T, lower=1, overwrite_a=1)
        if failed:
            return -math.inf
        both, _ = self._lapack.dtrtrs(factor, np.stack([y, np.ones(n)], axis=1), lower=1)
        rest = both[:, 0] - (both[:, 0] @ both[:, 1]) / (both[:, 1] @ both[:, 1]) * both[:, 1]
        variance = (float(rest @ rest) + 1.0) / (n + 1.0)
        return float(-0.5 * (n + 1) * math.log(variance) - np.log(np.diag(factor)).sum())


def _sum_of_products(alike: Floats, terms: Terms) -> Any:
    """Sum of products of columns with weights, common first columns factored out (Horner)."""
    groups: dict[int, Terms] = {}
    constant, total = 0.0, None
    for columns, weight in terms:
        if columns:
            groups.setdefault(columns[0], []).append((columns[1:], weight))
        else:
            constant += weight
    for first, rest in groups.items():
        part = alike[first] * _sum_of_products(alike, rest)
        total = part if total is None else np.add(total, part, out=total)
    return np.float32(constant) if total is None else total + np.float32(constant)
