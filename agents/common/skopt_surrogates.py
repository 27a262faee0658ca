"""Surrogate models and acquisition functions of scikit-optimize, for the Bayesian agent.

Importing this module imports scikit-optimize and scikit-learn, which takes seconds: agents
import it when they are constructed, not before.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from skopt.acquisition import gaussian_ei, gaussian_lcb, gaussian_pi
from skopt.learning import ExtraTreesRegressor, RandomForestRegressor
from skopt.sampler import Sobol

from archgym.agents.common.arrays import Floats
from archgym.agents.common.targets import cost_forms, standardised
from archgym.space import Designs, DesignSpace, SkoptEncoding

_AMPLITUDES, _LENGTHS, _NOISES = (1e-2, 1e2), (0.3, 1e2), (1e-6, 0.1)
"""Bounds of the signal's variance, the length scale and the noise's variance; the target has
variance 1. The largest variance of the signal over the least of the noise bounds the condition of
the covariance, so that deviations have at least three correct digits on every processor."""
_JITTER = 1e-10  # as scikit-learn has it
_RETUNE_GROWTH = 1.1
_CLEAR_EVIDENCE = 5.0  # in log likelihood: odds of 150 to 1
_LEAF = 3  # as scikit-optimize sets it


class GaussianProcess:
    """Gaussian process, Matern 5/2 kernel with one length scale for all features.

    It is scikit-learn's, whose variance follows from the Cholesky factor of the covariance.
    Scikit-optimize's takes it from an explicit inverse and loses every digit where the signal is
    much larger than the noise, on some processors but not on others.

    Attributes:
        best: target of the least cost that it learned from.
        likelihood: logarithm of the data's, when the kernel was settled last.

    The target is the ratio to the baseline, or the cost, its logarithm, where that makes the
    data clearly more likely: some metrics are closer to a sum of effects, others to a product.
    That and the kernel are settled anew each time the data have grown by a tenth.
    """

    def __init__(self) -> None:
        self.best = self.likelihood = 0.0
        self._tuned_at = 0
        self._targets = {"ratio": _Target(), "cost": _Target()}
        self._used = "ratio"

    def fit(self, x: Floats, y: Floats, seed: int, noise: Floats | None = None) -> None:
        """Learns from features, shape (n, n_features), and costs, shape (n,).

        Args:
            x: features.
            y: costs.
            seed: of what is random.
            noise: variance of each cost's noise that is known, as a share of that of all costs.
        """
        forms = cost_forms(y)
        tune = len(y) >= _RETUNE_GROWTH * self._tuned_at
        if tune:
            self._tuned_at = len(y)
            likelihood = {
                name: target.fit(x, forms[name][0], seed, noise, tune=True) + forms[name][1]
                for name, target in self._targets.items()
            }
            surely = likelihood["cost"] - likelihood["ratio"] > _CLEAR_EVIDENCE
            self._used = "cost" if surely else "ratio"
            self.likelihood = likelihood[self._used]
        else:
            self._targets[self._used].fit(x, forms[self._used][0], seed, noise, tune=False)
        self.best = float(forms[self._used][0].min())

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the target, each of shape (n,)."""
        mean, deviation = self._targets[self._used].model.predict(x, return_std=True)
        return mean, deviation


class _Target:
    """A Gaussian process on one form of the cost; the kernel is kept from fit to fit."""

    def __init__(self) -> None:
        self._kernel: Any = ConstantKernel(1.0, _AMPLITUDES) * Matern(1.0, _LENGTHS, nu=2.5)
        self._noise = 1e-3

    def fit(
        self, x: Floats, target: Floats, seed: int, noise: Floats | None, *, tune: bool
    ) -> float:
        """Fits; log likelihood of the target."""
        self.model = GaussianProcessRegressor(
            kernel=self._kernel + WhiteKernel(self._noise, _NOISES),
            alpha=_JITTER if noise is None else _JITTER + noise,
            optimizer="fmin_l_bfgs_b" if tune else None,
            random_state=seed,
        )
        self.model.fit(x, target)
        white = self.model.kernel_.k2
        if tune:
            self._kernel, self._noise = self.model.kernel_.k1, white.noise_level
        white.noise_level = 0.0  # predictions are of the signal alone
        likelihood: float = self.model.log_marginal_likelihood_value_
        return likelihood


class Likelier:
    """Of two processes the one under which the data are likelier; the first ignores a feature.

    Args:
        plain: does not see the last feature.
        recalling: sees all.
    """

    def __init__(self, plain: GaussianProcess, recalling: GaussianProcess) -> None:
        self._plain, self._recalling = plain, recalling
        self._recalls = True

    @property
    def best(self) -> float:
        """Target of the least cost that the one in use learned from."""
        return (self._recalling if self._recalls else self._plain).best

    def fit(self, x: Floats, y: Floats, seed: int, noise: Floats | None = None) -> None:
        """See :meth:`GaussianProcess.fit`."""
        self._plain.fit(x[:, :-1], y, seed, noise)
        self._recalling.fit(x, y, seed, noise)
        self._recalls = self._recalling.likelihood >= self._plain.likelihood

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """See :meth:`GaussianProcess.predict`."""
        return self._recalling.predict(x) if self._recalls else self._plain.predict(x[:, :-1])


class Forest:
    """Random trees; the target is the cost.

    Args:
        trees: how many.
        extra: extremely randomised trees instead of a random forest.
    """

    def __init__(self, trees: int, *, extra: bool) -> None:
        self.best = 0.0
        self._trees = trees
        self._kind = ExtraTreesRegressor if extra else RandomForestRegressor

    def fit(self, x: Floats, y: Floats, seed: int, noise: Floats | None = None) -> None:
        """See :meth:`GaussianProcess.fit`."""
        target, _ = standardised(y)
        self.best = float(target.min())
        self._model = self._kind(self._trees, min_samples_leaf=_LEAF, n_jobs=1, random_state=seed)
        self._model.fit(x, target)

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """See :meth:`GaussianProcess.predict`."""
        mean, deviation = self._model.predict(x, return_std=True)
        return mean, deviation


def gain(
    name: str, mean: Floats, deviation: Floats, best: float, xi: float, kappa: float
) -> Floats:
    """What an acquisition function (``EI``, ``PI`` or ``LCB``) hopes of designs; larger is better.

    Args:
        name: the function.
        mean: predicted targets, shape (n,).
        deviation: their standard deviations, shape (n,).
        best: target of the least cost known.
        xi: improvement that EI and PI look for at least.
        kappa: deviations below the mean that LCB hopes for.
    """
    # In the form that scikit-optimize's functions ask for.
    model = SimpleNamespace(predict=lambda rows, return_std: (mean, deviation))
    rows = np.empty((len(mean), 1))
    if name == "LCB":
        return np.asarray(-gaussian_lcb(rows, model, kappa))
    function = {"EI": gaussian_ei, "PI": gaussian_pi}[name]
    return np.asarray(function(rows, model, best, xi))


def sobol(space: DesignSpace, n: int, seed: int) -> Designs:
    """At least ``n`` designs spread evenly; they need not be legal or distinct."""
    encoding = SkoptEncoding(space)
    points: Any = Sobol().generate(
        encoding.dimensions, 1 << (n - 1).bit_length(), random_state=seed
    )
    return encoding.decode(np.array(points, dtype=object))
