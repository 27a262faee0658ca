"""Metrics of many deployments, from the serving simulator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.deployment.memory import room_of
from archgym.envs.llm.deployment.metrics import attained_share, metric_columns
from archgym.envs.llm.deployment.rate import highest_rates
from archgym.envs.llm.deployment.workload import Workload
from archgym.envs.llm.serving.records import Deployment, Requests, Served

__all__ = ["evaluate_deployments"]


def evaluate_deployments(
    deployments: Sequence[Deployment], workload: Workload, count: int
) -> dict[str, NDArray[np.float64]]:
    """Each metric of each deployment, by name.

    Args:
        deployments: what is tried.
        workload: model, fleet, requests and limits.
        count: requests, the first ones.
    """
    from archgym.envs.llm.serving.simulator import simulate  # compiles

    def serve(tried: Sequence[Deployment], requests: Requests) -> Served:
        return simulate(tried, workload.model, workload.fleet.clusters, requests, workload.engine)

    def attained(tried: Sequence[Deployment], requests: Requests) -> NDArray[np.float64]:
        return attained_share(serve(tried, requests), requests, workload)

    requests = workload.requests(count)
    rooms = [room_of(one, workload) for one in deployments]
    tried = [one.simulated for one in rooms]
    served = serve(tried, requests)
    factors = highest_rates(tried, requests, workload.attainment_goal, attained)
    if requests.users and workload.attainment_goal > 0:
        sustainable = _loop_rates(tried, requests, factors, serve)
    elif requests.users:  # what it serves, as any number of users is sustainable
        sustainable = _throughput(served)
    else:
        sustainable = factors * workload.traffic.first(count).drawn.rate_per_s
    return metric_columns(served, tried, requests, sustainable, rooms, workload)


def _loop_rates(
    deployments: Sequence[Deployment],
    requests: Requests,
    factors: NDArray[np.float64],
    serve: Callable[[Sequence[Deployment], Requests], Served],
) -> NDArray[np.float64]:
    """Requests a second of a closed loop with so many times the users, shape (n,)."""
    found = np.zeros(len(deployments))
    for i, factor in enumerate(factors):
        if factor > 0:
            users = max(1, round(requests.users * float(factor)))
            served = serve([deployments[i]], dataclasses.replace(requests, users=users))
            found[i] = _throughput(served)[0]
    return found


def _throughput(served: Served) -> NDArray[np.float64]:
    """Requests a second, from the first arrival to the last end, shape (n,)."""
    span = served.finished_s.max(axis=1) - served.arrival_s.min(axis=1)
    return np.asarray(served.finished_s.shape[1] / np.maximum(span, 1e-9))
