"""A Gaussian process that is a sum of components of few parameters each, where data show so."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.agents.common.arrays import Floats
from archgym.agents.gp.gaussian_process import GaussianProcess
from archgym.agents.gp.interactions import NUGGET, Interactions
from archgym.agents.gp.levels import Columns

_FEW = 100
"""Designs up to which the walk over sets of parameters goes on though their sum is not in use;
later it does so when the product kernel is tuned anew."""


class AdditiveProcess(GaussianProcess):
    """The Gaussian process with a choice of two kernels: the product, or a learned sum.

    The sum is over the sets of parameters of :class:`archgym.agents.gp.interactions.Interactions`;
    each component is the product of how alike designs are in its parameters, with the length
    scales of the product kernel. Whichever makes the data likelier is used.

    Args:
        columns: of the coordinates.
        rng: as for the plain process.
        interactions: what several processes have learned together.

    Attributes:
        additive: whether the sum is in use.
    """

    def __init__(
        self, columns: Columns, rng: np.random.Generator | None, interactions: Interactions
    ) -> None:
        super().__init__(columns, rng)
        self._interactions = interactions
        self.additive = False

    def tune(self, x: Floats, y: Floats, known_noise: Floats | float = 0.0) -> None:
        """Tunes the product kernel and learns which parameters act together.

        Whenever the product kernel was tuned anew, the two are compared.

        Args:
            x: coordinates, shape (n, n_columns).
            y: targets, shape (n,).
            known_noise: as for the plain process.
        """
        before = self.tuned_at
        super().tune(x, y, known_noise)
        if self.additive or len(y) < _FEW or self.tuned_at != before:
            self._interactions.walk(self.alike(x, x), y)
        if self.tuned_at != before:
            self.additive = False
            as_product = self.fit(x, y, known_noise)
            self.additive = True
            self.additive = self.fit(x, y, known_noise) > as_product

    @property
    def noise(self) -> float:
        """Variance of the noise as a share of the signal's."""
        return NUGGET if self.additive else super().noise

    def _terms(self) -> Any:
        return self._interactions.terms() if self.additive else super()._terms()

    def _sensitivity(self) -> Floats:
        return np.ones(self._n) if self.additive else super()._sensitivity()
