"""Metrics of many deployments, from the serving simulator."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
        return simulate(
            tried, workload.model, workload.fleet.clusters, requests, workload.engine
        )

    def attained(tried: Sequence[Deployment], requests: Requests) -> NDArray[np.float64]:
        return attained_share(serve(tried, requests), requests, workload)

    requests = workload.requests(count)
    factors = highest_rates(deployments, requests, workload.attainment_goal, attained)
