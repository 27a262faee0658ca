"""The baseline: Megatron's rule of thumb."""

from __future__ import annotations

from typing import Any

from archgym.envs.llm.training.workload import Workload
from archgym.space import DesignSpace

__all__ = ["baseline_plan"]

_BYTES_BY_PARAMETER = 18
"""Parameter, gradient and Adam in mixed precision, nothing sharded (Narayanan et al., SC 2021)."""
_SHARE_OF_MEMORY = 0.75
"""What they may take; the rest is for activations."""


def baseline_plan(workload: Workload, space: DesignSpace) -> dict[str, Any]:
    """Tensor parallelism up to a node, then as few stages as fit, 1F1B, full recompute.

    Experts are spread over as many of the GPUs that hold equal layers as divide them. Parameters,
    gradients and optimizer are held against three quarters of the memory. The micro-batch is one
    sequence, and all GPUs are used. Where nothing fits, the baseline has the most stages.
    """
    model, cluster = workload.model, workload.cluster
    room = cluster.device.memory_gib * (1 << 30) * _SHARE_OF_MEMORY
    chosen: dict[str, Any] = {}
    for stages in space["pipeline_parallel"].levels:  # type: ignore[attr-defined]
        for tensor in space["tensor_parallel"].levels:  # type: ignore[attr-defined]
            plan = _plan(workload, space, tensor, stages)
            if tensor > cluster.node_gpus or space.illegal_reason(space.codes(plan)):
                continue
            chosen = plan
            spread = model.expert_parameters / plan.get("expert_parallel", 1)
            held = model.parameters - model.expert_parameters + spread
            if held * _BYTES_BY_PARAMETER / (tensor * stages) <= room:
                return chosen
    return chosen


def _plan(workload: Workload, space: DesignSpace, tensor: int, stages: int) -> dict[str, Any]:
    """The plan of the rule with these degrees."""
    wanted: dict[str, Any] = {
        "gpus": workload.gpus,
        "tensor_parallel": tensor,
        "pipeline_parallel": stages,
        "context_parallel": 1,
        "micro_batch": 1,
        "schedule": "1f1b",
        "recompute": "full",
        "recompute_layers_share": 1.0,
        # Experts beside tensor parallelism need it in Megatron.
        "sequence_parallel": bool(workload.model.experts) and tensor > 1,
        "scatter_gather": True,
        "tensor_overlap": "none",
        "data_overlap": False,
        "sharding": "none",
        "offload_optimizer": False,
        "offload_activations": False,
        "rank_order": "tp-cp-dp-pp",
        "placement": "in order",
        "precision": "bf16",
    }
    if "expert_parallel" in space:
        data = workload.gpus // (tensor * stages) if tensor * stages <= workload.gpus else 1
        levels = space["expert_parallel"].levels  # type: ignore[attr-defined]
        wanted["expert_parallel"] = max(n for n in levels if data % n == 0)
    return space.canonical({name: value for name, value in wanted.items() if name in space})
