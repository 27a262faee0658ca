"""A Gaussian process of what earlier searches did not foresee."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archgym.agents.common.arrays import Floats
from archgym.agents.gp.experience import Guess
from archgym.agents.gp.gaussian_process import GaussianProcess

_SHARES = (1.0, 0.5)
"""Shares of what sources expect that are tried."""
_FEW = 10
"""Designs up to which the sources are used without evidence: good designs alone, which are what a
search with history evaluates first, say little on what the sources expect of others. Beyond, the
best of several hypotheses has to make up for their number."""

Trend = Callable[[Floats], Guess]


class TrendedProcess:
    """A process around what earlier searches expect, where that makes the data likelier.

    The hypotheses are that the target is the mean of what all sources expect, or what a single one
    does, or half of these, each plus what a process of its own learns of the rest; or that history
    says nothing, which is the plain process. The likeliest one is used, the last one only if there
    are more than a few designs; they are compared whenever the plain process is tuned anew. It is a
    Gaussian process to its users.

    References:
        Feurer, Letham, Hutter and Bakshy, Practical Transfer Learning for Bayesian
            Optimization, 2018, who weigh the models of earlier tasks by how well they rank new
            data; here they are weighed by likelihood, and what they leave is learned.

    Args:
        plain: the process without history.
        rest: another one, which learns what the sources leave.

    Attributes:
        believed: whether history may be used; otherwise it is the plain process.
    """

    def __init__(self, plain: GaussianProcess, rest: GaussianProcess) -> None:
        self._plain, self._rest = plain, rest
        self._trend: Trend | None = None
        self._weights: Floats | None = None
        self.believed = True
        self._x = self._expected = np.empty(0)

    def follow(self, trend: Trend) -> None:
        """Sets what the sources expect, in the units of the targets."""
        self._trend, self._x = trend, np.empty(0)

    @property
    def trusts(self) -> bool:
        """Whether what the sources expect is in use."""
        return self._in_use is not None

    @property
    def amplitude(self) -> float:
        """Standard deviation of the signal that is learned."""
        return self._used.amplitude

    def tune(self, x: Floats, y: Floats, known_noise: Floats | float = 0.0) -> None:
        """Tunes both processes, and decides which one is used; see :class:`GaussianProcess`."""
        before = self._plain.tuned_at
        self._plain.tune(x, y, known_noise)
        expected = self._expect(x)
        if self._plain.tuned_at == before:
            if self._weights is not None:
                self._rest.tune(x, y - expected @ self._weights, known_noise)
            return
        n = expected.shape[1]
        groups = [np.full(n, 1.0 / n), *(np.eye(n) if n > 1 else ())]
        hypotheses = [share * weights for share in _SHARES for weights in groups]
        start = hypotheses[0] if self._weights is None else self._weights
        self._rest.tune(x, y - expected @ start, known_noise)
        found = []
        for weights in hypotheses:
            likelihood = self._rest.fit(x, y - expected @ weights, known_noise)
            found.append(likelihood - 0.5 * self._rest.mean**2)
        best = int(np.argmax(found))
        self._weights = hypotheses[best]
        if len(y) > _FEW:
            likelihood = self._plain.fit(x, y, known_noise)
            if likelihood > found[best] - np.log(len(hypotheses)):
                self._weights = None

    def fit(self, x: Floats, y: Floats, known_noise: Floats | float = 0.0) -> float:
        """Conditions on data; log likelihood of the targets."""
        self._expect(x)
        return self._used.fit(x, self._left(y), known_noise)

    def retarget(self, y: Floats) -> float:
        """Takes other targets of the same designs; their log likelihood."""
        return self._used.retarget(self._left(y))

    def anticipate(self, x: Floats) -> None:
        """Counts designs in flight as observed; see :class:`GaussianProcess`."""
        self._used.anticipate(x)

    def correlation(self, a: Floats, b: Floats) -> Floats:
        """Prior correlation of the signal at coordinates, shape (len(a), len(b))."""
        return self._plain.correlation(a, b)

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the signal, each of shape (n,)."""
        mean, deviation = self._used.predict(x)
        weights = self._in_use
        if weights is None:
            return mean, deviation
        assert self._trend is not None
        guess = self._trend(x)
        variance = (guess.deviation**2) @ weights**2
        return mean + guess.mean @ weights, np.sqrt(deviation**2 + variance)

    @property
    def _in_use(self) -> Floats | None:
        """Weights of the sources; ``None`` for the plain process."""
        return self._weights if self.believed else None

    @property
    def _used(self) -> GaussianProcess:
        return self._rest if self.trusts else self._plain

    def _left(self, y: Floats) -> Floats:
        weights = self._in_use
        return y if weights is None else y - self._expected @ weights

    def _expect(self, x: Floats) -> Floats:
        """What the sources expect of the data, shape (n, n_sources)."""
        assert self._trend is not None
        if self._x is not x:
            self._x, self._expected = x, self._trend(x).mean
        return self._expected


AnyProcess = GaussianProcess | TrendedProcess
