"""Random forests and gradient boosting: scikit-learn grows the trees, ours predict."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.proxy.models.base import (
    Array,
    Arrays,
    Features,
    Model,
    Options,
    checked,
    prefixed,
    under,
)
from archgym.proxy.models.traversal import Trees

_MANY = 2000
"""Designs above which trees may be larger."""
_A_THREAD = 50_000
"""Designs for each thread that grows trees: on fewer, threads of a busy machine wait for others."""


class Forest(Model):
    """A random forest (Breiman 2001); its spread is that between the trees."""

    kind = "forest"

    def __init__(self, trees: Trees) -> None:
        self._trees = trees

    @classmethod
    def fit(cls, x: Features, z: Array, seed: int, settings: Options) -> Forest:
        """Settings: ``trees`` (100), ``features`` (share of features a split sees, 0.5)."""
        from sklearn.ensemble import RandomForestRegressor

        grown = RandomForestRegressor(
            n_estimators=int(settings.get("trees", 100)),
            max_features=float(settings.get("features", 0.5)),
            min_samples_leaf=2 if len(x) > _MANY else 1,
            random_state=seed,
            n_jobs=1,
        ).fit(x, z if z.shape[1] > 1 else z[:, 0])
        trees = [
            {
                "feature": tree.feature,
                "threshold": _below(tree.threshold),
                "left": tree.children_left,
                "right": tree.children_right,
                "value": tree.value[:, :, 0],
            }
            for tree in (one.tree_ for one in grown.estimators_)
        ]
        return cls(Trees.join(trees))

    def predict(self, x: Features) -> tuple[Array, Array]:
        """Mean of the trees, and their standard deviation."""
        n = len(self._trees.arrays["roots"])
        mean = self._trees.sums(x) / n
        return mean, np.sqrt(np.maximum(self._trees.square_sums(x) / n - mean**2, 0.0))

    def arrays(self) -> Arrays:
        """The trees."""
        return self._trees.arrays

    @classmethod
    def of(cls, arrays: Arrays, n_features: int, n_targets: int) -> Forest:
        """The inverse of :meth:`arrays`."""
        return cls(Trees.of(arrays, n_features, n_targets))


class Boosting(Model):
    """Gradient boosting on histograms (Friedman 2001), an ensemble of trees for each target.

    It predicts no spread: its intervals are equally wide everywhere.
    """

    kind = "boosting"

    def __init__(self, start: Array, trees: list[Trees]) -> None:
        self._start, self._trees = start, trees

    @classmethod
    def fit(cls, x: Features, z: Array, seed: int, settings: Options) -> Boosting:
        """Settings: ``trees`` (300), ``rate`` (0.12), ``leaves`` (63); with few data 0.08, 31."""
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import ThreadpoolController

        start, trees = np.zeros(z.shape[1]), []
        many = len(x) > _MANY
        teams = ThreadpoolController().select(user_api="openmp")
        allowed = min((one["num_threads"] for one in teams.info()), default=1)
        for target in range(z.shape[1]):
            grower = HistGradientBoostingRegressor(
                max_iter=int(settings.get("trees", 300)),
                learning_rate=float(settings.get("rate", 0.12 if many else 0.08)),
                max_leaf_nodes=int(settings.get("leaves", 63 if many else 31)),
                min_samples_leaf=3 if many else 5,
                max_bins=64,
                early_stopping=False,
                random_state=seed,
            )
            with teams.limit(limits=max(1, min(allowed, len(x) // _A_THREAD))):
                grown = grower.fit(x, z[:, target])
            start[target] = float(np.ravel(grown._baseline_prediction)[0])
            trees.append(Trees.join([grown_nodes(one[0].nodes) for one in grown._predictors]))
        return cls(start, trees)

    def predict(self, x: Features) -> tuple[Array, Array]:
        """Sum of the trees of each target; the spread is 0."""
        columns = [trees.sums(x)[:, 0] for trees in self._trees]
        mean = np.stack(columns, axis=1) + self._start
        return mean, np.zeros_like(mean)

    def arrays(self) -> Arrays:
        """The trees of each target."""
        found: dict[str, NDArray[Any]] = {"start": self._start}
        for number, trees in enumerate(self._trees):
            found |= prefixed(f"{number}.", trees.arrays)
        return found

    @classmethod
    def of(cls, arrays: Arrays, n_features: int, n_targets: int) -> Boosting:
        """The inverse of :meth:`arrays`."""
        layout = {"start": (np.float64, "targets")}
        start = checked(arrays, layout, n_features, n_targets, "boosting")["start"]
        trees = [Trees.of(under(f"{t}.", arrays), n_features, 1) for t in range(n_targets)]
        return cls(start, trees)


def grown_nodes(nodes: NDArray[Any]) -> Arrays:
    """The nodes of a tree that scikit-learn grew, as :class:`Trees` takes them."""
    leaf = nodes["is_leaf"].astype(bool)
    return {
        "feature": np.where(leaf, -1, nodes["feature_idx"].astype(np.int64)),
        "threshold": _below(np.where(leaf, 0.0, nodes["num_threshold"])),
        "left": nodes["left"].astype(np.int64),
        "right": nodes["right"].astype(np.int64),
        "value": nodes["value"][:, None],
    }


def _below(threshold: Array) -> Features:
    """The largest float32 not above: float32 features then compare as with float64."""
    with np.errstate(over="ignore"):
        single = threshold.astype(np.float32)
    return np.where(single > threshold, np.nextafter(single, np.float32(-np.inf)), single)
