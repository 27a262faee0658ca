"""Random search: the yardstick of every other agent."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from archgym.agents.common.arrays import Bools
from archgym.agents.common.samplers import BlockSampler
from archgym.space import Designs

_MAX_THINNING = 256
"""Most draws that an evenly drawn design may cost on average."""


class RandomSearch(BlockSampler):
    """Draws legal designs at random, none of them twice, until no more are left.

    In a finite space every legal design is equally likely: of two settings of a switch, the one
    that makes more parameters act is drawn more often. In a space with real parameters, or
    where drawing evenly would cost too much, every level of a parameter is equally likely.

    It uses nothing of the outcomes, so it works for any number of goals.

    References:
        Bergstra and Bengio, Random Search for Hyper-Parameter Optimization, JMLR 13,
            2012.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("random", env.design_space, seed=1).search(env, budget=100)
    >>> result.simulations, result.duplicates
    (100, 0)
    """

    name: ClassVar[str] = "random"

    def setup(self) -> None:
        """Starts with nothing known."""
        super().setup()
        self._sizes = np.array(
            [len(self.space.allowed_codes(i)) for i in range(len(self.space.names))],
            dtype=np.float64,
        )
        self._draws = self.space.raw_cardinality / self._unseen.size  # NaN where both are infinite

    def _block(self, n: int) -> Designs:
        return self._unseen.take(n, self._draw_evenly if self._draws <= _MAX_THINNING else None)

    def _draw_evenly(self, n: int, failures: int) -> Designs:
        """About ``n`` designs, each equally likely.

        A sampled one stands for all raw combinations of its inactive parameters, so it is kept
        with one over their number as probability.
        """
        designs = self.space.sample(16 + int(n * self._draws), self.rng)
        stands_for = np.where(designs.codes < 0, self._sizes, 1.0).prod(axis=1)
        kept: Bools = self.rng.random(len(designs)) * stands_for < 1.0
        return designs[kept]
