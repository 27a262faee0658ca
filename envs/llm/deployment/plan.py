"""Designs as deployments of the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from archgym.envs.llm.deployment.workload import Workload
from archgym.envs.llm.serving.records import Deployment, Pool

__all__ = ["READ", "deployment_of", "dollars_per_hour", "overfull_kind"]

_LAYOUT: Final = (
    "tensor_parallel", "pipeline_parallel", "attention_data_parallel", "expert_parallel",
    "replicas",
)  # fmt: skip
_SHARED: Final = (
    "max_num_seqs", "max_num_batched_tokens", "chunked_prefill", "scheduler", "priority",
    "preemption", "memory_share", "block_size", "weight_bits", "cache_bits", "compute_bits",
    "prefix_cache", "offload", "offload_weights", "speculative_tokens", "nano_batches",
)  # fmt: skip
"""What pools have in common; what a design does not say is as in :class:`Pool`."""
READ: Final = frozenset(
    [
        *(f"{pool}{name}" for pool in ("", "prefill_") for name in ("gpu_type", *_LAYOUT)),
        *(*_SHARED, "split", "routing"),
    ]
)
"""Parameters that are read."""


def deployment_of(design: Mapping[str, Any], workload: Workload) -> Deployment:
    """The deployment that a design stands for.

    Args:
        design: canonical.
        workload: that is served.

    Raises:
        InvalidValueError: if its degrees do not go together.
    """
    fleet = workload.fleet
    shared: dict[str, Any] = {name: design[name] for name in _SHARED if name in design}
    shared |= {"acceptance": workload.acceptance, "draft_share": workload.draft_share}
    if design.get("offload") == "host":
        shared |= {"offload_gib": fleet.host_gib}
    elif design.get("offload") == "pool":
        shared |= {"offload_gib": fleet.pool_gib, "offload_gb_per_s": fleet.pool_gb_per_s}
    pools = []
    for prefix in ("", "prefill_")[: 2 if design.get("split") else 1]:
        kind = str(design.get(f"{prefix}gpu_type", fleet.labels[0]))
        layout = {n: design[f"{prefix}{n}"] for n in _LAYOUT if f"{prefix}{n}" in design}
        pools.append(Pool(kind, **layout, **shared))
    routing = design.get("routing", "round_robin")
    if len(pools) == 1:
        return Deployment(pools[0], routing=routing)
    main, prefill = pools
    network = min(
        pool.replica_gpus * fleet.clusters[pool.cluster].network_gb_per_s for pool in pools
    )
    return Deployment(main, prefill, routing=routing, transfer_gb_per_s=network)


def dollars_per_hour(deployment: Deployment, workload: Workload) -> float:
    """The list price of the GPUs that a deployment uses, US dollars an hour."""
    clusters = workload.fleet.clusters
    return sum(p.gpus * clusters[p.cluster].device.usd_per_hour for p in deployment.pools)


def overfull_kind(deployment: Deployment, workload: Workload) -> str:
    """The kind of which a deployment uses more GPUs than there are; empty where there is none."""
    for group in workload.fleet.groups:
        used = sum(pool.gpus for pool in deployment.pools if pool.cluster == group.label)
        if used > group.gpus:
            return group.label
    return ""
