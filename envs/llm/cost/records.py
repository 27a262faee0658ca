"""The records that the compiled cost model reads and writes.

Times are in seconds, sizes in bytes, rates in bytes or operations a second.
"""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["MODEL", "PLAN", "RESULT", "RESULT_NAMES", "STEPS", "SYSTEM", "TIERS"]

STEPS: Final = 4
"""Steps of a staircase of efficiency."""
TIERS: Final = 3
"""Links: within a node, within an island, between islands."""

_F, _I = np.float64, np.int64

MODEL: Final = np.dtype(
    [
        *(
            (name, _I)
            for name in (
                "layers",
                "hidden",
                "feedforward",
                "heads",
                "kv_heads",
                "head_size",
                "vocabulary",
                "sequence",
                "matrices",
                "tied",
                "experts",
                "active_experts",
                "shared_experts",
                "expert_feedforward",
                "dense_layers",
                "latent_size",
                "rotary_size",
                "query_rank",
                "value_size",
            )
        ),
        ("flops_per_token", _F),
    ]
)
"""A model; see :class:`archgym.envs.llm.data.model.Model`."""

PLAN: Final = np.dtype(
    [
        *(
            (name, _I)
            for name in (
                "tensor",
                "pipeline",
                "context",
                "expert",
                "data",
                "micro_batch",
                "micro_batches",
                "schedule",
                "virtual",
                "recompute",
                "sequence_parallel",
                "scatter_gather",
                "gather_again",
                "tensor_overlap",
                "data_overlap",
                "sharding",
                "offload_weights",
                "offload_activations",
                "offload_optimizer",
                "fp8",
                "context_stride",
                "data_stride",
                "pipeline_stride",
                "tensor_tier",
                "data_tier",
                "pipeline_tier",
            )
        ),
        ("recompute_share", _F),
        ("tensor_slowed", _F),
        ("data_slowed", _F),
        ("pipeline_slowed", _F),
    ]
)
"""A plan. ``*_stride`` is the distance of neighbours of a group in ranks (tensor parallelism: 1),
``*_tier`` a link that the whole group uses, -1 for those that its ranks imply, ``*_slowed`` the
rate of the slowest link between nodes that a kind of groups uses, by that of the cluster."""

SYSTEM: Final = np.dtype(
    [
        *(
            (name, _F)
            for name in (
                "matrix_flops",
                "fp8_flops",
                "vector_flops",
                "memory_rate",
                "capacity",
                "processors",
                "matrix_share",
                "fp8_share",
                "flash_share",
                "flash_back_share",
                "memory_share",
                "tile_overhead",
                "kernel_s",
                "host_s",
                "loss_bytes_alone",
                "loss_bytes",
                "host_rate",
                "host_memory_rate",
                "element_bytes",
                "gradient_bytes",
                "master_bytes",
                "overhead_bytes",
                "power_w",
                "idle_w",
                "usd_per_hour",
            )
        ),
        *(
            (name, _I)
            for name in (
                "operators",
                "roofline",
                "flash",
                "fused_activation",
                "fused_dropout",
                "dropout",
                "dummy_gradients",
                "cards_shared",
            )
        ),
        *(
            (f"{name}_{part}", _F, (STEPS,))
            for name in ("matrix", "vector", "memory", "host")
            for part in ("limits", "shares")
        ),
        *(
            (f"link_{name}", _F, (TIERS,))
            for name in (
                "rate",
                "share",
                "latency",
                "size",
                "usage",
                "p2p",
                "reduce_scatter",
                "reduce_scatter_chunk",
                "all_gather",
                "all_gather_chunk",
                "all_reduce",
                "all_reduce_chunk",
            )
        ),
        ("link_steps", _I, (TIERS,)),
        ("other_island", _F),
    ]
)
"""A chip in a cluster, and the software that runs on it.

``operators``: efficiency by staircases over the size of an operator, whose backward pass is one
operator, as calculon has it; else by tiles, waves and kernels.
"""

RESULT_NAMES: Final = (
    "iteration_s",
    "compute_s",
    "recompute_s",
    "bubble_s",
    "tensor_s",
    "pipeline_s",
    "data_s",
    "optimizer_s",
    "offload_s",
    "weights_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "activations_bytes",
    "working_bytes",
    "peak_bytes",
    "host_bytes",
    "peak_stage",
    "flops",
    "memory_bytes",
    "network_bytes",
)
"""What the cost model gives for a plan; times and bytes of the GPU that has most, and ``flops``,
``memory_bytes`` and ``network_bytes`` of all layers of one micro-batch on one GPU's share."""

RESULT: Final = np.dtype([(name, _F) for name in RESULT_NAMES])
