"""Bayesian optimisation with a Gaussian process for mixed, conditional, discrete spaces."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field

from archgym.agents.common import hyperparameters as fields
from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.common.candidates import Candidates
from archgym.agents.common.model_based import ModelBasedSampler
from archgym.agents.common.samplers import SequentialSampler
from archgym.agents.common.scores import BROKEN_LIMIT_COST
from archgym.agents.common.targets import broken_limits, cost_forms
from archgym.agents.gp.acquisition import Acquisition, confidence_bound, log_expected_improvement
from archgym.agents.gp.additive import AdditiveProcess
from archgym.agents.gp.gaussian_process import GaussianProcess
from archgym.agents.gp.interactions import Interactions
from archgym.agents.gp.levels import Columns, coordinates
from archgym.agents.gp.tabu import TabuRegions
from archgym.space import Designs

_OPTIMISM = (0.4, 1.0, 1.5)
"""Factors of ``kappa`` that take turns, so that some proposals exploit and some explore."""
_NEAR_EVERY, _NEAR_TURNS, _NEAR_CENTRES, _NEAR_OPTIMISM, _HOPE = 4, 1, 1, 0.25, 2.0
_LOST = 0.25
_NEAR_LOST = 2
_TOTAL = 0
_EVERYWHERE_SHARE = 0.25
"""Share of proposals that ignore the tabu regions."""
_CLIMBING_ROUNDS = 5
_MAX_RANKED = 1000
"""Maximum number of best designs, without those in tabu regions, around which candidates are
sought."""
_MIN_DATA = 2


class GaussianProcessSearch(ModelBasedSampler, SequentialSampler):
    """The default model-based agent: Gaussian processes and moves on the space's own structure.

    Each proposal asks one of several processes (:mod:`archgym.agents.gp.gaussian_process`) that
    differ in their prior and take turns, so that no process misleads the search for long; where the
    data show that the cost is a sum of components of few parameters each, they use that, and learn
    which parameters act together (:mod:`archgym.agents.gp.interactions`). Of the unseen legal
    designs among all neighbours of the best, moves of two to four parameters, crossovers and random
    designs, and then the neighbours of what looks best of these, it takes the one with the least
    lower confidence bound. The bound keeps exploring where improvement is not in sight, as on
    plateaus with one rare joint move. Where the search is stuck in spite of it, the surroundings of
    the best design there are left alone most of the time from then on
    (:mod:`archgym.agents.gp.tabu`), unless there are several goals.

    The processes learn the cost or the ratio to the baseline, whichever makes the data likelier.
    Each limit that was broken, and failing, has its own process, and the logarithm of the chance to
    keep them is added; until something feasible is known, the sum of what breaks the limits takes
    the place of the cost. A design whose prediction is certain differs from known ones in dead
    parameters only: it is proposed last.

    With several goals every proposal draws its own weights of them (ParEGO). In a batch, designs
    without outcome count as they were predicted. Numeric libraries are held to one thread while
    it works. The same seed gives the same search on the same machine and versions.

    References:
        Srinivas et al., Gaussian Process Optimization in the Bandit Setting, ICML 2010.
        Kandasamy, Schneider and Póczos, High Dimensional Bayesian Optimisation and
            Bandits via Additive Models, ICML 2015.
        Knowles, ParEGO, IEEE Transactions on Evolutionary Computation 10, 2006.

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
        candidates: fields.PoolSize = Field(
            600, description="approximate number of first candidates for each proposal"
        )
        elite: fields.Number = Field(
            8, description="best designs around which candidates are sought"
        )
        climbs: fields.Repeats = Field(
            4, description="best candidates whose neighbours join them in each round"
        )
        most_data: fields.MaxData = 400
        twin_deviation: float = Field(
            0.1,
            ge=0,
            lt=1,
            description="share of the signal's deviation below which a prediction is certain",
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
        self._columns = Columns.of(self.space)
        self._models = self._processes()
        patience = settings.patience if len(self.directions) == 1 else 0
        self._tabu = TabuRegions(self._alike, settings.niche_correlation, patience)
        self._limit_models: dict[int, GaussianProcess] = {}

    def _next(self) -> Designs:
        known, turn = self._observations, self._observations.asked
        if turn < self.hyperparameters.n_initial or known.learned < _MIN_DATA:
            return self._unseen.take(1)
        best = known.ranked()[:_MAX_RANKED]
        codes, costs = known.codes[best], known.costs[best]
        elsewhere = self.rng.random() >= _EVERYWHERE_SHARE
        if elsewhere:
            free = self._tabu.settle(codes, costs)
            elsewhere = bool((costs[free] < BROKEN_LIMIT_COST).any())
            codes = codes[free] if elsewhere else codes
        pool = self._unseen.sift(self._pool.draw(codes))
        if not len(pool):
            return self._unseen.take(1)
        model = self._models[turn % len(self._models)]
        optimism = _OPTIMISM[turn % len(_OPTIMISM)]
        every = _NEAR_EVERY if (costs < BROKEN_LIMIT_COST).any() else _NEAR_LOST
        if every and turn % int(every) < _NEAR_TURNS:
            near_by = self._unseen.sift(self._pool.neighbours(codes[: int(_NEAR_CENTRES)]))
            if len(near_by):
                scores = self._scorer(model, _NEAR_OPTIMISM, None)(near_by)
                best_mean = model.predict(coordinates(self.space, codes[:1]))[0][0]
                hope = self._hope(model, near_by)
                if hope < best_mean or not (costs < BROKEN_LIMIT_COST).any():
                    return self._unseen.take_best(near_by, scores)
        score = self._scorer(model, optimism, self._tabu if elsewhere else None)

        def near(pool: Designs, scores: Floats) -> Designs:
            top = scores.argsort(kind="stable")[::-1][: self.hyperparameters.climbs]
            return self._pool.neighbours(pool.codes[top])

        return self._climb(pool, score, near, _CLIMBING_ROUNDS)

    def _hope(self, model: GaussianProcess, designs: Designs) -> float:
        mean, deviation = model.predict(coordinates(self.space, designs.codes))
        return float((mean - _HOPE * deviation).min())

    def _alike(self, codes: Ints, centres: Ints) -> Floats:
        """Correlation of the first model, so that tabu regions change only as it learns."""
        x, z = coordinates(self.space, codes), coordinates(self.space, centres)
        return self._models[0].correlation(x, z)

    def _processes(self) -> list[GaussianProcess]:
        """Those of the cost, which take turns."""
        n = self.hyperparameters.models
        rng = self.rng if n > 1 else None
        if len(self.directions) > 1 or len(self.space.free) not in Interactions.columns:
            return [GaussianProcess(self._columns, rng) for _ in range(n)]
        interactions = Interactions(len(self.space.free), self.rng)
        return [AdditiveProcess(self._columns, rng, interactions) for _ in range(n)]

    # -- models --------------------------------------------------------------------------------

    def _scorer(
        self, model: GaussianProcess, optimism: float, tabu: TabuRegions | None
    ) -> Callable[[Designs], Floats]:
        """Learns from what is known; gives the function to maximise."""
        known = self._observations
        rows = known.rows(self.hyperparameters.most_data)
        x = coordinates(self.space, known.codes[rows])
        ok, excess = ~known.failed[rows], known.excess[rows]
        if (known.costs[rows] < BROKEN_LIMIT_COST).any():
            forms = cost_forms(self._scalar(known.goals[rows][ok]))
        else:  # the way to what keeps the limits comes first
            if _TOTAL:
                forms = cost_forms(np.log1p(100.0 * np.maximum(excess[ok], 0.0).sum(axis=1)))
            else:
                forms = cost_forms(np.log1p(100.0 * np.maximum(excess[ok], 0.0)).sum(axis=1))
            del forms["ratio"]
            excess = excess[:, :0]
        limits = []
        for limit, seen, target in broken_limits(excess, ~ok):
            process = self._limit_models.setdefault(limit, GaussianProcess(self._columns))
            process.tune(x[seen], target)
            process.fit(x[seen], target)
            limits.append(process)
        start = next(iter(forms.values()))[0]
        model.tune(x[ok], start)
        model.fit(x[ok], start)
        target, _ = max(forms.values(), key=lambda form: model.retarget(form[0]) + form[1])
        model.retarget(target)
        waiting = coordinates(self.space, known.waiting)
        if len(waiting):
            expected, _ = model.predict(waiting)
            model.fit(np.concatenate([x[ok], waiting]), np.concatenate([target, expected]))
        if optimism == 0:
            hope = partial(log_expected_improvement, float(target.min()))
        else:
            lost = 1.0 if (known.costs[rows] < BROKEN_LIMIT_COST).any() else _LOST
            hope = partial(confidence_bound, optimism * self.hyperparameters.kappa * lost)
        certain = self.hyperparameters.twin_deviation
        return Acquisition(self.space, model, limits, certain, tabu, hope)

    def _scalar(self, goals: Floats) -> Floats:
        """One cost a design from the costs of its goals, shape (n,)."""
        if goals.shape[1] == 1:
            return np.asarray(goals[:, 0])
        low = goals.min(axis=0)
        scaled = (goals - low) / np.maximum(goals.max(axis=0) - low, 1e-12)
        weighted = scaled * self.rng.dirichlet(np.ones(goals.shape[1]))
        return np.asarray(weighted.max(axis=1) + 0.05 * weighted.sum(axis=1))  # as in ParEGO
