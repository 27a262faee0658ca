"""Boosting and networks together: their errors differ, so their mean is better than either."""

from __future__ import annotations

import numpy as np

from archgym.proxy.models.base import Array, Arrays, Features, Model, Options, prefixed, under
from archgym.proxy.models.networks import Networks
from archgym.proxy.models.trees import Boosting


class Blend(Model):
    """The mean of gradient boosting and networks; where they disagree it is unsure."""

    kind = "blend"

    def __init__(self, boosting: Boosting, networks: Networks) -> None:
        self._boosting, self._networks = boosting, networks

    @classmethod
    def fit(cls, x: Features, z: Array, seed: int, settings: Options) -> Blend:
        """Settings: those of both."""
        return cls(Boosting.fit(x, z, seed, settings), Networks.fit(x, z, seed, settings))

    def predict(self, x: Features) -> tuple[Array, Array]:
        """Mean of both; spread of the networks, and half of the difference."""
        return self.combine(self._boosting.predict(x), self._networks.predict(x))

    @staticmethod
    def combine(
        boosting: tuple[Array, Array], networks: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """The blend's prediction from that of its members."""
        (trees, _), (mean, spread) = boosting, networks
        return 0.5 * (trees + mean), np.hypot(0.5 * (trees - mean), spread)

    def arrays(self) -> Arrays:
        """Those of both."""
        boosting, networks = self._boosting.arrays(), self._networks.arrays()
        return prefixed("boosting.", boosting) | prefixed("mlp.", networks)

    @classmethod
    def of(cls, arrays: Arrays, n_features: int, n_targets: int) -> Blend:
        """The inverse of :meth:`arrays`."""
        return cls(
            Boosting.of(under("boosting.", arrays), n_features, n_targets),
            Networks.of(under("mlp.", arrays), n_features, n_targets),
        )
