"""Designs as integers: the levels of their parameters, or one number for the whole design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError
from archgym.space.design_space import DesignSpace
from archgym.space.designs import Designs
from archgym.space.encoding import Encoding
from archgym.space.parameter import Parameter


class MultiDiscreteEncoding(Encoding):
    """One integer a parameter: its level.

    A permutation has one for each item but the last: which of the items that are left comes next.

    Args:
        design_space: the space.
        levels: number of evenly spread levels at which real parameters are seen; without it
            a real parameter is refused.

    Attributes:
        free: positions of the parameters that are encoded, in order.
        nvec: how many levels each column has, int64, shape (width,).
        space: the same as a space of Gymnasium.
    """

    def __init__(self, design_space: DesignSpace, levels: int | None = None) -> None:
        super().__init__(design_space)
        self._columns = self.columns
        self._seen: dict[int, NDArray[np.int64]] = {}
        sizes: list[int] = []
        for columns, parameter in zip(self._columns, self._parameters, strict=True):
            column = columns.start
            sizes += parameter.choices
            if not parameter.continuous:
                continue
            if levels is None:
                raise InvalidValueError(
                    f"parameter {parameter.name!r} is real: a discrete view needs levels= "
                    "(--levels), the number of values at which it is seen"
                )
            if levels < 2:
                raise InvalidValueError(f"levels={levels}: at least 2 are needed")
            self._seen[column] = parameter.from_unit_interval(np.linspace(0, 1, levels))
            sizes[column] = levels
        self.nvec = np.array(sizes)
        self.space = gymnasium.spaces.MultiDiscrete(self.nvec)
        self._limits = self.nvec.tolist()
        self._plain = len(sizes) == len(self.free)
        self._places = list(zip(self.free, self._limits, strict=True)) if self._plain else []

    def _axes(self, parameter: Parameter) -> Sequence[int]:
        return parameter.choices

    def encode(self, designs: Designs) -> NDArray[np.int64]:
        """Levels, int64, shape (n_designs, width); real values go to the nearest level seen."""
        codes = self._known(designs)
        if not self._plain:
            of_parameters = zip(self._parameters, codes.T, strict=True)
            codes = np.concatenate([p.digits(column) for p, column in of_parameters], axis=1)
        for column, seen in self._seen.items():
            gaps = np.abs(codes[:, column, None] - seen[None, :])
            codes[:, column] = gaps.argmin(axis=1)
        return codes

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = self._integers(self._check(rows, len(self._limits)))
        for i, limit in enumerate(self._limits):
            column = rows[:, i]
            if len(column) and not 0 <= column.min() <= column.max() < limit:
                raise self._beyond(i, column[(column < 0) | (column >= limit)][0])
        if self._seen:
            rows = rows.copy()
            for i, seen in self._seen.items():
                rows[:, i] = seen[rows[:, i]]
        of_parameters = zip(self._parameters, self._columns, strict=True)
        columns = [p.from_digits(rows[:, own.start : own.stop]) for p, own in of_parameters]
        return self._assemble(columns, len(rows))

    def decode_one(self, row: Any) -> tuple[int, ...]:
        if not (isinstance(row, np.ndarray) and row.dtype.kind in "iu"):
            row = self._integers(row)
        if row.shape != self.nvec.shape:
            raise DesignError(
                f"an action is {len(self._limits)} levels, got an array of shape {row.shape}"
            )
        if self._seen or not self._plain:
            return super().decode_one(row)
        codes = list(self._first)
        for (position, limit), level in zip(self._places, row.tolist(), strict=True):
            if not 0 <= level < limit:
                raise self._beyond(self.free.index(position), level)
            codes[position] = level
        return self.design_space.canonical_codes(codes)

    def _beyond(self, i: int, level: Any) -> DesignError:
        of_it = next(place for place, columns in enumerate(self._columns) if i in columns)
        parameter = self._parameters[of_it]
        return DesignError(
            f"level {level} of parameter {parameter.name!r} does not exist: "
            f"allowed is 0 to {self._limits[i] - 1} ({parameter.range})"
        )


class FlatEncoding(Encoding):
    """One integer a design: the raw combination's number, for agents with a Discrete action.

    Args:
        design_space: the space.
        levels: as for :class:`MultiDiscreteEncoding`.

    Raises:
        InvalidValueError: with more than :attr:`MAX` combinations.
    """

    MAX: ClassVar[int] = 1 << 22
    """Maximum number of combinations: an agent's network has an output for each."""

    def __init__(self, design_space: DesignSpace, levels: int | None = None) -> None:
        super().__init__(design_space)
        self._levels = MultiDiscreteEncoding(design_space, levels)
        self.size = int(np.prod(self._levels.nvec.astype(object)))
        if self.size > self.MAX:
            raise InvalidValueError(
                f"{self.size:,} combinations are too many for one Discrete action (at most "
                f"{self.MAX:,}): hold some parameters by fixed=, or use action='multi_discrete'"
            )
        self.space = gymnasium.spaces.Discrete(self.size)

    def encode(self, designs: Designs) -> NDArray[np.int64]:
        """Numbers of combinations, shape (n_designs, 1)."""
        levels = self._levels.encode(designs)
        numbers = np.ravel_multi_index(tuple(levels.T), tuple(self._levels.nvec))
        return np.asarray(numbers)[:, None]

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = self._integers(rows).reshape(-1)
        if rows.size and (rows.min() < 0 or rows.max() >= self.size):
            raise DesignError(f"combinations are numbered 0 to {self.size - 1}")
        return self._levels.decode(
            np.stack(np.unravel_index(rows, tuple(self._levels.nvec)), axis=1)
        )
