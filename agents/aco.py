"""Ant colony optimisation for mixed spaces."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from archgym import agent
from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.common.hyperparameters import Count, Share, Size
from archgym.agents.common.samplers import NewDesignSampler
from archgym.agents.common.scores import costs
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs, Permutation

_MAX_TRAILS = 256
"""Parameters with more levels have no trail a level but a kernel around the best designs."""
_TINY = 1e-9
"""Least share of the pheromone on an item that is left: something must be chosen."""


class AntColony(NewDesignSampler):
    """Ant colony optimisation: ants choose level by level, along the trails of the best before.

    Each level of a parameter has a trail of pheromone. An ant takes the strongest trail with
    probability ``greediness`` (ant colony system), else any in proportion to its pheromone.
    When a colony has returned, trails evaporate and the best designs so far lay new pheromone,
    the better the more; trails keep between bounds (MAX-MIN ant system), and those of a
    conditional parameter change only where designs had it active. Parameters that are real or
    have many levels are chosen from a Gaussian kernel around one of the best designs (ant
    colony optimisation for continuous domains). A permutation has a trail for each item at each
    position; ants choose its items from the first position on, each once. An ant whose design
    breaks a rule or is known is moved on at random, so nothing is proposed twice. After
    ``patience`` colonies without a better design the trails are wiped.

    With several goals it searches their weighted geometric mean
    (:func:`archgym.agents.common.scores.costs`).

    References:
        Dorigo and Gambardella, Ant Colony System, IEEE Transactions on Evolutionary
            Computation 1, 1997.
        Stützle and Hoos, MAX-MIN Ant System, Future Generation Computer Systems 16,
            2000.
        Socha and Dorigo, Ant colony optimization for continuous domains, European
            Journal of Operational Research 185, 2008.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("aco", env.design_space, seed=1).search(env, budget=100)
    >>> result.simulations, result.duplicates
    (100, 0)
    """

    name: ClassVar[str] = "aco"

    class Hyperparameters(agent.Hyperparameters):
        """Hyperparameters of ant colony optimisation."""

        ants: Size = Field(8, description="designs of a colony, proposed at once")
        evaporation: float = Field(
            0.4, gt=0, le=1, description="share of the pheromone that each colony replaces"
        )
        greediness: Share = Field(
            0.3, description="probability that an ant takes the strongest trail of a parameter"
        )
        elite: Size = Field(8, description="best designs that deposit pheromone and centre kernels")
        least_trail: Share = Field(
            0.05, description="share of the pheromone that is always spread evenly over the levels"
        )
        patience: Count = Field(
            25, description="colonies without a better design before the trails are reset"
        )

    def setup(self) -> None:
        """Starts with nothing known."""
        super().setup()
        self._codes = self.space.designs(()).codes  # the elite, best first
        self._costs = np.empty(0)
        self._returned = 0  # ants since the last evaporation
        self._idle = 0  # colonies without a better design
        self._record = np.inf
        self._wipe()

    @property
    def batch_size(self) -> int:
        """How many designs are asked for at once."""
        return int(self.hyperparameters.ants)

    @property
    def trails(self) -> dict[str, Floats]:
        """Pheromone on each level of each parameter that has trails; sums to one a parameter."""
        return {
            self.space.names[position]: trail.copy() for position, trail in self._trails.items()
        }

    def ask(self, n: int) -> Designs:
        """Up to ``n`` designs, one an ant."""
        return self._unseen.take(n, self._roam)

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Lets the ants return; when a colony is complete the trails change."""
        self._unseen.learn(designs, outcomes)
        for row, cost in enumerate(costs(outcomes).tolist()):
            self._admit(designs.codes[row], cost)
            self._returned += 1
            if self._returned == self.hyperparameters.ants:
                self._lay()
                self._returned = 0

    def _admit(self, codes: Ints, cost: float) -> None:
        if (self._codes == codes).all(axis=1).any():
            return
        place = int(self._costs.searchsorted(cost))
        if place < self.hyperparameters.elite:
            most = self.hyperparameters.elite
            self._codes = np.insert(self._codes, place, codes, axis=0)[:most]
            self._costs = np.insert(self._costs, place, cost)[:most]

    def _wipe(self) -> None:
        """Even trails."""
        self._idle = 0
        self._trails = {
            int(p): np.full(self.space.parameters[p].size, 1.0 / self.space.parameters[p].size)
            for p in self._moves.free
            if self.space.parameters[p].size <= _MAX_TRAILS
            and not isinstance(self.space.parameters[p], Permutation)
        }
        self._orders = {
            int(p): np.full((len(parameter.items),) * 2, 1.0 / len(parameter.items))
            for p in self._moves.free
            if isinstance(parameter := self.space.parameters[p], Permutation)
        }

    def _lay(self) -> None:
        self._idle = self._idle + 1 if self._costs[0] >= self._record else 0
        self._record = float(self._costs[0])
        if self._idle >= self.hyperparameters.patience:
            self._codes, self._costs = self._codes[:1], self._costs[:1]
            self._wipe()
            return
        weights = self._weights()
        for position, steps in self._orders.items():
            self._lay_order(position, steps, weights)
        for position, trail in self._trails.items():
            levels = self._codes[:, position]
            active = levels >= 0
            if active.any():
                laid = np.bincount(levels[active], weights[active], len(trail))
                rate = self.hyperparameters.evaporation * weights[active].sum()
                trail += rate * (laid / laid.sum() - trail)

    def _lay_order(self, position: int, steps: Floats, weights: Floats) -> None:
        """As :meth:`_lay`, on the trails of a permutation, shape (n_positions, n_items)."""
        levels = self._codes[:, position]
        active = levels >= 0
        if not active.any():
            return
        orders = self._permutation(position).orders(levels[active])
        laid, share = np.zeros_like(steps), weights[active].sum()
        for place, items in enumerate(orders.T):
            laid[place] = np.bincount(items, weights[active], len(steps)) / share
        steps += self.hyperparameters.evaporation * share * (laid - steps)

    def _weights(self) -> Floats:
        """How much each elite design counts: the best most, falling by rank; sums to one."""
        weights = np.arange(len(self._codes), 0, -1, dtype=np.float64)
        return np.asarray(weights / weights.sum())

    def _roam(self, n: int, failures: int) -> Designs:
        """Designs of ``n`` ants; the more failures before, the more parameters are moved on."""
        codes = np.full((n, len(self.space.names)), -1, dtype=np.int64, order="F")
        for position in self._moves.free.tolist():
            if position in self._trails:
                codes[:, position] = self._follow(self._trails[position], n)
            elif position in self._orders:
                codes[:, position] = self._follow_order(position, n)
            elif len(self._codes):
                codes[:, position] = self._near(position, n)
        designs = self._moves.complete(codes)
        return self._moves.mutate(designs.codes, failures) if failures else designs

    def _follow(self, trail: Floats, n: int) -> Ints:
        least = self.hyperparameters.least_trail
        bounds = np.cumsum((1 - least) * trail + least / len(trail))
        level = bounds.searchsorted(self.rng.random(n) * bounds[-1], side="right")
        greedy = self.rng.random(n) < self.hyperparameters.greediness
        return np.where(greedy, trail.argmax(), np.minimum(level, len(trail) - 1))

    def _follow_order(self, position: int, n: int) -> Ints:
        """Orders of ``n`` ants, item by item."""
        steps, least = self._orders[position], self.hyperparameters.least_trail
        count = len(steps)
        orders = np.empty((n, count), dtype=np.int64)
        left = np.ones((n, count), dtype=np.bool_)
        ants = np.arange(n)
        for place, trail in enumerate((1 - least) * steps + max(least, _TINY) / count):
            open_trails = np.where(left, trail, 0.0)
            bounds = np.cumsum(open_trails, axis=1)
            lots = self.rng.random(n) * bounds[:, -1]
            drawn = np.minimum((lots[:, None] >= bounds).sum(axis=1), count - 1)
            greedy = self.rng.random(n) < self.hyperparameters.greediness
            greedy |= ~left[ants, drawn]  # where a lot was rounded up
            orders[:, place] = np.where(greedy, open_trails.argmax(axis=1), drawn)
            left[ants, orders[:, place]] = False
        return self._permutation(position).codes_of(orders)

    def _permutation(self, position: int) -> Permutation:
        parameter = self.space.parameters[position]
        assert isinstance(parameter, Permutation)
        return parameter

    def _near(self, position: int, n: int) -> Ints:
        """Levels from a Gaussian kernel around elite designs that have the parameter active."""
        parameter, rng = self.space.parameters[position], self.rng
        levels, weights = self._codes[:, position], self._weights()
        active = levels >= 0
        if not active.any():
            return np.full(n, -1)
        places = parameter.unit_interval(levels[active])
        bounds = np.cumsum(weights[active])
        chosen = bounds.searchsorted(rng.random(n) * bounds[-1], side="right")
        centre = places[np.minimum(chosen, len(places) - 1)]
        width = np.abs(places[:, None] - centre).mean(axis=0)
        noise = rng.random((12, n)).sum(axis=0) - 6.0  # close to normal, and equal on all machines
        place = 1.0 - np.abs(1.0 - np.abs(centre + width * noise))
        anywhere = rng.random(n) < self.hyperparameters.least_trail
        return parameter.from_unit_interval(np.where(anywhere, rng.random(n), place))
