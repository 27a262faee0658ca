"""A Gaussian process with a length scale for each feature."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from archgym.proxy.models.base import Array, Arrays, Features, Layout, Model, Options, one_thread

_TUNED_ON, _KEPT = 400, 2500
_STEPS = 60
_CHUNK = 1024


class Process(Model):
    """Gaussian process regression (Rasmussen and Williams 2006, algorithm 2.1).

    The kernel is exponential in a weighted squared distance of the features, plus noise; a feature
    of weight 0 is dead. Weights and noise are those of the greatest likelihood of up to 400
    designs, the same for all targets; up to 2,500 designs drawn at random are then kept.
    """

    kind = "gp"
    layout: ClassVar[Layout] = {
        "x": (np.float32, "designs features"),
        "weights": (np.float64, "features"),
        "alpha": (np.float64, "designs targets"),
        "root": (np.float64, "designs designs"),
        "noise": (np.float64, "1"),
    }

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays)
        self._scaled = _scaled(arrays["x"], arrays["weights"])

    @classmethod
    def fit(cls, x: Features, z: Array, seed: int, settings: Options) -> Process:
        """Settings: ``steps`` (60) of the search for weights, ``kept`` (2500) designs."""
        from scipy.linalg import cho_solve, cholesky

        order = np.random.default_rng(seed).permutation(len(x))
        few = order[:_TUNED_ON]
        weights, noise = _tune(x[few], z[few], int(settings.get("steps", _STEPS)))
        rows = np.sort(order[: int(settings.get("kept", _KEPT))])
        scaled = _scaled(x[rows], weights)
        covariance = _kernel(scaled, scaled)
        covariance[np.diag_indices(len(rows))] += noise + 1e-8
        root = cholesky(covariance, lower=True)
        alpha = cho_solve((root, True), z[rows])
        found = (x[rows], weights, alpha, root, np.array([noise]))
        return cls(dict(zip(cls.layout, found, strict=True)))

    def predict(self, x: Features) -> tuple[Array, Array]:
        """Posterior mean and standard deviation, of what is observed without noise."""
        from scipy.linalg import solve_triangular

        _, weights, alpha, root, _ = self.arrays().values()
        mean, spread = np.empty((len(x), alpha.shape[1])), np.empty((len(x), 1))
        for start in range(0, len(x), _CHUNK):
            part = slice(start, start + _CHUNK)
            kernel = _kernel(_scaled(x[part], weights), self._scaled)
            mean[part] = kernel @ alpha
            explained = (solve_triangular(root, kernel.T, lower=True) ** 2).sum(axis=0)
            spread[part, 0] = np.sqrt(np.maximum(1.0 - explained, 1e-12))
        return mean, np.repeat(spread, mean.shape[1], axis=1)


def _scaled(x: Features, weights: Array) -> Array:
    return np.asarray((x * np.sqrt(weights)).astype(np.float64))


def _kernel(left: Array, right: Array) -> Array:
    squared = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T
    return np.asarray(np.exp(-np.maximum(squared, 0.0)))


def _tune(x: Features, z: Array, steps: int) -> tuple[Array, float]:
    """Weights of the features and the noise's variance, by ascent of the likelihood."""
    import torch

    with one_thread():
        inputs = torch.as_tensor(x, dtype=torch.float64)
        targets = torch.as_tensor(z)
        n, outputs = targets.shape
        log_weights = torch.full((x.shape[1],), -2.5, dtype=torch.float64, requires_grad=True)
        log_noise = torch.tensor(-5.0, dtype=torch.float64, requires_grad=True)
        eye = torch.eye(n, dtype=torch.float64)
        optimiser = torch.optim.Adam([log_weights, log_noise], lr=0.15)
        for _ in range(steps):
            scaled = inputs * torch.exp(0.5 * log_weights)
            squares = (scaled**2).sum(dim=1)
            distance = squares[:, None] + squares - 2.0 * scaled @ scaled.T
            noise = torch.exp(log_noise.clamp(-13.0, 0.0)) + 1e-8
            root = torch.linalg.cholesky(torch.exp(-distance.clamp(min=0.0)) + noise * eye)
            fitted = torch.cholesky_solve(targets, root)
            loss = 0.5 * (targets * fitted).sum() + outputs * root.diagonal().log().sum()
            # A weak prior: features matter little unless the data say so.
            loss = loss + 0.5 * ((log_weights + 3.0) ** 2).sum() * 0.25
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return (
            torch.exp(log_weights).detach().numpy(),
            float(torch.exp(log_noise.clamp(-13.0, 0.0)).detach()),
        )
