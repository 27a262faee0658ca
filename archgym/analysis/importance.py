"""Which parameters matter for the objective, among the designs that were simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.space import Parameter

REPEATS = 5
"""Shuffles of each parameter's values."""
TREES = 60
"""Trees of the forest."""

_INACTIVE = -0.25
_MIN_DESIGNS = 60


@dataclass(frozen=True)
class Importance:
    """How much each parameter matters for the objective, among the simulated designs.

    Attributes:
        names: parameters that varied, the most important first.
        drop: by how much the model's share of explained variance falls when the parameter's values
            are shuffled, shape (n,).
        spread: standard deviation over shuffles, shape (n,).
        explained: share of the variance of designs held out that the model explains (R2).
        designs: number of designs to which the model was fitted and on which it was tested.
    """

    names: list[str]
    drop: NDArray[np.float64]
    spread: NDArray[np.float64]
    explained: float
    designs: int


def importance(
    parameters: Sequence[Parameter], codes: NDArray[np.int64], costs: NDArray[np.float64]
) -> Importance | None:
    """Permutation importance (Breiman, 2001) on designs held out from a forest of extra trees.

    ``None`` if there are too few designs.

    Args:
        parameters: of the design space.
        codes: level of each parameter, -1 where it is inactive, shape (n, n_parameters).
        costs: what the forest predicts: log ratio to the baseline, with several goals their
            weighted mean, shape (n,).
    """
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.inspection import permutation_importance

    varied = [i for i in range(codes.shape[1]) if len(codes) and np.ptp(codes[:, i])]
    distinct = np.unique(codes, axis=0, return_index=True)[1]
    codes, costs = codes[distinct], costs[distinct]
    if len(codes) < _MIN_DESIGNS or not varied or not np.ptp(costs):
        return None
    features = np.column_stack([_places(parameters[i], codes[:, i]) for i in varied])
    order = np.random.default_rng(0).permutation(len(codes))
    held, fitted = order[: len(order) // 3], order[len(order) // 3 :]
    # A few designs may be orders of magnitude worse than all others: they must not dominate.
    costs = np.minimum(costs, np.quantile(costs, 0.98))
    forest = ExtraTreesRegressor(TREES, min_samples_leaf=2, random_state=0, n_jobs=1)
    forest.fit(features[fitted], costs[fitted])
    found = permutation_importance(
        forest, features[held], costs[held], n_repeats=REPEATS, random_state=0, n_jobs=1
    )
    ranked = np.argsort(-found.importances_mean, kind="stable")
    return Importance(
        names=[parameters[varied[i]].name for i in ranked],
        drop=found.importances_mean[ranked],
        spread=found.importances_std[ranked],
        explained=float(forest.score(features[held], costs[held])),
        designs=len(codes),
    )


def _places(parameter: Parameter, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Places in the parameter's range, from 0 to 1; beside it where it is inactive."""
    places = np.asarray(parameter.unit_interval(np.maximum(codes, 0)), dtype=np.float64)
    return np.where(codes < 0, _INACTIVE, places)
