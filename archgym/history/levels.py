"""Values of an earlier problem's parameter as levels of the parameter that is searched now."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.data.designs import looked_up
from archgym.errors import DesignError
from archgym.space import Integer, Ordinal, Parameter, Real

__all__ = ["NO_LEVEL", "Levels"]

NO_LEVEL = -2
"""Stands for a value that the parameter does not have."""
Found = tuple[NDArray[np.int64], NDArray[np.bool_]]
"""A level a row, -1 where there is no value, and whether it is that of another value, both (n,)."""


class Levels:
    """Finds the level of each value of a column.

    A value that the parameter does not have takes the nearest level, if it is a number within the
    range of an ordered parameter: the smaller one of two that are equally near.

    >>> nearest = Levels(Ordinal("size", [1, 2, 4, 8]))
    >>> [found.tolist() for found in nearest.of(pa.array([2, 7, None, 16]))]
    [[1, 3, -1, -2], [False, True, False, False]]

    Args:
        parameter: that is searched now.
    """

    def __init__(self, parameter: Parameter) -> None:
        self._parameter = parameter
        self._known: dict[Any, int] = {}
        self._numbers: NDArray[np.float64] | None = None  # levels of an ordinal one, ascending
        if isinstance(parameter, Ordinal):
            values = parameter.values(np.arange(parameter.size))
            if values.dtype != object:
                self._places = np.argsort(values, kind="stable")
                self._numbers = values[self._places].astype(np.float64)
        self._numeric = self._numbers is not None or isinstance(parameter, Integer | Real)

    def of(self, column: pa.ChunkedArray | pa.Array) -> Found:
        """The levels of a column's values."""
        kind = column.type
        if self._numeric and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            return self._nearest(column)
        codes = looked_up(column, self._exact, np.int64)
        return codes, np.zeros(len(codes), dtype=np.bool_)

    def _exact(self, value: Any) -> int:
        if value is None:
            return -1
        key = (type(value), value)
        if key not in self._known:
            try:
                self._known[key] = self._parameter.code(value)
            except DesignError:
                self._known[key] = NO_LEVEL
        return self._known[key]

    def _nearest(self, column: pa.ChunkedArray | pa.Array) -> Found:
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        levels = self._level_of(np.where(np.isfinite(values), values, 0.0))
        levels[~np.isfinite(values)] = NO_LEVEL
        moved = np.zeros(len(values), dtype=np.bool_)
        there = levels >= 0
        moved[there] = self._parameter.values(levels[there]).astype(np.float64) != values[there]
        levels[missing] = -1
        return levels, moved & ~missing

    def _level_of(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The nearest level of each number, :data:`NO_LEVEL` outside the range."""
        parameter = self._parameter
        if self._numbers is not None:
            low, high = self._numbers[0], self._numbers[-1]
            after = np.searchsorted(self._numbers, values).clip(1, max(len(self._numbers) - 1, 1))
            if len(self._numbers) == 1:
                after[:] = 0
            before = np.maximum(after - 1, 0)
            nearer = values - self._numbers[before] <= self._numbers[after] - values
            levels = self._places[np.where(nearer, before, after)]
        elif isinstance(parameter, Integer):
            low, high = parameter.low, parameter.high
            levels = np.ceil((values - parameter.low) / parameter.step - 0.5)
        else:
            assert isinstance(parameter, Real)
            low, high = parameter.low, parameter.high
            inside = values.clip(low, high)
            if parameter.log:
                share = np.log(inside / low) / np.log(high / low)
            else:
                share = (inside - low) / (high - low)
            levels = parameter.from_unit_interval(np.where(inside == high, 1.0, share))
        outside = (values < low) | (values > high)
        return np.where(outside, NO_LEVEL, np.where(outside, 0, levels)).astype(np.int64)
