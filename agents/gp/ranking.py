"""The order in which a search looks around known designs."""

from __future__ import annotations

import numpy as np

from archgym.agents.common.arrays import Ints
from archgym.agents.common.observations import Observations
from archgym.agents.common.scores import BROKEN_LIMIT_COST
from archgym.agents.common.targets import distance_from_limits

_MAX_RANKED = 1000
"""Maximum number of best designs, without those in tabu regions, around which candidates are
sought."""


def best_first(known: Observations, rng: np.random.Generator) -> Ints:
    """Rows of the best designs, the best first.

    While nothing is feasible these are the closest to keeping the limits; with several goals
    those of the front, in any order, and then the others.

    Args:
        known: at least one design.
        rng: shuffles the front.
    """
    ranked = known.ranked()[:_MAX_RANKED]
    if known.costs[ranked[0]] >= BROKEN_LIMIT_COST:
        ranked = ranked[~known.failed[ranked]]
        distance = distance_from_limits(known.excess[ranked])
        return np.asarray(ranked[distance.argsort(kind="stable")])
    if known.goals.shape[1] == 1:
        return ranked
    import moocore

    feasible = ranked[known.costs[ranked] < BROKEN_LIMIT_COST]
    front = feasible[moocore.is_nondominated(known.goals[feasible])]
    others = ranked[~np.isin(ranked, front)]
    return np.concatenate([rng.permutation(front), others])
