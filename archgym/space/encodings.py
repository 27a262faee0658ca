"""Views of designs as arrays, for whatever a search algorithm eats.

Each encoding covers the free parameters of a space, reaches every value, gives the levels of a
discrete parameter equal shares, and satisfies ``decode(encode(designs)) == designs`` for
canonical designs. An inactive parameter is encoded as its first level.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError, MissingDependencyError
from archgym.space.design_space import DesignSpace
from archgym.space.designs import Designs

if TYPE_CHECKING:
    import optuna

__all__ = [
    "BoxEncoding",
    "Encoding",
    "FeatureEncoding",
    "FlatEncoding",
    "MultiDiscreteEncoding",
    "OptunaEncoding",
    "SkoptEncoding",
    "UnitCubeEncoding",
]


class Encoding(ABC):
    """A two-way map between designs and rows of numbers.

    Attributes:
        design_space: the space whose designs are encoded.
        free: positions of the parameters that are encoded, in order.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        self.design_space = design_space
        self.free = design_space.free
        if not self.free:
            raise InvalidValueError(
                "every parameter of the design space is fixed: nothing to search"
            )
        self._first = [
            int(design_space.allowed_codes(i)[0]) for i in range(len(design_space.names))
        ]

    @abstractmethod
    def encode(self, designs: Designs) -> NDArray[Any]:
        """Rows of numbers, shape (n_designs, width)."""

    @abstractmethod
    def decode(self, rows: NDArray[Any]) -> Designs:
        """Canonical designs (they need not be legal) of rows, shape (n_designs, width).

        Raises:
            DesignError: if a row has the wrong width, is out of range or not a number.
        """

    def decode_one(self, row: Any) -> tuple[int, ...]:
        """Canonical codes of one row."""
        return tuple(self.decode(np.asarray(row)[None]).codes[0].tolist())

    def _known(self, designs: Designs) -> NDArray[np.int64]:
        """Codes of the free parameters with the first level where inactive, shape (n, n_free)."""
        return np.maximum(designs.codes[:, self.free], 0)

    def _assemble(self, columns: Sequence[NDArray[np.int64]], n: int) -> Designs:
        codes = np.empty((n, len(self._first)), dtype=np.int64, order="F")
        if len(self.free) < len(self._first):
            codes[:] = self._first
        for position, column in zip(self.free, columns, strict=True):
            codes[:, position] = column
        return self.design_space.canonicalise(codes)

    def _check(self, rows: NDArray[Any], width: int) -> NDArray[Any]:
        rows = np.asarray(rows)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise DesignError(
                f"rows of {width} numbers expected, got an array of shape {rows.shape}"
            )
        return rows

    @staticmethod
    def _integers(rows: Any) -> NDArray[np.int64]:
        given: NDArray[Any] = np.asarray(rows)
        if given.dtype.kind in "iu":
            return given
        with np.errstate(invalid="ignore"):
            whole = given.astype(np.int64) if given.dtype.kind in "fb" else None
        if whole is None or not (whole == given).all():
            raise DesignError(f"levels are whole numbers, got {given.reshape(-1)[:8].tolist()}")
        return whole


class MultiDiscreteEncoding(Encoding):
    """One integer a parameter: its level.

    Args:
        design_space: the space.
        levels: number of evenly spread levels at which real parameters are seen; without it
            a real parameter is refused.
    """

    def __init__(self, design_space: DesignSpace, levels: int | None = None) -> None:
        super().__init__(design_space)
        self._levels: list[NDArray[np.int64] | None] = []
        for position in self.free:
            parameter = design_space.parameters[position]
            if not parameter.continuous:
                self._levels.append(None)
            elif levels is None:
                raise InvalidValueError(
                    f"parameter {parameter.name!r} is real: a discrete view needs levels=, "
                    "the number of values at which it is seen"
                )
            elif levels < 2:
                raise InvalidValueError(f"levels={levels}: at least 2 are needed")
            else:
                self._levels.append(parameter.from_unit_interval(np.linspace(0, 1, levels)))
        self.nvec = np.array(
            [
                design_space.parameters[p].size if seen is None else len(seen)
                for p, seen in zip(self.free, self._levels, strict=True)
            ]
        )
        self.space = gymnasium.spaces.MultiDiscrete(self.nvec)
        self._limits = self.nvec.tolist()
        self._simple = all(seen is None for seen in self._levels)
        self._places = list(zip(self.free, self._limits, strict=True))

    def encode(self, designs: Designs) -> NDArray[np.int64]:
        """Levels, int64, shape (n_designs, n_free); real values go to the nearest level seen."""
        codes = self._known(designs)
        for column, seen in enumerate(self._levels):
            if seen is not None:
                gaps = np.abs(codes[:, column, None] - seen[None, :])
                codes[:, column] = gaps.argmin(axis=1)
        return codes

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = self._integers(self._check(rows, len(self.free)))
        for i, limit in enumerate(self._limits):
            column = rows[:, i]
            if len(column) and not 0 <= column.min() <= column.max() < limit:
                raise self._beyond(i, column[(column < 0) | (column >= limit)][0])
        columns = [
            rows[:, i] if seen is None else seen[rows[:, i]] for i, seen in enumerate(self._levels)
        ]
        return self._assemble(columns, len(rows))

    def decode_one(self, row: Any) -> tuple[int, ...]:
        if not (isinstance(row, np.ndarray) and row.dtype.kind in "iu"):
            row = self._integers(row)
        if row.shape != self.nvec.shape:
            raise DesignError(
                f"an action is {len(self._limits)} levels, got an array of shape {row.shape}"
            )
        if not self._simple:
            return super().decode_one(row)
        codes = list(self._first)
        for (position, limit), level in zip(self._places, row.tolist(), strict=True):
            if not 0 <= level < limit:
                raise self._beyond(self.free.index(position), level)
            codes[position] = level
        return self.design_space.canonical_codes(codes)

    def _beyond(self, i: int, level: Any) -> DesignError:
        parameter = self.design_space.parameters[self.free[i]]
        return DesignError(
            f"level {level} of parameter {parameter.name!r} does not exist: "
            f"allowed is 0 to {self._limits[i] - 1} ({parameter.range})"
        )


class UnitCubeEncoding(Encoding):
    """One number in [0, 1] a parameter, float64: the middle of its level's equal share."""

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        self.space: gymnasium.spaces.Box = gymnasium.spaces.Box(
            0.0, 1.0, (len(self.free),), np.float64
        )
        # One table of positions for all listed levels, so that a row costs one look-up.
        parameters = [design_space.parameters[p] for p in self.free]
        sizes = [0 if p.continuous else p.size for p in parameters]
        self._offsets = np.cumsum([0, *sizes[:-1]])
        self._continuous = [(i, p) for i, p in enumerate(parameters) if p.continuous]
        tables = [
            p.unit_interval(np.arange(size)) for p, size in zip(parameters, sizes, strict=True)
        ]
        self._table = np.concatenate([*tables, [0.0]])
        self._middles = [(i, p.middles) for i, p in zip(self.free, parameters, strict=True)]

    def encode(self, designs: Designs) -> NDArray[np.floating[Any]]:
        """Positions, shape (n_designs, n_free)."""
        codes = self._known(designs)
        if not self._continuous:
            return np.asarray(self._table[codes + self._offsets])
        columns = codes.copy()
        for i, _ in self._continuous:
            columns[:, i] = 0
        positions: NDArray[np.float64] = self._table[columns + self._offsets]
        for i, parameter in self._continuous:
            positions[:, i] = parameter.unit_interval(codes[:, i])
        return positions

    def encode_one(self, codes: Sequence[int]) -> list[float]:
        """Positions of one design's canonical codes, as :meth:`encode`."""
        return [middles[codes[position]] for position, middles in self._middles]

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = _numbers(self._check(rows, len(self.free)))
        columns = [
            self.design_space.parameters[p].from_unit_interval(rows[:, i])
            for i, p in enumerate(self.free)
        ]
        return self._assemble(columns, len(rows))

    def decode_one(self, row: Any) -> tuple[int, ...]:
        row = _numbers(row)
        if row.shape != (len(self.free),):
            raise DesignError(
                f"an action is {len(self.free)} numbers, got an array of shape {row.shape}"
            )
        codes = list(self._first)
        for position, place in zip(self.free, row.tolist(), strict=True):
            parameter = self.design_space.parameters[position]
            if parameter.continuous:
                codes[position] = int(parameter.from_unit_interval(np.array([place]))[0])
            else:
                share = int(min(max(place, 0.0), 1.0) * parameter.size)
                codes[position] = min(share, parameter.size - 1)
        return self.design_space.canonical_codes(codes)


class BoxEncoding(UnitCubeEncoding):
    """One number in [-1, 1] a parameter, float32: what continuous-action RL wants.

    Values beyond the ends are taken as the ends.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        self.space = gymnasium.spaces.Box(-1.0, 1.0, (len(self.free),), np.float32)

    def encode(self, designs: Designs) -> NDArray[np.float32]:
        """Positions, float32, shape (n_designs, n_free)."""
        return (2.0 * super().encode(designs) - 1.0).astype(np.float32)

    def encode_one(self, codes: Sequence[int]) -> list[float]:
        """Positions of one design's canonical codes, not yet rounded to float32."""
        return [2.0 * middles[codes[position]] - 1.0 for position, middles in self._middles]

    def decode(self, rows: NDArray[Any]) -> Designs:
        return super().decode((_numbers(rows) + 1.0) / 2.0)

    def decode_one(self, row: Any) -> tuple[int, ...]:
        return super().decode_one((_numbers(row) + 1.0) / 2.0)


class FlatEncoding(Encoding):
    """One integer a design: the raw combination's number, for agents with a Discrete action.

    Args:
        design_space: the space.
        levels: as for :class:`MultiDiscreteEncoding`.

    Raises:
        InvalidValueError: with more than :attr:`MOST` combinations.
    """

    MOST: ClassVar[int] = 1 << 22
    """Most combinations: an agent's network has an output for each."""

    def __init__(self, design_space: DesignSpace, levels: int | None = None) -> None:
        super().__init__(design_space)
        self._levels = MultiDiscreteEncoding(design_space, levels)
        self.size = int(np.prod(self._levels.nvec.astype(object)))
        if self.size > self.MOST:
            raise InvalidValueError(
                f"{self.size:,} combinations are too many for one Discrete action (at most "
                f"{self.MOST:,}): hold some parameters by fixed=, or use action='multi_discrete'"
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


class FeatureEncoding(Encoding):
    """Features for learned models, float64: one-hot for unordered values, [0, 1] for ordered.

    A parameter with a condition has one more feature, ``NAME?``: 1 where it is active; its
    other features are 0 where it is not.

    Attributes:
        feature_names: name of each column, such as ``policy=open`` or ``size``.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        self.feature_names: list[str] = []
        for position in self.free:
            parameter = design_space.parameters[position]
            if parameter.when is not None:
                self.feature_names.append(f"{parameter.name}?")
            if parameter.ordered:
                self.feature_names.append(parameter.name)
            else:
                self.feature_names += [
                    f"{parameter.name}={parameter.value(c)}" for c in range(parameter.size)
                ]
        self.space = gymnasium.spaces.Box(0.0, 1.0, (len(self.feature_names),), np.float64)

    def encode(self, designs: Designs) -> NDArray[np.float64]:
        """Features, shape (n_designs, n_features)."""
        features = np.zeros((len(designs), len(self.feature_names)), order="F")
        column = 0
        for position in self.free:
            parameter = self.design_space.parameters[position]
            codes = designs.codes[:, position]
            active = codes >= 0
            if parameter.when is not None:
                features[:, column] = active
                column += 1
            if parameter.ordered:
                features[:, column] = np.where(active, parameter.unit_interval(codes), 0.0)
                column += 1
            else:
                for level in range(parameter.size):
                    features[:, column] = codes == level
                    column += 1
        return features

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = _numbers(self._check(rows, len(self.feature_names)))
        columns, column = [], 0
        for position in self.free:
            parameter = self.design_space.parameters[position]
            column += parameter.when is not None
            if parameter.ordered:
                columns.append(parameter.from_unit_interval(rows[:, column]))
                column += 1
            else:
                columns.append(_largest(rows[:, column : column + parameter.size]))
                column += parameter.size
        return self._assemble(columns, len(rows))


class SkoptEncoding(Encoding):
    """Points of scikit-optimize: categories as text, levels as integers, real values as they are.

    Attributes:
        dimensions: list of ``skopt.space`` dimensions, one a free parameter.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        from skopt.space import Categorical, Integer, Real

        self.dimensions: list[Any] = []
        for position in self.free:
            p = design_space.parameters[position]
            if p.continuous:
                ends = p.values(np.array([0, p.size - 1])).tolist()
                prior = "log-uniform" if getattr(p, "log", False) else "uniform"
                self.dimensions.append(Real(*ends, prior=prior, name=p.name))
            elif p.ordered:
                self.dimensions.append(Integer(0, p.size - 1, name=p.name))
            else:
                names = [str(p.value(c)) for c in range(p.size)]
                self.dimensions.append(Categorical(names, name=p.name))

    def encode(self, designs: Designs) -> NDArray[np.object_]:
        """Points, object array of Python scalars, shape (n_designs, n_free)."""
        codes = self._known(designs)
        points = np.empty(codes.shape, dtype=object)
        for i, position in enumerate(self.free):
            p = self.design_space.parameters[position]
            if p.continuous:
                points[:, i] = p.values(codes[:, i]).tolist()
            elif p.ordered:
                points[:, i] = codes[:, i].tolist()
            else:
                points[:, i] = [str(p.value(c)) for c in codes[:, i].tolist()]
        return points

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = self._check(np.asarray(rows, dtype=object), len(self.free))
        columns = []
        for i, position in enumerate(self.free):
            p = self.design_space.parameters[position]
            if p.continuous:
                ends = p.values(np.array([0, p.size - 1]))
                codes = [p.code(float(np.clip(v, *ends))) for v in rows[:, i]]
            elif p.ordered:
                codes = [int(v) for v in rows[:, i]]
            else:
                levels = {str(p.value(c)): c for c in range(p.size)}
                codes = [levels[str(v)] for v in rows[:, i]]
            columns.append(np.array(codes, dtype=np.int64))
        return self._assemble(columns, len(rows))


class OptunaEncoding(Encoding):
    """Optuna's distributions and parameter dictionaries; needs the extra ``archgym[optuna]``.

    Attributes:
        distributions: distribution of each free parameter by name: categories as text,
            levels as integers, real values as they are.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        try:
            from optuna import distributions
        except ImportError:
            raise MissingDependencyError(
                "this encoding needs Optuna: pip install 'archgym[optuna]'"
            ) from None
        self._points = SkoptEncoding(design_space)
        self.distributions: dict[str, optuna.distributions.BaseDistribution] = {}
        for position in self.free:
            p = design_space.parameters[position]
            if p.continuous:
                low, high = p.values(np.array([0, p.size - 1])).tolist()
                log = bool(getattr(p, "log", False))
                self.distributions[p.name] = distributions.FloatDistribution(low, high, log=log)
            elif p.ordered:
                self.distributions[p.name] = distributions.IntDistribution(0, p.size - 1)
            else:
                names = [str(p.value(c)) for c in range(p.size)]
                self.distributions[p.name] = distributions.CategoricalDistribution(names)

    def encode(self, designs: Designs) -> NDArray[np.object_]:
        """Values in the order of :attr:`distributions`, shape (n_designs, n_free)."""
        return self._points.encode(designs)

    def decode(self, rows: NDArray[Any]) -> Designs:
        return self._points.decode(rows)

    def to_params(self, designs: Designs) -> list[dict[str, Any]]:
        """One dictionary of Optuna parameters a design."""
        return [dict(zip(self.distributions, row, strict=True)) for row in self.encode(designs)]

    def from_params(self, params: Sequence[Mapping[str, Any]]) -> Designs:
        """The inverse of :meth:`to_params`."""
        rows = [[point[name] for name in self.distributions] for point in params]
        return self.decode(np.array(rows, dtype=object).reshape(len(rows), len(self.free)))


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
