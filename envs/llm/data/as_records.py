"""Records of the cost model from models, clusters and stacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.cost.records import MODEL, STEPS, SYSTEM
from archgym.envs.llm.data.cluster import Cluster
from archgym.envs.llm.data.model import Model
from archgym.envs.llm.data.stack import Stack

__all__ = ["GIB", "model_record", "system_record"]

GIB = float(1 << 30)


def model_record(model: Model) -> NDArray[Any]:
    """A record of ``MODEL``, shape (1,)."""
    record = np.zeros(1, MODEL)
    for name in MODEL.names or ():
        record[name] = getattr(model, name)
    return record


def system_record(cluster: Cluster, stack: Stack, gpus: int) -> NDArray[Any]:
    """A record of ``SYSTEM``, shape (1,).

    Args:
        cluster: chips and links.
        stack: the software on them.
        gpus: how many GPUs are used; islands share them evenly.
    """
    record = np.zeros(1, SYSTEM)
    chip = cluster.device
    # All GPUs wait for the slowest one: the expected least of so many normal speeds.
    slowest = 1.0 / (1.0 + stack.spread * math.sqrt(2.0 * math.log(gpus)))
    values = {
        "matrix_flops": chip.matrix_tflops * 1e12 * slowest,
        "fp8_flops": max(chip.fp8_tflops, chip.matrix_tflops) * 1e12 * slowest,
        "vector_flops": chip.vector_tflops * 1e12 * slowest,
        "memory_rate": chip.memory_gb_per_s * 1e9 * slowest,
        "capacity": chip.memory_gib * GIB,
        "processors": chip.processors,
        "kernel_s": stack.kernel_us * 1e-6,
        "host_s": stack.host_us * 1e-6,
        "host_rate": cluster.host_gb_per_s * 1e9,
        "host_memory_rate": cluster.host_memory_gb_per_s * 1e9 / min(gpus, cluster.node_gpus),
        "cards_shared": 0 < cluster.cards < cluster.node_gpus,
        "overhead_bytes": stack.overhead_gib * GIB,
        "power_w": chip.power_w,
        "idle_w": chip.idle_w,
        "usd_per_hour": chip.usd_per_hour,
    }
    same = (
        "memory_share", "tile_overhead", "element_bytes", "gradient_bytes",
        "master_bytes", "loss_bytes", "loss_bytes_alone", "operators", "roofline",
        "flash", "fused_activation", "fused_dropout",
        "dropout", "dummy_gradients",
    )  # fmt: skip
    values |= {name: getattr(stack, name) for name in same}
    shares = ("matrix_share", "fp8_share", "flash_share", "flash_back_share")
    values |= {name: getattr(stack, name) or getattr(chip, name) for name in shares}
    for name, value in values.items():
        record[name] = value
    scales = {"matrix": 1e9, "vector": 1e9, "memory": 1e6, "host": 1e6}
    for name, scale in scales.items():
        steps = list(getattr(stack, f"{name}_steps"))
        steps += [steps[-1]] * (STEPS - len(steps))
        record[f"{name}_limits"] = [size * scale for size, _ in steps]
        record[f"{name}_shares"] = [share for _, share in steps]
    _fill_links(record, cluster, stack, gpus)
    return record


def _fill_links(record: NDArray[Any], cluster: Cluster, stack: Stack, gpus: int) -> None:
    island = gpus / cluster.islands
    # Every stage waits for the slowest one, so the slower island's network counts for all.
    other = cluster.other_island_gb_per_s or cluster.network_gb_per_s
    network = min(cluster.network_gb_per_s, other * cluster.other_island_efficiency)
    rates = (cluster.node_gb_per_s, network, cluster.between_gb_per_s)
    sizes = (cluster.node_gpus, island if cluster.islands > 1 else 0.0, 0.0)
    for tier, link in enumerate(stack.tiers):
        rate = rates[tier] if rates[tier] > 0 else rates[1]
        record["link_rate"][0, tier] = rate * 1e9
        record["link_size"][0, tier] = sizes[tier]
        record["link_share"][0, tier] = link.efficiency
        record["link_latency"][0, tier] = link.latency_us * 1e-6
        record["link_usage"][0, tier] = link.usage
        record["link_steps"][0, tier] = link.steps
        record["link_p2p"][0, tier] = link.p2p
        for name in ("reduce_scatter", "all_gather", "all_reduce"):
            factor, chunk = getattr(link, name)
            record[f"link_{name}"][0, tier] = factor
            record[f"link_{name}_chunk"][0, tier] = chunk
