"""What models learn of costs and limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from archgym.agents.common.arrays import Bools, Floats

_STEEPNESS = 100.0
_STEP = 0.1
"""By which a limit that is just kept lies away from it, as does one that is just broken."""
_MAX_NOISE = 4.0
_FAILED, _SOUND = 1.0, -0.5
"""Excess that stands for failing, and for not failing."""


def standardised(values: Floats) -> tuple[Floats, Floats]:
    """Columns with mean 0 and deviation 1, and the deviation they had (1 if all are equal)."""
    scale = values.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return (values - values.mean(axis=0)) / scale, scale


def noise_shares(cost: Floats, errors: Floats) -> Floats:
    """Variance of the noise in each cost, as a share of the variance of all costs, shape (n,).

    Args:
        cost: log ratios to the baseline, shape (n,).
        errors: their standard errors, 0 where they are not known, shape (n,).
    """
    scale = float(cost.var())
    return np.asarray(np.minimum(errors**2 / scale, _MAX_NOISE)) if scale > 0 else 0.0 * errors


def cost_forms(cost: Floats) -> dict[str, tuple[Floats, float]]:
    """Forms of the cost that may be learned, each with the log likelihood of its scale.

    They are the ratio to the baseline, its logarithm (the cost), and minus its reciprocal, all
    standardised: some metrics are closer to a sum of effects, others to a product, and where most
    designs are many times worse than the best, the reciprocal tells the good ones apart. These are
    the transformations of Box and Cox (An Analysis of Transformations, Journal of the Royal
    Statistical Society B, 1964) with the powers 1, 0 and -1.
    """
    above, below = cost - cost.max(), cost - cost.min()  # so that no exponential overflows
    raw = {
        "ratio": (np.exp(above), above),
        "cost": (cost, np.zeros_like(cost)),
        "reciprocal": (-np.exp(-below), -below),
    }
    forms = {}
    for name, (form, log_slope) in raw.items():
        target, scale = standardised(form)
        forms[name] = target, float((log_slope - np.log(scale)).sum())
    return forms


def distance_from_limits(excess: Floats) -> Floats:
    """How far designs are from keeping all limits, shape (n,); 0 where all are kept.

    It falls steeply close to a limit, so that one limit more that is kept counts for much.

    Args:
        excess: relative excess over each limit, negative where it is kept, shape (n, n_limits).
    """
    return np.asarray(np.log1p(_STEEPNESS * np.maximum(excess, 0.0)).sum(axis=1))


def limit_targets(excess: Floats, largest: float = 3.0) -> Floats:
    """Targets of a limit, negative where it is kept, smooth in its metric over decades.

    For a metric that is never negative and its upper limit it is the logarithm of their ratio, and
    a step at the limit: metrics with few values often meet it exactly.

    Args:
        excess: relative excess over the limit, negative where it is kept, shape (n,).
        largest: absolute value of a target.
    """
    beyond = np.log1p(np.maximum(excess, 0.0))
    if excess.min() > -1.0:
        within = np.log1p(np.minimum(excess, 0.0))
    else:  # a lower limit, far exceeded
        within = -np.log1p(np.maximum(-excess, 0.0))
    step = np.where(excess > 0, _STEP, -_STEP)
    return np.asarray(np.clip(beyond + within, -largest, largest) + step)


def broken_limits(
    excess: Floats, failed: Bools, largest: float = 3.0, expected: Sequence[int] = ()
) -> Iterator[tuple[int, Bools, Floats]]:
    """Index, designs and :func:`limit_targets` of each limit that was broken, and of failing.

    Args:
        excess: relative excess over each limit, negative where it is kept, shape (n, n_limits).
        failed: designs without metrics, which no limit learns from; failing has index -1.
        largest: as for the targets.
        expected: indices of limits that count as broken whether they were or not.
    """
    limits = [(index, ~failed, column[~failed]) for index, column in enumerate(excess.T)]
    failing = -1, np.ones_like(failed), np.where(failed, _FAILED, _SOUND)
    for index, seen, by in [*limits, failing]:
        if (by > 0).any() or index in expected:
            yield index, seen, limit_targets(by, largest)
