"""Rows as arrays for learning: features of designs, metrics as targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archgym.data.designs import design_codes, design_columns, design_fingerprints
from archgym.data.selection import Selection
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space import Designs, DesignSpace, FeatureEncoding

if TYPE_CHECKING:
    from archgym.data.torch_examples import ExampleDataset

__all__ = ["FEATURES", "Examples", "Featuriser", "read_examples"]

FEATURES = ("scaled", "values")


@dataclass(frozen=True, eq=False)
class Examples:
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

    def torch(self) -> ExampleDataset:
        """The same as a ``torch.utils.data.Dataset`` of pairs (features, targets), float32."""
        from archgym.data.torch_examples import ExampleDataset

        return ExampleDataset(self)


class Featuriser:
    """Numbers for designs.

    Args:
        space: the design space.
        form: ``scaled``: one-hot for unordered values, [0, 1] for ordered ones, and whether a
            parameter with a condition is active (:class:`archgym.space.FeatureEncoding`);
            ``values``: numbers in their units, codes for what is no number, NaN where inactive.

    Attributes:
        names: name of each column.
        units: unit of each column.

    Raises:
        UnknownNameError: for another form.
    """

    def __init__(self, space: DesignSpace, form: str = "scaled") -> None:
        if form not in FEATURES:
            raise UnknownNameError("form of features", form, FEATURES)
        self._space = space
        self._encoding = FeatureEncoding(space) if form == "scaled" else None
        self.names = space.names if self._encoding is None else tuple(self._encoding.feature_names)
        self.units = tuple(
            space[name].unit if self._encoding is None else "" for name in self.names
        )

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


def read_examples(
    selection: Selection,
    targets: Sequence[str] | None = None,
    *,
    features: str = "scaled",
    distinct: bool = True,
    dtype: Any = np.float64,
) -> Examples:
    """Features and targets of the rows with status ``ok``.

    Args:
        selection: the rows.
        targets: names of metrics; by default those that have a value in some row.
        features: form of the features, see :class:`Featuriser`.
        distinct: take only the first row of a design under the same conditions.
        dtype: of both arrays.

    Raises:
        UnknownNameError: if there is no such metric or form.
        InvalidValueError: if no row is left.
    """
    chosen = selection.where("status == ok")
    if distinct:
        chosen = chosen.distinct()
    if not len(chosen):
        raise InvalidValueError(f"{selection.dataset.directory}: no row with status ok is left")
    space, metrics = chosen.dataset.sidecar.space, chosen.dataset.sidecar.metrics
    featuriser = Featuriser(space, features)
    names = target_names(chosen, targets)
    made = _Arrays(len(chosen), len(featuriser.names), len(names), dtype)
    workloads: dict[str, int] = {}
    for part in _parts(chosen, names, featuriser):
        made.append(*part, workloads)
    units = {metric.name: metric.unit for metric in metrics}
    empty = np.asarray(np.isnan(made.targets).all(axis=0))
    given = np.ones(len(names), bool) if targets else ~empty
    names = [name for name, there in zip(names, given.tolist(), strict=True) if there]
    return Examples(
        features=made.features,
        feature_names=featuriser.names,
        feature_units=featuriser.units,
        targets=made.targets if given.all() else made.targets[:, given],
        target_names=tuple(names),
        target_units=tuple(units[name] for name in names),
        workloads=tuple(workloads),
        workload=made.workload,
        groups=made.groups,
        rows=made.rows,
    )


def target_names(selection: Selection, targets: Sequence[str] | None) -> list[str]:
    """The metrics that are asked for; all by default.

    Raises:
        UnknownNameError: if there is no such metric.
    """
    known = [metric.name for metric in selection.dataset.sidecar.metrics]
    wanted = [targets] if isinstance(targets, str) else targets
    for name in wanted or ():
        if name not in known:
            raise UnknownNameError("metric", name, known, "targets")
    return list(wanted or known)


_Part = tuple[
    NDArray[np.int64], NDArray[Any], NDArray[Any], NDArray[np.uint64], Sequence[str], NDArray[Any]
]
"""Rows, features, targets, groups, names of workloads, and each row's index into these."""


def _parts(selection: Selection, names: Sequence[str], featuriser: Featuriser) -> Iterator[_Part]:
    space = selection.dataset.sidecar.space
    columns = [*design_columns(space), *(f"metric.{name}" for name in names), "workload"]
    for rows, table in selection.numbered(columns):
        features = featuriser(Designs(space, design_codes(space, table)))
        values = [table[f"metric.{name}"].to_numpy() for name in names]
        workload = table["workload"].combine_chunks()
        yield (
            rows,
            features,
            np.column_stack(values),
            design_fingerprints(space, table),
            workload.dictionary.to_pylist(),
            workload.indices.to_numpy(),
        )


class _Arrays:
    """Arrays that are filled a block at a time."""

    def __init__(self, n: int, n_features: int, n_targets: int, dtype: Any) -> None:
        self.features = np.empty((n, n_features), dtype=dtype)
        self.targets = np.empty((n, n_targets), dtype=dtype)
        self.workload = np.empty(n, dtype=np.int64)
        self.groups = np.empty(n, dtype=np.uint64)
        self.rows = np.empty(n, dtype=np.int64)
        self._at = 0

    def append(
        self,
        rows: NDArray[np.int64],
        features: NDArray[Any],
        targets: NDArray[Any],
        groups: NDArray[np.uint64],
        names: Sequence[str],
        index: NDArray[Any],
        workloads: dict[str, int],
    ) -> None:
        part = slice(self._at, self._at + len(rows))
        self.features[part], self.targets[part] = features, targets
        self.groups[part], self.rows[part] = groups, rows
        used = np.unique(index)
        numbers = np.zeros(len(names), dtype=np.int64)
        for place in used.tolist():
            numbers[place] = workloads.setdefault(names[place], len(workloads))
        self.workload[part] = numbers[index]
        self._at = part.stop
