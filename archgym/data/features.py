"""Designs as features for learning, and the arrays that hold examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.data.rows import Rows
from archgym.errors import UnknownNameError, check_choice
from archgym.space import Designs, DesignSpace, FeatureEncoding

FEATURES = ("scaled", "values")


@dataclass(frozen=True, eq=False)
class ExampleArrays:
    """Features and targets of the rows with status ``ok``.

    Attributes:
        features: shape (n, n_features).
        feature_names: name of each column, such as ``policy=open`` or ``ways``.
        feature_units: unit of each column; empty for one without.
        targets: metrics in their units, NaN where the simulator does not give one, shape
            (n, n_targets).
        target_names: name of each column.
        target_units: unit of each column; empty for one without.
        workloads: names of the workloads.
        workload: index into ``workloads``, shape (n,).
        groups: equal for rows with equal designs, for grouped cross-validation, shape (n,).
        rows: number of each row in the dataset, shape (n,).
    """

    features: NDArray[Any]
    feature_names: tuple[str, ...]
    feature_units: tuple[str, ...]
    targets: NDArray[Any]
    target_names: tuple[str, ...]
    target_units: tuple[str, ...]
    workloads: tuple[str, ...]
    workload: NDArray[np.int64]
    groups: NDArray[np.uint64]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.features)


class Featuriser:
    """Computes the features of designs.

    Args:
        space: the design space.
        form: ``scaled``: one-hot for unordered values, [0, 1] for ordered ones, and whether a
            parameter with a condition is active (:class:`archgym.space.FeatureEncoding`);
            ``values``: numbers in their units, level codes for values that are no numbers, NaN
            where a parameter is inactive.

    Attributes:
        names: name of each column.
        units: unit of each column.

    Raises:
        UnknownNameError: for another form.
    """

    def __init__(self, space: DesignSpace, form: str = "scaled") -> None:
        check_choice("form of features", form, FEATURES)
        self._space = space
        self._encoding = FeatureEncoding(space) if form == "scaled" else None
        self.names, self.units = space.names, tuple(one.unit for one in space.parameters)
        if self._encoding is not None:
            self.names = tuple(self._encoding.feature_names)
            self.units = ("",) * len(self.names)

    def __call__(self, designs: Designs) -> NDArray[np.float64]:
        """Features, shape (n_designs, n_features)."""
        if self._encoding is not None:
            return self._encoding.encode(designs)
        found = np.empty((len(designs), len(self.names)), order="F")
        for position, parameter in enumerate(self._space.parameters):
            codes = designs.codes[:, position]
            values = parameter.values(np.maximum(codes, 0))
            numbers = values if np.issubdtype(values.dtype, np.number) else codes
            found[:, position] = np.where(codes < 0, np.nan, numbers)
        return found


def target_names(rows: Rows, targets: Sequence[str] | None) -> list[str]:
    """The metrics that are asked for; all by default.

    Raises:
        UnknownNameError: if there is no such metric.
    """
    known = [metric.name for metric in rows.dataset.sidecar.metrics]
    wanted = [targets] if isinstance(targets, str) else targets
    for name in wanted or ():
        if name not in known:
            raise UnknownNameError("metric", name, known, "targets")
    return list(wanted or known)
