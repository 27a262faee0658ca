"""Observations: evaluated designs as arrays in [-1, 1], which agents see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from archgym.problem.metrics import Metric
from archgym.space import BoxEncoding, Designs, DesignSpace


def observation_space(
    space: DesignSpace, metrics: Sequence[Metric]
) -> gymnasium.Space[NDArray[np.float32]]:
    """Space of the observations, shape (width,); see :class:`Observer`.

    Args:
        space: the design space as it is searched.
        metrics: of the environment.
    """
    width = sum(len(space.parameters[position].axes) for position in space.free) + len(metrics)
    return gymnasium.spaces.Box(-1.0, 1.0, (width,), np.float32)


class Observer:
    """Observes evaluated designs of one environment.

    An observation is the design's encoding, then each metric's ``(m - b) / (m + b)`` with b the
    baseline's value, a bounded function of the log ratio; the worst end where there is no metric.

    Args:
        space: the design space as it is searched.
        metrics: of the environment.
        baseline: their values for the baseline design, shape (n_metrics,).
    """

    def __init__(
        self, space: DesignSpace, metrics: Sequence[Metric], baseline: Sequence[float]
    ) -> None:
        self._encoding = BoxEncoding(space)
        self._bases = list(zip(baseline, metrics, strict=True))

    def many(self, designs: Designs, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Observations of designs, float32 in [-1, 1], shape (n, width).

        Args:
            designs: the designs.
            values: their metrics, NaN where there are none, shape (n, n_metrics).
        """
        columns = [self._encoding.encode(designs)]
        for column, (base, metric) in zip(values.T, self._bases, strict=True):
            with np.errstate(invalid="ignore"):  # NaN (no metric), and 0 / 0: equal
                ratio = (column - base) / metric_scale(column, base, metric.signed)
            ratio[column == base] = 0.0
            columns.append(np.where(np.isnan(column), metric.sign, ratio)[:, None])
        return np.concatenate(columns, axis=1, dtype=np.float32)

    def one(self, codes: Sequence[int], metrics: Sequence[float]) -> NDArray[np.float32]:
        """As :meth:`many`, for one design's canonical codes."""
        seen = self._encoding.encode_one(codes)
        for value, (base, metric) in zip(metrics, self._bases, strict=True):
            if value == base:
                seen.append(0.0)
            elif value != value:  # NaN: there is no metric
                seen.append(metric.sign)
            else:
                seen.append((value - base) / metric_scale(value, base, metric.signed))
        return np.array(seen, dtype=np.float32)


def metric_scale(value: Any, base: float, signed: bool) -> Any:
    """Divisor of a metric's difference to the baseline, so that the quotient is in [-1, 1]."""
    return abs(value - base) + (abs(base) or 1.0) if signed else value + base
