"""Inputs of models: features of designs, from tables of level codes, and of workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from archgym.space import DesignSpace, Parameter, Permutation
from archgym.space.parameter import TABLE_LEVELS

_MAX_LEVELS = 16
"""Ordered parameters with more levels have no feature for each level."""
_MAX_PAIRS = 50
"""Units that more pairs of parameters share are not compared."""


class Inputs:
    """Features of designs, float32.

    An unordered parameter has a feature a level, 1 at its own. An ordered one has its place in
    [-1, 1], and with few levels also a feature for each of them, since effects may jump. A
    permutation has the position of each item in [-1, 1], and for each two items 1 or -1: which of
    them comes first. All are
    0 where the parameter is inactive; a parameter with a condition has a feature that says so.
    Two parameters of the same unit limit each other, like a buffer and the watermark at which it
    is emptied, so two more features say which is the larger: 0 where equal, or one is inactive.

    Args:
        space: the design space; parameters that are fixed in it count like others.

    Attributes:
        names: name of each feature: those of the parameters, then those of the pairs.
        pairs: positions of the parameters that are compared.
    """

    def __init__(self, space: DesignSpace) -> None:
        self._space = space
        self._tables: list[NDArray[np.float32] | None] = []
        self.names: list[str] = []
        for parameter in space.parameters:
            self.names += [name for name, _ in _columns(parameter, np.array([-1]))]
            small = parameter.size <= TABLE_LEVELS
            codes = np.append(np.arange(parameter.size), -1)
            self._tables.append(_features(parameter, codes) if small else None)
        self.pairs = _pairs(space.parameters)
        compared = {position for pair in self.pairs for position in pair}
        self._values = {position: _values(space.parameters[position]) for position in compared}
        for first, second in self.pairs:
            one, other = space.parameters[first].name, space.parameters[second].name
            self.names += [f"{one}>{other}", f"{one}<{other}"]

    def __call__(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Features, shape (n, n_features).

        Args:
            codes: of canonical designs, -1 where a parameter is inactive, shape (n, n_parameters).
        """
        parts = [self.of_parameter(codes, position) for position in range(len(self._tables))]
        parts += [self.of_pair(codes, number) for number in range(len(self.pairs))]
        return np.concatenate(parts, axis=1)

    def of_parameter(self, codes: NDArray[np.int64], position: int) -> NDArray[np.float32]:
        """The features of one parameter, shape (n, n_features_of_it)."""
        table, column = self._tables[position], codes[:, position]
        if table is None:
            return _features(self._space.parameters[position], column)
        return np.asarray(table[column])  # -1 is the last row: inactive

    def of_pair(self, codes: NDArray[np.int64], number: int) -> NDArray[np.float32]:
        """The features of one of :attr:`pairs`, shape (n, 2)."""
        one, other = (self._values[position][codes[:, position]] for position in self.pairs[number])
        with np.errstate(invalid="ignore"):
            return np.stack([one > other, one < other], axis=1).astype(np.float32)


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


def _pairs(parameters: Sequence[Parameter]) -> list[tuple[int, int]]:
    """Positions of parameters whose values can be compared: numbers of the same unit."""
    by_unit: dict[str, list[int]] = {}
    for position, parameter in enumerate(parameters):
        number = isinstance(parameter.value(0), int | float)
        if parameter.unit and parameter.ordered and number and parameter.size <= TABLE_LEVELS:
            by_unit.setdefault(parameter.unit, []).append(position)
    found = [list(combinations(positions, 2)) for positions in by_unit.values()]
    return [pair for pairs in found if len(pairs) <= _MAX_PAIRS for pair in pairs]


def _values(parameter: Parameter) -> NDArray[np.float64]:
    """The value of each level, and NaN, which compares with none, for an inactive one."""
    values = parameter.values(np.arange(parameter.size)).astype(np.float64)
    return np.append(values, np.nan)


def _columns(
    parameter: Parameter, codes: NDArray[np.int64]
) -> list[tuple[str, NDArray[np.generic]]]:
    """The features of a parameter, by name."""
    active, name = codes >= 0, parameter.name
    columns: list[tuple[str, NDArray[np.generic]]] = []
    if parameter.when is not None:
        columns.append((f"{name}?", active))
    if isinstance(parameter, Permutation):
        of_order = _order_columns(parameter, np.maximum(codes, 0))
        return columns + [(key, np.where(active, feature, 0.0)) for key, feature in of_order]
    if parameter.ordered:
        place = parameter.unit_interval(np.maximum(codes, 0))
        columns.append((name, np.where(active, 2.0 * place - 1.0, 0.0)))
    if not parameter.ordered or parameter.size <= _MAX_LEVELS:
        levels = range(parameter.size)
        columns += [(f"{name}={parameter.value(code)}", codes == code) for code in levels]
    return columns


def _order_columns(
    parameter: Permutation, codes: NDArray[np.int64]
) -> list[tuple[str, NDArray[np.float64]]]:
    """The features of orders, by name."""
    places = 2.0 * parameter.places(codes) - 1.0
    columns = list(zip(parameter.axes, places.T, strict=True))
    names = [f"{parameter.name}:{one}<{other}" for one, other in parameter.pair_names]
    return [*columns, *zip(names, parameter.precedence(codes).T, strict=True)]


def _features(parameter: Parameter, codes: NDArray[np.int64]) -> NDArray[np.float32]:
    columns = [column for _, column in _columns(parameter, codes)]
    return np.stack(columns, axis=1).astype(np.float32)
