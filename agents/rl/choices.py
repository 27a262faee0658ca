"""What agents choose among: the values of each free parameter, or shares of its range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archgym.agents.common.arrays import Floats, Ints
from archgym.space import Designs, DesignSpace


class Choices:
    """A small number of choices for each free parameter of a space.

    A parameter with few values has a choice for each. One with more, or a real one, has choices
    for equal shares of its range, within which a value is drawn evenly, so every value is
    reached.

    Args:
        space: the design space.
        most: most choices of a parameter.

    Attributes:
        sizes: number of choices of each free parameter, shape (n_free,).
        even: probabilities of choices that are all equally likely, shape (n_free, most).
    """

    def __init__(self, space: DesignSpace, most: int) -> None:
        self._space = space
        self._free = np.array(space.free, dtype=np.int64)
        self._first = [int(space.allowed_codes(i)[0]) for i in range(len(space.names))]
        self.sizes = np.array([min(space.parameters[i].size, most) for i in self._free])
        exists = np.arange(self.sizes.max())[None, :] < self.sizes[:, None]
        self.even = exists / self.sizes[:, None]

    def of(self, designs: Designs) -> Ints:
        """Choices of designs, -1 where a parameter is inactive, shape (n, n_free)."""
        choices = designs.codes[:, self._free]
        for column, position, size in self._shared():
            inactive = choices[:, column] < 0
            place = self._space.parameters[position].unit_interval(choices[:, column])
            share = np.minimum((place * size).astype(np.int64), size - 1)
            choices[:, column] = np.where(inactive, -1, share)
        return choices

    def designs(self, choices: Ints, rng: np.random.Generator) -> Designs:
        """Canonical designs (they need not be legal) of choices, shape (n, n_free)."""
        return self._designs(choices, lambda: rng.random(len(choices)))

    def canonical(self, choices: Ints) -> Ints:
        """The same with -1 where a choice is without effect: its parameter is inactive."""
        active = self._designs(choices, lambda: 0.5).codes[:, self._free] >= 0
        return np.where(active, choices, -1)

    def draw(self, weights: Floats, n: int, rng: np.random.Generator) -> Ints:
        """Independent draws of all parameters, shape (n, n_free).

        Args:
            weights: of the choices, 0 beyond a parameter's own, shape (n_free, most).
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
        codes[:, self._free] = choices
        for column, position, size in self._shared():
            place = (choices[:, column] + within()) / size
            codes[:, position] = self._space.parameters[position].from_unit_interval(place)
        return self._space.canonicalise(codes)

    def _shared(self) -> list[tuple[int, int, int]]:
        """Column, position and number of choices of parameters chosen as shares."""
        columns = enumerate(zip(self._free.tolist(), self.sizes.tolist(), strict=True))
        parameters = self._space.parameters
        return [(c, p, size) for c, (p, size) in columns if size < parameters[p].size]
