"""Memory of a replica: its weights, its activations, and the blocks that are left for the cache."""

from __future__ import annotations

import math
from dataclasses import dataclass

from archgym.envs.llm.data.as_records import GIB
from archgym.envs.llm.data.cluster import Chip
from archgym.envs.llm.data.model import Model
from archgym.envs.llm.serving.engine import Engine
from archgym.envs.llm.serving.records import Pool

__all__ = ["Memory", "memory_of", "token_bytes", "weights_bytes"]


@dataclass(frozen=True)
class Memory:
    """What the GPU of a replica that holds most has to hold.

    Attributes:
        weights: bytes of weights, those in the offload tier included.
        offloaded: those of them in the tier.
        resident: bytes of weights, activations and the runtime.
        block: bytes of a block of the cache, on this GPU.
        blocks: of the cache of the whole replica; 0 or less if nothing is left.
    """

    weights: float
    offloaded: float
    resident: float
    block: float
    blocks: int


def token_bytes(model: Model, pool: Pool, engine: Engine) -> float:
    """Bytes that a token takes in the cache of a replica, over all of its GPUs of a group."""
    if model.latent_size:  # every GPU holds all of it
        width = model.layers * (model.latent_size + model.rotary_size)
        return width * pool.tensor_parallel * pool.cache_bits / 8
    heads = model.kv_heads
    if engine.form == "kernels":  # fewer heads than GPUs are held more than once
        heads = max(heads, pool.tensor_parallel)
    return 2.0 * model.layers * heads * model.head_size * pool.cache_bits / 8


def weights_bytes(model: Model, pool: Pool) -> float:
    """Bytes of the weights on a GPU of the largest stage."""
    width = pool.weight_bits / 8
    dense = model.dense_layers if model.experts else model.layers
    sparse = model.layers - dense
    heads = max(model.kv_heads, pool.tensor_parallel)
    query = model.heads * model.head_size
    attention = 2 * model.hidden * query + 2 * model.hidden * heads * model.head_size
    block = model.matrices * model.hidden * model.feedforward
    expert = model.matrices * model.hidden * model.expert_feedforward
    common = 0
    if model.latent_size:
        common, attention = model.latent_parameters
    shared = (attention * model.layers + block * dense) / pool.tensor_parallel
    shared += common * model.layers
    shared += sparse * model.shared_experts * expert / pool.tensor_parallel
    spread = sparse * model.experts * expert / pool.group_gpus
    stage = math.ceil(model.layers / pool.pipeline_parallel) / model.layers
    ends = 1 if model.tied and pool.pipeline_parallel == 1 else 2
    ends = 1 if pool.pipeline_parallel > 1 else ends
    vocabulary = 2.0 * ends * model.vocabulary * model.hidden / pool.tensor_parallel
    small = 2.0 * model.layers * (2 * model.hidden + (model.hidden * model.experts))
    return (shared + spread) * width * stage + vocabulary + small * stage


def memory_of(model: Model, chip: Chip, engine: Engine, pool: Pool) -> Memory:
    """Weights, activations and blocks of a replica.

    Blocks are those that fit a GPU, times the groups that have sequences of their own.
    """
    alone = pool.replica_gpus == 1
    weights = weights_bytes(model, pool)
    offloaded = weights * pool.offload_weights
    resident = weights * (1.0 - pool.offload_weights)
    resident += (engine.runtime_gib if alone else engine.runtime_group_gib) * GIB
    activations = engine.expert_activation_gib if model.experts else engine.activation_gib
    if activations:
        resident += activations * GIB / pool.replica_gpus
    else:
        resident += _activation_bytes(model, pool)
    stage = math.ceil(model.layers / pool.pipeline_parallel) / model.layers
    block = token_bytes(model, pool, engine) * stage * pool.block_size / pool.tensor_parallel
    blocks = pool.cache_blocks
    if not blocks:
        free = chip.memory_gib * GIB * pool.memory_share - resident
        blocks = int(free // block) * pool.attention_data_parallel
        if engine.counts_by_gpu:
            blocks = int(free * pool.tensor_parallel // block)
    return Memory(weights, offloaded, resident, block, blocks)


def _activation_bytes(model: Model, pool: Pool) -> float:
    """Of the largest iteration: residual stream, one block's inner values, and the logits."""
    tokens = max(pool.max_num_batched_tokens / pool.attention_data_parallel, pool.max_num_seqs)
    visited = model.active_experts + model.shared_experts
    inner = max(model.feedforward, visited * model.expert_feedforward) * (model.matrices - 1)
    values = 4.0 * model.hidden + 1.5 * inner / pool.tensor_parallel
    logits = 6.0 * pool.max_num_seqs * model.vocabulary / pool.tensor_parallel
    return 2.0 * tokens * values + logits
