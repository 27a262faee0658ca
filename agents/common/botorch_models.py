"""Gaussian processes and acquisition functions of BoTorch, for the agent of that name.

Importing this module imports torch and BoTorch, which takes seconds: the agent does when it is
constructed, not before. All numbers are float64; randomness comes from the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
from botorch.acquisition.objective import GenericMCObjective
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models.gp_regression import SingleTaskGP
from botorch.models.gp_regression_mixed import MixedSingleTaskGP
from botorch.models.model_list_gp_regression import ModelListGP
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood

from archgym.agents.common.arrays import Bools, Floats, Ints
from archgym.agents.common.observations import Observations
from archgym.agents.common.scores import BROKEN_LIMIT_COST
from archgym.agents.common.targets import broken_limits, noise_shares, standardised

_FIRST_STEPS, _STEPS = 50, 20
_RETUNE_GROWTH = 1.1
_LEAST_NOISE = 1e-4
_STEEPEST = 1.5
"""Targets of a broken limit are from 0.5 up to 2."""
_REFERENCE = 0.1
"""How much worse than the worst feasible design the reference point is, in deviations."""


class Acquisition:
    """What is to be expected of designs, from one model a goal and one a limit that was broken.

    With one goal it is the logarithm of the expected improvement (qLogEI), with several that of
    the hypervolume (qLogNEHVI; Ament and others, 2023), both times the chance to keep the limits
    and not to fail.

    Kernels are Matern 5/2 with a length scale a parameter, with unordered parameters Matern and
    Hamming kernels added and multiplied (BoTorch's ``MixedSingleTaskGP``). Their hyperparameters
    are fitted anew each time the data have grown by a tenth, from where they were.

    Args:
        unordered: columns of the coordinates that are levels of unordered parameters.
        samples: Monte-Carlo samples.
    """

    def __init__(self, unordered: list[int], samples: int) -> None:
        self._unordered, self._samples = unordered, samples
        self._states: dict[str, tuple[int, Any]] = {}  # when fitted, and hyperparameters

    def fit(
        self, x: Floats, known: Observations, rows: Ints, seed: int, *, noisy: bool = False
    ) -> Callable[[Floats, Floats], Floats]:
        """Learns from observations.

        Args:
            x: coordinates of some of the designs, shape (n, n_free).
            known: all observations.
            rows: which designs these are, shape (n,).
            seed: of what is drawn.
            noisy: whether the standard errors of the observations are known.

        Returns:
            The function to maximise, shape (n,), of coordinates, shape (n, n_free), and those of
            designs without outcome, shape (n_pending, n_free).
        """
        ok, n, points = ~known.failed[rows], len(known), torch.from_numpy(x)
        y = -standardised(known.goals[rows][ok])[0]  # maximised
        goals, errors = known.goals[rows][ok], known.errors[rows][ok]
        models = []
        for i, goal in enumerate(y.T):
            noise = noise_shares(goals[:, i], errors[:, i]) if noisy else None
            models.append(self._model(f"goal {i}", points[ok], goal, n, noise))
        for i, seen, target in broken_limits(known.excess[rows], ~ok, _STEEPEST):
            models.append(self._model(f"limit {i}", points[seen], target, n))
        feasible = known.costs[rows][ok] < BROKEN_LIMIT_COST
        function = self._function(ModelListGP(*models), points[ok], y, feasible, seed)

        def value(points: Floats, pending: Floats) -> Floats:
            function.set_X_pending(torch.from_numpy(pending) if len(pending) else None)
            with torch.no_grad():
                values = function(torch.from_numpy(points).unsqueeze(1))
            return np.asarray(values.numpy(), dtype=np.float64)

        return value

    def _function(self, model: Any, x: Any, y: Floats, feasible: Bools, seed: int) -> Any:
        """Acquisition function of a model whose outputs are the goals, then what is to be < 0."""
        goals = y.shape[1]
        constraints = [_output(column) for column in range(goals, model.num_outputs)] or None
        sampler = SobolQMCNormalSampler(torch.Size([self._samples]), seed=seed)
        if goals == 1:
            return qLogExpectedImprovement(
                model,
                best_f=float(y[feasible].max() if feasible.any() else y.min()),
                sampler=sampler,
                objective=GenericMCObjective(_output(0)),
                constraints=constraints,
            )
        good = feasible if feasible.any() else np.ones_like(feasible)
        return qLogNoisyExpectedHypervolumeImprovement(
            model,
            ref_point=(y[good].min(axis=0) - _REFERENCE).tolist(),
            X_baseline=x,
            sampler=sampler,
            objective=IdentityMCMultiOutputObjective(outcomes=list(range(goals))),
            constraints=constraints,
            prune_baseline=True,
        )

    def _model(
        self, name: str, x: Any, y: Floats, observed: int, noise: Floats | None = None
    ) -> Any:
        target = torch.from_numpy(y.copy())[:, None]
        known: dict[str, Any] = {"outcome_transform": None}
        if noise is not None:
            known["train_Yvar"] = torch.from_numpy(np.maximum(noise, _LEAST_NOISE))[:, None]
        if self._unordered:
            model = MixedSingleTaskGP(x, target, cat_dims=self._unordered, **known)
        else:
            model = SingleTaskGP(x, target, **known)
        tuned_at, state = self._states.get(name, (0, None))
        if state is not None:
            model.load_state_dict(state)
        if observed >= _RETUNE_GROWTH * tuned_at:
            try:
                fit_gpytorch_mll(
                    ExactMarginalLogLikelihood(model.likelihood, model),
                    optimizer_kwargs={"options": {"maxiter": _STEPS if state else _FIRST_STEPS}},
                )
            except ModelFittingError:  # then with the hyperparameters that it began with
                model.eval()
            self._states[name] = observed, model.state_dict()
        return model.eval()


def _output(column: int) -> Callable[..., Any]:
    """Takes one output of samples, shape (..., n_outputs)."""

    def output(samples: Any, X: Any = None) -> Any:
        return samples[..., column]

    return output
