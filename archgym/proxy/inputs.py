"""What models see of a design and its workload: numbers from level codes, by table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from archgym.space import DesignSpace, Parameter
from archgym.space.parameters import TABLE_LEVELS

__all__ = ["Inputs", "workload_inputs"]

_MOST_LEVELS = 16
"""Ordered parameters with more levels have no feature of their own for each level."""


class Inputs:
    """Features of designs, float32.

    An unordered parameter has a feature a level, 1 at its own. An ordered one has its place in
    [-1, 1], and with few levels also a feature for each of them, since effects may jump. All are
    0 where the parameter is inactive; a parameter with a condition has a feature that says so.

    Args:
        space: the design space; parameters that are fixed in it count like others.

    Attributes:
        names: name of each feature.
    """

    def __init__(self, space: DesignSpace) -> None:
        self._space = space
        self._tables: list[NDArray[np.float32] | None] = []
        self.names: list[str] = []
        for parameter in space.parameters:
            self.names += _names(parameter)
            small = parameter.size <= TABLE_LEVELS
            codes = np.append(np.arange(parameter.size), -1)
            self._tables.append(_columns(parameter, codes) if small else None)

    def __call__(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Features, shape (n, n_features).

        Args:
            codes: of canonical designs, -1 where a parameter is inactive, shape (n, n_parameters).
        """
        found = np.empty((len(codes), len(self.names)), dtype=np.float32)
        at = 0
        for position in range(len(self._tables)):
            part = self.of_parameter(codes, position)
            found[:, at : at + part.shape[1]] = part
            at += part.shape[1]
        return found

    def of_parameter(self, codes: NDArray[np.int64], position: int) -> NDArray[np.float32]:
        """The features of one parameter, shape (n, n_features_of_it)."""
        table, column = self._tables[position], codes[:, position]
        if table is None:
            return _columns(self._space.parameters[position], column)
        return np.asarray(table[column])  # -1 is the last row: inactive


def workload_inputs(
    features: Sequence[Mapping[str, float]],
) -> tuple[list[str], NDArray[np.float32]]:
    """Features of workloads: those that all of them have and in which they differ.

    Positive ones that vary over more than a decade count by their logarithm.

    Args:
        features: of each workload, by name.

    Returns:
        Names (``log NAME`` for logarithms), and the values, shape (n_workloads, n_names).
    """
    common = [name for name in features[0] if all(name in one for one in features)]
    names, columns = [], []
    for name in common:
        values = np.array([float(one[name]) for one in features])
        if not np.isfinite(values).all() or (values == values[0]).all():
            continue
        if values.min() > 0 and values.max() > 10 * values.min():
            name, values = f"log {name}", np.log(values)
        names.append(name)
        columns.append(values)
    table = np.stack(columns, axis=1) if columns else np.empty((len(features), 0))
    return names, table.astype(np.float32)


def _names(parameter: Parameter) -> list[str]:
    name = parameter.name
    names = [f"{name}?"] if parameter.when is not None else []
    if parameter.ordered:
        names.append(name)
    if not parameter.ordered or parameter.size <= _MOST_LEVELS:
        names += [f"{name}={parameter.value(code)}" for code in range(parameter.size)]
    return names


def _columns(parameter: Parameter, codes: NDArray[np.int64]) -> NDArray[np.float32]:
    active = codes >= 0
    columns = [active] if parameter.when is not None else []
    if parameter.ordered:
        place = parameter.unit_interval(np.maximum(codes, 0))
        columns.append(np.where(active, 2.0 * place - 1.0, 0.0))
    if not parameter.ordered or parameter.size <= _MOST_LEVELS:
        columns += [codes == level for level in range(parameter.size)]
    return np.stack(columns, axis=1).astype(np.float32)
