"""Genetic algorithm on the parameters of the design space themselves."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from archgym import agent
from archgym.agents.common.arrays import Ints
from archgym.agents.common.hyperparameters import Count, Several, Share, Size
from archgym.agents.common.samplers import NewDesignSampler
from archgym.agents.common.scores import costs
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs


class Breeding(agent.Hyperparameters):
    """Hyperparameters of the way in which children are made."""

    population_size: Several = Field(
        16, description="possible parents, and random designs at the start"
    )
    children: Size = Field(4, description="designs proposed at once")
    tournament_size: int = Field(
        2, ge=1, le=64, description="designs drawn for each parent, which is the best of them"
    )
    crossover_rate: Share = Field(
        0.7, description="share of children with two parents; the others have one"
    )
    mutation_rate: Share = Field(
        0.1,
        description="probability that a parameter of a child is mutated; in a child of one parent "
        "at least one parameter is",
    )


class Genetic(NewDesignSampler):
    """Genetic algorithm: tournaments, uniform crossover, mutation, survival of the best.

    The population holds the best designs met so far (of equals the newest, so that it drifts
    over plateaus). Children join it as soon as their outcomes arrive, so that any number may
    be asked for at a time. A child that breaks a rule or is known already is drawn anew with
    more mutation each time, and in the end replaced by a random design: nothing is proposed
    twice. After ``patience`` designs without a better one all but the best of the population
    give way to random designs.

    With several goals it searches their weighted geometric mean
    (:func:`archgym.agents.common.scores.costs`).

    References:
        Goldberg, Genetic Algorithms in Search, Optimization and Machine Learning, 1989.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("ga", env.design_space, seed=1).search(env, budget=100)
    >>> result.simulations, result.duplicates
    (100, 0)
    """

    name: ClassVar[str] = "ga"

    class Hyperparameters(Breeding):
        """Hyperparameters of the genetic algorithm."""

        patience: Count = Field(
            250, description="designs without a better one before the population is drawn anew"
        )

    def setup(self) -> None:
        """Starts with nothing known."""
        super().setup()
        self._started = 0
        self._codes = self.space.designs(()).codes
        self._costs = np.empty(0)
        self._record, self._idle = np.inf, 0

    @property
    def batch_size(self) -> int:
        """How many designs are asked for at once."""
        return int(self.hyperparameters.children)

    @property
    def population(self) -> Designs:
        """The designs that may become parents, best first."""
        return Designs(self.space, self._codes)

    def ask(self, n: int) -> Designs:
        """Up to ``n`` designs: random ones until the population is full, then children."""
        beginners = min(n, max(0, self.hyperparameters.population_size - self._started))
        self._started += beginners
        first = self._unseen.take(beginners)
        return first.concatenate(self._unseen.take(n - beginners, self._breed))

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Takes designs into the population and keeps the best."""
        self._unseen.learn(designs, outcomes)
        new = self._admit(designs)
        codes = np.concatenate([designs.codes[new], self._codes])
        values = np.concatenate([costs(outcomes)[new], self._costs])
        best = values.argsort(kind="stable")[: self.hyperparameters.population_size]
        self._codes, self._costs = codes[best], values[best]
        self._note(improved=bool(len(values)) and values[best[0]] < self._record, n=len(new))

    def _note(self, *, improved: bool, n: int) -> None:
        """Restarts from random designs and the best one after too long without progress."""
        self._idle = 0 if improved else self._idle + n
        if improved:
            self._record = float(self._costs[0])
        elif self._idle >= self.hyperparameters.patience:
            self._codes, self._costs = self._codes[:1], self._costs[:1]
            self._started, self._idle = 1, 0

    def _admit(self, designs: Designs) -> list[int]:
        """Rows of the designs that are not in the population yet, the newest first."""
        known = set(self.population.keys())
        rows = {key: row for row, key in enumerate(designs.keys()) if key not in known}
        return list(rows.values())[::-1]

    def _breed(self, n: int, failures: int) -> Designs:
        if not len(self._codes):
            return self.space.sample(n, self.rng)
        settings, free = self.hyperparameters, len(self._moves.free)
        first = self._select(n)
        changes = self.rng.binomial(free, settings.mutation_rate, n)
        crossed = self.rng.random(n) < settings.crossover_rate
        child = np.where(
            crossed[:, None], self._moves.crossover(first, self._select(n)).codes, first
        )
        changes = np.where(crossed, changes, np.maximum(changes, 1)) + failures
        return self._moves.mutate(child, changes)

    def _select(self, n: int) -> Ints:
        """Codes of the winners of ``n`` tournaments: the population is sorted, best first."""
        entrants = self.rng.integers(
            len(self._codes), size=(n, self.hyperparameters.tournament_size)
        )
        return np.asarray(self._codes[entrants.min(axis=1)])
