"""Base of the agents that choose designs by what models predict."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
from threadpoolctl import ThreadpoolController

from archgym.agents.common.arrays import Floats
from archgym.agents.common.observations import Observations
from archgym.agents.common.samplers import NewDesignSampler
from archgym.agents.common.threads import one_quiet_thread
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs


class ModelBasedSampler(NewDesignSampler):
    """Keeps the observations that models learn from, and holds numeric libraries to one thread.

    A subclass calls :meth:`setup` when the libraries that it needs are loaded.
    """

    def setup(self) -> None:
        """Starts without observations."""
        super().setup()
        self._observations = Observations(self.space, len(self.directions))
        self._libraries = ThreadpoolController()

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Takes in data for the models."""
        self._unseen.learn(designs, outcomes)
        self._observations.learn(designs, outcomes, self._errors(outcomes))

    def _errors(self, outcomes: Outcomes) -> Floats | None:
        """Standard errors of the costs of goals; ``None`` if the environment gives no spread."""
        return None if self.spread is None else self.spread.errors(outcomes.metrics)

    def _expect(self, designs: Designs) -> None:
        self._observations.wait_for(designs)

    def _working(self) -> AbstractContextManager[None]:
        return one_quiet_thread(self._libraries)

    def _climb(
        self,
        pool: Designs,
        score: Callable[[Designs], Floats],
        near: Callable[[Designs, Floats], Designs],
        rounds: int,
    ) -> Designs:
        """The unseen design with the largest score that a climb from some designs finds.

        Args:
            pool: unseen designs to start from, at least one.
            score: of designs, shape (n,).
            near: designs near the best ones of a pool, given the pool and its scores.
            rounds: how often such designs join the pool, as long as the largest score grows.
        """
        scores = score(pool)
        for _ in range(rounds):
            more = self._unseen.sift(near(pool, scores))
            if not len(more):
                break
            highest = scores.max()
            pool, scores = pool.concatenate(more), np.concatenate([scores, score(more)])
            if scores.max() <= highest:
                break
        return self._unseen.take_best(pool, scores)
