"""The highest rate at which a deployment serves its requests within the limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.serving.records import Deployment, Requests

__all__ = ["SPAN", "Attained", "highest_rates"]

Attained = Callable[[Sequence[Deployment], Requests], NDArray[np.float64]]
"""Share of the requests within the limits by deployment, shape (n,), each in [0, 1]."""

_STEPS: Final = 32
"""Steps of the grid of rates, a power of two for the bisection; a rate is 1.19 of the last one."""
SPAN: Final = 16.0
"""Rates reach from the offered one by this factor down, and up."""


def highest_rates(
    deployments: Sequence[Deployment], requests: Requests, goal: float, attained: Attained
) -> NDArray[np.float64]:
    """The largest factor by which requests may come faster, shape (n,); 0 where none is enough.

    The share of requests within the limits falls as they come faster. A bisection over a geometric
    grid of factors finds the last one that reaches the goal, and between it and the next factor the
    share is taken as linear in the logarithm of the factor. Deployments at the same place of the
    bisection are simulated together.

    Args:
        deployments: what is tried.
        requests: at the offered rate; in a closed loop users are multiplied instead.
        goal: share of the requests that must be within the limits; every rate keeps a goal of 0,
            so that the largest factor is the answer without a simulation.
        attained: simulates; see :data:`Attained`.
    """
    if goal <= 0:
        return np.full(len(deployments), SPAN)
    factors = SPAN ** np.linspace(-1.0, 1.0, _STEPS + 1)
    n = len(deployments)
    low, high = np.full(n, -1), np.full(n, _STEPS + 1)
    shares = np.full((n, _STEPS + 1), np.nan)
    while (high - low > 1).any():
        middle = (low + high) // 2
        for place in np.unique(middle[high - low > 1]):
            here = np.flatnonzero((middle == place) & (high - low > 1))
            faster = _at(requests, float(factors[place]))
            shares[here, place] = attained([deployments[i] for i in here], faster)
        good = shares[np.arange(n), np.clip(middle, 0, _STEPS)] >= goal
        wide = high - low > 1
        low, high = np.where(wide & good, middle, low), np.where(wide & ~good, middle, high)
    found = np.zeros(n)
    for i in range(n):
        if low[i] < 0:
            continue
        found[i] = factors[low[i]]
        if high[i] <= _STEPS:
            above, below = shares[i, low[i]] - goal, goal - shares[i, high[i]]
            found[i] *= (factors[high[i]] / factors[low[i]]) ** (above / (above + below))
    return found


def _at(requests: Requests, factor: float) -> Requests:
    """The requests that many times as fast, or with that many times the users."""
    if requests.users:
        users = max(1, round(requests.users * factor))
        return dataclasses.replace(requests, users=users)
    return dataclasses.replace(requests, arrival_s=requests.arrival_s / factor)
