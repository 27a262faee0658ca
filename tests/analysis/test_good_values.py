"""Values of good designs."""

from __future__ import annotations

import numpy as np

from archgym.analysis.good_values import GoodValue, good_values
from archgym.space import Boolean, Categorical, Integer


def test_values_are_counted_among_the_best_tenth_and_among_all() -> None:
    parameters = [Categorical("kind", ["a", "b"]), Boolean("held"), Integer("many", 0, 999)]
    codes = np.array([[i % 2, 0, i] for i in range(20)])
    codes[:2, 0] = 1, -1  # the best two: one has b, in the other the parameter is inactive
    codes, costs = np.concatenate([codes, codes[:9]]), np.concatenate([range(20), range(9)])
    found = good_values(parameters, codes, costs)
    assert found == [GoodValue("kind", "a", 0.0, 0.45), GoodValue("kind", "b", 0.5, 0.5)]
