"""What earlier searches say of designs: surrogates of goals and limits, one for each source."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.common.moves import Moves
from archgym.agents.common.scores import costs
from archgym.agents.common.targets import distance_from_limits, limit_targets
from archgym.agents.gp.gaussian_process import GaussianProcess
from archgym.agents.gp.levels import Columns, coordinates
from archgym.history import History, HistorySource
from archgym.problem.status import Status
from archgym.space import Designs, DesignSpace

_WORK = 40_000
"""Sum over the sources of squared numbers of designs that a surrogate learns from."""
_MOST_SOURCES = 8
_LEAST = 5
"""Designs with metrics that a source needs."""
_CONSISTENT, _ENOUGH = 0.5, 20
"""Rank correlation of a source's costs with what its other designs make of each, from which on it
is believed, and designs that are enough to tell. On the problems of :mod:`benchmarks.history` it is
0.86 to 1; with metrics exchanged between designs it is below 0.35."""
_GOOD_SHARE = 0.6
"""Share of the best ones among the designs of a surrogate; the rest is drawn from the others."""
_FAVOURITES = 100
"""Designs of each source among which the first ones are chosen."""
_MAX_PARENTS, _CHILDREN = 3, 256
"""Best designs of sources that are crossed, and how often each pair of them is."""
_BROKEN = 10.0
"""Standard deviations of a goal that a limit counts that is expected to be broken by a factor e."""
FAILING = -1
"""Number of the limit that stands for failing."""


@dataclass(frozen=True)
class Guess:
    """What sources expect of designs, in the units of costs.

    Attributes:
        mean: shape (n, n_sources).
        deviation: shape (n, n_sources).
    """

    mean: Floats
    deviation: Floats


class Surrogate:
    """A process of one quantity of one source, in its own units."""

    def __init__(self, columns: Columns, x: Floats, y: Floats) -> None:
        self._centre, scale = float(y.mean()), float(y.std())
        self.scale = scale or 1.0
        self._process = GaussianProcess(columns)
        target = (y - self._centre) / self.scale
        self._process.tune(x, target)
        self._process.fit(x, target)
        self.consistent = len(y) < _ENOUGH or _agree(target, self._process.left_out(target))
        """Whether each value is about what the others make of it; few values are not judged."""

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and deviation, each of shape (n,)."""
        mean, deviation = self._process.predict(x)
        return self._centre + self.scale * mean, self.scale * deviation


class Experience:
    """The surrogates of all sources.

    A source whose designs say nothing of one another, as where metrics went to the wrong designs,
    says nothing of others: it is left out.

    Args:
        space: the design space.
        history: the sources, those with fewer than five simulated designs left out.
        rng: draws the designs that surrogates learn from.

    Attributes:
        best: codes of the designs of each source, in its own order or the best first.
        ignored: places of the sources that are left out.
        ordered: whether a source has its own order.
    """

    def __init__(self, space: DesignSpace, history: History, rng: np.random.Generator) -> None:
        self._space, self._columns = space, Columns.of(space)
        self._moves = Moves(space, rng)
        usable = [s for s in history if (s.outcomes.status == Status.OK).sum() >= _LEAST]
        usable = sorted(usable, key=lambda source: (not source.ordered, not source.same))[
            :_MOST_SOURCES
        ]
        most = int((_WORK / max(1, len(usable))) ** 0.5)
        self.best: list[Ints] = []
        self._goals: list[list[Surrogate]] = []
        self._distances: list[Surrogate] = []
        self._limits: list[dict[int, Surrogate]] = []
        usable = [source for source in usable if self._learn(source, most, rng)]
        kept = {id(source) for source in usable}
        self.ignored = tuple(n for n, source in enumerate(history) if id(source) not in kept)
        self.ordered = any(source.ordered for source in usable)
        leading = sum(source.ordered if self.ordered else source.same for source in usable)
        self._first = slice(None, leading or None)
        """Sources that choose the first designs: with an order or of the same problem, if any."""

    def __len__(self) -> int:
        """How many sources there are."""
        return len(self._goals)

    def start(self, n: int) -> Designs:
        """The best design of each source, then what combines these, then further good designs.

        Where sources have different best designs, the new problem often takes one parameter from
        one and another from another: what crosses their best designs comes in the order of what
        all sources together expect. After these, designs of which all sources together expect
        most take turns with the best of each source; of those that differ in a single parameter
        only the first one counts. If a source has its own order, that counts alone.

        Args:
            n: how many at most.
        """
        if not self.best:
            return Designs(self._space, self._space.designs(()).codes)
        of_sources = self.best[self._first]
        codes = np.unique(np.concatenate([best[:_FAVOURITES] for best in of_sources]), axis=0)
        lists = of_sources if self.ordered else [self._sorted(codes), *of_sources]
        found = codes[:0]
        if not self.ordered and len(of_sources) > 1:
            tops = self._sorted(np.unique([best[0] for best in of_sources], axis=0))[:_MAX_PARENTS]
            crossed = self._crossed(tops)
            crossed = crossed[(crossed[:, None] != tops).any(axis=2).all(axis=1)]
            found = np.concatenate([tops, crossed])[:n]
        for place in range(min(_FAVOURITES, max(map(len, lists)))):
            for one in lists:
                row = one[place : place + 1]
                if len(found) < n and ((found != row).sum(axis=1) > 1).all():
                    found = np.concatenate([found, row])
        return Designs(self._space, found)

    def _sorted(self, codes: Ints) -> Ints:
        """Designs in the order of what all sources together expect."""
        expected = self.score(Designs(self._space, codes))
        return np.asarray(codes[expected.argsort(kind="stable")])

    def _crossed(self, parents: Ints) -> Ints:
        """Legal designs between two parents, those of which sources expect most first."""
        pairs = np.array(list(itertools.permutations(range(len(parents)), 2)), dtype=np.int64)
        if not len(pairs):
            return parents[:0]
        first, second = np.repeat(pairs, _CHILDREN, axis=0).T
        children = self._moves.crossover(parents[first], parents[second])
        codes = np.unique(children.codes[self._space.legal(children)], axis=0)
        return self._sorted(codes) if len(codes) else codes

    def score(self, designs: Designs) -> Floats:
        """What sources expect together, in standard deviations; smaller is better, shape (n,)."""
        x = coordinates(self._space, designs.codes)
        score = np.zeros(len(x))
        for number in range(len(self._goals[0])):
            mean = self.goal(number, x).mean[:, self._first].mean(axis=1)
            score += mean / self.goal_scale(number)
        for number in self.limits:
            guess = self.limit(number, x)
            beyond = np.maximum(0.0, guess.mean + guess.deviation)[:, self._first]
            score += _BROKEN * beyond.mean(axis=1)
        return score

    def goal(self, number: int, x: Floats) -> Guess:
        """The cost of a goal."""
        return _guess([goals[number] for goals in self._goals], x)

    def goal_scale(self, number: int) -> float:
        """Standard deviation of the cost of a goal, the median over the sources."""
        return float(np.median([goals[number].scale for goals in self._goals]))

    @property
    def distance_scale(self) -> float:
        """Standard deviation of the distance from all limits, the median over the sources."""
        return float(np.median([distance.scale for distance in self._distances]))

    def distance(self, x: Floats) -> Guess:
        """The distance from keeping all limits."""
        return _guess(self._distances, x)

    @property
    def limits(self) -> list[int]:
        """Limits that every source has seen broken; :data:`FAILING` is one."""
        common = set(self._limits[0]).intersection(*self._limits[1:])
        return sorted(common)

    def limit(self, number: int, x: Floats) -> Guess:
        """Target of a limit (:func:`archgym.agents.common.targets.limit_targets`)."""
        return _guess([limits[number] for limits in self._limits], x)

    def _learn(self, source: HistorySource, most: int, rng: np.random.Generator) -> bool:
        """Makes the surrogates of a source, unless it contradicts itself; whether it did."""
        outcomes, cost = source.outcomes, costs(source.outcomes)
        order = np.arange(len(cost)) if source.ordered else cost.argsort(kind="stable")
        good, rest = np.split(order, [min(len(order), int(_GOOD_SHARE * most))])
        rows = np.concatenate([good, rng.permutation(rest)[: most - len(good)]])
        ok = rows[outcomes.status[rows] == Status.OK]
        x = coordinates(self._space, outcomes.designs.codes)
        goals = [Surrogate(self._columns, x[ok], y) for y in outcomes.costs[ok].T]
        if not source.ordered and not any(goal.consistent for goal in goals):
            return False
        self.best.append(outcomes.designs.codes[order])
        self._goals.append(goals)
        distance = distance_from_limits(outcomes.violations[ok])
        self._distances.append(Surrogate(self._columns, x[ok], distance))
        limits = {}
        for number, excess in enumerate(outcomes.violations[ok].T):
            if (excess > 0).any():
                limits[number] = Surrogate(self._columns, x[ok], limit_targets(excess))
        if len(ok) < len(rows):
            failed = np.where(outcomes.status[rows] == Status.OK, -0.5, 1.0)
            limits[FAILING] = Surrogate(self._columns, x[rows], limit_targets(failed))
        self._limits.append(limits)
        return True


def _agree(first: Floats, second: Floats) -> bool:
    """Whether two lists are in about the same order; nothing contradicts equal values."""
    from scipy.stats import rankdata

    if min(np.ptp(first), np.ptp(second)) == 0:
        return True
    ranks = rankdata(first), rankdata(second)
    return float(np.corrcoef(*ranks)[0, 1]) >= _CONSISTENT


def _guess(surrogates: list[Surrogate], x: Floats) -> Guess:
    predicted = [surrogate.predict(x) for surrogate in surrogates]
    means, deviations = zip(*predicted, strict=True)
    return Guess(np.stack(means, axis=1), np.stack(deviations, axis=1))
