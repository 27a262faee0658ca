"""Simulated annealing that never pays for a design twice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field

from archgym.agents.common.arrays import Ints
from archgym.agents.common.hyperparameters import BatchSize, Few, Period, Size, Temperature
from archgym.agents.common.samplers import SequentialSampler
from archgym.agents.common.scores import BROKEN_LIMIT_COST, costs
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs

_MOVES_AT_ONCE = 32
_WALK = 8
"""Times that a chain may draw moves, over known designs, before it jumps."""


@dataclass
class _Chain:
    """Where a chain stands, codes of shape (1, n_parameters), and outcomes since it was heated."""

    codes: Ints
    cost: float = math.inf
    steps: int = 0


class SimulatedAnnealing(SequentialSampler):
    """Simulated annealing: random moves, of which uphill ones are accepted ever less often.

    The cost is the log ratio of the objective to the baseline. Temperatures are shares of the
    spread of the costs of the random designs that start the search. A cycle cools
    geometrically from ``initial_temperature`` to ``final_temperature`` over ``cycle``
    evaluations; then the chain is heated again and jumps: it goes on from the best design known
    with a few parameters moved. So the budget need not be known.

    Outcomes are remembered: a move to a known design is decided at once and costs nothing,
    and a chain around which all is known jumps. So nothing is proposed twice. Designs that it
    learned of without having asked count as random ones of the start.

    With several goals it searches their weighted geometric mean
    (:func:`archgym.agents.common.scores.costs`).

    References:
        Kirkpatrick, Gelatt and Vecchi, Optimization by Simulated Annealing, Science
            220, 1983.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("sa", env.design_space, seed=1).search(env, budget=100)
    >>> result.simulations, result.duplicates
    (100, 0)
    """

    name: ClassVar[str] = "sa"

    class Hyperparameters(BatchSize):
        """Hyperparameters of simulated annealing."""

        n_initial: Size = Field(
            10, description="random designs at the start, minus designs known before"
        )
        initial_temperature: Temperature = Field(
            0.1, description="at the start of a cycle, as a share of the spread of costs"
        )
        final_temperature: Temperature = Field(
            0.001, description="at the end of a cycle, as a share of the spread of costs"
        )
        cycle: Period = Field(100, description="evaluations of a chain between two heatings")
        extra_move_rate: float = Field(
            0.1,
            ge=0,
            le=0.9,
            description="probability that a move changes another parameter, and another",
        )
        jump: Few = Field(3, description="parameters changed when a chain jumps")
        chains: int = Field(1, ge=1, le=1024, description="chains that take turns")

    def setup(self) -> None:
        """Starts with nothing known."""
        super().setup()
        nowhere = self.space.designs(()).codes
        self._chains = [_Chain(nowhere) for _ in range(self.hyperparameters.chains)]
        self._best = _Chain(nowhere)
        self._turns = 0
        self._others = 0  # designs that it did not ask for
        self._known: dict[int, float] = {}  # cost of each design by its key
        self._asked: dict[int, _Chain] = {}  # the chain whose move a design in flight is
        self._first: list[float] = []  # costs of the first designs
        self._spread = 1.0

    @property
    def chain_costs(self) -> list[float]:
        """Cost of the design where each chain stands; infinite before the first, and in a jump."""
        return [chain.cost for chain in self._chains]

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Lets the chains accept or refuse their moves.

        A design that no chain proposed is taken by the chain that stands worst, if it is better.
        """
        self._unseen.learn(designs, outcomes)
        values = costs(outcomes).tolist()
        for row, (key, cost) in enumerate(zip(designs.keys(), values, strict=True)):
            codes = designs.codes[row : row + 1]
            self._known[key] = cost
            if cost < self._best.cost:
                self._best.codes, self._best.cost = codes, cost
            chain = self._asked.pop(key, None)
            if chain is None:
                self._others += 1
                chain = max(self._chains, key=lambda chain: chain.cost)
                accepted = cost < chain.cost
            else:
                chain.steps += self._turns + self._others > self.hyperparameters.n_initial
                accepted = self._accepts(chain, cost)
            if accepted:
                chain.codes, chain.cost = codes, cost
        self._first += values[: 2 * self.hyperparameters.n_initial - len(self._first)]
        feasible = [cost for cost in self._first if cost < BROKEN_LIMIT_COST]
        self._spread = float(np.std(feasible)) if len(feasible) > 1 else 1.0

    def _next(self) -> Designs:
        """A random design at the start, then a move of the chain whose turn it is."""
        chain = self._chains[self._turns % len(self._chains)]
        start = self._turns + self._others < self.hyperparameters.n_initial
        return self._walk(chain) if not start and len(chain.codes) else self._unseen.take(1)

    def _expect(self, designs: Designs) -> None:
        self._asked[designs.keys()[0]] = self._chains[self._turns % len(self._chains)]
        self._turns += 1

    def _walk(self, chain: _Chain) -> Designs:
        """Moves over known designs until it finds a new one; jumps if it does not."""
        if chain.steps >= self.hyperparameters.cycle:
            return self._jump(chain)
        for _ in range(_WALK):
            extra = self.rng.geometric(1 - self.hyperparameters.extra_move_rate, _MOVES_AT_ONCE)
            moves = self._moves.mutate(np.repeat(chain.codes, _MOVES_AT_ONCE, axis=0), extra)
            moves = moves[self.space.legal(moves)]
            for row, key in enumerate(moves.keys()):
                move = moves[row : row + 1]
                if key not in self._unseen:
                    if self._unseen.likely_equivalent(move)[0]:
                        continue
                    self._unseen.add(move)
                    return move
                cost = self._known.get(key)
                if cost is not None and self._accepts(chain, cost):
                    chain.codes, chain.cost = move.codes, cost
                    break
        return self._jump(chain)

    def _jump(self, chain: _Chain) -> Designs:
        """A design some moves away from the best one; the chain goes on from there in any case."""
        chain.cost, chain.steps = math.inf, 0
        return self._kicked(self._best.codes, self.hyperparameters.jump)

    def _accepts(self, chain: _Chain, cost: float) -> bool:
        """Metropolis' rule: always downhill, uphill the less likely the steeper and the colder."""
        if cost <= chain.cost:
            return True
        settings = self.hyperparameters
        cooled = min(1.0, chain.steps / settings.cycle)
        hot, cold = settings.initial_temperature, settings.final_temperature
        temperature = self._spread * hot * (cold / hot) ** cooled
        return temperature > 0 and self.rng.random() < math.exp((chain.cost - cost) / temperature)
