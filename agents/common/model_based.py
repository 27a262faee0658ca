"""Base of the agents that choose designs by what models predict."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
from threadpoolctl import ThreadpoolController

from archgym.agents.common.arrays import Floats, Ints
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

    def _breed(
        self,
        pool: Designs,
        score: Callable[[Designs], Floats],
        bred: Callable[[Ints], Designs],
        generations: int,
    ) -> Designs:
        """The unseen design with the largest score that some generations from a pool find.

        Args:
            pool: unseen designs to start from, at least one.
            score: of designs, shape (n,).
            bred: children of designs, given the codes of a pool, the best first.
            generations: how often children join the pool.
        """
        scores, keys = score(pool), set(pool.keys())
        for _ in range(generations):
            ranked = pool.codes[scores.argsort(kind="stable")[::-1]]
            children = self._unseen.sift(bred(ranked))
            theirs = children.keys()
            new = np.array([key not in keys for key in theirs], dtype=np.bool_)
            if new.any():
                children = children[new]
                keys.update(theirs)
                pool = pool.concatenate(children)
                scores = np.concatenate([scores, score(children)])
        return self._unseen.take_best(pool, scores)
