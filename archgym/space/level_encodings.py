"""Designs as integers: the levels of their parameters, or one number for the whole design."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError
from archgym.space.design_space import DesignSpace
from archgym.space.designs import Designs
from archgym.space.encoding import Encoding


class MultiDiscreteEncoding(Encoding):
    """One integer a parameter: its level.

    Args:
        design_space: the space.
        levels: number of evenly spread levels at which real parameters are seen; without it
            a real parameter is refused.

    Attributes:
        free: positions of the parameters that are encoded, in order.
        nvec: how many levels each of them has, int64, shape (n_free,).
        space: the same as a space of Gymnasium.
    """

    def __init__(self, design_space: DesignSpace, levels: int | None = None) -> None:
        super().__init__(design_space)
        self._seen: dict[int, NDArray[np.int64]] = {}
        for column, parameter in enumerate(self._parameters):
            if not parameter.continuous:
                continue
            if levels is None:
                raise InvalidValueError(
                    f"parameter {parameter.name!r} is real: a discrete view needs levels=, "
                    "the number of values at which it is seen"
                )
            if levels < 2:
                raise InvalidValueError(f"levels={levels}: at least 2 are needed")
            self._seen[column] = parameter.from_unit_interval(np.linspace(0, 1, levels))
        self.nvec = np.array([levels if p.continuous else p.size for p in self._parameters])
        self.space = gymnasium.spaces.MultiDiscrete(self.nvec)
        self._limits = self.nvec.tolist()
        self._places = list(zip(self.free, self._limits, strict=True))

    def encode(self, designs: Designs) -> NDArray[np.int64]:
        """Levels, int64, shape (n_designs, n_free); real values go to the nearest level seen."""
        codes = self._known(designs)
        for column, seen in self._seen.items():
            gaps = np.abs(codes[:, column, None] - seen[None, :])
            codes[:, column] = gaps.argmin(axis=1)
        return codes

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = self._integers(self._check(rows, len(self.free)))
        for i, limit in enumerate(self._limits):
            column = rows[:, i]
            if len(column) and not 0 <= column.min() <= column.max() < limit:
                raise self._beyond(i, column[(column < 0) | (column >= limit)][0])
        columns = list(rows.T)
        for i, seen in self._seen.items():
            columns[i] = seen[columns[i]]
        return self._assemble(columns, len(rows))

    def decode_one(self, row: Any) -> tuple[int, ...]:
        if not (isinstance(row, np.ndarray) and row.dtype.kind in "iu"):
            row = self._integers(row)
        if row.shape != self.nvec.shape:
            raise DesignError(
                f"an action is {len(self._limits)} levels, got an array of shape {row.shape}"
            )
        if self._seen:
            return super().decode_one(row)
        codes = list(self._first)
        for (position, limit), level in zip(self._places, row.tolist(), strict=True):
            if not 0 <= level < limit:
                raise self._beyond(self.free.index(position), level)
            codes[position] = level
        return self.design_space.canonical_codes(codes)

    def _beyond(self, i: int, level: Any) -> DesignError:
        parameter = self._parameters[i]
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
