"""Metrics of a training plan."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.data.as_records import GIB
from archgym.envs.llm.training.workload import Workload
from archgym.problem.metrics import Metric

__all__ = ["METRICS", "metric_columns"]

_WAITING_POWER_SHARE: Final = 0.3
"""What a chip draws beyond its idle power while it communicates or waits, by the range to its
limit; an assumption."""

_DAY_S: Final = 86400.0
_ROUNDING: Final = 1e-12
"""Share of an iteration below which a difference of times is rounding."""

METRICS: Final = (
    Metric("iteration_s", "s", "minimize", "time of one iteration over the batch"),
    Metric("tokens_per_s_per_gpu", "tokens/s/GPU", "maximize", "trained tokens by GPU and second"),
    Metric(
        "mfu_share",
        "",
        "maximize",
        "model flops utilisation: operations of the products of matrices that the model needs "
        "forward and backward, by the 16-bit peak, in fp8 too; a multiplication and an addition "
        "are two, attention counts without its mask, what is recomputed does not count",
    ),
    Metric("peak_memory_gib", "GiB", "minimize", "of the stage that needs most"),
    Metric("free_memory_gib", "GiB", "maximize", "capacity less the peak", signed=True),
    Metric("parameter_memory_gib", "GiB", "minimize", "parameters of that stage"),
    Metric("gradient_memory_gib", "GiB", "minimize", "gradients of that stage"),
    Metric("optimizer_memory_gib", "GiB", "minimize", "optimizer state of that stage"),
    Metric("activation_memory_gib", "GiB", "minimize", "activations kept for backward passes"),
    Metric("working_memory_gib", "GiB", "minimize", "the layer at work, logits, and the runtime"),
    Metric("host_memory_gib", "GiB", "minimize", "what is offloaded, by GPU"),
    Metric("peak_stage_count", "", "minimize", "number of that stage, from 0"),
    Metric("bubble_share", "", "minimize", "share of the iteration in which the last stage waits"),
    Metric(
        "exposed_communication_share",
        "",
        "minimize",
        "share of the iteration in collectives and messages that nothing hides",
    ),
    Metric("recompute_share", "", "minimize", "share of the iteration in recomputation"),
    Metric("energy_j_per_token", "J/token", "minimize", "of the chips"),
    Metric("cost_usd_per_mtoken", "USD/Mtoken", "minimize", "at the list price of the chips"),
    Metric("gpus_count", "", "minimize", "GPUs that the plan uses"),
    Metric("training_days", "days", "minimize", "the whole training, without interruptions"),
)


def metric_columns(results: NDArray[Any], workload: Workload) -> dict[str, NDArray[np.float64]]:
    """Each metric of each result, by name, in the units of :data:`METRICS`.

    Args:
        results: records of the cost model, shape (n,).
        workload: of the plans, all on its number of GPUs.
    """
    chip, gpus = workload.cluster.device, workload.gpus
    seconds = results["iteration_s"]
    tokens = float(workload.tokens)
    exposed = results["tensor_s"] + results["pipeline_s"] + results["data_s"]
    waiting = np.minimum(seconds, exposed + results["bubble_s"] + results["offload_s"])
    idle = chip.idle_w + _WAITING_POWER_SHARE * (chip.power_w - chip.idle_w)
    joules = gpus * ((seconds - waiting) * chip.power_w + waiting * idle)
    bubble = results["bubble_s"] / seconds
    needed = workload.model.flops_per_token * tokens
    memory = {
        "peak_memory_gib": "peak_bytes",
        "parameter_memory_gib": "weights_bytes",
        "gradient_memory_gib": "gradients_bytes",
        "optimizer_memory_gib": "optimizer_bytes",
        "activation_memory_gib": "activations_bytes",
        "working_memory_gib": "working_bytes",
        "host_memory_gib": "host_bytes",
    }
    return {
        "iteration_s": seconds,
        "tokens_per_s_per_gpu": tokens / seconds / gpus,
        "mfu_share": needed / (seconds * gpus * chip.matrix_tflops * 1e12),
        **{name: results[field] / GIB for name, field in memory.items()},
        "free_memory_gib": chip.memory_gib - results["peak_bytes"] / GIB,
        "peak_stage_count": results["peak_stage"],
        "bubble_share": np.where(bubble > _ROUNDING, bubble, 0.0),
        "exposed_communication_share": exposed / seconds,
        "recompute_share": results["recompute_s"] / seconds,
        "energy_j_per_token": joules / tokens,
        "cost_usd_per_mtoken": gpus * seconds / 3600 * chip.usd_per_hour / tokens * 1e6,
        "gpus_count": np.full(len(seconds), float(gpus)),
        "training_days": seconds * (workload.training_gtokens * 1e9 / tokens) / _DAY_S,
    }
