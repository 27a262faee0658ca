"""TabuRegions: founded where a search is stuck, left alone from then on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.agents.gp.tabu import TabuRegions

Codes = NDArray[np.int64]


def alike(codes: Codes, centres: Codes) -> NDArray[np.float64]:
    """A half for each parameter that differs."""
    return np.asarray(0.5 ** (codes[:, None] != centres[None]).sum(axis=2))


CODES = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1], [2, 2, 2]], dtype=np.int64)
COSTS = np.array([1.0, 2.0, 3.0, 4.0, 5.0])


def test_a_niche_is_founded_around_the_best_once_patience_is_over() -> None:
    niches = TabuRegions(alike, correlation=0.3, patience=3)
    for _ in range(3):
        assert niches.settle(CODES, COSTS).all()
    assert niches.settle(CODES, COSTS).tolist() == [False, False, True, True, True]
    assert len(niches) == 1
    for _ in range(2):
        niches.settle(CODES, COSTS)
    assert len(niches) == 1
    # The best of those outside, (0, 1, 1), is next; (1, 1, 1) differs from it in one parameter.
    assert niches.settle(CODES, COSTS).tolist() == [False, False, False, False, True]
    assert niches.outside(np.array([[0, 2, 2], [0, 0, 2]])).tolist() == [True, False]


def test_a_better_design_outside_starts_patience_anew() -> None:
    niches = TabuRegions(alike, correlation=0.3, patience=2)
    for n in range(1, 6):
        assert niches.settle(CODES[:n], -COSTS[:n]).all()
    assert len(niches) == 0


def test_without_patience_there_are_none() -> None:
    niches = TabuRegions(alike, correlation=0.3, patience=0)
    assert all(niches.settle(CODES, COSTS).all() for _ in range(50))


def test_all_designs_in_niches_is_no_error() -> None:
    niches = TabuRegions(alike, correlation=0.01, patience=1)
    for _ in range(9):
        free = niches.settle(CODES, COSTS)
    assert not free.any()
    assert len(niches) == 1


def test_the_oldest_of_very_many_niches_is_open_again() -> None:
    codes = np.arange(100, dtype=np.int64)[:, None]
    niches = TabuRegions(alike, correlation=0.6, patience=1)
    for _ in range(200):
        free = niches.settle(codes, codes[:, 0].astype(float))
        if len(niches) == 64:
            break
    assert not free[:64].any()
    free = niches.settle(codes, codes[:, 0].astype(float))
    assert len(niches) == 64
    assert free.nonzero()[0].tolist() == [0, *range(65, 100)]
