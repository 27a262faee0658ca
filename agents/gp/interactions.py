"""Which parameters act together: a Markov chain over decompositions of a cost into components.

A cost that is a sum of components, each a function of few parameters, has a covariance that is
the sum of those of its components: the additive kernel of Duvenaud, Nickisch and Rasmussen
(Additive Gaussian Processes, NeurIPS 2011) on unknown groups. The groups overlap here, and are
drawn from their posterior by a Metropolis-Hastings walk as in Gardner, Guo, Weinberger, Garnett
and Grosse (Discovering and Exploiting Additive Structure for Bayesian Optimization, AISTATS
2017). The mean covariance of the latest states of the walk predicts as well as the mean of their
predictions does, at the price of one process.

A likelihood costs a factorisation, and most steps lead nowhere. So every step is tried on half
of the designs first, at a sixth of the price, and what passes is tried on all, in such a way that
the posterior stays as it is: delayed acceptance (Christen and Fox, Markov Chain Monte Carlo Using
an Approximation, Journal of Computational and Graphical Statistics, 2005).

SciPy and numba are imported when a walk is made, not with this module.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.agents.common.arrays import Bools, Floats
from archgym.agents.common.targets import standardised

Singles = NDArray[np.float32]

NUGGET = 1e-3
"""Variance of what no component explains, as a share of the signal's."""
_MAX_COMPONENTS = 32
_LOG_PRIOR = np.array([-np.inf, -0.5, 0.0, 0.0, 0.0, -1.0])
"""Of a set of parameters by its size: those of two to four are alike, others rarer."""
_LARGEST = len(_LOG_PRIOR) - 1
_REDRAWN = (2, 3, 4)
"""Sizes of sets that are drawn anew."""
_SWAP, _FLIP, _REDRAW = 0.5, 0.8, 0.9
"""Cumulative odds of the moves; the rest exchanges parameters between two components."""
_MEMORY = 10
"""States of the walk, the latest one of each call, that count."""
_MAX_STEPS, _WORK = 150, 3e6
"""Steps a call, and squared number of designs times steps."""
_FEW = 120
"""Designs that are so few that every step is tried on all of them at once."""


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

        from archgym.agents.gp.kernels import Terms

        self._lapack: Any = linalg.lapack
        self._make_terms = Terms
        self._rng, self._n = rng, n_columns
        members = [self._drawn() for _ in range(min(n_columns, _MAX_COMPONENTS))]
        self._members = np.array(members)
        self._states: list[Bools] = []
        self._terms: Any = None

    def walk(self, alike: Singles, y: Floats) -> None:
        """Some steps, the fewer the more designs there are.

        Args:
            alike: how alike designs are in each parameter, shape (n_columns, n, n).
            y: their targets, shape (n,).
        """
        y, _ = standardised(y)
        members, count = self._members, len(self._members)
        whole = _Sum(self._lapack, alike, y, members)
        half = whole
        if len(y) > _FEW:
            alike = np.ascontiguousarray(alike[:, ::2, ::2])
            half = _Sum(self._lapack, alike, y[::2], members)
        for _ in range(max(1, min(_MAX_STEPS, int(_WORK / len(y) ** 2)))):
            moved = self._move(int(self._rng.integers(count)))
            if moved is None:
                continue
            changed, sets, log_odds = moved
            promise = half.gain(changed, sets)
            if math.log(self._rng.random()) >= promise + log_odds:
                continue
            if half is not whole:
                if math.log(self._rng.random()) >= whole.gain(changed, sets) - promise:
                    continue
                whole.take()
            half.take()
            members[changed] = sets
        self._states = [*self._states[1 - _MEMORY :], members.copy()]
        self._terms = None

    def terms(self) -> Any:
        """Mean covariance of the latest states: sets with weights that add up to 1."""
        if self._terms is None:
            sets, counts = np.unique(np.concatenate(self._states), axis=0, return_counts=True)
            self._terms = self._make_terms(sets, counts / counts.sum())
        return self._terms

    def _drawn(self) -> Bools:
        """A random set."""
        members = np.zeros(self._n, dtype=np.bool_)
        size = int(self._rng.choice(_REDRAWN))
        members[self._rng.permutation(self._n)[:size]] = True
        return members

    def _move(self, row: int) -> tuple[list[int], list[Bools], float] | None:
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

    def _one_of(self, members: Bools) -> int:
        columns = np.flatnonzero(members)
        return int(columns[self._rng.integers(len(columns))])


class _Sum:
    """Sum of the components on some designs, and what their targets say of it.

    Args:
        lapack: SciPy's.
        alike: how alike designs are in each parameter, shape (n_columns, n, n).
        y: standardised targets, shape (n,).
        members: of each component.
    """

    def __init__(self, lapack: Any, alike: Singles, y: Floats, members: Bools) -> None:
        self._lapack, self._alike = lapack, alike
        self._targets = np.stack([y, np.ones(len(y))], axis=1)
        self._covariance = np.empty((len(y), len(y)))
        self._parts = np.array([self._product(one) for one in members])
        self._total = self._parts.sum(axis=0)
        self._now = self._log_likelihood(self._total)
        self._next: Any = None

    def gain(self, rows: list[int], sets: list[Bools]) -> float:
        """Of log likelihood, if some components became others."""
        news = [self._product(one) for one in sets]
        total = self._total - self._parts[rows[0]]
        total += news[0]
        for row, new in zip(rows[1:], news[1:], strict=True):
            total -= self._parts[row]
            total += new
        likelihood = self._log_likelihood(total)
        self._next = rows, news, total, likelihood
        return likelihood - self._now

    def take(self) -> None:
        """Makes the components the latest others."""
        rows, news, self._total, self._now = self._next
        for row, new in zip(rows, news, strict=True):
            self._parts[row] = new

    def _product(self, members: Bools) -> Singles:
        columns = np.flatnonzero(members)
        product: Singles = self._alike[columns[0]]
        for column in columns[1:]:
            product = product * self._alike[column]
        return product

    def _log_likelihood(self, total: Singles) -> float:
        """Up to a constant; mean and variance are integrated out and profiled, respectively."""
        n, covariance = len(total), self._covariance
        np.multiply(total, 1.0 / len(self._parts), out=covariance)
        covariance.flat[:: n + 1] = 1.0 + NUGGET
        factor, failed = self._lapack.dpotrf(covariance.T, lower=1, clean=0, overwrite_a=1)
        if failed:
            return -math.inf
        both, _ = self._lapack.dtrtrs(factor, self._targets, lower=1)
        one, other = both.T
        rest = one - (one @ other) / (other @ other) * other
        variance = (float(rest @ rest) + 1.0) / (n + 1.0)
        return float(-0.5 * (n + 1) * math.log(variance) - np.log(factor.diagonal()).sum())
