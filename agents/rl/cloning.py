"""Policies that imitate logged designs, the better ones more: advantage-weighted regression.

Importing this module imports torch, which takes seconds.

References:
    Peng et al., Advantage-Weighted Regression: Simple and Scalable Off-Policy Reinforcement
        Learning, arXiv 1910.00177, 2019.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from archgym.agents.common.arrays import Bools, Floats, Ints
from archgym.agents.rl.team_policies import Policies

if TYPE_CHECKING:
    from archgym.agents.rl.logged import LoggedSteps

_MIN_EVEN = 0.1
"""Share of evenly drawn choices among what is imitated, however good the lessons: the policy has to
go on exploring."""
_HELD_OUT = 0.2
_MAX_UPDATES = 600
_CHECK = 20
"""Updates between two looks at the designs that are held out."""
_PATIENCE = 4
"""Looks without improvement before the fit ends."""
_BATCH = 256
_NETWORK_RATE, _TABLE_RATE = 3e-3, 0.05


def imitate(
    policy: Any, steps: LoggedSteps, weights: Floats, trust: float, rng: np.random.Generator
) -> None:
    """Fits actor and critic of a Stable-Baselines3 policy to logged steps.

    Args:
        policy: an actor-critic policy with discrete actions.
        steps: to imitate.
        weights: of the logged designs, shape (n_designs,).
        trust: how far they are believed; the less, the more even the actions.
        rng: draws even actions, and which designs are held out.
    """
    even = 1.0 - (1.0 - _MIN_EVEN) * trust
    seen = torch.from_numpy(steps.observations)
    returns = torch.from_numpy(steps.returns.astype(np.float32))
    weight = torch.from_numpy((weights / weights.mean())[steps.designs].astype(np.float32))

    def loss(rows: Ints) -> Tensor:
        masks = {} if steps.masks is None else {"action_masks": steps.masks[rows]}
        done = torch.from_numpy(steps.actions[rows])
        drawn = torch.from_numpy(_drawn(policy.action_space, steps, rows, rng))
        values, log, _ = policy.evaluate_actions(seen[rows], done, **masks)
        _, log_even, _ = policy.evaluate_actions(seen[rows], drawn, **masks)
        error: Tensor = (weight[rows] * (values.flatten() - returns[rows]) ** 2).mean()
        gain: Tensor = (1.0 - even) * (weight[rows] * log).mean() + even * log_even.mean()
        return error - gain

    held = rng.random(int(steps.designs.max()) + 1) < _HELD_OUT
    optimizer = torch.optim.Adam(policy.parameters(), lr=_NETWORK_RATE)
    _fit(policy, optimizer, loss, held[steps.designs], rng)


def imitate_as_team(
    policies: Policies,
    choices: Ints,
    weights: Floats,
    even_choices: Floats,
    trust: float,
    rng: np.random.Generator,
) -> None:
    """Fits the policies of a team to the choices of logged designs.

    Args:
        policies: of all agents.
        choices: of designs, -1 where a parameter is inactive, shape (n, n_parameters).
        weights: of the designs, shape (n,).
        even_choices: probabilities of choices that are all equally likely, shape
            (n_parameters, max_choices).
        trust: how far the designs are believed; the less, the more even the choices.
        rng: draws which designs are held out.
    """
    even = 1.0 - (1.0 - _MIN_EVEN) * trust
    chosen, active = torch.from_numpy(np.maximum(choices, 0)), torch.from_numpy(choices >= 0)
    weight = torch.from_numpy(weights)[:, None] * active
    parameters, target = torch.arange(choices.shape[1]), torch.from_numpy(even_choices)

    def loss(rows: Ints) -> Tensor:
        log = torch.log_softmax(policies.logits(), dim=1)
        taken = (log[parameters, chosen[rows]] * weight[rows]).sum(0)
        imitated = taken / weight[rows].sum(0).clamp(min=1e-9)
        log_even = (torch.where(target > 0, log, 0.0) * target).sum(1)
        return -((1.0 - even) * imitated + even * log_even).sum()

    optimizer = torch.optim.Adam(policies.weights, lr=_TABLE_RATE)
    _fit(policies.weights, optimizer, loss, rng.random(len(choices)) < _HELD_OUT, rng)


def _fit(
    module: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[Ints], Tensor],
    held_out: Bools,
    rng: np.random.Generator,
) -> None:
    """Minimises a loss; leaves the weights with which that of the rows held out was least."""
    rows, checked = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    if not len(rows) or not len(checked):
        return
    least, best, looks = np.inf, copy.deepcopy(module.state_dict()), 0
    for update in range(_MAX_UPDATES + 1):
        if update % _CHECK == 0:
            with torch.no_grad():
                now = float(loss(checked))
            looks = 0 if now < least else looks + 1
            if now < least:
                least, best = now, copy.deepcopy(module.state_dict())
            elif looks >= _PATIENCE:
                break
        optimizer.zero_grad()
        torch.autograd.backward(loss(rng.choice(rows, min(_BATCH, len(rows)), replace=False)))
        optimizer.step()
    module.load_state_dict(best)


def _drawn(
    space: gymnasium.Space[Any], steps: LoggedSteps, rows: Ints, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Actions for some steps that are all equally likely."""
    if steps.masks is not None:
        return np.asarray(
            (rng.random((len(rows), steps.masks.shape[1])) * steps.masks[rows]).argmax(axis=1)
        )
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return rng.integers(space.nvec, size=(len(rows), len(space.nvec)))
    assert isinstance(space, gymnasium.spaces.Discrete)
    return rng.integers(int(space.n), size=len(rows))
