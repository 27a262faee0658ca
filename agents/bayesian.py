"""Bayesian optimisation with the surrogates of scikit-optimize and scikit-learn."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from archgym.agents.common import hyperparameters as fields
from archgym.agents.common.arrays import Floats
from archgym.agents.common.model_based import ModelBasedSampler
from archgym.agents.common.samplers import SequentialSampler
from archgym.agents.common.scores import BROKEN_LIMIT_COST, FAILED_COST
from archgym.agents.common.targets import noise_shares
from archgym.agents.gp.experience import Experience
from archgym.history import History
from archgym.space import Designs, FeatureEncoding

_PORTFOLIO = ("EI", "LCB", "PI")
_FROM_HISTORY = 5
"""Designs that are proposed first because earlier searches found them good."""
_LENGTH = 2.0
"""What a standard deviation of the expectation of earlier searches counts for, in features."""
_MOST_EXPECTED = 5.0
"""Standard deviations: how much worse than the earlier mean is all the same."""
_ELITE = 10
"""Best designs around which candidates are sought."""


class Bayesian(ModelBasedSampler, SequentialSampler):
    """Bayesian optimisation: fits a surrogate, evaluates the design it promises most of.

    Forests, acquisition functions and the Sobol design are scikit-optimize's, the Gaussian
    process is scikit-learn's. Candidates
    are our own: moves of one parameter around the best designs, moves of two to four, and
    random designs, all legal, canonical and not known yet; in rugged discrete spaces this finds
    more than random candidates do, and nothing is proposed twice. The surrogate sees one-hot
    features, with a flag for each conditional parameter
    (:class:`archgym.space.FeatureEncoding`).

    Designs that break a limit, fail or are illegal count as worse than every feasible one, by
    at most the spread of those. In a batch, designs without outcome yet count as the best one
    known (constant liar).

    What earlier searches expect of a design is a further feature (:meth:`recall`): trees learn by
    themselves what it is worth, and of two Gaussian processes, one of which sees it, the likelier
    one is used.

    With several goals it searches their weighted geometric mean
    (:func:`archgym.agents.common.scores.costs`). Numeric libraries are held to one thread while it
    works. The same seed gives the same search on the same machine and versions.

    References:
        Jones, Schonlau and Welch, Efficient Global Optimization of Expensive Black-Box
            Functions, Journal of Global Optimization 13, 1998.
        Ginsbourger, Le Riche and Carraro, Kriging Is Well-Suited to Parallelize
            Optimization, 2010 (constant liar).

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("bayesian", env.design_space, seed=1).search(env, budget=14)
    >>> result.simulations, result.duplicates
    (14, 0)
    """

    name: ClassVar[str] = "bayesian"

    class Hyperparameters(fields.InitialDesigns):
        """Hyperparameters of Bayesian optimisation."""

        surrogate: Literal["gp", "forest", "extra_trees"] = Field(
            "gp", description="Gaussian process, random forest or extremely randomised trees"
        )
        trees: int = Field(100, ge=2, le=10_000, description="trees of a forest")
        forest_above: fields.Threshold = Field(
            300, description="designs from which extra_trees replace gp, which is cubic in them"
        )
        acquisition: Literal["gp_hedge", "EI", "LCB", "PI"] = Field(
            "gp_hedge",
            description="expected improvement (EI), lower confidence bound (LCB), probability of "
            "improvement (PI), or a choice among the three by their success (gp_hedge)",
        )
        xi: fields.Weight = Field(
            0.01, description="minimum improvement that EI and PI seek, in deviations of the cost"
        )
        kappa: fields.Factor = Field(
            1.96, description="distance of LCB below the mean, in standard deviations"
        )
        initial_design: Literal["random", "sobol"] = Field(
            "random", description="how the first designs are chosen"
        )
        candidates: fields.PoolSize = Field(
            1000, description="designs that the surrogate predicts for each proposal"
        )

    def setup(self) -> None:
        """Starts with nothing known."""
        from archgym.agents.common import skopt_surrogates as surrogates

        self._tools = surrogates
        super().setup()
        self._features = FeatureEncoding(self.space)
        self._process = surrogates.GaussianProcess()
        self._recalling = surrogates.GaussianProcess()
        self._experience: Experience | None = None
        self._start: Designs | None = None
        self._gains = np.zeros(len(_PORTFOLIO))
        self._nominees: Floats | None = None

    def recall(self, history: History) -> Designs:
        """Makes surrogates of the sources; the designs of which these expect most come first."""
        with self._working():
            experience = Experience(self.space, history, self.rng)
            self.ignored_sources = experience.ignored
            self._experience = experience if len(experience) else None
            return experience.start(_FROM_HISTORY)

    def _encode(self, designs: Designs) -> Floats:
        """Features of designs, the last one what earlier searches expect, if there were any."""
        features = self._features.encode(designs)
        if self._experience is None:
            return features
        expected = np.minimum(self._experience.score(designs), _MOST_EXPECTED)
        return np.concatenate([features, _LENGTH * expected[:, None]], axis=1)

    def _initial(self, n: int, failures: int) -> Designs:
        if self.hyperparameters.initial_design == "random":
            return self.space.sample(n, self.rng)
        if self._start is None:
            seed = int(self.rng.integers(1 << 31))
            self._start = self._tools.sobol(self.space, self.hyperparameters.n_initial, seed)
        return self._start

    def _next(self) -> Designs:
        """A design of the initial ones, then the one that promises most."""
        recalls = self._experience is not None and len(self._observations) >= _FROM_HISTORY
        if self._observations.asked < self.hyperparameters.n_initial and not recalls:
            return self._unseen.take(1, self._initial, tries=1)
        if not len(self._observations):
            return self._unseen.take(1)
        x, y, noise = self._data()
        candidates = self._candidates()
        if not len(candidates):
            return self._unseen.take(1)
        model = self._surrogate(len(y))
        model.fit(x, y, int(self.rng.integers(1 << 31)), noise)
        seen = self._encode(candidates)
        mean, deviation = model.predict(seen)
        best = self._choose(model, candidates, seen, mean, deviation)
        self._unseen.add(design := candidates[best : best + 1])
        return design

    def _data(self) -> tuple[Floats, Floats, Floats | None]:
        """Features, costs and noise of observed designs, and of those in flight as if best."""
        values = self._observations.costs
        feasible = values < BROKEN_LIMIT_COST
        if feasible.any():
            worst, spread = values[feasible].max(), np.ptp(values[feasible])
            span = FAILED_COST - BROKEN_LIMIT_COST
            penalty = (spread or 1.0) * (values - BROKEN_LIMIT_COST) / span
            values = np.where(feasible, values, worst + penalty)
        waiting = self._observations.waiting
        codes = np.concatenate([self._observations.codes, waiting])
        values = np.concatenate([values, np.full(len(waiting), values.min())])
        noise = None
        if self.spread is not None:
            errors = np.sqrt((self._observations.errors**2).sum(axis=1)) / len(self.directions)
            noise = noise_shares(values, np.concatenate([errors, np.zeros(len(waiting))]))
        return self._encode(Designs(self.space, codes)), values, noise

    def _candidates(self) -> Designs:
        """Unseen legal designs: half one move from the best, a quarter two to four, rest random."""
        quarter = self.hyperparameters.candidates // 4 + 1
        elite = self._observations.codes[self._observations.ranked()[:_ELITE]]
        near = np.repeat(elite, 3 * quarter // len(elite) + 1, axis=0)
        changes = self.rng.integers(2, 5, size=len(near))
        changes[self.rng.integers(3, size=len(near)) > 0] = 1
        moved = self._moves.mutate(near, changes)
        return self._unseen.sift(moved.concatenate(self.space.sample(quarter, self.rng)))

    def _surrogate(self, n: int) -> Any:
        settings = self.hyperparameters
        if settings.surrogate == "gp" and n < settings.forest_above:
            if self._experience is not None:
                return self._tools.Likelier(self._process, self._recalling)
            return self._process
        return self._tools.Forest(settings.trees, extra=settings.surrogate != "forest")

    def _choose(
        self, model: Any, candidates: Designs, seen: Floats, mean: Floats, deviation: Floats
    ) -> int:
        """Row of the candidate to propose."""
        settings = self.hyperparameters

        def favourite(name: str) -> int:
            gains = self._tools.gain(name, mean, deviation, model.best, settings.xi, settings.kappa)
            return self._unseen.favourite(candidates, gains)

        if settings.acquisition != "gp_hedge":
            return favourite(settings.acquisition)
        if self._nominees is not None:
            self._gains -= model.predict(self._nominees)[0]
        rows = [favourite(name) for name in _PORTFOLIO]
        self._nominees = seen[rows]
        shares = np.exp(self._gains - self._gains.max())
        lot = self.rng.random() * shares.sum()
        return rows[min(int(shares.cumsum().searchsorted(lot, side="right")), len(rows) - 1)]
