"""The workloads that a proxy knows: their features, and designs that were simulated on all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.proxy.models.base import Array, Features

_MIN_MEASURED = 0.9
"""Share of the workloads on which a design must have been simulated to be compared."""
_FAR = 6.0
"""Standard deviations beyond which a feature counts no further."""


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """Features of workloads as numbers around 0 with standard deviation 1.

    Attributes:
        names: features that all known workloads have and in which they differ.
        floors: least positive value that counts where a feature counts by its logarithm; 0 where
            it counts as it is, shape (n_names,).
        centre: mean, shape (n_names,).
        spread: standard deviation, shape (n_names,).
    """

    names: tuple[str, ...]
    floors: Array
    centre: Array
    spread: Array

    @staticmethod
    def of(described: Sequence[Mapping[str, float]]) -> FeatureScale:
        """The scale of some workloads.

        Positive features that vary over more than a decade count by their logarithm.
        """
        names, floors = [], []
        for name in described[0]:
            if any(name not in one for one in described):
                continue
            values = np.array([float(one[name]) for one in described])
            if not np.isfinite(values).all() or (values == values[0]).all():
                continue
            names.append(name)
            wide = values.min() > 0 and values.max() > 10 * values.min()
            floors.append(float(values.min()) if wide else 0.0)
        unit = np.ones(len(names))
        bare = FeatureScale(tuple(names), np.array(floors), 0 * unit, unit)
        table = np.stack([bare.numbers(one) for one in described])
        spread = table.std(axis=0)
        spread[spread == 0] = 1.0
        return FeatureScale(bare.names, bare.floors, table.mean(axis=0), spread)

    def numbers(self, described: Mapping[str, float]) -> Array:
        """A workload's features, shape (n_names,).

        Raises:
            InvalidValueError: if one is missing.
        """
        missing = [name for name in self.names if name not in described]
        if missing:
            raise InvalidValueError(
                f"the workload lacks feature {missing[0]!r}, which the proxy was trained with"
            )
        values = np.array([float(described[name]) for name in self.names])
        by_log = self.floors > 0
        values[by_log] = np.log(np.maximum(values[by_log], 0.1 * self.floors[by_log]))
        scaled = (values - self.centre) / self.spread
        return np.asarray(np.clip(scaled, -_FAR, _FAR) if self.centre.any() else scaled)

    def to_json(self) -> dict[str, Any]:
        """Plain values; the inverse of :meth:`from_json`."""
        arrays = {name: getattr(self, name).tolist() for name in ("floors", "centre", "spread")}
        return {"names": list(self.names), **arrays}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> FeatureScale:
        """The inverse of :meth:`to_json`.

        Raises:
            ValueError: if the values do not fit each other.
        """
        names = tuple(str(name) for name in data["names"])
        arrays = [np.array(data[key], dtype=np.float64) for key in ("floors", "centre", "spread")]
        if any(one.shape != (len(names),) or not np.isfinite(one).all() for one in arrays):
            raise ValueError("the scale of workload features does not fit their names")
        return FeatureScale(names, *arrays)


@dataclass(frozen=True, eq=False)
class KnownWorkloads:
    """The workloads that a proxy was trained on, side by side.

    Attributes:
        scale: of their features, those of the environment and ``baseline METRIC`` (metrics of the
            baseline design).
        values: scaled features, shape (n_workloads, n_features).
        codes: designs that were simulated on (nearly) all workloads, shape (n, n_parameters).
        metrics: of those designs, NaN where there is none, shape (n_workloads, n, n_metrics).
    """

    scale: FeatureScale
    values: Features
    codes: NDArray[np.int64]
    metrics: Array

    @staticmethod
    def of(
        described: Sequence[Mapping[str, float]],
        workload: NDArray[np.int64],
        codes: NDArray[np.int64],
        targets: Array,
        groups: NDArray[np.uint64],
    ) -> KnownWorkloads:
        """From the rows of training data.

        Args:
            described: features of each workload.
            workload: of each row, shape (n_rows,).
            codes: of each row's design, shape (n_rows, n_parameters).
            targets: metrics of each row, shape (n_rows, n_metrics).
            groups: equal for equal designs, shape (n_rows,).
        """
        scale = FeatureScale.of(described)
        _, first, place, counts = np.unique(
            groups, return_index=True, return_inverse=True, return_counts=True
        )
        shared = counts >= max(2, _MIN_MEASURED * len(described))
        number = np.cumsum(shared) - 1
        table = np.full((len(described), int(shared.sum()), targets.shape[1]), np.nan)
        rows = np.flatnonzero(shared[place])
        table[workload[rows], number[place[rows]]] = targets[rows]
        values = np.stack([scale.numbers(one) for one in described]).astype(np.float32)
        return KnownWorkloads(scale, values, codes[first[shared]], table)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, workloads: Sequence[int], designs: NDArray[Any] | slice) -> KnownWorkloads:
        """Some of the workloads and of the designs."""
        chosen = list(workloads)
        return KnownWorkloads(
            *(self.scale, self.values[chosen]),
            *(self.codes[designs], self.metrics[chosen][:, designs]),
        )

    def in_order(self, names: Sequence[str], wanted: Sequence[str]) -> KnownWorkloads:
        """The same with other columns of metrics, NaN for those that there are not.

        Args:
            names: of the metrics.
            wanted: names of metrics, in another order.
        """
        metrics = np.full((*self.metrics.shape[:2], len(wanted)), np.nan)
        for column, name in enumerate(wanted):
            if name in names:
                metrics[:, :, column] = self.metrics[:, :, names.index(name)]
        return replace(self, metrics=metrics)


def described(features: Mapping[str, float], baseline: Mapping[str, float]) -> dict[str, float]:
    """What a model learns of a workload: its features, and metrics of the baseline design."""
    return {**features, **{f"baseline {name}": value for name, value in baseline.items()}}
