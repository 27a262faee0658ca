"""The serving simulator: many deployments of a model under the same requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archgym.envs.llm.data.cluster import Cluster
from archgym.envs.llm.data.model import Model
from archgym.envs.llm.serving.engine import Engine
from archgym.envs.llm.serving.records import Deployment, Requests, Served

__all__ = ["simulate"]


def simulate(
    deployments: Sequence[Deployment],
    model: Model,
    fleet: Mapping[str, Cluster],
    requests: Requests,
    engine: Engine,
) -> Served:
    """Serves the requests once with each deployment.

    Args:
        deployments: how the model is served.
        model: the transformer; its ``sequence`` is not used.
        fleet: clusters by the names that pools give.
        requests: when they arrive, and their lengths.
        engine: the serving software and its constants.

    Returns:
        Times by request and totals by pool.

    Raises:
        UnknownNameError: if a pool names a cluster that the fleet lacks.
        InvalidValueError: if a pool's parallelism does not divide the model's shapes.
    """
    raise NotImplementedError
