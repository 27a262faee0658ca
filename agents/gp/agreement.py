"""How well earlier searches foresee what is found."""

from __future__ import annotations

import numpy as np

from archgym.agents.common.scores import costs
from archgym.agents.gp.experience import Experience
from archgym.evaluation.outcome import Outcomes

_LEAST = 10
"""Designs from which on it is judged."""
_NONE, _FULL = 0.5, 0.8
"""Rank correlations up to which there is no agreement and from which on it is full. On the problems
of :mod:`benchmarks.history` it is 0.6 to 0.95 after 20 to 60 designs; with metrics exchanged
between designs it is below 0.6 nearly always, and with reversed ones it is negative."""


class Agreement:
    """Compares what earlier searches expect of designs with their costs, by ranks.

    A history that misleads is worse than none only where it is believed against the evidence. Ranks
    are what a search follows; a wrong scale or offset of a source misleads nobody.

    Args:
        experience: the earlier searches.
    """

    def __init__(self, experience: Experience) -> None:
        self._experience = experience
        self._expected: list[float] = []
        self._found: list[float] = []

    def tell(self, outcomes: Outcomes) -> None:
        """Takes in outcomes of any designs."""
        self._expected.extend(self._experience.score(outcomes.designs).tolist())
        self._found.extend(costs(outcomes).tolist())

    @property
    def share(self) -> float:
        """0, there is none or too few designs to tell, to 1, earlier searches are right."""
        if len(self._found) < _LEAST:
            return 0.0
        from scipy.stats import rankdata

        ranks = [rankdata(values) for values in (self._expected, self._found)]
        if min(np.ptp(one) for one in ranks) == 0:
            return 0.0
        correlation = float(np.corrcoef(*ranks)[0, 1])
        return min(1.0, max(0.0, (correlation - _NONE) / (_FULL - _NONE)))
