"""Which parameters act together: the walk over decompositions, and the process that uses it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from archgym.agents.gp.additive import AdditiveProcess
from archgym.agents.gp.gaussian_process import GaussianProcess
from archgym.agents.gp.interactions import Interactions
from archgym.agents.gp.levels import Columns
from archgym.agents.gp.models import Models
from archgym.space import Categorical, DesignSpace

Array = np.ndarray[Any, Any]
COLUMNS = 8
GROUPS = ((0, 1, 2), (3, 4, 5), (1, 6))
"""Of the columns that act together in the landscapes here; column 7 is dead."""


def points(n: int, seed: int) -> Array:
    """Unordered columns of three levels."""
    return np.random.default_rng(seed).integers(0, 3, (n, COLUMNS)).astype(float)


def landscape(x: Array) -> Array:
    """A random table over each group."""
    rng, total = np.random.default_rng(5), np.zeros(len(x))
    for group in GROUPS:
        table = rng.normal(size=3 ** len(group))
        total += table[(x[:, list(group)] @ 3.0 ** np.arange(len(group))).astype(int)]
    return total


def alike(a: Array, b: Array) -> Array:
    return np.asarray(a.T[:, :, None] == b.T[:, None, :], dtype=np.float32)


def correlation(interactions: Interactions, alike: Array) -> Array:
    """The sum over the sets, by definition."""
    terms = interactions.terms()
    total = np.zeros(alike.shape[1:])
    for columns, weight in zip(terms.sets, terms.weights, strict=True):
        total += weight * alike[columns].prod(axis=0)
    return total


def walked(seed: int = 0, n: int = 160, calls: int = 12) -> Interactions:
    interactions = Interactions(COLUMNS, np.random.default_rng(seed))
    x = points(n, 1)
    for _ in range(calls):
        interactions.walk(alike(x, x), landscape(x))
    return interactions


def test_correlation_is_that_of_a_sum_of_components() -> None:
    interactions = walked(calls=3)
    rng = np.random.default_rng(2)
    some = rng.random((COLUMNS, 7, 5), dtype=np.float32)
    found = correlation(interactions, some)
    assert found.shape == (7, 5)
    assert ((found > 0) & (found < 1)).all()
    assert correlation(interactions, np.ones_like(some)) == pytest.approx(np.ones((7, 5)))
    assert correlation(interactions, np.zeros_like(some)) == pytest.approx(np.zeros((7, 5)))
    # No set has more than five members, so the interaction of all eight columns is nothing: the
    # alternating sum over the corners of the cube is zero; that along one edge is not.
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=COLUMNS)), dtype=np.float32)
    values = correlation(interactions, corners.T[:, :, None])[:, 0]
    sign = (-1.0) ** corners.sum(axis=1)
    assert float(sign @ values) == pytest.approx(0.0, abs=1e-4)
    assert float((sign * (corners[:, 1:] == 1).all(axis=1)) @ values) > 0


def test_compiled_sum_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    ordered = np.array([True, False, False, True, False, False, True, False])
    columns = Columns(ordered)
    a, b = (np.where(ordered, rng.random((n, COLUMNS)), points(n, n)) for n in (9, 6))
    interactions = walked(calls=3)
    model = AdditiveProcess(columns, None, interactions)
    model.additive = True
    near = model.alike(a, b).astype(float)
    assert model.correlation(a, b) == pytest.approx(correlation(interactions, near), abs=1e-6)
    model.additive = False
    factors = 1.0 - model.sensitivity[:, None, None] * (1.0 - near)
    assert model.correlation(a, b) == pytest.approx(factors.prod(axis=0), abs=1e-6)
    assert model.correlation(a, b[:0]).shape == (9, 0)


def test_it_learns_which_columns_act_together() -> None:
    interactions = walked()
    one = np.ones((COLUMNS, 1, 1), dtype=np.float32)

    def share(*columns: int) -> float:
        """Of the signal that depends on all of the columns, by inclusion and exclusion."""
        total = 0.0
        for size in range(len(columns) + 1):
            for off in itertools.combinations(columns, size):
                some = one.copy()
                some[list(off)] = 0
                total += (-1) ** size * float(correlation(interactions, some)[0, 0])
        return total

    assert min(share(0, 1), share(1, 2), share(3, 4), share(3, 5), share(1, 6)) > 0.15
    assert max(share(0, 3), share(2, 5), share(4, 6), share(0, 6)) < 0.1
    assert share(7) < 0.1


def test_the_same_seed_walks_the_same_way() -> None:
    some = np.random.default_rng(3).random((COLUMNS, 20, 20), dtype=np.float32)
    first, second, other = (correlation(walked(seed, calls=2), some) for seed in (4, 4, 6))
    assert (first == second).all()
    assert (first != other).any()


def test_a_sum_of_components_is_predicted_better_than_by_the_product() -> None:
    x, test = points(120, 1), points(400, 2)
    unordered = Columns(np.zeros(COLUMNS, dtype=bool), np.full(COLUMNS, 3))
    interactions = Interactions(COLUMNS, np.random.default_rng(0))
    additive = AdditiveProcess(unordered, None, interactions)
    for _ in range(12):
        additive.tune(x, landscape(x))
    assert additive.additive
    errors = []
    for model in (additive, GaussianProcess(unordered)):
        model.tune(x, landscape(x))
        model.fit(x, landscape(x))
        errors.append(float(np.std(model.predict(test)[0] - landscape(test))))
    assert errors[0] < 0.75 * errors[1]


def test_a_product_stays_a_product() -> None:
    x, test = points(120, 1), points(200, 2)

    def joint(x: Array) -> Array:
        return np.asarray(np.prod(1.0 + 0.8 * (x == 1), axis=1))

    unordered = Columns(np.zeros(COLUMNS, dtype=bool), np.full(COLUMNS, 3))
    model = AdditiveProcess(unordered, None, Interactions(COLUMNS, np.random.default_rng(0)))
    for _ in range(3):
        model.tune(x, joint(x))
    assert not model.additive
    model.fit(x, joint(x))
    assert np.corrcoef(model.predict(test)[0], joint(test))[0, 1] > 0.9


def test_equal_rows_and_equal_targets_are_survived() -> None:
    x = np.repeat(points(4, 0), 5, axis=0)
    unordered = Columns(np.zeros(COLUMNS, dtype=bool), np.full(COLUMNS, 3))
    model = AdditiveProcess(unordered, None, Interactions(COLUMNS, np.random.default_rng(0)))
    model.tune(x, np.zeros(20))
    model.fit(x, np.zeros(20))
    mean, deviation = model.predict(points(300, 1))
    assert mean.shape == deviation.shape == (300,)
    assert np.abs(mean).max() < 1e-9
    assert np.isfinite(deviation).all()


def test_few_parameters_are_left_to_the_product() -> None:
    def kinds(n: int) -> set[type]:
        space = DesignSpace([Categorical(f"p{i}", ["a", "b"]) for i in range(n)])
        models = Models(space, 2, 3, True, np.random.default_rng(0))
        return {type(model) for goal in models.goals for model in goal}

    assert kinds(5) == {GaussianProcess}
    assert kinds(6) == {AdditiveProcess}
    assert kinds(80) == {GaussianProcess}
