"""Iterated local search over designs that differ in one parameter."""

from __future__ import annotations

import math
from typing import ClassVar

from pydantic import Field

from archgym.agents.common.hyperparameters import BatchSize, Few, Patience, Size
from archgym.agents.common.samplers import SequentialSampler
from archgym.agents.common.scores import FAILED_COST, costs
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs


class LocalSearch(SequentialSampler):
    """Iterated local search: tries all designs one move away, goes to the first that is better.

    It starts from the best of some random designs. Where no neighbour
    (:meth:`archgym.agents.common.moves.Moves.around`) is better it goes on to one that is as good,
    a few times; then it is kicked: a few parameters of the best local optimum are moved at once,
    and it descends from there. After ``patience`` kicks that led to nothing better it starts
    anew from random designs. So it needs no temperature, and the budget need not be known.

    Outcomes are remembered: a step to a known design is free, and nothing is proposed twice. A
    neighbour that is likely equivalent to a known design, since it differs in dead parameters only
    (:mod:`archgym.agents.common.equivalence`), is not evaluated; but it may go on from there.

    With several goals it searches their weighted geometric mean
    (:func:`archgym.agents.common.scores.costs`).

    References:
        Lourenço, Martin and Stützle, Iterated Local Search, Handbook of Metaheuristics,
            2003.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("local", env.design_space, seed=1).search(env, budget=100)
    >>> result.simulations, result.duplicates
    (100, 0)
    """

    name: ClassVar[str] = "local"

    class Hyperparameters(BatchSize):
        """Hyperparameters of iterated local search."""

        n_initial: Size = Field(10, description="random designs of which the best is the start")
        kick: Few = Field(4, description="parameters changed at once to leave a local optimum")
        patience: Patience = Field(
            3, description="kicks without a better local optimum before a new start"
        )
        drift: Patience = Field(3, description="maximum moves in a row to designs of equal cost")

    def setup(self) -> None:
        """Starts with nothing known."""
        super().setup()
        self._known: dict[int, float] = {}  # cost of each design by its key
        self._asked: dict[int, int] = {}  # the descent for which a design in flight was proposed
        self._descent = 0
        nowhere = self.space.designs(())
        self._here = self._home = self._best = nowhere
        self._cost = self._home_cost = self._best_cost = math.inf
        self._queue: list[tuple[int, int]] = []  # key and row of neighbours that are left to try
        self._around = nowhere
        self._equals: list[Designs] = []  # neighbours that are as good, or likely are
        self._drifted = self._kicks = 0
        self._starts = int(self.hyperparameters.n_initial)

    @property
    def position(self) -> tuple[Designs, float]:
        """Where it stands and the cost there; nowhere, at an infinite cost, after a kick."""
        return self._here, self._cost

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Goes to designs that are better.

        One that it did not ask for, or asked for before a kick, counts if it is the best known.
        """
        self._unseen.learn(designs, outcomes)
        values = costs(outcomes).tolist()
        for row, (key, cost) in enumerate(zip(designs.keys(), values, strict=True)):
            design = designs[row : row + 1]
            self._known[key] = cost
            descent = self._asked.pop(key, None)
            if descent is None:
                self._starts = max(0, self._starts - 1)
            ours = descent == self._descent
            if cost < min(self._cost if ours else self._best_cost, FAILED_COST):
                self._go(design, cost)
                self._drifted = 0
            elif ours and cost == self._cost:
                self._equals.append(design)
            if cost < self._best_cost:
                self._best, self._best_cost = design, cost

    def _expect(self, designs: Designs) -> None:
        self._asked[designs.keys()[0]] = self._descent

    def _next(self) -> Designs:
        """A neighbour of where it stands, a kick, or a random design at a start."""
        if self._starts:
            self._starts -= 1
            return self._unseen.take(1)
        while True:
            design = self._neighbour()
            if design is not None:
                return design
            if not self._drift():
                return self._kick()

    def _neighbour(self) -> Designs | None:
        """The next new neighbour; goes on over known ones that are better."""
        while self._queue:
            key, row = self._queue.pop()
            design = self._around[row : row + 1]
            cost = self._known.get(key, math.inf)
            if cost < self._cost:
                self._go(design, cost)
                self._drifted = 0
            elif key not in self._unseen:
                if self._unseen.likely_equivalent(design)[0]:
                    self._equals.append(design)
                    continue
                self._unseen.add(design)
                return design
        return None

    def _go(self, design: Designs, cost: float) -> None:
        """Stands at a design, with all of its neighbours still to try."""
        self._here, self._cost = design, cost
        around = self._moves.around(design.codes)
        self._around = around[self.space.legal(around)]
        keys = self._around.keys()
        self._queue = list(zip(keys, range(len(keys)), strict=True))[::-1]  # taken from its end
        self._equals = []

    def _drift(self) -> bool:
        """Goes to a neighbour that is as good, if there is one and it has not done so too often."""
        if not self._equals or self._drifted >= self.hyperparameters.drift:
            return False
        self._drifted += 1
        self._go(self._equals[int(self.rng.integers(len(self._equals)))], self._cost)
        return True

    def _kick(self) -> Designs:
        """A design some moves away from the best local optimum since the last start."""
        settings = self.hyperparameters
        if self._cost < self._home_cost:
            self._kicks = 0
        if self._cost <= self._home_cost:
            self._home, self._home_cost = self._here, self._cost
        self._descent += self._cost < math.inf  # else it waits for an earlier kick's outcome too
        self._here, self._cost, self._drifted = self.space.designs(()), math.inf, 0
        if self._kicks >= settings.patience or not len(self._home):
            self._home_cost, self._kicks = math.inf, 0
            self._starts = settings.n_initial - 1
            return self._unseen.take(1)
        self._kicks += 1
        return self._kicked(self._home.codes, settings.kick)
