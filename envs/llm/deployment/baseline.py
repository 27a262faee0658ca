"""The baseline: what vLLM does unless it is told otherwise."""

from __future__ import annotations

from typing import Any, Final

from archgym.envs.llm.deployment.workload import Workload
from archgym.space import DesignSpace

__all__ = ["baseline_deployment"]

_DEFAULTS: Final[dict[str, Any]] = {
    "pipeline_parallel": 1,
    "attention_data_parallel": 1,
    "expert_parallel": 1,
    "split": False,
    "routing": "round_robin",
    "max_num_seqs": 256,
    "max_num_batched_tokens": 8192,
    "chunked_prefill": True,
    "scheduler": "fcfs",
    "priority": "decode",
    "memory_share": 0.9,
    "block_size": 16,
    "weight_bits": 16,
    "cache_bits": 16,
    "prefix_cache": True,
    "offload": "none",
    "speculative_tokens": 0,
    "nano_batches": 1,
}
"""Of vLLM's server, version 1 of its engine."""
_WEIGHTS_SHARE: Final = 0.75
"""Of the memory that weights may take; the rest is for the cache."""


def baseline_deployment(workload: Workload, space: DesignSpace) -> dict[str, Any]:
    """The fewest GPUs by replica on which the weights leave room for a cache, and all replicas.

    The replicas are on GPUs of the first kind of the fleet, cut by tensor parallelism within a
    node, and by stages over nodes where a node is too small; all else is vLLM's default.
    """
    group = workload.fleet.groups[0]
    node = min(group.cluster.node_gpus, group.gpus)
    room = group.cluster.device.memory_gib * (1 << 30) * _DEFAULTS["memory_share"] * _WEIGHTS_SHARE
    tensors = [n for n in space["tensor_parallel"].levels if n <= node]  # type: ignore[attr-defined]
    stages = [1]
    if "pipeline_parallel" in space:
        stages = list(space["pipeline_parallel"].levels)  # type: ignore[attr-defined]
    shapes = [(n, s) for s in stages for n in tensors if n * s <= group.gpus]
    fitting = [one for one in shapes if workload.model.parameters * 2 / (one[0] * one[1]) <= room]
    tensor, stage = fitting[0] if fitting else shapes[-1]
    copies = space["replicas"].levels  # type: ignore[attr-defined]
    wanted = _DEFAULTS | {
        "gpu_type": group.label,
        "tensor_parallel": tensor,
        "pipeline_parallel": stage,
        "replicas": max(n for n in copies if n * tensor * stage <= group.gpus),
    }
    return space.canonical({name: value for name, value in wanted.items() if name in space})
