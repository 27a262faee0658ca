"""What earlier searches teach an agent that learns a policy, and how far it is believed."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from archgym.agents.common.arrays import Floats
from archgym.agents.common.observations import some_outcomes
from archgym.evaluation.outcome import Outcomes, joined
from archgym.history import History
from archgym.space import DesignSpace, FeatureEncoding

_MAX_ROWS = 2048
"""Designs of all sources together that are learned from, the best half and others."""
_MAX_SOURCES = 32
"""Sources that are learned from, those of the same problem first."""
_MIN_ROWS = 20
"""A source with fewer designs is too small to test what it teaches."""
_PROBES = 5
"""Designs drawn evenly that are evaluated first, beside the best of the sources: only with such as
are not good can it be seen whether a source knows good from bad."""
_TEMPERATURE = 0.5
"""Of the weights of designs, in standard deviations of their rewards' normal scores: the best 5 %
have over half of all weight."""
_TREES = 60
_SURE = 0.3
"""Rank correlation beyond chance from which a source is believed fully to predict its own data."""
_CONCORDANCE = 0.5
"""The same for Kendall's coefficient of what it predicts of the problem that is searched."""


class Lessons:
    """The designs of a history, weighted by how good they were and how far that is believed.

    A source is believed as far as a forest that learned a part of it predicts the order of the
    rest (what was shuffled teaches nothing), and as far as the forest predicts the order of
    rewards in the problem that is searched (another problem may teach the opposite).

    Args:
        history: what earlier searches found; at least one source.
        space: the design space that is searched.
        rng: draws the probes.

    Attributes:
        outcomes: of the designs that are learned from.
        probes: designs to evaluate beside the best of the sources, to test what these teach;
            none if every source is of the same problem.
    """

    def __init__(self, history: History, space: DesignSpace, rng: np.random.Generator) -> None:
        # The same problem first: the order of the others is that in which they were given.
        sources = sorted(history, key=lambda source: not source.same)[:_MAX_SOURCES]
        most = _MAX_ROWS // len(sources)
        parts = [_some(source.outcomes, most, space) for source in sources]
        self.outcomes = parts[0]
        for part in parts[1:]:
            self.outcomes = joined(self.outcomes, part)
        self._source = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        self._encoding = FeatureEncoding(space)
        self._scores = np.concatenate([_normal_scores(part.reward) for part in parts])
        self._seed = int(rng.integers(1 << 31))
        known = all(source.same for source in sources)
        self.probes = space.sample(0 if known else _PROBES, rng)

    def trust(self, outcomes: Outcomes) -> Floats:
        """How far each source is believed, from 0 to 1, shape (n_sources,).

        Args:
            outcomes: of designs of the problem that is searched, such as the probes.
        """
        from sklearn.ensemble import RandomForestRegressor  # takes a second, and only needed here

        found = np.zeros(int(self._source.max(initial=0)) + 1)
        features = self._encoding.encode(self.outcomes.designs)
        asked = self._encoding.encode(outcomes.designs)
        for source in range(len(found)):
            own = self._source == source
            scores = self._scores[own]
            if len(scores) < _MIN_ROWS or not scores.any():
                continue
            forest = RandomForestRegressor(
                _TREES,
                min_samples_leaf=2,
                max_features=0.5,
                oob_score=True,
                random_state=self._seed,
            )
            forest.fit(features[own], scores)
            chance = 2.0 / len(scores) ** 0.5
            if not np.ptp(forest.oob_prediction_):
                continue
            correlation = np.corrcoef(forest.oob_prediction_, scores)[0, 1]
            itself = (correlation - chance) / _SURE
            predicts = 1.0
            if len(asked):
                concordance = _kendall(forest.predict(asked), outcomes.reward)
                predicts = (concordance - _kendall_error(len(asked)) / 2) / _CONCORDANCE
            found[source] = np.clip(itself, 0.0, 1.0) * np.clip(predicts, 0.0, 1.0)
        return found

    def weights(self, trust: Floats) -> Floats:
        """Weight of each design, shape (n,), the mean of a source its trust.

        They are exponential in the reward's normal score within the source.
        """
        weights = np.exp(self._scores / _TEMPERATURE)
        for source, share in enumerate(trust):
            own = self._source == source
            weights[own] *= share / weights[own].mean() if own.any() else 0.0
        return np.asarray(weights)


def _some(outcomes: Outcomes, most: int, space: DesignSpace) -> Outcomes:
    """At most so many outcomes: the best half of them, and others spread over the rest."""
    ranked = outcomes.reward.argsort(kind="stable")[::-1]
    if len(ranked) > most:
        rest = ranked[most // 2 :]
        places = np.linspace(0, len(rest) - 1, most - most // 2).astype(np.int64)
        ranked = np.concatenate([ranked[: most // 2], rest[places]])
    return some_outcomes(outcomes, np.sort(ranked), space)


def _normal_scores(rewards: Floats) -> Floats:
    """Quantiles of the normal distribution at the rewards' ranks, shape (n,)."""
    _, rank, counts = np.unique(rewards, return_inverse=True, return_counts=True)
    shares = (counts.cumsum() - counts / 2) / max(len(rewards), 1)
    normal = NormalDist()
    return np.array([normal.inv_cdf(share) for share in shares.tolist()])[rank]


def _kendall(predicted: Floats, found: Floats) -> float:
    """Kendall's rank correlation, from -1 to 1; 0 if either is constant."""
    one, other = (np.sign(values[:, None] - values[None, :]) for values in (predicted, found))
    norm = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / norm if norm else 0.0


def _kendall_error(n: int) -> float:
    """Standard deviation of :func:`_kendall` of two random orders."""
    return float(np.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)))) if n > 1 else 1.0
