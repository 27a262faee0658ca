"""Quasi-random search: designs spread more evenly than chance would."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from archgym import agent
from archgym.agents.common.unseen import Unseen
from archgym.errors import AgentUnsuitableError
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs, UnitCubeEncoding

__all__ = ["SobolSearch"]

_BLOCK = 64
"""Designs drawn at once, however many are asked for, so that ``batch_size`` changes nothing."""
_ROUNDS = 64
"""Times that a block is drawn on for where points are no new legal designs."""


class SobolSearch(agent.Sampler):
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

    class Hyperparameters(agent.Hyperparameters):
        """Hyperparameters of quasi-random search."""

        batch_size: int = Field(
            64, ge=1, le=65_536, description="designs proposed at once; has no effect on which"
        )

    def setup(self) -> None:
        """Starts the sequence.

        Raises:
            AgentUnsuitableError: if the space has more parameters than the sequence has axes.
        """
        from scipy.stats.qmc import Sobol  # takes most of a second to import

        self._encoding = UnitCubeEncoding(self.space)
        axes = len(self._encoding.free)
        if axes > Sobol.MAXDIM:
            raise AgentUnsuitableError(
                f"agent 'sobol' works on at most {Sobol.MAXDIM} free parameters, not on {axes}"
            )
        self._sequence = Sobol(axes, scramble=True, seed=self.rng)
        self._unseen = Unseen(self.space, self.rng)
        self._ready = self.space.designs(())

    @property
    def batch_size(self) -> int:
        """How many designs are asked for at once."""
        return int(self.hyperparameters.batch_size)

    def ask(self, n: int) -> Designs:
        """Up to ``n`` designs; none once every legal design has been proposed."""
        while len(self._ready) < n:
            block = self._unseen.take(_BLOCK, self._follow, tries=_ROUNDS)
            if not len(block):
                break
            self._ready = self._ready.concatenate(block)
        asked, self._ready = self._ready[:n], self._ready[n:]
        return asked

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Remembers which designs are known."""
        self._unseen.add(designs)
        if len(self._ready):
            told = set(designs.keys())
            new = [key not in told for key in self._ready.keys()]  # noqa: SIM118
            self._ready = self._ready[np.array(new)]

    def _follow(self, n: int, failures: int) -> Designs:
        """Designs of the next ``n`` points; the first time that is a power of two, as it must."""
        return self._encoding.decode(self._sequence.random(n))
