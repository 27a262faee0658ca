"""Designs as records of the cost model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.cost.pipeline import GPIPE, INTERLEAVED, ONE_F_ONE_B, ZERO_BUBBLE
from archgym.envs.llm.cost.records import PLAN
from archgym.envs.llm.training.placement import PLACEMENTS, LinkRates
from archgym.space import Designs

__all__ = ["CHOICES", "NEEDED", "ORDERS", "READ", "divides", "gpus_of", "plan_records"]

CHOICES: Final[Mapping[str, Mapping[str, int]]] = {
    "schedule": {
        "gpipe": GPIPE,
        "1f1b": ONE_F_ONE_B,
        "interleaved": INTERLEAVED,
        "zero_bubble": ZERO_BUBBLE,
    },
    "recompute": {"none": 0, "attention": 1, "full": 2},
    "tensor_overlap": {"none": 0, "ring": 1, "pipelined": 2},
    "sharding": {"none": 0, "optimizer": 1, "gradients": 2, "parameters": 3},
    "precision": {"bf16": 0, "fp8": 1},
}
"""Names of the values of categorical parameters, and what the cost model calls them."""
ORDERS: Final = ("tp-cp-dp-pp", "tp-cp-pp-dp")
"""Orders of ranks, the group whose members are neighbours first."""
_DEFAULTS: Final[Mapping[str, Any]] = {
    "context_parallel": 1,
    "expert_parallel": 1,
    "schedule": "1f1b",
    "virtual_stages": 1,
    "recompute": "none",
    "recompute_layers_share": 1.0,
    "sequence_parallel": False,
    "scatter_gather": False,
    "gather_again": False,
    "tensor_overlap": "none",
    "data_overlap": False,
    "sharding": "none",
    "offload_weights": False,
    "offload_activations": False,
    "offload_optimizer": False,
    "precision": "bf16",
    "rank_order": ORDERS[0],
    "placement": PLACEMENTS[0],
    "tensor_tier": -1,
    "data_tier": -1,
    "pipeline_tier": -1,
}
"""What a plan has where a parameter is inactive, or not in the space."""
NEEDED: Final = ("tensor_parallel", "pipeline_parallel", "micro_batch")
"""Parameters that a space cannot lack."""
READ: Final = frozenset((*NEEDED, *_DEFAULTS, "gpus"))
"""Parameters that are read."""
_SAME: Final = {
    "tensor_parallel": "tensor",
    "pipeline_parallel": "pipeline",
    "context_parallel": "context",
    "expert_parallel": "expert",
    "virtual_stages": "virtual",
    "recompute_layers_share": "recompute_share",
    "precision": "fp8",
}
"""Fields that the records call by another name."""


def plan_records(
    designs: Designs, gpus: int | NDArray[np.int64], batch: int, links: LinkRates | None = None
) -> NDArray[Any]:
    """Records of ``PLAN``, shape (n_designs,).

    Args:
        designs: canonical ones.
        gpus: that the plans use, one number or shape (n_designs,).
        batch: sequences an iteration.
        links: of the cluster, where each was measured.
    """
    plans = np.zeros(len(designs), PLAN)
    for name in (*NEEDED, *_DEFAULTS):
        if name in ("rank_order", "placement"):
            continue
        values = _values(designs, name)
        if name in CHOICES:
            values = np.array([CHOICES[name][str(value)] for value in values])
        plans[_SAME.get(name, name)] = values.astype(np.float64)
    width = plans["tensor"] * plans["context"]
    plans["data"] = gpus // (width * plans["pipeline"])
    plans["micro_batches"] = batch // np.maximum(1, plans["data"] * plans["micro_batch"])
    plans["context_stride"] = plans["tensor"]
    inner = np.array([str(order) == ORDERS[0] for order in _values(designs, "rank_order")])
    plans["data_stride"] = np.where(inner, width, width * plans["pipeline"])
    plans["pipeline_stride"] = np.where(inner, width * plans["data"], width)
    for name in ("tensor_slowed", "data_slowed", "pipeline_slowed"):
        plans[name] = 1.0
    if links is not None:
        links.fill(plans, [str(one) for one in _values(designs, "placement")])
    return plans


def gpus_of(designs: Designs, most: int) -> NDArray[np.int64]:
    """GPUs that each plan uses, shape (n_designs,): its choice, or ``most`` where it has none."""
    if "gpus" not in designs.space.names:
        return np.full(len(designs), most)
    return np.asarray(designs.values("gpus", most), np.int64)


def divides(plans: NDArray[Any], gpus: int | NDArray[np.int64], batch: int) -> NDArray[np.bool_]:
    """Whether the degrees of each plan use all GPUs, and its micro-batches the whole batch.

    The rules of the environment's own spaces say the same; a user's space may lack them.
    """
    ranks = plans["tensor"] * plans["context"] * plans["pipeline"] * plans["data"]
    whole = plans["data"] * plans["micro_batch"] * plans["micro_batches"]
    return np.asarray((ranks == gpus) & (whole == batch) & (plans["data"] >= 1))


def _values(designs: Designs, name: str) -> NDArray[Any]:
    if name not in designs.space.names:
        return np.full(len(designs), _DEFAULTS[name])
    return designs.values(name, _DEFAULTS.get(name))
