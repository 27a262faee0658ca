"""Memory of a stage: parameters, gradients, optimizer, activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.llm.cost.compiled import compiled
from archgym.envs.llm.cost.layer import FULL, GRADIENTS, STORED, WORKING
from archgym.envs.llm.cost.pipeline import in_flight

__all__ = [
    "GRADIENT",
    "OPTIMIZER",
    "PARAMETER",
    "layer_parameters",
    "memory",
    "share_of_rank",
    "table_parameters",
]

OPTIMIZER, GRADIENT, PARAMETER = 1, 2, 3
"""What is sharded over data- and context-parallel ranks, each with those before it."""


@compiled
def layer_parameters(model: Any, plan: Any, sparse: bool) -> tuple[float, float]:
    """Parameters of a layer on one GPU: those that data and context ranks share, and experts."""
    width = float(model.hidden)
    query = float(model.heads * model.head_size) / plan.tensor
    value = max(1.0, float(model.kv_heads) / plan.tensor) * model.head_size
    shared = 2.0 * width * query + 2.0 * width * value + 4.0 * width
    if not sparse:
        return shared + model.matrices * width * float(model.feedforward) / plan.tensor, 0.0
    expert = model.matrices * width * float(model.expert_feedforward) / plan.tensor
    shared += model.shared_experts * expert + width * model.experts
    return shared, expert * model.experts / plan.expert


@compiled
def table_parameters(model: Any, plan: Any, stage: int) -> float:
    """Parameters of the embedding (first stage) and the output layer (last), on one GPU.

    A stage that has both holds them once where they are tied.
    """
    tables = 0.0
    if stage == 0:
        tables += 1.0
    if stage == plan.pipeline - 1 and not (model.tied and stage == 0):
        tables += 1.0
    return float(tables * model.vocabulary * model.hidden / plan.tensor)


@compiled
def share_of_rank(plan: Any, own: float, experts: float) -> float:
    """Parameters of which a GPU keeps the optimizer, where data and context ranks share it.

    Experts are shared by fewer ranks, those that hold the same ones.

    Args:
        plan: the plan.
        own: parameters that all data and context ranks hold.
        experts: parameters of experts.
    """
    count = max(1.0, float(plan.data * plan.context))
    return float(own / count + experts / max(1.0, np.floor(count / plan.expert)))


@compiled
def _states(
    plan: Any, system: Any, own: float, experts: float, one: float, number: float, out: Any
) -> None:
    """Bytes of parameters, gradients and optimizer of a stage.

    Args:
        plan: the plan.
        system: the cluster and its software.
        own: parameters that all data and context ranks hold.
        experts: parameters of experts.
        one: parameters of the largest layer.
        number: layers.
        out: takes the three figures.
    """
    whole = own + experts
    shard = share_of_rank(plan, own, experts)
    out[0], out[2] = whole * system.element_bytes, whole * system.master_bytes
    if plan.sharding == PARAMETER:
        out[0] = (shard + 2.0 * one) * system.element_bytes
    if plan.sharding >= OPTIMIZER:
        out[2] = shard * system.master_bytes
    if system.operators:  # one layer is added up in 32 bits
        single = whole / max(1.0, number)
        parts = max(1.0, float(plan.data * plan.context)) if plan.sharding >= OPTIMIZER else 1.0
        out[1] = single * 4.0 + (whole - single) * system.gradient_bytes / parts
    elif plan.sharding >= GRADIENT:
        out[1] = (shard + one) * system.gradient_bytes
    else:
        out[1] = whole * system.gradient_bytes


@compiled
def _offload(plan: Any, system: Any, number: float, stored: float, parts: Any) -> float:
    """Moves what the plan offloads to the host, but for two layers; returns its bytes.

    A host that makes the optimizer's step has all of its state, and the GPU adds up the gradients
    until then, as Megatron-Core's ``--optimizer-cpu-offload`` does. calculon's GPUs make the step
    themselves, layer by layer, with state and gradients from the host.
    """
    share = min(1.0, 2.0 / max(1.0, number))
    host = 0.0
    if plan.offload_weights:
        host += parts[0]
        parts[0] *= share
    if plan.offload_optimizer and system.operators:
        host += parts[1] + parts[2]
        parts[1] *= share
        parts[2] *= share
    elif plan.offload_optimizer:
        host += parts[2]
        parts[2] = 0.0
    if plan.offload_activations:
        host += parts[3]
        parts[3] = min(parts[3], stored * share)
    return float(host)


@compiled
def memory(
    model: Any, plan: Any, system: Any, layers: Any, per_layer: Any, space: Any, logits: float,
    out: Any,
) -> None:  # fmt: skip
    """The memory of the stage that needs most, by part.

    Args:
        model: the transformer.
        plan: the plan.
        system: the cluster and its software.
        layers: dense and sparse layers of each stage.
        per_layer: parameters of a layer, shape (2, 2): dense and sparse; shared and experts.
        space: bytes of a layer, shape (2, 3).
        logits: bytes that the output layer and the loss need at work, when no layer is at work.
        out: a record of results.
    """
    parts = np.zeros(4)
    out.peak_bytes = -1.0
    for stage in range(plan.pipeline):
        number = layers[stage, 0] + layers[stage, 1]
        last = stage == plan.pipeline - 1
        own = layers[stage, 0] * per_layer[0, 0] + layers[stage, 1] * per_layer[1, 0]
        own += table_parameters(model, plan, stage)
        kind = 0 if layers[stage, 0] else 1
        one = per_layer[kind, 0] + per_layer[kind, 1]
        if layers[stage, 1]:
            one = max(one, per_layer[1, 0] + per_layer[1, 1])
        _states(plan, system, own, layers[stage, 1] * per_layer[1, 1], one, number, parts)
        flight = in_flight(plan.schedule, plan.pipeline, plan.virtual, plan.micro_batches, stage)
        stored = layers[stage, 0] * space[0, STORED] + layers[stage, 1] * space[1, STORED]
        parts[3] = stored * flight
        kept = 0.0
        if plan.recompute != FULL:  # the layer at work is among those kept
            kept = min(parts[3], space[kind, STORED])
            parts[3] -= kept
        host = _offload(plan, system, number, stored, parts)
        work = max(space[0, WORKING], space[1, WORKING])
        work += max(space[0, GRADIENTS], space[1, GRADIENTS])
        if last:
            work = max(work, kept + logits)
        work += system.overhead_bytes
        if system.dummy_gradients:
            work += system.element_bytes * per_layer[kind, 0]
        peak = parts.sum() + work
        if peak > out.peak_bytes:
            out.peak_bytes, out.working_bytes, out.host_bytes = peak, work, host
            out.weights_bytes, out.gradients_bytes = parts[0], parts[1]
            out.optimizer_bytes, out.activations_bytes = parts[2], parts[3]
            out.peak_stage = float(stage)
