"""Small serving scenes that the tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.llm.data.cluster import load_cluster
from archgym.envs.llm.data.model import Model, load_model
from archgym.envs.llm.serving.engine import Engine, load_engine
from archgym.envs.llm.serving.records import Deployment, Pool, Requests, Served
from archgym.envs.llm.serving.simulator import simulate

FLEET = {name: load_cluster(name) for name in ("dgx_a100", "dgx_h100", "rtx_4090_node")}
SMALL: Model = load_model("llama3_8b")
SPARSE: Model = load_model("mixtral_8x7b")
ENGINE: Engine = load_engine("vllm")


def drawn(n: int, rate: float, seed: int = 0, longest: int = 2000) -> Requests:
    """Poisson arrivals of uniform lengths."""
    rng = np.random.default_rng(seed)
    return Requests.of(
        np.cumsum(rng.exponential(1 / rate, n)),
        rng.integers(50, longest, n),
        rng.integers(1, 300, n),
    )


def loop(n: int, users: int, seed: int = 0) -> Requests:
    """A closed loop of uniform lengths."""
    rng = np.random.default_rng(seed)
    return Requests.of(np.zeros(n), rng.integers(50, 2000, n), rng.integers(2, 300, n), users=users)


def serve(
    deployment: Deployment | Pool, requests: Requests, model: Model = SMALL, **more: Any
) -> Served:
    """One deployment."""
    if isinstance(deployment, Pool):
        deployment = Deployment(deployment)
    return simulate([deployment], model, FLEET, requests, more.pop("engine", ENGINE), **more)
