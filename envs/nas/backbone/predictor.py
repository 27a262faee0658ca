"""A predictor of the latency of a whole network from the sum of its parts.

The sum of the parts misses what a network shares: weights and activations that a cache holds, the
order of kernels, the layout that one part leaves to the next. The predictor multiplies the sum by
exp(w . x), where x says which value each parameter has and which values each pair of parameters
has (1 where a network has them, else 0), and w is fitted to measured networks by least squares in
the logarithm. The fit is robust, as other programs on the same machine slow some measurements
down: weights of the networks by Cauchy's function, reweighted until they stand (Holland and
Welsch, Communications in Statistics A6, 1977, with their constant 2.385), and a penalty of 1 on
each number of w. What is stored is numbers alone.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.backbone.measured import part_times, sum_of_parts
from archgym.envs.nas.backbone.parts import IMAGENET, parts_of

__all__ = ["FITTED_FILE", "LatencyPredictor", "features_of", "fit", "shipped_predictor"]

FITTED_FILE: Final = "fitted.json"
_CAUCHY: Final = 2.385
_ROUNDS: Final = 30
_PENALTY: Final = 1.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LatencyPredictor:
    """Latency of any network of the space on one device.

    Attributes:
        parts: time of each part by its key, us.
        coefficients: w, a number for each feature.
    """

    parts: Mapping[str, float]
    coefficients: Floats

    def latency_us(self, architectures: Sequence[Mapping[str, Any]]) -> Floats:
        """Latency of some networks, us, shape (n_architectures,)."""
        if not len(architectures):
            return np.empty(0)
        found: Floats = _sums(self.parts, architectures) * np.exp(
            features_of(architectures) @ self.coefficients
        )
        return found


def features_of(architectures: Sequence[Mapping[str, Any]]) -> Floats:
    """The features of some networks, shape (n_architectures, n_features); the first one is 1.

    A parameter has a feature for each value but the first, a pair of parameters one for each pair
    of such values.
    """
    columns: list[Floats] = []
    for name, values in IMAGENET.values().items():
        own = [[float(each[name] == value) for value in values[1:]] for each in architectures]
        columns.append(np.array(own))
    count = len(architectures)
    pairs = [
        (left[:, :, None] * right[:, None, :]).reshape(count, -1)
        for left, right in itertools.combinations(columns, 2)
    ]
    return np.hstack([np.ones((count, 1)), *columns, *pairs])


def fit(
    parts: Mapping[str, float], architectures: Sequence[Mapping[str, Any]], times_us: Floats
) -> LatencyPredictor:
    """A predictor fitted to measured networks.

    Args:
        parts: time of each part by its key, us.
        architectures: that were measured.
        times_us: their latencies, us.
    """
    features = features_of(architectures)
    factors = np.log(times_us / _sums(parts, architectures))
    trust = np.ones(len(factors))
    for _ in range(_ROUNDS):
        left = features.T @ (trust[:, None] * features) + _PENALTY * np.eye(features.shape[1])
        coefficients = np.linalg.solve(left, features.T @ (trust * factors))
        apart = np.abs(factors - features @ coefficients)
        # The median of a normal distribution's absolute values is 0.6745 of its deviation.
        scale = max(_CAUCHY * float(np.median(apart)) / 0.6745, 1e-9)
        trust = 1.0 / (1.0 + (apart / scale) ** 2)
    return LatencyPredictor(dict(parts), coefficients)


def save(predictors: Mapping[str, LatencyPredictor], file: Path) -> None:
    """Writes the coefficients of predictors by device as JSON."""
    found = {
        device: [float(f"{value:.6g}") for value in one.coefficients]
        for device, one in predictors.items()
    }
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


@cache
def shipped_predictor(device: str) -> LatencyPredictor:
    """The predictor that ships for one of :data:`archgym.envs.nas.backbone.measured.DEVICES`."""
    file = resources.files("archgym.envs.nas.backbone").joinpath(FITTED_FILE)
    found = json.loads(file.read_text("utf-8"))[device]
    return LatencyPredictor(part_times(device), np.array(found))


def _sums(parts: Mapping[str, float], architectures: Sequence[Mapping[str, Any]]) -> Floats:
    return np.array([sum_of_parts(parts, parts_of(IMAGENET, each)) for each in architectures])
