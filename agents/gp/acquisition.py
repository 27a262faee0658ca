"""What a model-based search hopes of designs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archgym.agents.common.arrays import Floats
from archgym.agents.gp.gaussian_process import GaussianProcess
from archgym.agents.gp.levels import coordinates
from archgym.agents.gp.tabu import TabuRegions
from archgym.space import Designs, DesignSpace

_TABU_SCORE, _CERTAIN_SCORE = -5e2, -1e3
"""Below all others: within a tabu region, and certain in advance."""
_SURE = 2.0
"""Deviations from its limit at which it counts as known whether a design keeps it."""


class Acquisition:
    """What is hoped of designs; larger is better.

    Args:
        space: the design space.
        model: of the cost.
        limits: of what has to be negative.
        certain: share of the signal's deviation below which a prediction counts as certain.
        tabu: regions to be left alone, if any.
        hope: of the cost, from mean and deviation.
    """

    def __init__(
        self,
        space: DesignSpace,
        model: GaussianProcess,
        limits: list[GaussianProcess],
        certain: float,
        tabu: TabuRegions | None,
        hope: Callable[[Floats, Floats], Floats],
    ) -> None:
        self._space, self._model, self._limits = space, model, limits
        self._certain, self._tabu, self._hope = certain, tabu, hope

    def __call__(self, designs: Designs) -> Floats:
        """Shape (n,)."""
        from scipy.special import log_ndtr

        x = coordinates(self._space, designs.codes)
        mean, deviation = self._model.predict(x)
        score = self._hope(mean, deviation)
        sure = deviation < self._certain * self._model.amplitude
        if self._tabu is not None:
            score[~self._tabu.outside(designs.codes)] += _TABU_SCORE
        for limit in self._limits:
            mean, deviation = limit.predict(x)
            sure &= np.abs(mean) > _SURE * deviation
            score += log_ndtr(-mean / deviation)
        score[sure] += _CERTAIN_SCORE
        return np.asarray(score)


def confidence_bound(kappa: float, mean: Floats, deviation: Floats) -> Floats:
    """Minus the lower confidence bound: ``kappa`` deviations below the mean."""
    return kappa * deviation - mean


def log_expected_improvement(best: float, mean: Floats, deviation: Floats) -> Floats:
    """Logarithm of the expected improvement on the least cost known, exact far below it too.

    Ament, Daulton, Eriksson, Balandat and Bakshy, Unexpected Improvements to Expected
    Improvement for Bayesian Optimization, NeurIPS 2023.
    """
    from scipy.special import erfcx

    z = (best - mean) / deviation
    log_density = -0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    near = z > -1.0
    ratio = np.sqrt(np.pi / 2.0) * erfcx(-np.where(near, 0.0, z) / np.sqrt(2.0))
    tail = log_density + np.log1p(np.where(near, 0.0, z) * ratio)
    zn = np.where(near, z, 0.0)
    density = np.exp(-0.5 * zn * zn) / np.sqrt(2.0 * np.pi)
    from scipy.special import ndtr

    body = np.log(density + zn * ndtr(zn))
    return np.log(deviation) + np.where(near, body, tail)
