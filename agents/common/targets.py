"""What models learn of costs and limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from archgym.agents.common.arrays import Bools, Floats


def standardised(values: Floats) -> tuple[Floats, Floats]:
    """Columns with mean 0 and deviation 1, and the deviation they had (1 if all are equal)."""
    scale = values.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return (values - values.mean(axis=0)) / scale, scale


def cost_forms(cost: Floats) -> dict[str, tuple[Floats, float]]:
    """Forms of the cost that may be learned, each with the log likelihood of its scale.

    They are the ratio to the baseline and its logarithm, the cost, both standardised: some metrics
    are closer to a sum of effects, others to a product.
    """
    slopes = {"ratio": cost - cost.max(), "cost": 0.0 * cost}
    forms = {}
    for name, form in (("ratio", np.exp(slopes["ratio"])), ("cost", cost)):
        target, scale = standardised(form)
        forms[name] = target, float((slopes[name] - np.log(scale)).sum())
    return forms


def limit_targets(excess: Floats, steepest: float = 3.0) -> Floats:
    """Targets of a limit: -0.5 where it is kept, above 0.5 and growing where it is broken.

    Args:
        excess: relative excess over the limit, shape (n,).
        steepest: by how much the targets of broken limits differ at most.
    """
    broken = 0.5 + np.minimum(np.log1p(4.0 * np.maximum(excess, 0.0)), steepest)
    return np.where(excess > 0, broken, -0.5)


def broken_limits(
    excess: Floats, failed: Bools, steepest: float = 3.0
) -> Iterator[tuple[int, Bools, Floats]]:
    """Index, designs and :func:`limit_targets` of each limit that was broken, and of failing.

    Args:
        excess: relative excess over each limit, shape (n, n_limits).
        failed: designs without metrics, which no limit learns from; failing has index -1.
        steepest: as for the targets.
    """
    limits = [(index, ~failed, column[~failed]) for index, column in enumerate(excess.T)]
    for index, seen, by in [*limits, (-1, np.ones_like(failed), failed.astype(np.float64))]:
        if (by > 0).any():
            yield index, seen, limit_targets(by, steepest)
