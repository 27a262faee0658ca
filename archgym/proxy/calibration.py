"""Calibrated prediction intervals: conformal scaling of the spread that a model predicts.

Split conformal prediction with normalised residuals (Lei, G'Sell, Rinaldo, Tibshirani and
Wasserman, "Distribution-Free Predictive Inference for Regression", JASA 113, 2018, sections 2.2
and 5.2): the residuals of designs that the model did not see, divided by its spread there, give the
factor by which the spread of a new design is to be multiplied. With designs drawn alike the
interval holds the true value with the chance that was asked for, whatever model it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from archgym.errors import InvalidValueError
from archgym.proxy.models.base import Array

_FLOOR = 0.3
"""Share of the typical residual that is added to every spread, so that none is zero."""
_LEVELS = tuple(round(0.5 + 0.01 * i, 2) for i in range(50))
"""Coverages for which factors are kept."""


@dataclass(frozen=True)
class Calibration:
    """Factors that turn a model's spread into an interval.

    Attributes:
        floor: added to the spread of each target, in quadrature, shape (n_targets,).
        factors: shape (n_levels, n_targets), for coverages from 0.50 to 0.99.
        samples: residuals from which they come.
    """

    floor: Array
    factors: Array
    samples: int

    @staticmethod
    def of(residuals: Array, spread: Array) -> Calibration:
        """The calibration from designs that the model had not seen.

        Args:
            residuals: truth less prediction, as the model learns it, shape (n, n_targets).
            spread: the model's own, shape (n, n_targets).
        """
        n = len(residuals)
        size = np.abs(residuals)
        typical = np.sqrt(np.mean(np.minimum(size, np.quantile(size, 0.99, axis=0)) ** 2, axis=0))
        floor = np.maximum(_FLOOR * typical, 1e-12)
        scores = np.sort(size / np.hypot(spread, floor), axis=0)
        # The rank that makes the coverage exact for a finite number of residuals.
        ranks = [min(n, math.ceil(level * (n + 1))) - 1 for level in _LEVELS]
        return Calibration(floor, scores[ranks], n)

    def half_width(self, spread: Array, coverage: float) -> Array:
        """Half the width of the interval, as the model learns it, shape (n, n_targets).

        Raises:
            InvalidValueError: if the coverage is not between 0.5 and 0.99.
        """
        if not _LEVELS[0] <= coverage <= _LEVELS[-1]:
            raise InvalidValueError(
                f"coverage must be between {_LEVELS[0]} and {_LEVELS[-1]}, not {coverage!r}"
            )
        level = math.ceil(round((coverage - _LEVELS[0]) * 100, 6))
        return np.asarray(np.hypot(spread, self.floor) * self.factors[level])

    def to_json(self) -> dict[str, Any]:
        """Plain values; the inverse of :meth:`from_json`."""
        arrays = {"floor": self.floor.tolist(), "factors": self.factors.tolist()}
        return {**arrays, "samples": self.samples}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Calibration:
        """The inverse of :meth:`to_json`."""
        return Calibration(
            np.array(data["floor"], dtype=np.float64),
            np.array(data["factors"], dtype=np.float64).reshape(len(_LEVELS), -1),
            int(data["samples"]),
        )
