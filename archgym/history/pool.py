"""The designs of an earlier problem that are kept: the best ones, and a sample of the others."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.data.designs import fingerprint, mixed
from archgym.evaluation.outcome import Outcomes
from archgym.problem.objective import Objective
from archgym.space import DesignSpace

__all__ = [
    "MAX_BEST",
    "MAX_OTHERS",
    "Kept",
    "Pool",
    "design_words",
    "number_of_scores",
    "scores",
]

MAX_BEST: Final = 1000
"""Most designs of a source that are kept because they are good."""
MAX_OTHERS: Final = 1000
"""Most other designs of a source that are kept: a sample that depends on what they are only."""
_INFEASIBLE: Final = 100.0
"""More than any cost."""
Words = NDArray[np.uint64]


class Kept(NamedTuple):
    """Designs that are kept.

    Attributes:
        words: of the designs, see :func:`design_words`, shape (n,).
        codes: shape (n, n_parameters).
        metrics: as recorded, shape (n, n_metrics).
        status: shape (n,).
        moved: whether a value is not the recorded one, shape (n,).
        scores: smaller is better, in as many ways as there are, shape (n, n_ways).
    """

    words: Words
    codes: NDArray[np.int64]
    metrics: NDArray[np.float64]
    status: NDArray[np.int8]
    moved: NDArray[np.bool_]
    scores: NDArray[np.float64]

    def take(self, rows: NDArray[np.int64]) -> Kept:
        """Some of them."""
        columns: list[Any] = [column[rows] for column in self]
        return Kept(*columns)


class Pool:
    """Takes in designs a block at a time, and keeps those that are to be used.

    Of each design the first evaluation counts that succeeded, else the first one. What is kept
    does not depend on the blocks.

    Attributes:
        distinct: number of designs that were taken in.
    """

    def __init__(self) -> None:
        self._seen = np.empty(0, dtype=np.uint64)
        self._failed_before = np.empty(0, dtype=np.uint64)
        self._good: Kept | None = None
        self._failed: Kept | None = None

    @property
    def distinct(self) -> int:
        """Number of designs that were taken in."""
        failed = self._failed_before
        return len(self._seen) + int(np.count_nonzero(~_among(failed, self._seen)))

    def unseen(self, words: Words) -> NDArray[np.int64]:
        """The first row of each design that did not succeed before, increasing, shape (n,)."""
        found, self._seen = _first(words, self._seen)
        return found

    def unseen_failed(self, words: Words) -> NDArray[np.int64]:
        """As :meth:`unseen`, of designs that failed."""
        found, self._failed_before = _first(words, self._failed_before)
        return found

    def add(self, kept: Kept) -> None:
        """Takes in designs that succeeded, each of which :meth:`unseen` has given."""
        pool = kept if self._good is None else _joined(self._good, kept)
        # Any of the best may be one of the others by the time that better ones are found.
        chosen = np.union1d(_best(pool), _sample(pool, MAX_BEST + MAX_OTHERS))
        self._good = pool.take(chosen)

    def add_failed(self, kept: Kept) -> None:
        """Takes in designs that failed, each of which :meth:`unseen_failed` has given."""
        pool = kept if self._failed is None else _joined(self._failed, kept)
        self._failed = pool.take(_sample(pool, 2 * MAX_OTHERS))

    def kept(self) -> Kept | None:
        """What is kept, ordered by success, score and design; ``None`` if nothing was added."""
        failed = self._failed
        if failed is not None:
            failed = failed.take(np.flatnonzero(~_among(failed.words, self._seen)))
        if self._good is None:
            return None if failed is None else failed.take(_sample(failed, MAX_OTHERS))
        best = np.zeros(len(self._good.words), dtype=np.bool_)
        best[_best(self._good)] = True
        others = self._good.take(np.flatnonzero(~best))
        if failed is not None:
            others = _joined(others, failed)
        others = others.take(_sample(others, MAX_OTHERS))
        found = _joined(self._good.take(np.flatnonzero(best)), others)
        return found.take(np.lexsort((found.words, found.scores[:, 0], found.status)))


def design_words(space: DesignSpace, codes: NDArray[np.int64]) -> Words:
    """A 64-bit number a design, equal for equal ones, in no order, shape (n,).

    Two different designs share one with a probability of about 2**-60 if the space has more
    designs than there are numbers, and never otherwise.
    """
    sizes = [parameter.size + 1 for parameter in space.parameters]
    words = np.zeros(len(codes), dtype=np.uint64)
    exact = space.largest_key < 1 << 64
    with np.errstate(over="ignore"):
        for position, size in enumerate(sizes):
            digit = (codes[:, position] + 1).astype(np.uint64)
            words = words * np.uint64(size) if exact else mixed(words ^ fingerprint(str(position)))
            words = words + digit
    return mixed(words)


def number_of_scores(objective: Objective) -> int:
    """Number of columns of :func:`scores`."""
    goals = len(objective.goals)
    return 1 + goals if goals > 1 else 1


def scores(outcomes: Outcomes) -> NDArray[np.float64]:
    """By what designs that succeeded are the best: by reward, then by each of several goals.

    Returns:
        Smaller is better, infeasible designs after all feasible ones, shape (n, n_ways).
    """
    columns = [1.0 - outcomes.reward]
    if outcomes.costs.shape[1] > 1:
        columns += list(np.where(outcomes.feasible[:, None], outcomes.costs, _INFEASIBLE).T)
    return np.stack(columns, axis=1)


def _first(words: Words, seen: Words) -> tuple[NDArray[np.int64], Words]:
    """The first row of each number that is not among sorted ones, and these with them."""
    new, rows = np.unique(words, return_index=True)
    there = _among(new, seen)
    new, rows = new[~there], rows[~there]
    return np.sort(rows), np.sort(np.concatenate([seen, new]), kind="stable")


def _among(words: Words, ordered: Words) -> NDArray[np.bool_]:
    """Which numbers are among sorted ones, shape (n,)."""
    if not len(ordered):
        return np.zeros(len(words), dtype=np.bool_)
    place = np.minimum(np.searchsorted(ordered, words), len(ordered) - 1)
    return np.asarray(ordered[place] == words)


def _best(kept: Kept) -> NDArray[np.int64]:
    """The best ones: each way of scoring gives an equal part."""
    ways = kept.scores.shape[1]
    parts = [_smallest(kept.scores[:, way], kept.words, MAX_BEST // ways) for way in range(ways)]
    return np.unique(np.concatenate(parts))


def _sample(kept: Kept, n: int) -> NDArray[np.int64]:
    return _smallest(kept.words, kept.words, n)


def _smallest(values: NDArray[np.generic], words: Words, n: int) -> NDArray[np.int64]:
    """The places of the n smallest values, of equal ones those with the smallest numbers."""
    places = np.arange(len(values), dtype=np.int64)
    if len(values) <= n:
        return places
    limit = np.partition(values, n - 1)[n - 1]
    places = places[values <= limit]
    order = np.lexsort((words[places], values[places]))[:n]
    return np.asarray(places[order])


def _joined(first: Kept, second: Kept) -> Kept:
    pairs: list[Any] = list(zip(first, second, strict=True))
    return Kept(*(np.concatenate(pair) for pair in pairs))
