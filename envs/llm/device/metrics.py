"""Metrics of a device with its model."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.device.columns import Columns
from archgym.envs.llm.device.loss import characters_per_token, out_of_range, predicted_loss
from archgym.envs.llm.device.machine.hardware import GIB, Hardware
from archgym.envs.llm.device.machine.passes import run_pass
from archgym.envs.llm.device.machine.placement import Placement
from archgym.envs.llm.device.machine.price import areas_mm2, cost_parts_usd, leakage_w
from archgym.envs.llm.device.model import Transformers
from archgym.envs.llm.device.workload import Workload
from archgym.problem.metrics import Metric

__all__ = ["METRICS", "metric_columns"]

_CHUNK: Final = 4096
_ENERGIES: Final = {
    "compute": "multipliers, vector unit and tables",
    "sram": "SRAM accesses",
    "near": "near memory, standby included",
    "far": "far memory, standby included",
    "flash": "flash",
    "in_memory": "units in banks, and the rows that they read",
    "static": "leakage of the die",
}
METRICS: Final = (
    Metric(
        "loss_predicted_nats_per_token",
        "nats/token",
        "minimize",
        "of pre-training, by published scaling laws of shape, data, vocabulary and bits",
    ),
    Metric(
        "loss_outside_count",
        "",
        "minimize",
        "quantities outside of the ranges where the laws were fitted; 0 where they hold",
    ),
    Metric("token_latency_ms", "ms", "minimize", "one token of every sequence, mean context"),
    Metric("prefill_latency_ms", "ms", "minimize", "the prompts of the batch"),
    Metric("request_latency_ms", "ms", "minimize", "prompt and answer"),
    Metric("tokens_per_s", "tokens/s", "maximize", "of answers, all sequences together"),
    Metric("characters_per_s", "characters/s", "maximize", "of answers; vocabularies compare"),
    Metric("products_ms", "ms", "minimize", "part of token_latency_ms: products with weights"),
    Metric("attention_ms", "ms", "minimize", "part of it: scores and weighted sums"),
    Metric("vector_ms", "ms", "minimize", "part of it: norms, softmax, activation"),
    Metric("operators_ms", "ms", "minimize", "part of it: between operators"),
    Metric("energy_mj_per_token", "mJ/token", "minimize", "of a token of an answer"),
    *(
        Metric(f"{name}_energy_mj_per_token", "mJ/token", "minimize", f"part of it: {doc}")
        for name, doc in _ENERGIES.items()
    ),
    Metric("prefill_energy_mj", "mJ", "minimize", "of the prompts of the batch"),
    Metric("area_mm2", "mm²", "minimize", "of the processor's die, 7 nm"),
    Metric("cost_usd", "USD", "minimize", "die, memories and package, by a table of prices"),
    Metric("memory_usd", "USD", "minimize", "part of it: near and far memory and flash"),
    Metric("parameters_m", "M", "maximize", "weights of the transformer, in 1e6"),
    Metric("weights_gib", "GiB", "minimize", "of the weights in memory"),
    Metric("kv_cache_gib", "GiB", "minimize", "of the caches at the longest"),
    Metric("free_memory_gib", "GiB", "maximize", "of all tiers; what fits nowhere if negative",
           signed=True),
    Metric("near_gb_per_s", "GB/s", "maximize", "stream bandwidth of the near memory"),
)  # fmt: skip


def metric_columns(columns: Columns, workload: Workload) -> dict[str, NDArray[np.float64]]:
    """Each metric by name, in the units of :data:`METRICS`, shape (n_designs,).

    Designs that run products in the same place are computed together, so many at a time that their
    columns stay in the processor's caches.

    Args:
        columns: of the designs.
        workload: requests, software, technology.
    """
    order = np.argsort(columns["products"], kind="stable")
    found: dict[str, NDArray[np.float64]] = {}
    for start in range(0, len(order), _CHUNK):
        here = order[start : start + _CHUNK]
        part = {name: values[here] for name, values in columns.items()}
        for name, values in _chunk_columns(part, workload).items():
            if name not in found:
                found[name] = np.empty(len(order))
            found[name][here] = values
    return found


def _chunk_columns(columns: Columns, workload: Workload) -> dict[str, NDArray[np.float64]]:
    models = Transformers(columns)
    hardware = Hardware(columns, workload.software, workload.technology)
    batch, prompt = workload.batch, workload.prompt
    longest = prompt + workload.output
    placement = Placement(models, hardware, longest, prompt, batch)
    prefill = run_pass(models, hardware, placement, prompt, batch, (prompt + 1) / 2)
    token = run_pass(models, hardware, placement, 1, batch, workload.context)
    areas = areas_mm2(hardware)
    area = np.asarray(sum(areas.values()))
    costs = cost_parts_usd(hardware, area)
    leakage = leakage_w(hardware, areas)
    energies = {**token.energy_j, "static": leakage * token.seconds}
    per_token = {name: joules * 1e3 / batch for name, joules in energies.items()}
    rate = batch / token.seconds
    return {
        "loss_predicted_nats_per_token": predicted_loss(
            models, columns, workload.training_gtokens, workload.law
        ),
        "loss_outside_count": out_of_range(models, columns, workload.training_gtokens),
        "token_latency_ms": token.seconds * 1e3,
        "prefill_latency_ms": prefill.seconds * 1e3,
        "request_latency_ms": (prefill.seconds + (workload.output - 1) * token.seconds) * 1e3,
        "tokens_per_s": rate,
        "characters_per_s": rate * characters_per_token(models.vocabulary),
        "products_ms": token.products_s * 1e3,
        "attention_ms": token.attention_s * 1e3,
        "vector_ms": token.vector_s * 1e3,
        "operators_ms": token.operators_s * 1e3,
        "energy_mj_per_token": np.asarray(sum(per_token.values())),
        **{f"{name}_energy_mj_per_token": per_token[name] for name in _ENERGIES},
        "prefill_energy_mj": (prefill.total_j + leakage * prefill.seconds) * 1e3,
        "area_mm2": area,
        "cost_usd": np.asarray(sum(costs.values())),
        "memory_usd": costs["near"] + costs["far"] + costs["flash"],
        "parameters_m": models.parameters / 1e6,
        "weights_gib": placement.weight_bytes / GIB,
        "kv_cache_gib": placement.kv_bytes / GIB,
        "free_memory_gib": placement.free_bytes / GIB,
        "near_gb_per_s": hardware.near.bytes_per_s / 1e9,
    }
