"""A small Gaussian process for mixed, conditional, discrete design spaces.

The kernel is a product of one factor a parameter, ``1 - s * (1 - m(d))``: the sensitivity ``s``
in [0, 1] says how much a change of the parameter may matter at most, and ``m`` how fast: for
ordered and real parameters it is Matern 5/2 of the distance with a length scale of its own, for
unordered ones it is 1 for equal values and 0 for others (Hamming). Expanded, the product is a sum
over all sets of parameters, in which effects of few parameters weigh more than those of many.
A parameter of sensitivity 0 is dead.

In the product of very many factors any two designs are unlike, and nothing is learned of one from
another. So the more parameters there are, the less sensitive each is expected to be: the product is
then nearly the sum of the effects of single parameters. Hvarfner, Hellsten and Nardi (Vanilla
Bayesian Optimization Performs Great in High Dimensions, ICML 2024) scale lengths for that reason.

SciPy and numba are imported when a process is made, not with this module.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.gp.levels import Columns, Leveled, LevelPairs

_PRIORS = np.array([(-0.8, 0.7, -8.0, 6.0), (-1.0, 0.8, -4.0, 2.5), (-9.0, 2.0, -14.0, -1.5)])
"""Centre and scale of the prior, and bounds (columns): of the logit of a sensitivity, of the
logarithm of a length, the whole range of the parameter being 1, and of the logarithm of the noise's
variance as a share of the signal's (rows)."""
_MANY, _SPARSITY = 30, 4.0
"""Parameters from which on fewer of them are expected to matter: the centre of the sensitivities'
logits falls by so many times the logarithm of their number as a share of that."""
_FREEDOM = 3.0
"""Degrees of freedom of the priors, Student's t: most parameters matter alike, some are dead."""
_IMPOSSIBLE = 1e10  # loss where the covariance cannot be factored
_RETUNE_GROWTH, _FIRST_STEPS, _STEPS = 1.1, 30, 8
_SQRT5 = 5.0**0.5


class GaussianProcess:
    """Gaussian process with a constant mean; see the module for its kernel.

    Mean and amplitude follow from the data; sensitivities, length scales and noise are those of
    the greatest posterior density, sought from where they were.

    Args:
        columns: of the coordinates.
        rng: draws the centre of the prior from the prior itself; several processes then differ
            where the data leave it open, much as draws from the posterior do. Without it the
            centre is the prior's own.

    Attributes:
        amplitude: standard deviation of the signal.
        mean: of the targets, far from all data.
        tuned_at: number of designs from which it was tuned last, 0 before.
    """

    def __init__(self, columns: Columns, rng: np.random.Generator | None = None) -> None:
        from scipy import linalg, optimize

        from archgym.agents.gp import kernels as products

        self._linalg: Any = linalg
        self._optimize: Any = optimize
        self._products: Any = products
        self._columns = columns
        self._ordered = np.flatnonzero(columns.ordered)
        self._n = n = len(columns.ordered)
        lengths = len(self._ordered)
        self._all = products.Terms(np.ones((1, n), dtype=np.bool_), np.ones(1))
        priors = np.repeat(_PRIORS, (n, lengths, 1), axis=0).T
        self._prior_centre, self._prior_scale, low, high = priors.copy()
        self._prior_centre[:n] -= _SPARSITY * max(0.0, np.log(n / _MANY))
        self._bounds = list(zip(low, high, strict=True))
        if rng is not None:
            self._prior_centre[:-1] += self._prior_scale[:-1] * rng.normal(size=n + lengths)
        self._theta = np.clip(self._prior_centre, low, high)
        self.tuned_at = 0
        self.amplitude, self.mean = 1.0, 0.0

    @property
    def sensitivity(self) -> Floats:
        """Of each column, shape (n_columns,)."""
        return np.asarray(1.0 / (1.0 + np.exp(-self._theta[: self._n])))

    @property
    def noise(self) -> float:
        """Variance of the noise as a share of the signal's."""
        return float(np.exp(self._theta[-1]))

    def tune(self, x: Floats, y: Floats, known_noise: Floats | float = 0.0) -> None:
        """Improves sensitivities, length scales and noise by a few gradient steps.

        It does so only when the data have grown by a twentieth since it last did.

        Args:
            x: coordinates, shape (n, n_columns).
            y: targets, shape (n,).
            known_noise: variance of each target's noise that is known, besides what is learned,
                as a share of the signal's, shape (n,).
        """
        if self.tuned_at and self.tuned_at <= len(y) < _RETUNE_GROWTH * self.tuned_at:
            return
        steps = _STEPS if self.tuned_at else _FIRST_STEPS
        self.tuned_at = len(y)
        designs = self._columns.split(x)
        pairs = self._columns.pairs(designs, designs)
        found = self._optimize.minimize(
            self._loss,
            self._theta,
            args=(designs.index, pairs, y, known_noise),
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds,
            options={"maxiter": steps, "maxfun": 2 * steps},
        )
        if np.isfinite(found.x).all():
            self._theta = found.x

    def fit(self, x: Floats, y: Floats, known_noise: Floats | float = 0.0) -> float:
        """Conditions on data as :meth:`tune` has them; log likelihood of the targets."""
        self._condition_on(x)
        covariance = self._covariance(self._data)
        self._factor = self._factored(covariance, 1.0, known_noise)
        return self.retarget(y)

    def retarget(self, y: Floats) -> float:
        """Takes other targets of the same designs; their log likelihood."""
        self.mean, self._weights, scale = self._solve(self._factor, y)
        self.amplitude = float(np.sqrt(scale))
        likelihood = -0.5 * len(y) * np.log(scale) - np.log(np.diag(self._factor)).sum()
        return float(likelihood)

    def left_out(self, y: Floats) -> Floats:
        """Mean at each of the data as the others predict it, shape (n,).

        Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), equation 5.12.

        Args:
            y: the targets that it was fitted to.
        """
        inverse, _ = self._linalg.lapack.dpotri(self._factor, lower=1)
        return np.asarray(y - self._weights / np.diag(inverse))

    def anticipate(self, x: Floats) -> None:
        """Counts designs in flight as observed with the predicted value and with noise.

        The noise is as large as the uncertainty of the prediction, so the variance at each of them
        falls by about half. Means and the amplitude stay as they are. The next :meth:`fit` forgets
        these designs, and comes before any :meth:`retarget`.

        Args:
            x: their coordinates, shape (n, n_columns).
        """
        coming = self._columns.split(x)
        explained = self._explained(self._with_data(coming)).T
        doubt = np.maximum(1.0 - np.einsum("ij,ij->i", explained, explained), 0.0)
        rest = self._covariance(coming) - explained @ explained.T
        n, more = len(self._x), len(x)
        factor = np.zeros((n + more, n + more), order="F")
        factor[:n, :n], factor[n:, :n] = self._factor, explained
        factor[n:, n:] = self._factored(rest, doubt, doubt)
        self._factor = factor
        self._condition_on(np.concatenate([self._x, x]))
        self._weights = np.append(self._weights, np.zeros(more))

    def correlation(self, a: Floats, b: Floats) -> Floats:
        """Prior correlation of the signal at coordinates, shape (len(a), len(b))."""
        first, second = self._columns.split(a), self._columns.split(b)
        against = self._against(second, self._columns.pairs(first, second))
        return np.asarray(against.sum_of_products(first.index, self._terms()))

    def alike(self, a: Floats, b: Floats) -> NDArray[np.float32]:
        """How alike coordinates are by column, sensitivity apart, (n_columns, len(a), len(b))."""
        first, second = self._columns.split(a), self._columns.split(b)
        pairs = self._columns.pairs(first, second)
        tables = self._matern(pairs, np.exp(self._theta[self._n : -1]))[0].astype(np.float32)
        alike = np.empty((self._n, len(a), len(b)), dtype=np.float32)
        for i, width in enumerate(pairs.widths.tolist()):
            table = tables[pairs.starts[i] : pairs.starts[i + 1]].reshape(-1, width)
            table.take(second.index[:, i], axis=1).take(first.index[:, i], axis=0, out=alike[i])
        return alike

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the signal, each of shape (n,)."""
        kernel = self._with_data(self._columns.split(x))
        mean = self.mean + kernel @ self._weights
        explained = self._explained(kernel)
        rest = np.maximum(1.0 - np.einsum("ij,ij->j", explained, explained), 1e-12)
        return mean, self.amplitude * np.sqrt(rest)

    def _factored(
        self, covariance: Floats, signal: Floats | float, known_noise: Floats | float
    ) -> Floats:
        """Cholesky factor of a covariance, with the noise that is learned and the known one.

        Args:
            covariance: of which what is below the diagonal is read.
            signal: the diagonal.
            known_noise: as for :meth:`fit`.
        """
        noise = self.noise
        while True:  # ends at the latest when the noise outweighs the signal
            covariance[np.diag_indices(len(covariance))] = signal + noise + known_noise
            factor, failed = self._linalg.lapack.dpotrf(covariance, lower=1)
            if not failed:
                return np.asarray(factor)
            noise *= 10.0

    def _solve(self, factor: Floats, y: Floats) -> tuple[float, Floats, float]:
        """Mean of the process, weights of the data, and variance of the signal."""
        both = self._linalg.cho_solve(
            (factor, True), np.stack([y, np.ones(len(y))], axis=1), check_finite=False
        )
        mean = float(both[:, 0].sum() / both[:, 1].sum())
        weights = both[:, 0] - mean * both[:, 1]
        scale = (float((y - mean) @ weights) + 1.0) / (len(y) + 1.0)  # a prior of one datum
        return mean, weights, max(scale, 1e-12)

    def _terms(self) -> Any:
        """The sets of columns over whose products the kernel is a sum."""
        return self._all

    def _sensitivity(self) -> Floats:
        """Of each column in these products."""
        return self.sensitivity

    def _condition_on(self, x: Floats) -> None:
        self._x, self._data = x, self._columns.split(x)
        self._data_looked_up: Any = None

    def _covariance(self, designs: Leveled) -> Floats:
        """Prior correlation of the signal among designs; only the lower triangle is defined."""
        against = self._against(designs, self._columns.pairs(designs, designs))
        return np.asarray(against.sum_of_products(designs.index, self._terms(), lower=True))

    def _with_data(self, designs: Leveled) -> Floats:
        """Prior correlation of the signal at designs and at the data, shape (n, n_data)."""
        pairs = self._columns.pairs(designs, self._data)
        if self._data_looked_up is None or self._data_looked_up.pairs is not pairs:
            self._data_looked_up = self._against(self._data, pairs)
        return np.asarray(self._data_looked_up.sum_of_products(designs.index, self._terms()))

    def _against(self, designs: Leveled, pairs: LevelPairs) -> Any:
        alike, _, _ = self._matern(pairs, np.exp(self._theta[self._n : -1]))
        factors = 1.0 - self._sensitivity()[pairs.column] * (1.0 - alike)
        return self._products.Against(designs.index, pairs, factors)

    def _explained(self, kernel: Floats) -> Floats:
        """What the data explain of designs: the squares' sums are shares of the variance."""
        return np.asarray(
            self._linalg.solve_triangular(self._factor, kernel.T, lower=True, check_finite=False)
        )

    def _matern(self, pairs: LevelPairs, lengths: Floats) -> tuple[Floats, Floats, Floats]:
        """Of each pair of values: how alike they are, the distance in lengths, its decay."""
        scale = np.ones(self._n)
        scale[self._ordered] = lengths
        r = _SQRT5 * pairs.distance / scale[pairs.column]
        decay = np.exp(-r)
        return (1.0 + r + r * r / 3.0) * decay, r, decay

    def _loss(
        self,
        theta: Floats,
        index: Ints,
        pairs: LevelPairs,
        y: Floats,
        known_noise: Floats | float = 0.0,
    ) -> tuple[float, Floats]:
        """Negative log posterior density up to a constant, and its gradient."""
        n, count = self._n, len(y)
        s = 1.0 / (1.0 + np.exp(-theta[:n]))
        noise = np.exp(theta[-1])
        alike, r, decay = self._matern(pairs, np.exp(theta[n:-1]))
        factors = 1.0 - s[pairs.column] * (1.0 - alike)
        against = self._products.Against(index, pairs, factors)
        k = against.sum_of_products(index, self._all, lower=True)
        covariance = k.copy()
        covariance[np.diag_indices(count)] = 1.0 + noise + known_noise
        lower, failed = self._linalg.lapack.dpotrf(covariance, lower=1)
        if failed:
            return _IMPOSSIBLE, np.zeros_like(theta)
        _, weights, scale = self._solve(lower, y)
        inverse, _ = self._linalg.lapack.dpotri(lower, lower=1)
        away = (theta - self._prior_centre) / self._prior_scale
        loss = (
            0.5 * (count + 1) * np.log(scale)
            + np.log(np.diag(lower)).sum()
            + 0.5 * (_FREEDOM + 1.0) * float(np.log1p(away**2 / _FREEDOM).sum())
        )
        # Of the loss by each entry of the covariance, twice for the mirrored one.
        by_pair = (inverse - np.outer(weights, weights / scale)) * k
        by_diagonal = 0.5 * float((np.diag(inverse) - weights**2 / scale).sum())
        by_level = np.zeros(len(factors))
        self._products.sums_by_pair(index, by_pair, pairs.starts, pairs.widths, by_level)
        by_level /= factors
        gradient = np.empty_like(theta)
        by_s = by_level * (1.0 - alike)
        gradient[:n] = -s * (1.0 - s) * np.add.reduceat(by_s, pairs.starts[:-1])
        by_length = by_level * (r * r * (1.0 + r) / 3.0) * decay
        gradient[n:-1] = (s * np.add.reduceat(by_length, pairs.starts[:-1]))[self._ordered]
        gradient[-1] = noise * by_diagonal
        pull = (_FREEDOM + 1.0) * away / (_FREEDOM + away**2)
        return float(loss), gradient + pull / self._prior_scale
