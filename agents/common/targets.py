"""What models learn of costs and limits."""

from __future__ import annotations

import numpy as np

from archgym.agents.common.arrays import Floats


def standardised(values: Floats) -> tuple[Floats, float]:
    """Values with mean 0 and deviation 1, and the deviation they had (1 if all are equal)."""
    scale = float(values.std()) or 1.0
    return (values - values.mean()) / scale, scale


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
