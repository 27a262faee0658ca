"""Rows as arrays for learning: features of designs, metrics as targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archgym.data.designs import design_columns, design_fingerprints, read_designs
from archgym.data.features import ExampleArrays, Featuriser, target_names
from archgym.data.rows import Rows
from archgym.errors import InvalidValueError

if TYPE_CHECKING:
    from archgym.data.torch_examples import ExampleDataset


class Examples(ExampleArrays):
    """Examples for learning; the attributes are those of the class that it extends."""

    def torch(self) -> ExampleDataset:
        """The same as a ``torch.utils.data.Dataset`` of pairs (features, targets), float32."""
        from archgym.data.torch_examples import ExampleDataset

        return ExampleDataset(self)


def read_examples(
    rows: Rows,
    targets: Sequence[str] | None = None,
    *,
    features: str = "scaled",
    distinct: bool = True,
    dtype: Any = np.float64,
) -> Examples:
    """Features and targets of the rows with status ``ok``.

    Args:
        rows: the rows.
        targets: names of metrics; by default those that have a value in some row.
        features: form of the features, see :class:`~archgym.data.features.Featuriser`.
        distinct: take only the first row of a design under the same conditions.
        dtype: of both arrays.

    Raises:
        UnknownNameError: if there is no such metric or form.
        InvalidValueError: if no row is left.
    """
    chosen = rows.where("status == ok")
    if distinct:
        chosen = chosen.distinct()
    n = len(chosen)
    if not n:
        raise InvalidValueError(f"{rows.dataset.directory}: no row with status ok is left")
    space = chosen.dataset.sidecar.space
    featuriser, names = Featuriser(space, features), target_names(chosen, targets)
    # Filled a block at a time, so that nothing but these arrays is as large as the data.
    inputs = np.empty((n, len(featuriser.names)), dtype=dtype)
    outputs = np.empty((n, len(names)), dtype=dtype)
    workload, numbers = np.empty((2, n), dtype=np.int64)
    groups = np.empty(n, dtype=np.uint64)
    workloads: dict[str, int] = {}
    columns = [*design_columns(space), *(f"metric.{name}" for name in names), "workload"]
    start = 0
    for some, table in chosen.numbered(columns):
        part = slice(start, start := start + len(some))
        inputs[part] = featuriser(read_designs(space, table))
        for column, name in enumerate(names):
            outputs[part, column] = table[f"metric.{name}"].to_numpy()
        numbers[part], groups[part] = some, design_fingerprints(space, table)
        labels = table["workload"].combine_chunks()
        # A dictionary may hold names that none of these rows has: they get no number.
        texts, index = labels.dictionary.to_pylist(), labels.indices.to_numpy()
        own = {i: workloads.setdefault(texts[i], len(workloads)) for i in np.unique(index).tolist()}
        workload[part] = np.array([own.get(i, 0) for i in range(len(texts))])[index]
    given = np.full(len(names), bool(targets)) | ~np.isnan(outputs).all(axis=0)
    names = [name for name, there in zip(names, given.tolist(), strict=True) if there]
    units = {metric.name: metric.unit for metric in chosen.dataset.sidecar.metrics}
    return Examples(
        features=inputs,
        feature_names=featuriser.names,
        feature_units=featuriser.units,
        targets=outputs if given.all() else outputs[:, given],
        target_names=tuple(names),
        target_units=tuple(units[name] for name in names),
        workloads=tuple(workloads),
        workload=workload,
        groups=groups,
        rows=numbers,
    )
