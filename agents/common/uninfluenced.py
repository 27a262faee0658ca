"""A searcher that others do not lead astray, though it learns from them."""

from __future__ import annotations

import numpy as np

from archgym import agent
from archgym.agents.common.observations import some_outcomes
from archgym.agents.common.scores import costs
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs

_REPEATS = 12
"""Designs that others tried of which the searcher hears before a turn."""


class Uninfluenced:
    """Tells a searcher what it found itself, and of what others found only what is no better.

    A good design draws a search to its surroundings. One that is no better than the best that the
    search knows does so less, and its model may learn from it. So what others found is withheld
    until others are not led by anything either and the searcher has found something as good
    itself, or it proposes the same design.

    Args:
        searcher: the searcher.
        n_own: designs that it hears of before any of others, so that it begins as it would alone.
    """

    def __init__(self, searcher: agent.Sampler, n_own: int) -> None:
        self.searcher, self._n_own = searcher, n_own
        self._outcomes: dict[int, Outcomes] = {}
        self._withheld: dict[int, float] = {}
        self._best, self._heard = np.inf, 0

    def tell(self, outcomes: Outcomes, own: set[int], *, others_led: bool) -> None:
        """Takes in outcomes of anyone's designs.

        Args:
            outcomes: of the designs.
            own: rows of which the searcher hears in any case.
            others_led: whether it hears of no others now, as they are led by something.
        """
        for row, cost in enumerate(costs(outcomes).tolist()):
            one = some_outcomes(outcomes, np.array([row]), self.searcher.space)
            key = one.designs.keys()[0]
            self._outcomes[key], self._withheld[key] = one, cost
            if row in own:
                self._hear(key)
        if not others_led and self._heard >= self._n_own:
            for key in [key for key, cost in self._withheld.items() if cost >= self._best]:
                self._hear(key)

    def ask(self) -> Designs:
        """A design of which no outcome was told; none if the searcher finds none."""
        for _ in range(_REPEATS):
            asked = self.searcher.ask(1)
            if not len(asked) or asked.keys()[0] not in self._outcomes:
                return asked
            self._hear(asked.keys()[0])
        return self.searcher.space.designs(())

    def _hear(self, key: int) -> None:
        """Tells the searcher one outcome."""
        if key in self._withheld:
            self._best = min(self._best, self._withheld.pop(key))
            self._heard += 1
        self.searcher.tell(self._outcomes[key].designs, self._outcomes[key])
