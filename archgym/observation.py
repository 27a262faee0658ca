"""What an agent sees of evaluated designs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.metrics import Metric
from archgym.space import BoxEncoding, Designs

__all__ = ["metric_scale", "observations"]


def observations(
    encoding: BoxEncoding,
    metrics: Sequence[Metric],
    baseline: Sequence[float],
    designs: Designs,
    values: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Observations of evaluated designs, float32 in [-1, 1], shape (n, width).

    The design's encoding, then each metric's ``(m - b) / (m + b)`` with b the baseline's value,
    a bounded function of the log ratio; the worst end where there is no metric.

    Args:
        encoding: of the design space as it is searched.
        metrics: of the environment.
        baseline: their values for the baseline design, shape (n_metrics,).
        designs: the designs.
        values: their metrics, NaN where there are none, shape (n, n_metrics).
    """
    seen = np.empty((len(values), len(encoding.free) + len(metrics)), dtype=np.float32)
    seen[:, : -len(metrics)] = encoding.encode(designs)
    for i, (base, metric) in enumerate(zip(baseline, metrics, strict=True)):
        column = values[:, i]
        with np.errstate(invalid="ignore"):  # NaN (no metric), and 0 / 0: equal
            ratio = (column - base) / metric_scale(column, base, metric.signed)
        ratio[column == base] = 0.0
        seen[:, i - len(metrics)] = np.where(np.isnan(column), metric.sign, ratio)
    return seen


def metric_scale(value: Any, base: float, signed: bool) -> Any:
    """What the difference of a metric to the baseline's is divided by, to lie in [-1, 1]."""
    return abs(value - base) + (abs(base) or 1.0) if signed else value + base
