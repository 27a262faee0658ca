"""Fitting the models to what was measured on the H200.

``python -m archgym.envs.gpu.model.fitting`` writes ``fitted.json``, ``fitted.npz`` and
``compiled.npz`` into this folder; :mod:`archgym.envs.gpu.model.judging` says how good they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.envs.gpu.model import power
from archgym.envs.gpu.model.compiled import CODE_PARAMETERS, REFUSED, VARIANTS, variants
from archgym.envs.gpu.model.device import Device, device_named
from archgym.envs.gpu.model.measured import Rows, measured, measured_shapes, rows_of
from archgym.envs.gpu.model.prediction import (
    MECHANISMS,
    Correction,
    KernelModel,
    activities,
)
from archgym.envs.gpu.model.terms import Array, Bounds
from archgym.envs.gpu.parameters import KERNELS, PARAMETERS
from archgym.proxy.models.traversal import Trees
from archgym.proxy.models.trees import grown_nodes

SAMPLE: Final = 4000
"""Rows that a fit of the coefficients looks at."""
MEMBERS: Final = 2
"""Of an ensemble."""


class Growth(NamedTuple):
    """How trees grow: their number, learning rate, leaves, least rows of a leaf, and so on."""

    trees: int
    rate: float
    leaves: int
    least: int
    shrinkage: float
    features: float


MANY: Final = Growth(400, 0.08, 64, 3, 1.0, 0.4)
FEW: Final = Growth(300, 0.08, 24, 2, 0.3, 0.4)
NOISY: Final = Growth(200, 0.06, 12, 5, 5.0, 0.25)
"""For tens of thousands of times, for a thousand of them, and for powers."""
_FEW_ROWS: Final = 3000


def fit(rows: Rows, kernel: str, device: Device, seed: int = 0) -> KernelModel:
    """The model of a kernel.

    Args:
        rows: what was measured.
        kernel: of which.
        device: on which.
        seed: of samples and trees.
    """
    coefficients = fit_coefficients(rows, kernel, device, seed)
    powers: dict[str, float] = {}
    mechanism = MECHANISMS[kernel]
    found = mechanism.terms(rows.designs, rows.sizes, device, rows.compiled, coefficients)
    features = mechanism.features(rows.designs, rows.sizes, found, rows.compiled)
    wanted = np.log(rows.time_us / found["time_us"])
    growth = FEW if len(wanted) < _FEW_ROWS else MANY
    corrections = {"time": grow(features, wanted, _weights(rows), growth, seed)}
    known = np.flatnonzero(np.isfinite(rows.power) & (rows.power > 0))
    if len(known):
        predicted = found["time_us"] * np.exp(corrections["time"](features))
        activity = activities(found, features, predicted, device)[known]
        few = rows[known]
        # With the time that was predicted: it is what a prediction has.
        busy = np.log(few.busy_us / predicted[known])
        corrections["busy"] = grow(activity, busy, few.power_weight, NOISY, seed)
        busy_us = predicted[known] * np.exp(corrections["busy"](activity))
        of_few = {name: values[known] for name, values in found.items()}
        parts = power.rates(of_few, few.sizes, busy_us, device)
        powers = fit_powers(parts, few, device)
        left = np.log(few.power / power.power_w(parts, few.sizes, device, powers))
        corrections["power"] = grow(activity, left, few.power_weight, NOISY, seed)
    return KernelModel(kernel, coefficients, powers, corrections)


def fit_powers(parts: Mapping[str, Array], rows: Rows, device: Device) -> dict[str, float]:
    """Power of each part of the GPU with the least relative error.

    Args:
        parts: share of the time that each is busy, shape (n,) each.
        rows: whose power was measured, n of them.
        device: on which.
    """

    def residuals(fitted: Mapping[str, float]) -> Array:
        error = np.log(power.power_w(parts, rows.sizes, device, fitted) / rows.power)
        return np.asarray(error * np.sqrt(rows.power_weight))

    return _least(power.BOUNDS, residuals)


def fit_coefficients(rows: Rows, kernel: str, device: Device, seed: int = 0) -> dict[str, float]:
    """Coefficients of the terms with the least relative error, few large ones counting little."""
    some = rows[np.random.default_rng(seed).permutation(len(rows.names))[:SAMPLE]]
    mechanism, wanted = MECHANISMS[kernel], np.log(some.time_us)

    def residuals(fitted: Mapping[str, float]) -> Array:
        found = mechanism.terms(some.designs, some.sizes, device, some.compiled, fitted)
        return np.asarray(np.log(found["time_us"]) - wanted)

    return _least(mechanism.bounds, residuals)


def _least(bounds: Bounds, residuals: Callable[[Mapping[str, float]], Array]) -> dict[str, float]:
    """Coefficients within bounds with the least residuals, few large ones counting little."""
    from scipy.optimize import least_squares

    low, first, high = (np.log([bound[i] for bound in bounds.values()]) for i in range(3))
    best = least_squares(
        lambda logs: residuals(dict(zip(bounds, np.exp(logs), strict=True))),
        first,
        bounds=(low, high),
        loss="soft_l1",
        f_scale=0.1,
        max_nfev=60,
    )
    return {name: float(f"{v:.4g}") for name, v in zip(bounds, np.exp(best.x), strict=True)}


def grow(
    features: Array, wanted: Array, weights: Array | None, growth: Growth, seed: int = 0
) -> Correction:
    """An ensemble of boosted trees.

    Args:
        features: shape (n, n_features).
        wanted: logarithm of the factor, shape (n,).
        weights: of the rows, shape (n,).
        growth: how its trees grow.
        seed: of the first member.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    trees, starts = [], []
    for member in range(MEMBERS):
        grower = HistGradientBoostingRegressor(
            max_iter=growth.trees,
            learning_rate=growth.rate,
            max_leaf_nodes=growth.leaves,
            min_samples_leaf=growth.least,
            l2_regularization=growth.shrinkage,
            max_features=growth.features,
            early_stopping=False,
            random_state=seed + member,
        )
        with threadpool_limits(1, "openmp"):
            grown = grower.fit(features.astype(np.float32), wanted, weights)
        starts.append(float(np.ravel(grown._baseline_prediction)[0]))
        trees += [grown_nodes(one[0].nodes) for one in grown._predictors]
    return Correction(Trees.join(trees), float(np.mean(starts)), MEMBERS, features.shape[1])


def _weights(rows: Rows) -> Array:
    """Fast designs of a shape count more: a search wants to know them."""
    times = rows.time_us
    best = {name: times[rows.names == name].min() for name in np.unique(rows.names)}
    return np.sqrt(np.array([best[name] for name in rows.names]) / times)


def compiled_tables() -> dict[str, NDArray[np.int32]]:
    """Registers, spills and shared memory by variant and design, as the measurements noted them.

    What was not compiled takes the values of the other variant.
    """
    found = {}
    for kernel, names in CODE_PARAMETERS.items():
        sizes = [len(PARAMETERS[kernel][name]) for name in names]
        table = np.full((VARIANTS[kernel], *sizes, 3), -2, dtype=np.int32)
        for shape in measured_shapes(held_out=False):
            if shape.kernel != kernel:
                continue
            every = tuple(PARAMETERS[kernel])
            for values, row in rows_of(shape).items():
                design = dict(zip(every, values, strict=True))
                as_array = {name: np.array([value]) for name, value in design.items()}
                places = [PARAMETERS[kernel][name].index(design[name]) for name in names]
                known = [row[name] for name in ("registers", "spills", "shared_bytes")]
                if row["registers"] is None:
                    known = [255, 0, REFUSED]
                table[(int(variants(shape, as_array)[0]), *places)] = known
        for variant in range(VARIANTS[kernel]):
            missing = table[variant, ..., 0] == -2
            table[variant][missing] = table[variant ^ 1][missing]
        table[table == -2] = 0
        found[kernel] = table
    return found


def main() -> None:
    """The command."""
    device, folder = device_named("h200"), Path(__file__).parent
    arrays: dict[str, NDArray[Any]] = {}
    noted: dict[str, Any] = {"device": device.name, "kernels": {}}
    for kernel in KERNELS:
        model = fit(measured(kernel, device), kernel, device)
        noted["kernels"][kernel] = {
            "coefficients": model.coefficients,
            "powers": model.powers,
            "features": {name: one.n_features for name, one in model.corrections.items()},
        }
        for name, correction in model.corrections.items():
            arrays |= {f"{kernel}.{name}.{n}": v for n, v in correction.arrays().items()}
    np.savez_compressed(folder / "fitted.npz", **arrays)  # type: ignore[arg-type]
    np.savez_compressed(folder / "compiled.npz", **compiled_tables())  # type: ignore[arg-type]
    (folder / "fitted.json").write_text(json.dumps(noted, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
