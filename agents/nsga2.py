"""NSGA-II: a genetic algorithm for several goals at once, within limits."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.common.hyperparameters import Several
from archgym.agents.common.scores import total_excess
from archgym.agents.ga import Breeding, Genetic
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs


class Nsga2(Genetic):
    """NSGA-II (Deb et al., 2002): searches the whole Pareto front, limits before goals.

    Parents and survivors are chosen by constrained domination: a feasible design is better than
    one that breaks a limit, of two that do the one with the smaller excess in total is better,
    and feasible ones are sorted into fronts; within a front, designs in empty regions come first
    (crowding distance). Children are made by the operators of
    :class:`archgym.agents.ga.Genetic`, one for each kind of parameter, and join the
    population as soon as their outcomes arrive. Nothing is proposed twice.

    With one goal it is a genetic algorithm that keeps the best.

    References:
        Deb et al., A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II, IEEE
            Transactions on Evolutionary Computation 6, 2002.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0", objective={"minimize": ["access_ns", "energy_pj"]})
    >>> agent = make_agent("nsga2", env.design_space, ("minimize", "minimize"), seed=1)
    >>> result = agent.search(env, budget=100)
    >>> result.duplicates, len(result.front) > 5
    (0, True)
    """

    name: ClassVar[str] = "nsga2"

    class Hyperparameters(Breeding):
        """Hyperparameters of NSGA-II."""

        population_size: Several = Field(
            32, description="possible parents, and random designs at the start"
        )

    def setup(self) -> None:
        """Starts with nothing known."""
        super().setup()
        self._goals: Floats | None = None
        self._excess = np.empty(0)  # over all limits; infinite for a failure

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Takes designs into the population and keeps the best of it."""
        self._unseen.learn(designs, outcomes)
        new = self._admit(designs)
        codes = np.concatenate([designs.codes[new], self._codes])
        goals = outcomes.costs[new]
        if self._goals is not None:
            goals = np.concatenate([goals, self._goals])
        excess = np.concatenate([total_excess(outcomes)[new], self._excess])
        best = constrained_order(goals, excess)[: self.hyperparameters.population_size]
        self._codes, self._goals, self._excess = codes[best], goals[best], excess[best]


def constrained_order(goals: Floats, excess: Floats) -> Ints:
    """Rows by rank under constrained domination, those in empty regions first within a rank.

    Args:
        goals: as for :func:`constrained_ranks`.
        excess: likewise.
    """
    ranks = constrained_ranks(goals, excess)
    return np.asarray(np.lexsort((-crowding_distances(goals, ranks), ranks)))


def constrained_ranks(goals: Floats, excess: Floats) -> Ints:
    """Rank of each design under constrained domination, 0 the best, shape (n,).

    Args:
        goals: minimised; of a feasible design finite, shape (n, n_goals).
        excess: over all limits in total, 0 for a feasible design, shape (n,).
    """
    import moocore

    ranks = np.zeros(len(goals), dtype=np.int64)
    feasible = excess <= 0
    first_broken = 0
    if feasible.any():
        ranks[feasible] = moocore.pareto_rank(goals[feasible])
        first_broken = int(ranks[feasible].max()) + 1
    _, order = np.unique(excess[~feasible], return_inverse=True)
    ranks[~feasible] = first_broken + order
    return ranks


def crowding_distances(goals: Floats, ranks: Ints) -> Floats:
    """How empty the region around each design is among those of its rank, shape (n,).

    The distance between its two neighbours along each goal, as a share of the rank's range,
    summed; infinite for the ends. Designs without finite goals have none.

    Args:
        goals: minimised, shape (n, n_goals).
        ranks: of each design, shape (n,).
    """
    distances = np.zeros(len(goals))
    for rank in np.unique(ranks):
        members = np.flatnonzero((ranks == rank) & np.isfinite(goals).all(axis=1))
        for goal in goals[members].T:
            order = goal.argsort(kind="stable")
            value, row = goal[order], members[order]
            if len(row) and value[-1] > value[0]:
                distances[row[[0, -1]]] = np.inf
                distances[row[1:-1]] += (value[2:] - value[:-2]) / (value[-1] - value[0])
    return distances
