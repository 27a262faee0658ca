"""A third-party agent: goes through the space in order."""

from __future__ import annotations

from archgym.agent import Sampler
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs


class Sweep(Sampler):
    """Every design once, in lexicographic order."""

    name = "sweep"

    def setup(self) -> None:
        self._chunks = self.space.enumerate(16)

    def ask(self, n: int) -> Designs:
        return next(self._chunks, self.space.designs([]))

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        pass
