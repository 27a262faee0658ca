"""Coefficients of an iteration's time, for a pool that serves a model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.data.as_records import model_record, system_record
from archgym.envs.llm.data.cluster import Cluster
from archgym.envs.llm.data.model import Model
from archgym.envs.llm.data.stack import load_stack
from archgym.envs.llm.serving.engine import Engine
from archgym.envs.llm.serving.layout import COST, NODES
from archgym.envs.llm.serving.memory import Memory, token_bytes
from archgym.envs.llm.serving.records import Pool
from archgym.envs.llm.serving.tables import SHARE

__all__ = ["coefficients", "tier_rate"]


def tier_rate(pool: Pool, cluster: Cluster) -> float:
    """Bytes a second of a GPU to and from the offload tier: as given, or the link that leads there.

    The host's memory is reached by the cluster's link to the host, a pool of memory by the links
    between the GPUs of a node.
    """
    given = cluster.node_gb_per_s if pool.offload == "pool" else cluster.host_gb_per_s
    return (pool.offload_gb_per_s or given) * 1e9


def coefficients(
    model: Model, cluster: Cluster, engine: Engine, pool: Pool, memory: Memory
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64], NDArray[Any], NDArray[Any]]:
    """Coefficients of a pool.

    Returns:
        A record of ``COST``, records of ``SHARE``, of the model and of the cluster, all of shape
        (1,), and tables of shape (4, nodes): zeros that the kernel model fills where the engine's
        form is ``kernels``, else the time to read the weights.
    """
    cost = np.zeros(1, COST)
    rate = tier_rate(pool, cluster)
    replica_block = memory.block * pool.replica_gpus
    drafted = pool.speculative_tokens
    transfer = pool.group_gpus * pool.pipeline_parallel * cluster.network_gb_per_s * 1e9
    values = {
        "graph_tokens": engine.graph_tokens,
        "eager_s": model.layers * engine.eager_layer_us * 1e-6,
        "step_s": engine.step_us * 1e-6,
        "sequence_s": engine.sequence_us * 1e-6,
        "prompts_s": engine.prompts_us * 1e-6,
        "request_s": engine.request_us * 1e-6,
        "token_s": engine.token_us * 1e-6,
        "stage_scale": math.ceil(model.layers / pool.pipeline_parallel)
        * pool.pipeline_parallel
        / model.layers,
        "stream_s": memory.offloaded / rate,
        "draft_share": pool.speculative_tokens * pool.draft_share,
        "swap_s": memory.block / rate,
        "swap_bytes": replica_block,
        "transfer_bytes": token_bytes(model, pool, engine),
        "transfer_s": token_bytes(model, pool, engine) / transfer,
        "accepted": (1.0 - pool.acceptance ** (drafted + 1)) / (1.0 - pool.acceptance),
        "pipeline": pool.pipeline_parallel,
        "nano": pool.nano_batches,
        "speculative": drafted,
    }
    tables = np.zeros((4, len(NODES)))
    system = _system(cluster, engine, pool)
    if engine.form == "roofline":
        values |= _roofline(model, cluster, engine, pool, tables)
    elif engine.form == "linear":
        values |= _linear(model, cluster, engine, pool, tables)
    else:
        values |= _attention(model, system[0], engine, pool)
    for name, value in values.items():
        cost[name] = value
    share = np.zeros(1, SHARE)
    share["weight_bytes"] = pool.weight_bits / 8
    share["compute_bytes"] = pool.compute_bits / 8
    share["tensor"] = pool.tensor_parallel
    share["groups"] = pool.attention_data_parallel
    share["expert"] = pool.expert_parallel
    share["expert_speed"] = engine.expert_speed
    share["nano"] = pool.nano_batches
    share["stages"] = pool.pipeline_parallel
    share["narrow"] = pool.compute_bits < 16
    return cost, share, tables, model_record(model), system


def _system(cluster: Cluster, engine: Engine, pool: Pool) -> NDArray[Any]:
    record = system_record(cluster, load_stack(engine.stack), pool.replica_gpus)
    chip = cluster.device
    if pool.compute_bits == 4 and chip.fp4_tflops:
        slowed = record["matrix_flops"] / (chip.matrix_tflops * 1e12)
        record["fp8_flops"] = chip.fp4_tflops * 1e12 * slowed
        record["fp8_share"] = chip.fp4_share
    elif pool.compute_bits < 16 and not chip.fp8_tflops:
        record["fp8_share"] = record["matrix_share"]  # widened before the product
    for rate in ("matrix_flops", "fp8_flops"):
        record[rate] *= engine.speed_on(chip)
    return record


def _attention(model: Model, system: Any, engine: Engine, pool: Pool) -> dict[str, float]:
    """Fused attention: a kernel a layer over all sequences, and one that joins its parts."""
    heads = model.heads / pool.tensor_parallel / pool.attention_data_parallel
    work = 4.0 * model.layers * heads * model.head_size
    rate = system["matrix_flops"] * system["flash_share"]
    moved = token_bytes(model, pool, engine) / pool.tensor_parallel / pool.attention_data_parallel
    stream = system["memory_rate"] * system["memory_share"]
    gather = system["memory_rate"] * (engine.decode_memory_share or system["memory_share"])
    query = 4.0 * model.layers * heads * model.head_size
    absorbed, latent = work, query
    if model.latent_size:
        # Prompts expand keys and values of all heads; in decoding, heads attend to what is cached.
        each = 2.0 * model.layers * heads
        widths = model.head_size + model.value_size
        work, query = each * widths, 2.0 * each * widths
        absorbed = latent = each * (2.0 * model.latent_size + model.rotary_size)
    return {
        "pair_s": work / rate,
        "context_s": absorbed / rate,
        "prefill_memory_s": (query + moved) / stream,
        "decode_memory_s": (latent + moved) / gather,
        "past_memory_s": moved / stream,
        "context_memory_s": moved / gather,
        "attention_s": 2.0 * model.layers * float(system["kernel_s"]),
    }


def _layers(model: Model, matrices: int) -> tuple[float, float, float, float]:
    """Parameters of all layers: attention, dense blocks, those that a token visits, an expert."""
    head = model.hidden // model.heads
    value = model.kv_heads * head
    attention = model.layers * (2.0 * model.hidden**2 + 2.0 * model.hidden * value)
    dense = model.dense_layers if model.experts else model.layers
    block = dense * matrices * model.hidden * float(model.feedforward)
    expert = (model.layers - dense) * matrices * model.hidden * float(model.expert_feedforward)
    return attention, block, block + expert * model.active_experts, expert


def _roofline(
    model: Model, cluster: Cluster, engine: Engine, pool: Pool, tables: NDArray[np.float64]
) -> dict[str, float]:
    """All arithmetic of an iteration against all of its memory accesses.

    As in BLIS's roofline: heads are ``hidden / heads`` wide, blocks count two matrices, and the
    experts that an iteration reads are those that random routing visits.
    """
    attention, block, visited, expert = _layers(model, 2)
    chip, gpus = cluster.device, pool.tensor_parallel
    peak = chip.matrix_tflops * 1e12 * gpus
    rate = chip.memory_gb_per_s * 1e9 * gpus
    head = model.hidden / model.heads
    token = 2.0 * (attention + visited) + 2.0 * model.layers * model.hidden
    pair = model.layers * model.heads * (4.0 * head + 5.0)
    moved = 4.0 * model.layers * model.kv_heads * head
    activations = 2.0 * model.layers * model.hidden
    weights = np.full(len(NODES), attention + block)
    if model.experts:
        unvisited = (1.0 - model.active_experts / model.experts) ** NODES
        weights += expert * model.experts * (1.0 - unvisited)
    tables[0] = 2.0 * weights / rate
    return {
        "joint": 1,
        "prefill_s": token / (peak * engine.prefill_share),
        "decode_s": token / (peak * engine.decode_share),
        "pair_s": pair / (peak * engine.prefill_share),
        "context_s": pair / (peak * engine.decode_share),
        "prefill_memory_s": (moved + activations) / rate,
        "decode_memory_s": (moved + activations) / rate,
        "past_memory_s": moved / rate,
        "context_memory_s": moved / rate,
    }


def _linear(
    model: Model, cluster: Cluster, engine: Engine, pool: Pool, tables: NDArray[np.float64]
) -> dict[str, float]:
    """A sum of the prompts' arithmetic, the cache's and the weights' bytes, and fixed times.

    As in BLIS's trained model: all experts are read in every iteration, and all-reduces are sized
    as if they ran at the memory's bandwidth.
    """
    attention, block, visited, expert = _layers(model, 3)
    chip, gpus = cluster.device, pool.tensor_parallel
    peak = chip.matrix_tflops * 1e12 * gpus * engine.prefill_share
    rate = chip.memory_gb_per_s * 1e9
    head = model.hidden / model.heads
    moved = 4.0 * model.layers * model.kv_heads * head / gpus / rate * engine.cache_scale
    weights = 2.0 * (attention + block + expert * model.experts) / gpus / rate
    tables[0] = engine.weights_scale * weights + model.layers * engine.layer_us * 1e-6
    reduced = 2.0 * model.layers * model.hidden * 2.0 * 2.0 * (gpus - 1) / gpus
    tables[1] = engine.network_scale * reduced * NODES / rate
    return {
        "whole_prompt": 1,
        "prefill_s": 2.0 * (attention + visited) / peak,
        "pair_s": 4.0 * model.layers * model.heads * head / peak,
        "decode_s": moved,
        "context_s": moved,
    }
