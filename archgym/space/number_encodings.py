"""Designs as real numbers: points in a cube, and features for learned models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError
from archgym.space.design_space import DesignSpace
from archgym.space.designs import Designs
from archgym.space.encoding import Encoding
from archgym.space.parameter import Parameter


class UnitCubeEncoding(Encoding):
    """One number in [0, 1] a parameter, float64: the middle of its level's equal share.

    A permutation has one for each item: sorted by these keys the items stand in order.

    Attributes:
        width: how many numbers stand for a design.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        self._columns = self.columns
        self.width = self._columns[-1].stop
        self.space: gymnasium.spaces.Box = gymnasium.spaces.Box(0.0, 1.0, (self.width,), np.float64)
        # One table of positions for all listed levels, so that a row costs one look-up.
        parameters = self._parameters
        self._computed = [
            (i, p) for i, p in enumerate(parameters) if p.continuous or len(p.axes) > 1
        ]
        computed = {i for i, _ in self._computed}
        sizes = [0 if i in computed else p.size for i, p in enumerate(parameters)]
        self._offsets = np.cumsum([0, *sizes[:-1]])
        tables = [
            p.unit_interval(np.arange(size))
            for p, size in zip(parameters, sizes, strict=True)
            if size
        ]
        self._table = np.concatenate([*tables, [0.0]])
        self._middles = [(i, p.middles) for i, p in zip(self.free, parameters, strict=True)]

    def encode(self, designs: Designs) -> NDArray[np.floating[Any]]:
        """Positions, shape (n_designs, width)."""
        codes = self._known(designs)
        if not self._computed:
            return np.asarray(self._table[codes + self._offsets])
        columns = codes.copy()
        for i, _ in self._computed:
            columns[:, i] = 0
        listed: NDArray[np.float64] = self._table[columns + self._offsets]
        positions = np.empty((len(codes), self.width))
        positions[:, [columns.start for columns in self._columns]] = listed
        for i, parameter in self._computed:
            positions[:, self._columns[i]] = parameter.places(codes[:, i])
        return positions

    def encode_one(self, codes: Sequence[int]) -> list[float]:
        """Positions of one design's canonical codes, as :meth:`encode`."""
        return [place for position, middles in self._middles for place in middles[codes[position]]]

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = _numbers(self._check(rows, self.width))
        of_parameters = zip(self._parameters, self._columns, strict=True)
        columns = [p.from_places(rows[:, own.start : own.stop]) for p, own in of_parameters]
        return self._assemble(columns, len(rows))

    def decode_one(self, row: Any) -> tuple[int, ...]:
        row = _numbers(row)
        if row.shape != (self.width,):
            raise DesignError(
                f"an action is {self.width} numbers, got an array of shape {row.shape}"
            )
        if self.width > len(self.free):
            return tuple(UnitCubeEncoding.decode(self, row[None]).codes[0].tolist())
        codes = list(self._first)
        for position, parameter, place in zip(
            self.free, self._parameters, row.tolist(), strict=True
        ):
            if parameter.continuous:
                codes[position] = int(parameter.from_unit_interval(np.array([place]))[0])
            else:
                share = int(min(max(place, 0.0), 1.0) * parameter.size)
                codes[position] = min(share, parameter.size - 1)
        return self.design_space.canonical_codes(codes)


class BoxEncoding(UnitCubeEncoding):
    """One number in [-1, 1] a parameter, float32: what continuous-action RL wants.

    A permutation has one for each item, as in :class:`UnitCubeEncoding`.

    Values beyond the ends are taken as the ends.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        self.space = gymnasium.spaces.Box(-1.0, 1.0, (self.width,), np.float32)

    def encode(self, designs: Designs) -> NDArray[np.float32]:
        """Positions, float32, shape (n_designs, width)."""
        return (2.0 * super().encode(designs) - 1.0).astype(np.float32)

    def encode_one(self, codes: Sequence[int]) -> list[float]:
        """Positions of one design's canonical codes, not yet rounded to float32."""
        return [
            2.0 * place - 1.0
            for position, middles in self._middles
            for place in middles[codes[position]]
        ]

    def decode(self, rows: NDArray[Any]) -> Designs:
        return super().decode((_numbers(rows) + 1.0) / 2.0)

    def decode_one(self, row: Any) -> tuple[int, ...]:
        return super().decode_one((_numbers(row) + 1.0) / 2.0)


class FeatureEncoding(Encoding):
    """Features for learned models, float64: one-hot for unordered values, [0, 1] for ordered.

    A permutation has a feature for each item, its position in [0, 1].

    A parameter with a condition has one more feature, ``NAME?``: 1 where it is active; its
    other features are 0 where it is not.

    Attributes:
        feature_names: name of each column, such as ``policy=open``, ``size`` or
            ``order[K]``.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        self.feature_names: list[str] = []
        for p in self._parameters:
            activity = [] if p.when is None else [f"{p.name}?"]
            self.feature_names += [*activity, *self._axes(p)]
        self.space = gymnasium.spaces.Box(0.0, 1.0, (len(self.feature_names),), np.float64)

    def _axes(self, parameter: Parameter) -> Sequence[str]:
        if parameter.ordered or len(parameter.axes) > 1:
            return parameter.axes
        return [f"{parameter.name}={parameter.value(code)}" for code in range(parameter.size)]

    def encode(self, designs: Designs) -> NDArray[np.float64]:
        """Features, shape (n_designs, n_features)."""
        known = self._codes(designs)
        features = np.zeros((len(known), len(self.feature_names)), order="F")
        columns = iter(features.T)
        for position, parameter in zip(self.free, self._parameters, strict=True):
            codes = known[:, position]
            active = codes >= 0
            if parameter.when is not None:
                next(columns)[:] = active
            if parameter.ordered or len(parameter.axes) > 1:
                for places in parameter.places(np.maximum(codes, 0)).T:
                    next(columns)[:] = np.where(active, places, 0.0)
            else:
                for level in range(parameter.size):
                    next(columns)[:] = codes == level
        return features

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = _numbers(self._check(rows, len(self.feature_names)))
        columns, column = [], 0
        for parameter in self._parameters:
            column += parameter.when is not None
            width = len(self._axes(parameter))
            given, column = rows[:, column : column + width], column + width
            if parameter.ordered or len(parameter.axes) > 1:
                columns.append(parameter.from_places(given))
            else:
                columns.append(_largest(given))
        return self._assemble(columns, len(rows))


def _largest(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Column of each row's largest number, a column at a time: ``argmax`` is slow on few."""
    found, largest = np.zeros(len(rows), dtype=np.int64), rows[:, 0].copy()
    for column in range(1, rows.shape[1]):
        found[rows[:, column] > largest] = column
        np.maximum(largest, rows[:, column], out=largest)
    return found


def _numbers(rows: Any) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise DesignError(f"rows of numbers expected, got {rows!r}") from None
    if np.isnan(numbers).any():
        raise DesignError("rows of numbers expected, but there is a NaN among them")
    return numbers
