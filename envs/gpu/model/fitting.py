"""Fitting the model of products to what was measured, and judging it on what it has not seen.

``python -m archgym.envs.gpu.model.fitting`` prints the coefficients and their agreement as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.gpu.model.device import Device, device_named
from archgym.envs.gpu.model.gemm import BOUNDS, Array, parts
from archgym.envs.gpu.model.measured import products

SAMPLE = 4000
"""Rows that a fit looks at."""


def fit(
    designs: Mapping[str, Array],
    sizes: Mapping[str, Array],
    times: Array,
    device: Device,
    seed: int = 0,
) -> dict[str, float]:
    """Coefficients with the least relative error, few large ones counting little.

    Args:
        designs: values by parameter, shape (n,) each.
        sizes: ``m``, ``n``, ``k``, shape (n,) each.
        times: what was measured, us, shape (n,).
        device: on which.
        seed: of the sample, if there are more than :data:`SAMPLE` rows.
    """
    from scipy.optimize import least_squares

    few = np.random.default_rng(seed).permutation(len(times))[:SAMPLE]
    some = {name: value[few] for name, value in designs.items()}
    some_sizes = {name: value[few] for name, value in sizes.items()}
    wanted = np.log(times[few])
    low, first, high = (np.log([bound[i] for bound in BOUNDS.values()]) for i in range(3))

    def residuals(logs: Array) -> Array:
        fitted = dict(zip(BOUNDS, np.exp(logs), strict=True))
        found = parts(some, some_sizes, "fp16", device, fitted)["time_us"]
        return np.asarray(np.log(found) - wanted)

    best = least_squares(
        residuals, first, bounds=(low, high), loss="soft_l1", f_scale=0.1, max_nfev=60
    )
    return {name: float(f"{v:.4g}") for name, v in zip(BOUNDS, np.exp(best.x), strict=True)}


def agreement(predicted: Array, times: Array) -> dict[str, float]:
    """R2 of the time and of its logarithm, and the median relative error."""

    def r2(found: Array, wanted: Array) -> float:
        return float(1 - ((found - wanted) ** 2).sum() / ((wanted - wanted.mean()) ** 2).sum())

    return {
        "r2": round(r2(predicted, times), 4),
        "r2_log": round(r2(np.log(predicted), np.log(times)), 4),
        "median_error": round(float(np.median(np.abs(predicted / times - 1))), 4),
    }


def judged() -> dict[str, Any]:
    """Coefficients of all rows; agreement on unseen designs, and on shapes left out in turn."""
    designs, sizes, times, names = products()
    shapes, device = np.array(names), device_named("h200")

    def part(rows: NDArray[np.bool_]) -> tuple[dict[str, Array], dict[str, Array], Array]:
        chosen = ({n: v[rows] for n, v in some.items()} for some in (designs, sizes))
        return (*chosen, times[rows])  # type: ignore[return-value]

    def of(rows: NDArray[np.bool_], fitted: Mapping[str, float]) -> Array:
        some, some_sizes, _ = part(rows)
        return parts(some, some_sizes, "fp16", device, fitted)["time_us"]

    unseen = np.random.default_rng(1).random(len(times)) < 0.25
    by_design = agreement(of(unseen, fit(*part(~unseen), device)), times[unseen])
    left_out, regret = np.empty(len(times)), {}
    for shape in dict.fromkeys(names):
        here = shapes == shape
        left_out[here] = of(here, fit(*part(~here), device))
        best = np.argsort(left_out[here])[:5]
        chosen = times[here][best]
        regret[shape] = [
            round(float(t / times[here].min() - 1), 3) for t in (chosen[0], chosen.min())
        ]
    return {
        "coefficients": fit(*part(np.ones(len(times), dtype=bool)), device),
        "unseen_designs": by_design,
        "unseen_shapes": agreement(left_out, times),
        "regret_of_best_and_of_best_of_five": regret,
    }


if __name__ == "__main__":
    json.dump(judged(), sys.stdout, indent=2)
    sys.stdout.write("\n")
