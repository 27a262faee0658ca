"""The highest rate at which requests are served within the limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from archgym.envs.llm.deployment.rate import highest_rates
from archgym.envs.llm.serving.records import Deployment, Pool, Requests

REQUESTS = Requests.of(np.arange(11.0), [8] * 11, [4] * 11)  # one a second


def deployment(replicas: int) -> Deployment:
    return Deployment(Pool("h100", replicas=replicas))


def ramp(deployments: Sequence[Deployment], requests: Requests) -> NDArray[np.float64]:
    """All requests up to as many a second as there are replicas, then fewer by its logarithm."""
    rate = (len(requests) - 1) / requests.arrival_s[-1]
    capacity = np.array([one.main.replicas for one in deployments])
    return np.asarray(np.clip(1.0 - 0.5 * np.log(rate / capacity), 0.0, 1.0))


def test_a_known_capacity_is_found_between_the_rates_of_the_grid() -> None:
    found = highest_rates([deployment(n) for n in (1, 2, 5, 9)], REQUESTS, 0.9, ramp)
    np.testing.assert_allclose(found, np.array([1, 2, 5, 9]) * np.exp(0.2), rtol=0.02)


def test_a_rate_that_is_never_and_one_that_is_always_kept() -> None:
    never = highest_rates([deployment(1)], REQUESTS, 0.9, lambda d, r: np.zeros(len(d)))
    asked = highest_rates([deployment(1)], REQUESTS, 0.0, lambda d, r: np.zeros(len(d)))
    always = highest_rates([deployment(1)], REQUESTS, 0.9, lambda d, r: np.ones(len(d)))
    assert never.tolist() == [0.0]
    assert always.tolist() == asked.tolist() == [16.0]


def test_a_deployment_is_tried_a_few_times_only() -> None:
    tried: list[int] = []

    def counted(deployments: Sequence[Deployment], requests: Requests) -> NDArray[np.float64]:
        tried.append(len(deployments))
        return ramp(deployments, requests)

    highest_rates([deployment(n) for n in range(1, 9)], REQUESTS, 0.9, counted)
    assert sum(tried) <= 6 * 8


@pytest.mark.parametrize("goal", [0.5, 0.9, 1.0])
def test_a_stricter_goal_is_no_higher_rate(goal: float) -> None:
    loose = highest_rates([deployment(3)], REQUESTS, goal - 0.1, ramp)
    strict = highest_rates([deployment(3)], REQUESTS, goal, ramp)
    assert strict[0] <= loose[0]


def test_users_are_multiplied_in_a_closed_loop() -> None:
    seen = []

    def users(deployments: Sequence[Deployment], requests: Requests) -> NDArray[np.float64]:
        seen.append(requests.users)
        return np.full(len(deployments), float(requests.users <= 40))

    closed = Requests.of(np.zeros(11), [8] * 11, [4] * 11, users=10)
    found = highest_rates([deployment(1)], closed, 0.9, users)
    assert found[0] == pytest.approx(4, rel=0.2)
    assert {10, 160} <= set(seen) or max(seen) <= 160
