"""What a model-based search hopes of designs."""

from __future__ import annotations

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


def confidence_bound(
    space: DesignSpace,
    model: GaussianProcess,
    limits: list[GaussianProcess],
    kappa: float,
    certain: float,
    tabu: TabuRegions | None,
    designs: Designs,
) -> Floats:
    """What is hoped of designs, shape (n,); larger is better.

    Args:
        space: the design space.
        model: of the cost.
        limits: of what has to be negative.
        kappa: deviations below the mean that count.
        certain: share of the signal's deviation below which a prediction counts as certain.
        tabu: regions to be left alone, if any.
        designs: the designs.
    """
    from scipy.special import log_ndtr

    x = coordinates(space, designs.codes)
    mean, deviation = model.predict(x)
    score = kappa * deviation - mean
    sure = deviation < certain * model.amplitude
    if tabu is not None:
        score[~tabu.outside(designs.codes)] += _TABU_SCORE
    for limit in limits:
        mean, deviation = limit.predict(x)
        sure &= np.abs(mean) > _SURE * deviation
        score += log_ndtr(-mean / deviation)
    score[sure] += _CERTAIN_SCORE
    return np.asarray(score)
