"""NK-like landscapes: made by a seed, smooth along ordered parameters, with a known optimum.

The cost is a sum of components, each a random table over four parameters. Along an ordered axis
the tables are smoothed by a mean of three neighbours; a parameter that is inactive counts as its
first level. A real parameter has a few *knots*, for which the tables have a row each, and moves
smoothly and monotonically from each knot's row to the next one's. The cost is then affine in each
of those moves, so it is least with every real parameter on a knot, and the optimum over the knots
is the optimum over all values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.space import Categorical, Designs, DesignSpace, Ordinal, Parameter, Real, param

__all__ = ["Landscape", "environment_of", "large_landscape", "nk_landscape"]

Factor = tuple[tuple[int, ...], NDArray[np.float64]]
NEIGHBOURS = 3
"""Parameters that a component depends on, besides its own."""
NK_SIZE = (2_000_000, 6_000_000)
"""Fewest and most combinations of an NK-like landscape: few enough to enumerate them all."""


@dataclass(frozen=True, eq=False)
class Landscape:
    """A sum of tables over the parameters of a space.

    Attributes:
        space: the design space.
        sizes: rows that the tables have for each parameter: its levels, or its knots.
        components: positions of four parameters, ascending, and a table over them.
        knots: of a real parameter by its position, the knots in [0, 1], ascending.
        children: position of a conditional parameter, of its parent, and which of the parent's
            levels make it active, shape (n_levels,).
    """

    space: DesignSpace
    sizes: tuple[int, ...]
    components: tuple[Factor, ...]
    knots: dict[int, NDArray[np.float64]]
    children: tuple[tuple[int, int, NDArray[np.bool_]], ...]

    def __post_init__(self) -> None:
        starts = np.cumsum([0, *(table.size for _, table in self.components)])
        strides = np.zeros((len(self.sizes), len(self.components)), dtype=np.int64)
        for number, (axes, table) in enumerate(self.components):
            strides[list(axes), number] = np.array(table.strides) // table.itemsize
        object.__setattr__(self, "_flat", np.concatenate([t.ravel() for _, t in self.components]))
        object.__setattr__(self, "_starts", starts[:-1])
        object.__setattr__(self, "_strides", strides)

    def costs(self, designs: Designs) -> NDArray[np.float64]:
        """Sum of the components over the root of their number, shape (n_designs,)."""
        rows = np.maximum(designs.codes, 0)
        corners: list[tuple[int, NDArray[np.int64], NDArray[np.float64]]] = []
        for position, knots in self.knots.items():
            places = self.space.parameters[position].unit_interval(rows[:, position])
            places = np.where(designs.codes[:, position] < 0, 0.0, places)
            below = np.clip(np.searchsorted(knots, places, "right") - 1, 0, len(knots) - 2)
            share = (places - knots[below]) / (knots[below + 1] - knots[below])
            corners.append((position, below, share**2 * (3 - 2 * share)))
        if not corners:
            return self._sum_of_tables(rows)
        ups = list(itertools.product((0, 1), repeat=len(corners)))  # all corners in one batch
        stacked = np.repeat(rows[None], len(ups), axis=0)
        weights = np.ones((len(ups), len(rows)))
        for number, (position, below, share) in enumerate(corners):
            up = np.array([corner[number] for corner in ups])[:, None]
            stacked[:, :, position] = below + up
            weights *= np.where(up, share, 1 - share)
        values = self._sum_of_tables(stacked.reshape(-1, rows.shape[1]))
        total: NDArray[np.float64] = (weights * values.reshape(weights.shape)).sum(axis=0)
        return total

    def _sum_of_tables(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        places = rows @ self._strides + self._starts  # type: ignore[attr-defined]
        flat: NDArray[np.float64] = self._flat  # type: ignore[attr-defined]
        summed: NDArray[np.float64] = flat[places].sum(axis=1)
        return summed / math.sqrt(len(self.components))

    def enumerate(self) -> NDArray[np.float32]:
        """Cost of every combination of rows, each equally likely in a uniform draw."""
        total = np.zeros(self.sizes, dtype=np.float32)
        for axes, table in self.components:
            shape = [size if i in axes else 1 for i, size in enumerate(self.sizes)]
            total += table.astype(np.float32).reshape(shape)
        for child, parent, active in self.children:
            ends = np.moveaxis(total, (parent, child), (0, 1))
            ends[~active] = ends[~active][:, :1]
        return (total / np.float32(math.sqrt(len(self.components)))).ravel()

    def lowest(self) -> float:
        """The least cost, exactly, by eliminating one parameter after the other."""
        factors = [self._unfolded(axes, table) for axes, table in self.components]
        left = set(range(len(self.sizes)))
        while left:
            touched = {i: {a for axes, _ in factors if i in axes for a in axes} for i in left}
            chosen = min(left, key=lambda i: math.prod(self.sizes[a] for a in touched[i]))
            mine = [factor for factor in factors if chosen in factor[0]]
            factors = [factor for factor in factors if chosen not in factor[0]]
            if mine:
                axes = tuple(sorted(touched[chosen]))
                joint = sum((self._spread(factor, axes) for factor in mine), np.zeros(()))
                least = np.asarray(joint).min(axis=axes.index(chosen))
                factors.append((tuple(a for a in axes if a != chosen), least))
            left.remove(chosen)
        return float(sum(float(table) for _, table in factors)) / math.sqrt(len(self.components))

    def _unfolded(self, axes: tuple[int, ...], table: NDArray[np.float64]) -> Factor:
        """A component with the parents of its conditional parameters among its axes."""
        for child, parent, active in self.children:
            if child in axes:
                wider = tuple(sorted({*axes, parent}))
                shape = tuple(self.sizes[a] for a in wider)
                table = np.array(np.broadcast_to(self._spread((axes, table), wider), shape))
                ends = np.moveaxis(table, (wider.index(parent), wider.index(child)), (0, 1))
                ends[~active] = ends[~active][:, :1]
                axes = wider
        return axes, table

    def _spread(self, factor: Factor, axes: Sequence[int]) -> NDArray[np.float64]:
        own, table = factor
        return table.reshape([self.sizes[a] if a in own else 1 for a in axes])


def nk_landscape(seed: int, goal: int = 0) -> Landscape:
    """Thirteen parameters: nine categorical of 2 to 4 values, four ordinal of 4 to 8.

    Each of 13 components depends on its own parameter and three random ones; two parameters are
    conditional.

    Args:
        seed: makes the space.
        goal: makes, with the seed, the tables: several goals on one space.
    """
    rng = np.random.default_rng([seed, 13])
    while True:
        sizes = [*rng.integers(2, 5, 9).tolist(), *rng.integers(4, 9, 4).tolist()]
        if NK_SIZE[0] <= math.prod(sizes) <= NK_SIZE[1]:
            break
    order = rng.permutation(13).tolist()
    kinds = [(sizes[i], "categorical" if i < 9 else "ordinal") for i in order]
    frame = _frame(rng, kinds)
    rng = np.random.default_rng([seed, 13, goal])
    others = [rng.permutation([j for j in range(13) if j != i])[:NEIGHBOURS] for i in range(13)]
    return _landscape(rng, kinds, frame, [sorted([i, *o.tolist()]) for i, o in enumerate(others)])


def large_landscape(seed: int) -> Landscape:
    """Twenty-four parameters: twelve categorical of 2 to 5 values, eight ordinal, four real.

    Components depend on parameters that are near each other in a hidden order, so that the
    optimum of some 10**15 combinations of knots can be had exactly.
    """
    rng = np.random.default_rng([seed, 24])
    kinds = [(size, "categorical") for size in rng.integers(2, 6, 12).tolist()]
    kinds += [(size, "ordinal") for size in rng.integers(4, 10, 8).tolist()]
    kinds += [(6, kind) for kind in ("real", "real", "log", "log")]
    kinds = [kinds[i] for i in rng.permutation(24).tolist()]
    hidden = rng.permutation(24).tolist()
    groups = []
    for i in range(24):
        near = [j for j in range(i - 3, i + 4) if j != i and 0 <= j < 24]
        chosen = rng.permutation(near)[:NEIGHBOURS].tolist()
        groups.append(sorted(hidden[j] for j in [i, *chosen]))
    return _landscape(rng, kinds, _frame(rng, kinds), groups)


Children = tuple[tuple[int, int, NDArray[np.bool_]], ...]
Frame = tuple[DesignSpace, Children, dict[int, NDArray[np.float64]]]


def _frame(rng: np.random.Generator, kinds: Sequence[tuple[int, str]]) -> Frame:
    """The space of parameters of some size and kind, its conditions, and its knots."""
    children = _children(rng, kinds)
    when = {child: (parent, np.flatnonzero(active)) for child, parent, active in children}
    parameters: list[Parameter] = []
    knots = {}
    for i, (size, kind) in enumerate(kinds):
        condition = None
        if i in when:
            parent, levels = when[i]
            condition = param(f"p{parent}").isin([f"v{level}" for level in levels.tolist()])
        parameters.append(_parameter(f"p{i}", size, kind, condition))
        if kind in ("real", "log"):
            gaps = rng.uniform(0.5, 1.5, size - 1)
            knots[i] = np.concatenate([[0.0], np.cumsum(gaps) / gaps.sum()])
            knots[i][-1] = 1.0
    return DesignSpace(parameters), children, knots


def _landscape(
    rng: np.random.Generator,
    kinds: Sequence[tuple[int, str]],
    frame: Frame,
    groups: Sequence[list[int]],
) -> Landscape:
    """A landscape whose components look at groups of parameters."""
    components: list[Factor] = []
    for group in groups:
        table = rng.random([kinds[i][0] for i in group])
        for axis, i in enumerate(group):
            if kinds[i][1] != "categorical":
                table = _smooth(table, axis)
        table = np.round((table - table.mean()) / table.std(), 9)
        components.append((tuple(group), table))
    space, children, knots = frame
    return Landscape(space, tuple(size for size, _ in kinds), tuple(components), knots, children)


def _children(rng: np.random.Generator, kinds: Sequence[tuple[int, str]]) -> Children:
    """Two conditional parameters with a parent each, listed before them."""
    categorical = [i for i, (_, kind) in enumerate(kinds) if kind == "categorical"]
    parents = sorted(rng.permutation(categorical[: len(categorical) // 2])[:2].tolist())
    later = [i for i in range(parents[1] + 1, len(kinds)) if kinds[i][1] in _FINITE]
    chosen = rng.permutation(later)[:2].tolist()
    children = []
    for parent, child in zip(parents, chosen, strict=True):
        active = np.zeros(kinds[parent][0], dtype=bool)
        active[rng.permutation(len(active))[: max(1, len(active) // 2)]] = True
        children.append((int(child), int(parent), active))
    return tuple(children)


_FINITE = ("categorical", "ordinal")


def _parameter(name: str, size: int, kind: str, when: Any) -> Parameter:
    if kind == "categorical":
        return Categorical(name, [f"v{level}" for level in range(size)], when=when)
    if kind == "ordinal":
        return Ordinal(name, [2**level for level in range(size)], when=when)
    low, high = (1e-3, 1e3) if kind == "log" else (0.0, 1.0)
    return Real(name, low, high, log=kind == "log", when=when)


def _smooth(table: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """The mean of each entry and its neighbours along an axis; the ends count double there."""
    edges = [(1, 1) if a == axis else (0, 0) for a in range(table.ndim)]
    wide = np.moveaxis(np.pad(table, edges, mode="edge"), axis, 0)
    return np.moveaxis((wide[:-2] + wide[1:-1] + wide[2:]) / 3, 0, axis)


class _LandscapeEnvironment(archgym.Environment):
    """One metric a landscape: its cost, moved so that the least is 1."""

    landscapes: ClassVar[tuple[Landscape, ...]]
    offsets: ClassVar[tuple[float, ...]]

    def simulate_batch(self, designs: Designs) -> list[tuple[dict[str, float], float]]:  # type: ignore[override]
        columns = [
            np.maximum(landscape.costs(designs) - offset + 1.0, 0.0).tolist()
            for landscape, offset in zip(self.landscapes, self.offsets, strict=True)
        ]
        names = [metric.name for metric in self.metrics]
        return [(dict(zip(names, row, strict=True)), 0.0) for row in zip(*columns, strict=True)]


def environment_of(name: str, landscapes: Sequence[Landscape]) -> type[archgym.Environment]:
    """An environment that minimises one landscape, or several on the space of the first."""
    space = landscapes[0].space
    metrics = tuple(archgym.Metric(f"cost_{i}_ns", "ns") for i in range(len(landscapes)))
    first = space.canonicalise(np.zeros((1, len(space.names)), dtype=np.int64))
    members = {
        "__doc__": "A made-up landscape.",
        "landscapes": tuple(landscapes),
        "offsets": tuple(landscape.lowest() for landscape in landscapes),
        "design_space": space,
        "metrics": metrics,
        "default_objective": {"minimize": [metric.name for metric in metrics]},
        "baseline": first[0],
    }
    return type(name, (_LandscapeEnvironment,), members)
