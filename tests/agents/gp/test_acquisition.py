"""What a search with Gaussian processes hopes of designs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from archgym.agents.gp.acquisition import expected_improvement


def hoped(mean: float, deviation: float, best: float = 0.0) -> float:
    hope = expected_improvement(best)
    return float(hope(np.array([[mean]]), np.array([[deviation]]))[0])


@pytest.mark.parametrize("mean", [-3.0, -0.5, 0.0, 0.4, 2.0, 5.0])
@pytest.mark.parametrize("deviation", [0.2, 1.0, 3.0])
def test_expected_improvement_is_the_integral_of_what_is_gained(
    mean: float, deviation: float
) -> None:
    best = 0.3
    gained, _ = quad(
        lambda y: (best - y) * norm.pdf(y, mean, deviation),
        best - 14 * deviation - abs(best - mean),
        best,
        epsabs=0,
        limit=400,
    )
    assert hoped(mean, deviation, best) == pytest.approx(math.log(gained), abs=1e-6)


def test_expected_improvement_orders_designs_far_above_the_best_and_certain_ones() -> None:
    scores = [hoped(mean, 1.0) for mean in (-1e4, -1.0, -1e-9, 0.0, 1e-9, 1.0, 40.0, 1e4)]
    assert np.isfinite(scores).all()
    assert (np.diff(scores) <= 0).all()
    assert scores[-2] < scores[-3]
    assert hoped(-2.0, 0.0) == pytest.approx(math.log(2.0))
    assert np.isfinite(hoped(2.0, 0.0))
