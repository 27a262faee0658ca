"""Tabu regions: surroundings of settled designs that a search avoids for a while."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from archgym.agents.common.arrays import Bools, Floats, Ints

_MAX_REGIONS = 64
"""Maximum number of regions; beyond it the oldest is dropped, so that proposals stay cheap."""


class TabuRegions:
    """Where a model-based search has settled, so that it also looks elsewhere.

    On a rugged landscape what a model promises most stays near the best design known, long after
    all that is worth while there has been tried. So the best design outside of all regions
    becomes the centre of a new one once it has not been improved on for some proposals.

    Args:
        alike: how alike designs are to the centres by what a model has learned, from codes of
            shape (n, n_parameters) and (n_centres, n_parameters) to the prior correlations of
            their costs, shape (n, n_centres), at most 1.
        correlation: a design whose correlation with a centre is larger lies in its region.
        patience: proposals outside of all regions without a better design there until the best
            there becomes a centre; 0 sets up no region.
    """

    def __init__(
        self, alike: Callable[[Ints, Ints], Floats], correlation: float, patience: int
    ) -> None:
        self._alike, self._correlation, self._patience = alike, correlation, patience
        self._centres: deque[Ints] = deque(maxlen=_MAX_REGIONS)
        self._best, self._since = np.inf, 0

    def __len__(self) -> int:
        """How many there are."""
        return len(self._centres)

    def outside(self, codes: Ints) -> Bools:
        """Which designs lie in no region, shape (n,)."""
        if not self._centres:
            return np.ones(len(codes), dtype=np.bool_)
        alike = self._alike(codes, np.array(self._centres))
        return np.asarray((alike <= self._correlation).all(axis=1))

    def settle(self, codes: Ints, costs: Floats) -> Bools:
        """Counts a proposal that is to come, and sets up a region where the search is stuck.

        Args:
            codes: all designs known, shape (n, n_parameters).
            costs: theirs, shape (n,).

        Returns:
            Which of them lie in no region, shape (n,).
        """
        free = self.outside(codes)
        if not self._patience or not free.any():
            return free
        row = int(np.flatnonzero(free)[costs[free].argmin()])
        if costs[row] < self._best:
            self._best, self._since = float(costs[row]), 0
        elif self._since >= self._patience:
            self._centres.append(codes[row])
            free = self.outside(codes)
            self._best, self._since = float(costs[free].min(initial=np.inf)), 0
        self._since += 1
        return free
