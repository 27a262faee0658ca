"""Plateaus with rare joint moves under a binding limit: made by a seed, optimum by enumeration.

A design has mechanisms, as an architecture has: a prefetcher and the buffer that it fills, banks
and the policy that keeps them open. Each has two or three parameters and helps if all of them are
set right at once, and a little if all but one are; everywhere else its cost is on a plateau.
Buffers take area, about twice as much with each level, and switches that are on take some, whether
their mechanism helps or not; an area limit is such that not all mechanisms can be had. So a search
sees few values, pays for single steps in the right direction, and has to give one thing up to have
another. One switch only takes area, and two choices change nothing.

The limit is given to the search as a limit (``limited``), or the goal grows beyond it
(``penalised``), as where users write their own penalty. Both have the same optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.space import Boolean, Categorical, Designs, DesignSpace, Ordinal, Parameter

__all__ = ["Plateau", "environment_of", "plateau"]

SIZES = (2, 2, 2, 3, 3, 4, 4, 5, 4, 5, 6, 6)
"""Levels of the parameters: three switches, five choices, four buffers."""
SWITCHES, BUFFERS = 3, 8
"""How many switches there are, and the position, before they are shuffled, of the first buffer."""
GROUPS = ((0, 3, 8), (1, 9), (5, 10), (6, 11))
"""Parameters of each mechanism, before they are shuffled."""
SHARE = 0.1
"""Share of uniform draws that keep the limit, about."""
PENALTY = 10.0
"""What the goal grows by at twice the limit, besides a step of 1 at the limit, in multiples of what
all mechanisms cost together."""
NEARLY = (0.75, 0.95)
"""Least and most that is left of a mechanism's weight if one thing is not right."""
Component = tuple[tuple[int, ...], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Plateau:
    """A plateau.

    Attributes:
        space: the design space.
        mechanisms: positions of parameters and a table over them, of what is added to the cost.
        areas: positions and a table over each, of areas that are added, in square micrometres.
        limit: the largest area, in square micrometres.
    """

    space: DesignSpace
    mechanisms: tuple[Component, ...]
    areas: tuple[Component, ...]
    limit: float

    def costs(self, designs: Designs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cost and area of designs, shape (n_designs,) each."""
        codes = designs.codes
        sums = [
            sum(table[tuple(codes[:, i] for i in axes)] for axes, table in components)
            for components in (self.mechanisms, self.areas)
        ]
        return 1.0 + np.asarray(sums[0]), np.asarray(sums[1])

    def enumerate(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cost and area of every design, each equally likely in a uniform draw."""
        sizes = [parameter.size for parameter in self.space.parameters]
        sums = []
        for components in (self.mechanisms, self.areas):
            total = np.zeros(sizes)
            for axes, table in components:
                total += table.reshape([n if i in axes else 1 for i, n in enumerate(sizes)])
            sums.append(total.ravel())
        return 1.0 + sums[0], sums[1]

    def penalised(
        self, costs: NDArray[np.float64], areas: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The goal where the limit is a penalty in it, shape (n_designs,)."""
        beyond = np.maximum(areas / self.limit - 1.0, 0.0)
        worst = sum(float(table.max()) for _, table in self.mechanisms)
        return np.where(beyond > 0, costs + worst * (1.0 + PENALTY * beyond), costs)


def plateau(seed: int) -> Plateau:
    """A plateau of twelve parameters and 4.1 million designs."""
    rng = np.random.default_rng([seed, 12])
    order = rng.permutation(len(SIZES)).tolist()  # place in the space of each parameter
    parameters: list[Parameter | None] = [None] * len(SIZES)
    for number, size in enumerate(SIZES):
        parameters[order[number]] = _parameter(f"p{order[number]}", size, number >= BUFFERS)
    space = DesignSpace([parameter for parameter in parameters if parameter is not None])
    mechanisms = tuple(_mechanism(rng, group, order) for group in GROUPS)
    areas: list[Component] = [
        ((order[number],), np.float64(rng.uniform(0.7, 1.4)) * np.exp2(np.arange(SIZES[number])))
        for number in range(BUFFERS, len(SIZES))
    ]
    areas += [  # of what is switched on
        ((order[number],), np.array([0.0, rng.uniform(1.0, 4.0)])) for number in range(SWITCHES)
    ]
    made = Plateau(space, mechanisms, tuple(areas), math.inf)
    limit = float(np.quantile(made.enumerate()[1], SHARE))
    return Plateau(space, mechanisms, tuple(areas), limit)


def _parameter(name: str, size: int, buffer: bool) -> Parameter:
    if buffer:
        return Ordinal(name, [2**level for level in range(size)])
    return Boolean(name) if size == 2 else Categorical(name, [f"v{level}" for level in range(size)])


def _mechanism(rng: np.random.Generator, group: tuple[int, ...], order: list[int]) -> Component:
    """What a mechanism adds: nothing if all is right, most of its weight if one thing is not."""
    weight, nearly = float(rng.uniform(1.0, 3.0)), float(rng.uniform(*NEARLY))
    right = []
    for number in group:
        size = SIZES[number]
        fits = np.zeros(size, dtype=bool)
        if number >= BUFFERS:  # a buffer that is large enough
            fits[int(rng.integers(1, size - 2)) :] = True
        else:
            fits[int(rng.integers(size)) if size > 2 else 1] = True
        right.append(fits)
    wrong = sum(
        (~fits).astype(int).reshape([-1 if i == axis else 1 for i in range(len(group))])
        for axis, fits in enumerate(right)
    )
    table = weight * np.select([wrong == 0, wrong == 1], [0.0, nearly], 1.0)
    places = [order[number] for number in group]
    ascending = np.argsort(places)
    return tuple(sorted(places)), np.transpose(table, ascending)


class _PlateauEnvironment(archgym.Environment):
    """The cost of a plateau."""

    made: ClassVar[Plateau]
    is_penalised: ClassVar[bool]

    def simulate_batch(self, designs: Designs) -> list[tuple[dict[str, float], float]]:  # type: ignore[override]
        costs, areas = self.made.costs(designs)
        costs = self.made.penalised(costs, areas) if self.is_penalised else costs
        return [
            ({"cost_ns": cost, "area_um2": area}, 0.0)
            for cost, area in zip(costs.tolist(), areas.tolist(), strict=True)
        ]


def environment_of(name: str, made: Plateau, *, penalised: bool) -> type[archgym.Environment]:
    """An environment that minimises the cost of a plateau within its limit."""
    goal: dict[str, object] = {"minimize": "cost_ns"}
    if not penalised:
        goal["limits"] = [f"area_um2 <= {made.limit!r}"]
    least = np.zeros((1, len(made.space.names)), dtype=np.int64)
    members = {
        "__doc__": "A made-up plateau.",
        "made": made,
        "is_penalised": penalised,
        "design_space": made.space,
        "metrics": (archgym.Metric("cost_ns", "ns"), archgym.Metric("area_um2", "um2")),
        "default_objective": goal,
        "baseline": made.space.canonicalise(least)[0],
    }
    return type(name, (_PlateauEnvironment,), members)
