"""What agents choose among: the values of each free parameter, or shares of its range."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise

import numpy as np

from archgym.agents.common.arrays import Floats, Ints
from archgym.space import Designs, DesignSpace


class Choices:
    """A small number of choices for each free parameter of a space.

    A parameter with few values has a choice for each. One with more, or a real one, has choices
    for equal shares of its range, within which a value is drawn evenly, so every value is
    reached. A permutation is several choices: which of the items that are left comes next.

    Args:
        space: the design space.
        most: most choices of a parameter.

    Attributes:
        columns: those of each free parameter in arrays of choices: one, or several.
        sizes: number of choices in each column, shape (n_columns,).
        even: probabilities of choices that are all equally likely, shape (n_columns, most).
    """

    def __init__(self, space: DesignSpace, most: int) -> None:
        self._space = space
        self._free = np.array(space.free, dtype=np.int64)
        self._first = [int(space.allowed_codes(i)[0]) for i in range(len(space.names))]
        parameters = [space.parameters[i] for i in self._free]
        ends = [0, *accumulate(len(p.choices) for p in parameters)]
        self.columns = [range(*pair) for pair in pairwise(ends)]
        sizes = [p.choices if len(p.choices) > 1 else (min(p.size, most),) for p in parameters]
        self.sizes = np.array([size for some in sizes for size in some])
        self._split = len(self.sizes) > len(parameters)
        exists = np.arange(self.sizes.max())[None, :] < self.sizes[:, None]
        self.even = exists / self.sizes[:, None]

    def of(self, designs: Designs) -> Ints:
        """Choices of designs, -1 where a parameter is inactive, shape (n, n_columns)."""
        choices = designs.codes[:, self._free]
        if self._split:
            split = np.empty((len(choices), len(self.sizes)), dtype=np.int64, order="F")
            for own, position, codes in zip(self.columns, self._free, choices.T, strict=True):
                digits = self._space.parameters[position].digits(np.maximum(codes, 0))
                split[:, own] = np.where(
                    (codes < 0)[:, None], -1, digits if len(own) > 1 else codes[:, None]
                )
            choices = split
        for column, position, size in self._shared():
            inactive = choices[:, column] < 0
            place = self._space.parameters[position].unit_interval(choices[:, column])
            share = np.minimum((place * size).astype(np.int64), size - 1)
            choices[:, column] = np.where(inactive, -1, share)
        return choices

    def designs(self, choices: Ints, rng: np.random.Generator) -> Designs:
        """Canonical designs (they need not be legal) of choices, shape (n, n_columns)."""
        return self._designs(choices, lambda: rng.random(len(choices)))

    def canonical(self, choices: Ints) -> Ints:
        """The same with -1 where a choice is without effect: its parameter is inactive."""
        active = self._designs(choices, lambda: 0.5).codes[:, self._free] >= 0
        active = np.repeat(active, [len(own) for own in self.columns], axis=1)
        return np.where(active, choices, -1)

    def draw(self, weights: Floats, n: int, rng: np.random.Generator) -> Ints:
        """Independent draws of all parameters, shape (n, n_columns).

        Args:
            weights: of the choices, 0 beyond a parameter's own, shape (n_columns, most).
            n: how many.
            rng: the only source of randomness.
        """
        bounds = weights.cumsum(axis=1)
        lots = rng.random((n, len(self.sizes))) * bounds[:, -1]
        drawn = (lots[:, :, None] >= bounds[None, :, :]).sum(axis=2)
        return np.asarray(np.minimum(drawn, self.sizes - 1))

    def _designs(self, choices: Ints, within: Callable[[], Floats | float]) -> Designs:
        """Designs whose values lie at some place within the chosen shares, from 0 to 1."""
        codes = np.empty((len(choices), len(self._first)), dtype=np.int64, order="F")
        codes[:] = self._first
        codes[:, self._free] = choices[:, [own.start for own in self.columns]]
        if self._split:
            for own, position in zip(self.columns, self._free, strict=True):
                if len(own) > 1:
                    parameter = self._space.parameters[position]
                    codes[:, position] = parameter.from_digits(choices[:, own])
        for column, position, size in self._shared():
            place = (choices[:, column] + within()) / size
            codes[:, position] = self._space.parameters[position].from_unit_interval(place)
        return self._space.canonicalise(codes)

    def _shared(self) -> list[tuple[int, int, int]]:
        """Column, position and number of choices of parameters chosen as shares."""
        found = []
        for own, position in zip(self.columns, self._free.tolist(), strict=True):
            size = int(self.sizes[own.start])
            if len(own) == 1 and size < self._space.parameters[position].size:
                found.append((own.start, position, size))
        return found
