"""Designs that earlier searches suggest, offered one by one as long as they are no poor ones."""

from __future__ import annotations

import numpy as np

from archgym.agents.common.scores import costs
from archgym.agents.common.unseen import Unseen
from archgym.evaluation.outcome import Outcomes
from archgym.history import History
from archgym.space import Designs

_POOR = 0.8
"""Share of what a source knows that is better than a poor design."""
_MAX_OTHERS = 10
"""Designs not from history with which the offered ones are compared: later ones are good because
the search has learned."""


class Offers:
    """Offers designs, and judges by their outcomes whether their sources are right.

    The best designs of an earlier problem are good ones of a similar problem. If they are worse
    than most of what the sources know, the new problem is harder, or the sources mislead. Designs
    that nobody chose tell which: where sources are right, their best designs are better than these.
    So one poor design is enough to stop, and one worse design that is not from history to go on.

    Args:
        designs: what the sources suggest, the best first.
        history: the sources.

    Attributes:
        hold: whether the offered designs are no poor ones, or better than others.
    """

    def __init__(self, designs: Designs, history: History) -> None:
        self._designs, self._keys = designs, designs.keys()
        self._taken = 1
        self._known = [np.sort(costs(source.outcomes)) for source in history]
        self._costs: dict[int, float] = {}
        self._others: dict[int, float] = {}
        self._led: set[int] = set()
        self.hold = True

    @property
    def later(self) -> int:
        """How many designs are not offered at once."""
        return max(0, len(self._keys) - 1)

    @property
    def compared(self) -> bool:
        """Whether the offered designs hold, or were compared with others."""
        return self.hold or bool(self._others)

    def take(self, unseen: Unseen) -> Designs:
        """The next unseen design; none if none is left, or if those before do not hold."""
        while self.hold and self._taken < len(self._keys):
            self._taken += 1
            if len(design := unseen.sift(self._designs[self._taken - 1 : self._taken])):
                unseen.add(design)
                return design
        return self._designs[:0]

    def led(self, designs: Designs) -> None:
        """Notes designs that the search proposed because it believes the sources."""
        self._led.update(designs.keys())

    def tell(self, outcomes: Outcomes) -> None:
        """Takes in outcomes of any designs."""
        for key, cost in zip(outcomes.designs.keys(), costs(outcomes).tolist(), strict=True):
            if key in self._keys:
                self._costs.setdefault(key, cost)
            elif key not in self._led and len(self._others) < _MAX_OTHERS:
                self._others.setdefault(key, cost)
        self.hold = self._judge()

    def _judge(self) -> bool:
        if not self._costs:
            return True
        offered = np.array([*self._costs.values()])
        ranks = [np.searchsorted(known, offered) / len(known) for known in self._known]
        if np.median(np.mean(ranks, axis=0)) < _POOR:
            return True
        others = np.array([*self._others.values()])
        return bool(np.sign(others[:, None] - offered).sum() > 0)
