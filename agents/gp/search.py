"""Bayesian optimisation with Gaussian processes for mixed, conditional, discrete spaces."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from archgym.agents.common import hyperparameters as fields
from archgym.agents.common.arrays import Ints
from archgym.agents.common.candidates import Candidates
from archgym.agents.common.model_based import ModelBasedSampler
from archgym.agents.common.samplers import SequentialSampler
from archgym.agents.common.scores import BROKEN_LIMIT_COST
from archgym.agents.gp.acquisition import (
    Acquisition,
    Hope,
    confidence_bound,
    expected_improvement,
    front_gain,
)
from archgym.agents.gp.agreement import Agreement
from archgym.agents.gp.levels import coordinates
from archgym.agents.gp.models import Learned, Models
from archgym.agents.gp.offers import Offers
from archgym.agents.gp.ranking import best_first
from archgym.agents.gp.tabu import TabuRegions
from archgym.evaluation.outcome import Outcomes
from archgym.history import History
from archgym.space import Designs

_OPTIMISM = (0.4, 1.0, 1.5)
"""Factors of ``kappa`` that take turns, so that some proposals exploit and some explore."""
_NEAR_OPTIMISM, _LOST_OPTIMISM = 0.25, 0.25
"""Factor for neighbours of the best, and one more while nothing keeps the limits."""
_NEAR_EVERY, _NEAR_EVERY_WHEN_IDLE = 2, 4
"""Every so many proposals one is near the best, the initial ones included; and when nothing better
has been found for a while."""
_IDLE = 30
"""Designs without progress that are such a while."""
_IMPROVEMENT_TURN = 1
"""Place among the factors of ``kappa`` of the turn that expected improvement has while nothing
better is found under limits: the bound prefers what surely keeps them, though surely no better."""
_DRAWN, _MAX_CHANGES = 32, 3
"""Initial designs near the best: how many are drawn, and how many parameters they change."""
_NEAR_CERTAIN = 0.05
"""As ``twin_deviation``, for neighbours of the best, many of which differ in dead parameters."""
_PROMISE = 2.0
"""Deviations below its mean at which a neighbour has to be better than the best."""
_SEVERAL = 0.25
"""Factor of ``kappa`` with several goals."""
_EVERYWHERE_SHARE = 0.25
"""Share of proposals that ignore the tabu regions."""
_MIN_DATA = 2
_FROM_HISTORY = 5
"""Designs, at most, that earlier searches suggest to begin with."""


class GaussianProcessSearch(ModelBasedSampler, SequentialSampler):
    """The default model-based agent: Gaussian processes and moves on the space's own structure.

    Each proposal asks one of several processes (:mod:`archgym.agents.gp.gaussian_process`) that
    differ in their prior and take turns, so that no process misleads the search for long; where the
    data show that the cost is a sum of components of few parameters each, they use that, and learn
    which parameters act together (:mod:`archgym.agents.gp.interactions`). Candidates are the unseen
    legal designs among all neighbours of the best, moves of two to four parameters, crossovers and
    random designs. Of the candidates that look best others are bred for some generations, so that
    the search gets to what a model expects far from all it knows. It takes the candidate with the
    least lower confidence bound. The bound keeps exploring where improvement is not in sight, as on
    plateaus with one rare joint move. Where the search is stuck in spite of it, the surroundings of
    the best design there are left alone most of the time from then on
    (:mod:`archgym.agents.gp.tabu`), unless there are several goals.

    The processes learn the ratio to the baseline, its logarithm (the cost) or its reciprocal,
    whichever makes the data likeliest.
    Each limit that was broken, and failing, has its own process, and the logarithm of the chance to
    keep them is added; until something feasible is known, the distance from all limits takes
    the place of the cost. A design whose prediction is certain differs from known ones in dead
    parameters only: it is proposed last.

    Every second proposal is near the best, or every fourth when that has not been improved for
    long, as long as one there promises to be better, so that what is found is refined too: one
    parameter is changed, or one is raised and another lowered, which is the way along a limit.

    Under limits, when nothing better has been found for a while, every third proposal has the
    largest constrained expected improvement
    (:func:`archgym.agents.gp.acquisition.expected_improvement`): what would be better, even where
    it is unlikely to keep the limits, comes before what surely keeps them and is no better.

    Given history, it leaves out sources whose designs say nothing of one another
    (:mod:`archgym.agents.gp.experience`). It starts with the best design of each other one and what
    crosses these, in the order of what all together expect, one by one as long as they are no poor
    ones (:mod:`archgym.agents.gp.offers`). Its processes learn what these expectations leave, as
    far as that makes the data likelier (:mod:`archgym.agents.gp.trended`); if the designs were poor
    ones they learn as from nothing.

    With several goals each has its own processes, and the search takes what adds most to the
    volume that the front dominates (:func:`archgym.agents.gp.acquisition.front_gain`). Designs in
    flight, and those of a batch, count as if they had been observed with the value that is
    predicted, and with noise as large as the uncertainty of that prediction: others spread, but not
    away from what promises most. Numeric libraries are held to one thread while it works. The same
    seed gives the same search on the same machine and versions.

    References:
        Srinivas et al., Gaussian Process Optimization in the Bandit Setting, ICML 2010.
        Gardner et al., Bayesian Optimization with Inequality Constraints, ICML 2014.
        Kandasamy, Schneider and Póczos, High Dimensional Bayesian Optimisation and
            Bandits via Additive Models, ICML 2015.
        Ponweiser, Wagner, Biermann and Vincze, Multiobjective Optimization on a Limited
            Budget of Evaluations Using Model-Assisted S-Metric Selection, PPSN 2008.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("gp", env.design_space, seed=1).search(env, budget=20)
    >>> result.simulations, result.duplicates
    (20, 0)
    """

    name: ClassVar[str] = "gp"

    class Hyperparameters(fields.InitialDesigns):
        """Hyperparameters of the search with Gaussian processes."""

        kappa: fields.Factor = Field(
            4.0,
            description="distance of the confidence bound below the mean in standard deviations; "
            "proposals take turns with 0.4, 1 and 1.5 times as much",
        )
        models: int = Field(
            4,
            ge=1,
            le=64,
            description="Gaussian processes that take turns; a single one has the default prior",
        )
        interactions: bool = Field(
            True, description="learn which parameters act together, if there are six or more"
        )
        candidates: fields.PoolSize = Field(
            240, description="approximate number of first candidates for each proposal"
        )
        elite: fields.Number = Field(
            8, description="best designs around which candidates are sought"
        )
        generations: fields.Repeats = Field(
            6, description="how often new candidates are bred of the best ones"
        )
        most_data: fields.MaxData = 400
        twin_deviation: float = Field(
            0.002,
            ge=0,
            lt=1,
            description="deviation of a standardised cost below which it counts as certain that a "
            "design is not better than the best",
        )
        patience: fields.Patience = Field(
            30, description="proposals without progress before a tabu region is set up; 0 is never"
        )
        niche_correlation: fields.Part = Field(
            0.4, description="minimum correlation of a tabu region's designs with its centre"
        )

    def setup(self) -> None:
        """Starts with nothing known."""
        import scipy.linalg  # noqa: F401 - before the libraries with threads are looked for

        super().setup()
        settings = self.hyperparameters
        self._pool = Candidates(self._moves, self.rng, settings.candidates, settings.elite)
        self._models = Models(
            self.space, len(self.directions), settings.models, settings.interactions, self.rng
        )
        patience = settings.patience if len(self.directions) == 1 else 0
        self._agreement: Agreement | None = None
        self._offers: Offers | None = None
        self._n_from_history = 0
        self._follows = True  # whether the latest model used what earlier searches say
        self._tabu = TabuRegions(self._models.alike, settings.niche_correlation, patience)

    def recall(self, history: History) -> Designs:
        """Makes surrogates of the sources; the designs of which these expect most come first."""
        with self._working():
            self.ignored_sources = self._models.recall(history)
            if self._models.experience is None:
                return history.start(0)
            experience = self._models.experience
            self._agreement = Agreement(experience)
            own = 2 * len(experience) if not experience.ordered else _FROM_HISTORY
            first = experience.start(min(own, _FROM_HISTORY))
            self._n_from_history = len(first)
            if not experience.ordered:
                self._offers = Offers(first, history)
            return first

    def first(self, initial: Designs) -> Designs:
        """All but what history suggests beyond one design: it asks for the others later."""
        return initial if self._offers is None else initial[: len(initial) - self._offers.later]

    @property
    def recalls(self) -> bool:
        """Whether there is anything to learn of earlier searches."""
        return self._models.experience is not None

    @property
    def trusts(self) -> bool:
        """Whether earlier searches are believed."""
        return self._follows and self.promising

    @property
    def promising(self) -> bool:
        """Whether the designs that history suggested are no poor ones."""
        return self._offers is None or self._offers.hold

    @property
    def agreement(self) -> float:
        """How well earlier searches foresee what is found, 0 (not at all) to 1."""
        return 0.0 if self._agreement is None else self._agreement.share

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Takes in data for the models, and judges what history suggested."""
        super().tell(designs, outcomes)
        if self._agreement is not None:
            with self._working():
                self._agreement.tell(outcomes)
        if self._offers is not None:
            self._offers.tell(outcomes)

    def _expect(self, design: Designs) -> None:
        super()._expect(design)
        if self._offers is not None and self.trusts:
            self._offers.led(design)

    def _next(self) -> Designs:
        known, turn = self._observations, self._observations.asked
        if self._offers is not None:
            if len(offered := self._offers.take(self._unseen)):
                return offered
            if not self._offers.compared:
                return self._unseen.take(1)
        if known.learned < _MIN_DATA:
            return self._initial(turn)
        if turn < self.hyperparameters.n_initial and self._models.experience is None:
            return self._initial(turn)
        best = best_first(known, self.rng)
        codes, costs = known.codes[best], known.costs[best]
        elsewhere = self.rng.random() >= _EVERYWHERE_SHARE
        if elsewhere:
            free = self._tabu.settle(codes, costs)
            elsewhere = bool((costs[free] < BROKEN_LIMIT_COST).any())
            codes = codes[free] if elsewhere else codes
        rows = known.rows(self.hyperparameters.most_data)
        learned = self._models.learn(known, rows, turn, believed=self.promising)
        self._follows = learned.trusts
        if turn < self._n_from_history + self.hyperparameters.n_initial and not self.promising:
            return self._initial(turn)
        idle = len(known) - int(known.costs.argmin()) > _IDLE
        every = _NEAR_EVERY_WHEN_IDLE if idle else _NEAR_EVERY
        if turn % every == 0 and len(near := self._promising(learned, codes[:1])):
            return near
        pool = self._unseen.sift(self._pool.draw(codes))
        if not len(pool):
            return self._unseen.take(1)
        hope = self._hope(learned, _OPTIMISM[turn % len(_OPTIMISM)])
        limited = learned.feasible and len(self.directions) == 1 and bool(learned.limits)
        if limited and idle and turn % len(_OPTIMISM) == _IMPROVEMENT_TURN:
            hope = expected_improvement(float(learned.targets.min()))
        certain = self.hyperparameters.twin_deviation
        score = Acquisition(self.space, learned, certain, self._tabu if elsewhere else None, hope)
        return self._breed(pool, score, self._pool.bred, self.hyperparameters.generations)

    def _initial(self, turn: int) -> Designs:
        """A random design, or by turns one near the best."""
        known = self._observations
        if turn % _NEAR_EVERY == 0 or not known.learned:
            return self._unseen.take(1)
        start = np.repeat(known.codes[best_first(known, self.rng)[:1]], _DRAWN, axis=0)
        changes = self.rng.integers(1, _MAX_CHANGES + 1, size=_DRAWN)
        return self._unseen.take(1, lambda *_: self._moves.mutate(start, changes), tries=1)

    def _promising(self, learned: Learned, centre: Ints) -> Designs:
        """The unseen design near another of which most is hoped; none if none may be better."""
        around = self._pool.neighbours(centre).concatenate(self._pool.exchanges(centre))
        around = self._unseen.sift(around)
        if not len(around):
            return around
        hope = self._hope(learned, _NEAR_OPTIMISM)
        certain = _NEAR_CERTAIN if learned.feasible else 0.0
        scores = Acquisition(self.space, learned, certain, None, hope)(around)
        if scores.max() < -500:
            return around[:0]
        if learned.feasible and len(self.directions) == 1:
            (model,) = learned.goals
            x, here = (coordinates(self.space, codes) for codes in (around.codes, centre))
            mean, deviation = model.predict(x)
            if (mean - _PROMISE * deviation).min() >= model.predict(here)[0][0]:
                return around[:0]
        return self._unseen.take_best(around, scores)

    def _hope(self, learned: Learned, optimism: float) -> Hope:
        kappa = optimism * self.hyperparameters.kappa
        if not learned.feasible:
            return confidence_bound(kappa * _LOST_OPTIMISM)
        if len(self.directions) == 1:
            return confidence_bound(kappa)
        return front_gain(_SEVERAL * kappa, learned.targets, self.rng)
