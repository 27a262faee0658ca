"""Operators on permutations that search agents share: moves, crossover, and the Mallows model.

They work on levels of one :class:`archgym.space.Permutation`, many at once, and always give
orders in which every item stands once.
"""

from __future__ import annotations

import numpy as np

from archgym.agents.common.arrays import Floats, Ints
from archgym.space import Permutation

_MAX_THETA = 16.0


def reordered(parameter: Permutation, codes: Ints, rng: np.random.Generator) -> Ints:
    """Each order with two items swapped, an item put elsewhere, or a part reversed.

    The three are equally likely, and so are all places; the result always differs.

    Args:
        parameter: with two items at least.
        codes: levels, shape (n,).
        rng: the only source of randomness.
    """
    orders = parameter.orders(codes)
    n = orders.shape[1]
    one = rng.integers(n, size=len(codes))[:, None]
    other = (one + rng.integers(1, n, size=len(codes))[:, None]) % n
    kind = rng.integers(3, size=len(codes))[:, None]
    place = np.arange(n)[None, :]
    low, high = np.minimum(one, other), np.maximum(one, other)
    within = (place >= low) & (place <= high)
    swapped = np.where(place == one, other, np.where(place == other, one, place))
    shifted = np.where(within, place + np.where(one < other, 1, -1), place)
    put = np.where(place == other, one, shifted)
    turned = np.where(within, low + high - place, place)
    source = np.where(kind == 0, swapped, np.where(kind == 1, put, turned))
    return parameter.codes_of(np.take_along_axis(orders, source, axis=1))


def crossed(parameter: Permutation, first: Ints, second: Ints, rng: np.random.Generator) -> Ints:
    """Children of pairs of orders: position-based crossover.

    Some random items keep the positions that they have in the first parent; the others fill the
    rest in the order of the second (Syswerda, Schedule Optimization Using Genetic Algorithms,
    1991).

    Args:
        parameter: whose levels these are.
        first: levels of parents, shape (n,).
        second: levels of the other parents, shape (n,).
        rng: the only source of randomness.
    """
    orders, others = parameter.orders(first), parameter.orders(second)
    keeps = rng.integers(2, size=orders.shape) == 0
    kept = np.zeros_like(keeps)
    np.put_along_axis(kept, orders, keeps, axis=1)
    left_first = np.take_along_axis(kept, others, axis=1).argsort(axis=1, kind="stable")
    fillers = np.take_along_axis(others, left_first, axis=1)
    filled = np.take_along_axis(fillers, np.cumsum(~keeps, axis=1) - 1, axis=1)
    return parameter.codes_of(np.where(keeps, orders, filled))


class Mallows:
    """The Mallows model: the probability of an order decays with its distance to a centre.

    It is proportional to ``exp(-theta * d)`` with d the number of pairs that are ordered
    differently (Mallows, Non-Null Ranking Models, Biometrika 44, 1957).

    Args:
        parameter: the permutation.
        share: expected share of pairs ordered differently, above 0; 0.5 or more is uniform.

    Attributes:
        share: the same, as it is.
    """

    def __init__(self, parameter: Permutation, share: float) -> None:
        self._parameter, self._n = parameter, len(parameter.items)
        self._pairs = max(1, self._n * (self._n - 1) // 2)
        low, high = 0.0, _MAX_THETA
        for _ in range(50):  # the expected distance falls with theta
            self._theta = (low + high) / 2
            if self._expected() > share * self._pairs:
                low = self._theta
            else:
                high = self._theta
        self.share = self._expected() / self._pairs
        self._log_total = sum(float(np.log(self._weights(i).sum())) for i in range(self._n))

    def log(self, codes: Ints, centres: Ints) -> Floats:
        """Log probability of orders, shape (n,), around centres, shape (m,); shape (n, m)."""
        distance = self._pairs * self._parameter.discordance(codes, centres)
        return np.asarray(-self._theta * distance - self._log_total)

    def draw(self, centres: Ints, rng: np.random.Generator) -> Ints:
        """An order around each centre, levels, shape (n,): repeated insertion."""
        n, rows = self._n, np.arange(len(centres))[:, None]
        ranks = np.zeros((len(centres), 1), dtype=np.int64)
        for i in range(1, n):
            bounds = np.cumsum(self._weights(i))
            behind = bounds.searchsorted(rng.random(len(centres)) * bounds[-1], side="right")
            place = i - np.minimum(behind, i)[:, None]  # pairs that the new item overtakes
            source = np.arange(i + 1)[None, :]
            grown = np.concatenate([ranks, np.full((len(centres), 1), i)], axis=1)
            source = np.where(source == place, i, np.where(source > place, source - 1, source))
            ranks = grown[rows, source]
        orders = self._parameter.orders(centres)
        return self._parameter.codes_of(np.take_along_axis(orders, ranks, axis=1))

    def _weights(self, i: int) -> Floats:
        """Of putting an item behind i others 0, 1, ... i places further to the front."""
        return np.asarray(np.exp(-self._theta * np.arange(i + 1)))

    def _expected(self) -> float:
        """Expected number of pairs that are ordered differently than in the centre."""
        weights = [self._weights(i) for i in range(self._n)]
        return sum(float(w @ np.arange(len(w)) / w.sum()) for w in weights)
