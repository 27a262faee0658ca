"""Active learning: a proxy is trained as the search goes, and says what to simulate next."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from archgym import agent
from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.common.candidates import Candidates
from archgym.agents.common.hyperparameters import Factor, Number, PoolSize, Share, Size, Threshold
from archgym.agents.common.model_based import ModelBasedSampler
from archgym.agents.common.targets import limit_targets
from archgym.proxy.inputs import Inputs
from archgym.proxy.models import Model, family
from archgym.space import Designs

_CLIMBING_ROUNDS = 5
_MIN_DATA = 8
_MIN_CHANCE = 1e-6
_CERTAIN = 1e-9


class ActiveLearning(ModelBasedSampler):
    """Spends the budget where a proxy is promising, or unsure.

    After some random designs it trains, for each batch, models of the goals (as logarithms of
    their ratio to the baseline), of each limit that was broken and of failing, from the families
    of :mod:`archgym.proxy.models`. Most of a batch are designs with the least lower bound of the
    predicted cost, each with its own optimism, drawn at random; the rest are those of which
    the models are least sure, which makes the proxy better rather than the best design. The chance
    to keep the limits counts with its logarithm. With several goals every proposal draws its own
    weights of them.

    It differs from ``gp`` in learning from all data with the models of proxies, once a batch
    rather than once a design: it is for simulators that are slow and run in parallel, and for data
    from which a proxy is to be trained in the end.

    References:
        Its own; bounds as in Srinivas et al., Gaussian Process Optimization in the
            Bandit Setting, ICML 2010.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> active = make_agent("active", env.design_space, seed=1, model="forest", n_initial=12)
    >>> result = active.search(env, budget=20)
    >>> result.simulations, result.duplicates
    (20, 0)
    """

    name: ClassVar[str] = "active"

    class Hyperparameters(agent.Hyperparameters):
        """Hyperparameters of active learning."""

        model: Literal["forest", "boosting", "gp", "mlp", "blend"] = Field(
            "gp", description="family of models of the proxy"
        )
        n_initial: Threshold = Field(20, description="random designs before the first model")
        batch_size: Size = Field(10, description="designs between two trainings")
        kappa: Factor = Field(
            2.0, description="mean distance of the bound below the mean, in standard deviations"
        )
        unsure: Share = Field(
            0.1,
            description="share of the designs that are chosen where the models are least certain",
        )
        candidates: PoolSize = Field(
            2000, description="approximate number of first candidates for each batch"
        )
        elite: Number = Field(12, description="best designs around which candidates are sought")
        trees: Number = Field(100, description="trees of a forest or of boosting")

    def setup(self) -> None:
        """Starts with nothing known."""
        super().setup()
        settings = self.hyperparameters
        self._pool = Candidates(self._moves, self.rng, settings.candidates, settings.elite)
        self._inputs = Inputs(self.space)
        self._ready = self.space.designs(())  # chosen with the last ones, and not asked for yet
        self._family = family(settings.model)
        self._options = {"trees": settings.trees, "epochs": 60, "members": 5, "width": 96}

    def ask(self, n: int) -> Designs:
        """Up to ``n`` designs: random ones at first, then what the models choose."""
        random = max(0, self.hyperparameters.n_initial - self._observations.asked)
        too_few = self._observations.learned < _MIN_DATA
        asked = self._unseen.take(n if too_few else min(n, random))
        left = n - len(asked)
        if left and not too_few:
            if len(self._ready) < left:
                size = self.batch_size  # asked for fewer, it still trains once for so many
                wanted = left if n >= size else max(left, size)
                with self._working():
                    more = self._choose(wanted - len(self._ready))
                self._ready = self._ready.concatenate(more)
            asked = asked.concatenate(self._ready[:left])
            self._ready = self._ready[left:]
        self._expect(asked)
        return asked

    # -- inner workings --------------------------------------------------------------------------

    def _choose(self, n: int) -> Designs:
        models = _Models(self, int(self.rng.integers(1 << 31)))
        known = self._observations
        pool = self._unseen.sift(self._pool.draw(known.codes[known.ranked()]))
        for _ in range(_CLIMBING_ROUNDS if len(pool) else 0):
            bound = models.bound(models.predict(pool.codes), self.hyperparameters.kappa)
            top = bound.argsort(kind="stable")[: self.hyperparameters.elite]
            both = pool.concatenate(self._pool.neighbours(pool.codes[top]))
            before = len(pool)
            pool = self._unseen.sift(both)
            if len(pool) == before:
                break
        chosen = self.space.designs(())
        predicted = models.predict(pool.codes) if len(pool) else None
        while len(chosen) < n and predicted is not None and len(pool):
            if self.rng.random() < self.hyperparameters.unsure:
                worth = models.doubt(predicted)
            else:
                optimism = self.rng.exponential(self.hyperparameters.kappa)
                worth = -models.bound(predicted, optimism)
            best = self._unseen.favourite(pool, worth)
            self._unseen.add(design := pool[best : best + 1])
            chosen = chosen.concatenate(design)
            left = np.arange(len(pool)) != best
            pool, predicted = pool[left], (predicted[0][left], predicted[1][left])
        return chosen.concatenate(self._unseen.take(n - len(chosen)))


class _Models:
    """The goals, the limits that were broken and failing, learned from the observations."""

    def __init__(self, owner: ActiveLearning, seed: int) -> None:
        known, self._owner = owner._observations, owner
        ok = ~known.failed
        x = owner._inputs(known.codes)
        goals = known.goals[ok]
        self._n_goals = goals.shape[1]
        limits = [limit_targets(one) for one in known.excess[ok].T if (one > 0).any()]
        y = np.column_stack([goals, *limits])
        self._centre, scale = y.mean(axis=0), y.std(axis=0)
        self._scale = np.where(scale > _CERTAIN, scale, 1.0)
        z = (y - self._centre) / self._scale
        self._model: Model = owner._family.fit(x[ok], z, seed, owner._options)
        self._failing: Model | None = None
        if not ok.all():
            failed = np.where(ok, -1.0, 1.0)[:, None]
            self._failing = owner._family.fit(x, failed, seed, owner._options)

    def predict(self, codes: Ints) -> tuple[Floats, Floats]:
        """Mean and spread of each goal, each broken limit, and failing, (n, n_columns)."""
        x = self._owner._inputs(codes)
        mean, spread = self._model.predict(x)
        mean, spread = mean * self._scale + self._centre, spread * self._scale
        if self._failing is not None:
            more = self._failing.predict(x)
            mean, spread = np.hstack([mean, more[0]]), np.hstack([spread, more[1]])
        return mean, np.maximum(spread, _CERTAIN)

    def bound(self, predicted: tuple[Floats, Floats], optimism: float) -> Floats:
        """Lower bound of the cost, worse where limits may be broken, shape (n,)."""
        from scipy.special import ndtr

        mean, spread = predicted
        goals = slice(0, self._n_goals)
        weights = np.ones(1)
        if self._n_goals > 1:
            weights = self._owner.rng.dirichlet(np.ones(self._n_goals))
        low = ((mean[:, goals] - optimism * spread[:, goals]) / self._scale[goals]) @ weights
        rest = slice(self._n_goals, None)
        chance = ndtr(-mean[:, rest] / spread[:, rest])
        return np.asarray(low - np.log(np.maximum(chance, _MIN_CHANCE)).sum(axis=1))

    def doubt(self, predicted: tuple[Floats, Floats]) -> Floats:
        """How little is known of a design, shape (n,)."""
        goals = slice(0, self._n_goals)
        return np.asarray((predicted[1][:, goals] / self._scale[goals]).sum(axis=1))
