"""Bayesian optimisation with BoTorch: trust region, mixed kernels, batches, several goals."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
from pydantic import Field

from archgym.agents.common import hyperparameters as fields
from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.common.model_based import ModelBasedSampler
from archgym.agents.common.samplers import SequentialSampler
from archgym.agents.common.threads import one_seeded_thread
from archgym.agents.gp.levels import coordinates
from archgym.errors import MissingDependencyError
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs

_MIN_DATA = 2
_LONGEST, _SHORTEST = 1.0, 0.05
_SUCCESSES = 3
"""Successes in a row that double the trust region."""
_CLIMBING_ROUNDS = 2
_CLIMB_FROM, _CLIMB_STEPS = 4, 48
_MAX_PENDING = 16
"""Designs without outcome that the acquisition function knows of: the latest."""


class BoTorchSearch(ModelBasedSampler, SequentialSampler):
    """BoTorch's models and acquisition functions in a trust region; needs ``archgym[botorch]``.

    A Gaussian process a goal and a broken limit: Matern over ordered and real parameters
    and over the positions of a permutation's items, and a Hamming kernel over unordered ones, added
    and multiplied. One goal is searched by
    expected improvement (qLogEI), several by hypervolume improvement (qLogNEHVI), both times the
    chance to keep the limits; a batch is built one design after another, each knowing those
    before.

    The acquisition function is maximised over unseen legal designs: moves within the trust
    region around the best designs, random designs, and the neighbours of what looks best of
    these. As in TuRBO the region grows after successes in a row and shrinks after failures; when it
    has become too small it starts anew, with fresh random designs. With limits or several goals,
    the centres are the best by :func:`archgym.agents.common.scores.costs`.

    Numeric libraries are held to one thread while it works. The same seed gives the same search
    on the same machine and versions.

    References:
        Balandat et al., BoTorch: A Framework for Efficient Monte-Carlo Bayesian
            Optimization, NeurIPS 2020.
        Eriksson et al., Scalable Global Optimization via Local Bayesian Optimization
            (TuRBO), NeurIPS 2019.
        Ament et al., Unexpected Improvements to Expected Improvement for Bayesian
            Optimization, NeurIPS 2023.
        Daulton, Balandat and Bakshy, Parallel Bayesian Optimization of Multiple Noisy
            Objectives, NeurIPS 2021.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> agent = make_agent("botorch", env.design_space, seed=1)  # doctest: +SKIP
    >>> agent.search(env, budget=20).duplicates  # doctest: +SKIP
    0

    Raises:
        MissingDependencyError: if BoTorch is not installed.
    """

    name: ClassVar[str] = "botorch"

    class Hyperparameters(fields.InitialDesigns):
        """Hyperparameters of the search with BoTorch."""

        candidates: fields.PoolSize = Field(
            400, description="approximate number of first candidates for each proposal"
        )
        elite: fields.Number = Field(
            4, description="best designs that are centres of the trust region"
        )
        start_length: float = Field(
            0.5,
            ge=0.05,
            le=1.0,
            description="initial size of the trust region: maximum share of parameters that "
            "change and maximum change of an ordered one as a share of its range",
        )
        patience: fields.Threshold = Field(
            8, description="proposals in a row without improvement that halve the trust region"
        )
        samples: fields.Several = Field(
            64, description="Monte-Carlo samples of the acquisition function"
        )
        most_data: fields.MaxData = 200

    def setup(self) -> None:
        """Starts with nothing known."""
        for package in ("torch", "botorch"):
            if importlib.util.find_spec(package) is None:
                raise MissingDependencyError(
                    f"agent 'botorch' needs the package {package}: pip install 'archgym[botorch]'"
                )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from archgym.agents.common import botorch_models

        super().setup()
        parameters = [self.space.parameters[position] for position in self.space.free]
        widths = [len(parameter.axes) for parameter in parameters]
        ordered = [p.ordered or width > 1 for p, width in zip(parameters, widths, strict=True)]
        self._ordered = np.repeat(np.array(ordered, dtype=np.bool_), widths)
        steps = [
            1.0 / (w if w > 1 else p.size - 1) for p, w in zip(parameters, widths, strict=True)
        ]
        self._step = np.repeat(steps, widths)
        self._column_of = np.repeat(np.arange(len(parameters)), widths)
        self._models = botorch_models.Acquisition(
            np.flatnonzero(~self._ordered).tolist(), self.hyperparameters.samples
        )
        self._length = float(self.hyperparameters.start_length)
        self._successes = self._failures = 0
        self._value: Callable[[Designs], Floats] | None = None  # models, fitted once a batch
        self._fresh = 0  # random designs still to come after a restart

    @property
    def length(self) -> float:
        """Size of the trust region, as ``start_length``."""
        return self._length

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Takes in data for the models and resizes the trust region."""
        self._unseen.learn(designs, outcomes)
        before = self._observations.costs
        new, proposed = self._observations.learn(designs, outcomes, self._errors(outcomes))
        if new and proposed and len(before) >= self.hyperparameters.n_initial:
            self._resize(success=bool(self._observations.costs[-new:].min() < before.min()))

    def _next(self) -> Designs:
        few = self._observations.asked < self.hyperparameters.n_initial
        if few or self._observations.learned < _MIN_DATA or self._fresh:
            self._fresh = max(0, self._fresh - 1)
            return self._unseen.take(1)
        self._value = self._value or self._learn()
        return self._most_promising(self._value)

    def _resize(self, *, success: bool) -> None:
        self._successes = self._successes + 1 if success else 0
        self._failures = 0 if success else self._failures + 1
        if self._successes >= _SUCCESSES:
            self._length, self._successes = min(2 * self._length, _LONGEST), 0
        elif self._failures >= self.hyperparameters.patience:
            self._length, self._failures = self._length / 2, 0
        if self._length < _SHORTEST:
            self._length = float(self.hyperparameters.start_length)
            self._fresh = self.hyperparameters.n_initial // 2

    def _learn(self) -> Callable[[Designs], Floats]:
        """Fits the models; gives the function to maximise, shape (n,) of designs."""
        known = self._observations
        rows = known.rows(self.hyperparameters.most_data)
        x, seed = self._coordinates(known.codes[rows]), int(self.rng.integers(1 << 31))
        value = self._models.fit(x, known, rows, seed, noisy=self.spread is not None)

        def of(designs: Designs) -> Floats:
            pending = known.waiting[-_MAX_PENDING:]
            points, waiting = (self._coordinates(codes) for codes in (designs.codes, pending))
            return value(points, waiting)

        return of

    def _most_promising(self, value: Callable[[Designs], Floats]) -> Designs:
        pool = self._candidates()
        if not len(pool):
            return self._unseen.take(1)

        def near(pool: Designs, values: Floats) -> Designs:
            top = (-values).argsort(kind="stable")[:_CLIMB_FROM]
            return self._moves.mutate(np.repeat(pool.codes[top], _CLIMB_STEPS, axis=0), 1)

        return self._climb(pool, value, near, _CLIMBING_ROUNDS)

    def _climb(
        self,
        pool: Designs,
        score: Callable[[Designs], Floats],
        near: Callable[[Designs, Floats], Designs],
        rounds: int,
    ) -> Designs:
        """The unseen design with the largest score that a climb from some designs finds.

        Args:
            pool: unseen designs to start from, at least one.
            score: of designs, shape (n,).
            near: designs near the best ones of a pool, given the pool and its scores.
            rounds: how often such designs join the pool, as long as the largest score grows.
        """
        scores = score(pool)
        for _ in range(rounds):
            more = self._unseen.sift(near(pool, scores))
            if not len(more):
                break
            highest = scores.max()
            pool, scores = pool.concatenate(more), np.concatenate([scores, score(more)])
            if scores.max() <= highest:
                break
        return self._unseen.take_best(pool, scores)

    def _candidates(self) -> Designs:
        """Unseen legal designs: three quarters within the trust region, the rest anywhere."""
        n = self.hyperparameters.candidates // 4 + 1
        elite = self._observations.codes[self._observations.ranked()[: self.hyperparameters.elite]]
        centre = elite[self.rng.integers(len(elite), size=3 * n)]
        most = max(1, round(self._length * len(self.space.free)))
        moved = self._moves.mutate(centre, 1 + self.rng.integers(most, size=len(centre)))
        here, there = (self._coordinates(codes) for codes in (centre, moved.codes))
        free = [self.space.free[column] for column in self._column_of]
        active = (centre[:, free] >= 0) & (moved.codes[:, free] >= 0)
        reach = np.maximum(self._length, self._step) + 1e-9  # one step is always within it
        within = ~(active & self._ordered & (np.abs(there - here) > reach)).any(axis=1)
        return self._unseen.sift(moved[within].concatenate(self.space.sample(n, self.rng)))

    def _coordinates(self, codes: Ints) -> Floats:
        """As :func:`coordinates`, but a permutation has a column for each item's position."""
        columns = coordinates(self.space, codes)[:, self._column_of]
        for column, position in enumerate(self.space.free):
            own = np.flatnonzero(self._column_of == column)
            if len(own) > 1:
                level = codes[:, position, None]
                places = self.space.parameters[position].places(np.maximum(level[:, 0], 0))
                columns[:, own] = np.where(level < 0, 0.5, places)
        return columns

    @contextmanager
    def _working(self) -> Iterator[None]:
        with super()._working(), one_seeded_thread(int(self.rng.integers(1 << 31))):
            self._value = None
            yield
