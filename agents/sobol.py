"""Quasi-random search: designs spread more evenly than chance would."""

from __future__ import annotations

from typing import ClassVar

from archgym.agents.common.samplers import BlockSampler
from archgym.errors import AgentUnsuitableError
from archgym.space import Designs, UnitCubeEncoding

_ROUNDS = 64
"""Times that a block is drawn on for where points are no new legal designs."""


class SobolSearch(BlockSampler):
    """Goes along a scrambled Sobol sequence through the space, without proposing a design twice.

    Each free parameter is one axis of the unit cube
    (:class:`archgym.space.UnitCubeEncoding`), the seed chooses the scrambling. Points that fall
    on a known design or break a rule are passed over. Where next to no point is a new design,
    as in a small space, random designs that are new take their place.

    It uses nothing of the outcomes, so it works for any number of goals.

    References:
        Sobol', On the distribution of points in a cube and the approximate evaluation
            of integrals, USSR Computational Mathematics and Mathematical Physics 7,
            1967.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("sobol", env.design_space, seed=1).search(env, budget=100)
    >>> result.simulations, result.duplicates
    (100, 0)
    """

    name: ClassVar[str] = "sobol"

    def setup(self) -> None:
        """Starts the sequence.

        Raises:
            AgentUnsuitableError: if the space has more parameters than the sequence has axes.
        """
        from scipy.stats.qmc import Sobol  # takes most of a second to import

        self._encoding = UnitCubeEncoding(self.space)
        axes = self._encoding.width
        if axes > Sobol.MAXDIM:
            raise AgentUnsuitableError(
                f"agent 'sobol' works on at most {Sobol.MAXDIM} numbers a design, not on {axes}"
            )
        self._sequence = Sobol(axes, scramble=True, seed=self.rng)
        super().setup()

    def _block(self, n: int) -> Designs:
        return self._unseen.take(n, self._follow, tries=_ROUNDS)

    def _follow(self, n: int, failures: int) -> Designs:
        """Designs of the next ``n`` points; the first time that is a power of two, as it must."""
        return self._encoding.decode(self._sequence.random(n))
