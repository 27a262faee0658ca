"""One transformer layer on one GPU of a plan: kernels by phase, and bytes that it keeps."""

from __future__ import annotations

from typing import Any

from archgym.envs.llm.cost.collectives import exchange_s, ring_s
from archgym.envs.llm.cost.compiled import compiled
from archgym.envs.llm.cost.efficiency import memory_s
from archgym.envs.llm.cost.kernels import (
    AGAIN,
    BYTES,
    COUNT,
    INPUTS,
    NETWORK,
    NETWORK_BYTES,
    TIME,
    WEIGHTS,
    add_kernel,
    attached_linear,
    elementwise,
    linear,
    product,
)

__all__ = ["ATTENTION", "FULL", "GRADIENTS", "STORED", "WORKING", "layer"]

ATTENTION, FULL = 1, 2
"""What is recomputed: the core of the attention, or the whole layer; 0 for nothing."""
STORED, WORKING, GRADIENTS = 0, 1, 2
"""Bytes of a layer and micro-batch: kept for the backward pass, all activations of the layer while
it is computed, and the gradients of these. Without ``operators``, WORKING is what lives at the
fullest moment of the layer's backward pass, gradients included, and GRADIENTS is 0."""


@compiled
def _norm(system: Any, sums: Any, space: Any, size: float, hidden: float, again: bool) -> None:
    """The fork of the residual stream, and a layer norm on it."""
    e = system.element_bytes
    if system.operators:
        elementwise(system, sums, 0.0, 0.0, 2.0 * size, 3.0 * size * e, again)
        moved = (2.0 * size + 2.0 * hidden) * e
        elementwise(system, sums, 9.0 * size, moved, 14.0 * size, moved, again)
        sums[2, TIME] += memory_s(system, moved)
        sums[2, BYTES] += moved
    else:
        elementwise(system, sums, 9.0 * size, 2.0 * size * e, 14.0 * size, 4.0 * size * e, again)
    space[STORED] += size * e
    space[WORKING] += size * e
    space[GRADIENTS] += size * e


@compiled
def _residual(system: Any, sums: Any, space: Any, size: float, again: bool) -> None:
    """Dropout, and the addition to the residual stream."""
    e = system.element_bytes
    mask = size if system.dropout else 0.0
    if system.fused_dropout or not system.dropout:
        moved = 3.0 * size * e + mask
        elementwise(system, sums, 2.0 * size, moved, 2.0 * size, 2.0 * size * e + mask, again)
    else:
        moved = 2.0 * size * e + mask
        elementwise(system, sums, size, moved, size, moved, again)
        elementwise(system, sums, size, 3.0 * size * e, 2.0 * size, 3.0 * size * e, again)
    space[STORED] += mask
    space[WORKING] += mask
    space[GRADIENTS] += size * e + mask


@compiled
def _flash(
    model: Any, plan: Any, system: Any, sums: Any, space: Any, tokens: float, query: float,
    value: float, again: bool,
) -> None:  # fmt: skip
    """Attention as one kernel that keeps no scores; the masked half is skipped."""
    e = system.element_bytes
    heads = query / model.head_size * plan.micro_batch
    rows, columns = float(model.sequence) / plan.context, float(model.sequence)
    size = tokens * (2.0 * query + 2.0 * value) * e
    flops = 4.0 * heads * rows * 0.5 * columns * model.head_size
    for phase in range(4):
        if phase == WEIGHTS or (phase == AGAIN and not again):
            continue
        back = phase == INPUTS  # five products instead of two, as the scores are repeated
        work = 2.5 * flops if back else flops
        rate = system.matrix_flops * (system.flash_back_share if back else system.flash_share)
        moved = 2.0 * size if back else size
        add_kernel(system, sums, phase, work / rate, memory_s(system, moved), work, moved)
    space[STORED] += tokens * (2.0 * query + 2.0 * value) * e
    space[WORKING] += tokens * (2.0 * query + 2.0 * value) * e
    space[GRADIENTS] += tokens * (2.0 * query + 2.0 * value) * e


@compiled
def _scores(
    model: Any, plan: Any, system: Any, sums: Any, space: Any, tokens: float, query: float,
    value: float,
) -> None:  # fmt: skip
    """Attention by separate kernels that keep the scores."""
    e = system.element_bytes
    heads = query / model.head_size * plan.micro_batch
    rows, columns = float(model.sequence) / plan.context, float(model.sequence)
    scores = heads * rows * columns
    core = plan.recompute >= ATTENTION
    whole = plan.recompute == FULL or (core and not system.operators)
    mask = scores if system.dropout else 0.0
    product(system, sums, heads, rows, model.head_size, columns, core)
    elementwise(system, sums, 5.0 * scores, 2.0 * scores * e, 8.0 * scores, 2.0 * scores * e, core)
    if system.dropout:
        moved = 2.0 * scores * e + mask
        elementwise(system, sums, scores, moved, scores, moved, core)
    product(system, sums, heads, rows, columns, model.head_size, whole)
    kept = tokens * (query + 2.0 * value) * e
    space[WORKING] += kept + 2.0 * scores * e + mask
    space[STORED] += kept if core else kept + 2.0 * scores * e + mask
    space[GRADIENTS] += 2.0 * scores * e + mask + tokens * query * e


@compiled
def _attention(
    model: Any, plan: Any, system: Any, sums: Any, space: Any, tokens: float, split: bool
) -> None:
    """The attention block, after its norm and before its residual."""
    e, width = system.element_bytes, float(model.hidden)
    full, core = plan.recompute == FULL, plan.recompute >= ATTENTION
    flow = tokens * width  # the activation that a tensor-parallel group shares
    parts = flow / plan.tensor if plan.sequence_parallel else flow
    query = float(model.heads * model.head_size) / plan.tensor
    value = max(1.0, float(model.kv_heads) / plan.tensor) * model.head_size
    repeats = full or plan.gather_again or (core and plan.sequence_parallel == 1)
    if system.operators and not plan.tensor_overlap:
        # The input is handed to three products, which read it one after the other.
        elementwise(system, sums, 0.0, 0.0, 3.0 * flow, 4.0 * flow * e, False)
        attached_linear(system, plan, sums, tokens, width, query, full, True, flow, split, repeats)
        linear(system, sums, plan.fp8, 1.0, tokens, width, value, full)
        linear(system, sums, plan.fp8, 1.0, tokens, width, value, full)
    else:
        out = query + 2.0 * value
        attached_linear(system, plan, sums, tokens, width, out, full, True, flow, split, repeats)
    if plan.sequence_parallel and plan.tensor > 1:
        space[STORED] += parts * e
        space[WORKING] += flow * e + parts * e
        if not repeats and not plan.tensor_overlap:
            space[STORED] += flow * e
    else:
        space[STORED] += 0.0 if core and system.operators and not plan.tensor_overlap else flow * e
        space[WORKING] += flow * e
    space[GRADIENTS] += tokens * (query + 2.0 * value) * e + (parts * e if plan.tensor > 1 else 0.0)
    before = sums[:, TIME].copy()
    if system.flash:
        _flash(model, plan, system, sums, space, tokens, query, value, core)
    else:
        _scores(model, plan, system, sums, space, tokens, query, value)
    if plan.context > 1:
        _ring(model, plan, system, sums, before, tokens, value)
    attached_linear(system, plan, sums, tokens, query, width, full, False, flow, split, full)
    space[STORED] += tokens * query * e if not system.flash else 0.0
    space[WORKING] += tokens * query * e + (parts * e if plan.tensor > 1 else 0.0)
    space[GRADIENTS] += flow * e


@compiled
def _ring(
    model: Any, plan: Any, system: Any, sums: Any, before: Any, tokens: float, value: float
) -> None:
    """Keys and values go around the context-parallel group beside the attention.

    Args:
        model: the transformer.
        plan: the plan.
        system: the cluster.
        sums: take what the attention does not hide.
        before: seconds of each phase without the attention.
        tokens: of the micro-batch on this GPU.
        value: width of its keys.
    """
    part = 2.0 * tokens * value * system.element_bytes
    seconds = ring_s(system, part, float(plan.context), float(plan.context_stride))
    for phase in range(4):
        if phase != 2 and sums[phase, COUNT] > 0:
            times = 2.0 if phase == INPUTS else 1.0  # their gradients go around too
            sums[phase, NETWORK_BYTES] += times * part * (plan.context - 1.0)
            message = times * seconds
            beside = sums[phase, TIME] - before[phase]
            usage = system.link_usage[0 if plan.tensor * plan.context <= system.link_size[0] else 1]
            sums[phase, NETWORK] += max(message - beside, usage * message)


@compiled
def _dense(
    model: Any, plan: Any, system: Any, sums: Any, space: Any, tokens: float, split: bool
) -> None:
    """A dense feed-forward block, after its norm and before its residual."""
    e, width = system.element_bytes, float(model.hidden)
    full = plan.recompute == FULL
    flow = tokens * width
    parts = flow / plan.tensor if plan.sequence_parallel else flow
    inner = float(model.feedforward) / plan.tensor
    wide = inner * (model.matrices - 1)
    repeats = full or plan.gather_again == 1
    attached_linear(system, plan, sums, tokens, width, wide, full, True, flow, split, repeats)
    if plan.sequence_parallel and plan.tensor > 1:
        space[STORED] += parts * e
        space[STORED] += 0.0 if repeats or plan.tensor_overlap else flow * e
        space[WORKING] += parts * e
    else:
        space[STORED] += flow * e
    space[WORKING] += flow * e
    _activation(model, system, sums, space, tokens * inner, full)
    attached_linear(system, plan, sums, tokens, inner, width, full, False, flow, split, full)
    space[STORED] += tokens * inner * e
    space[WORKING] += tokens * inner * e + (parts * e if plan.tensor > 1 else 0.0)
    space[GRADIENTS] += tokens * wide * e + flow * e + (parts * e if plan.tensor > 1 else 0.0)


@compiled
def _activation(model: Any, system: Any, sums: Any, space: Any, size: float, full: bool) -> None:
    e, inputs = system.element_bytes, model.matrices - 1.0
    moved = (inputs + 1.0) * size * e
    back = moved if system.operators else (2.0 * inputs + 1.0) * size * e
    elementwise(system, sums, 8.0 * size, moved, 13.0 * size, back, full)
    if not system.fused_activation:
        space[STORED] += inputs * size * e
        space[WORKING] += inputs * size * e
        space[GRADIENTS] += size * e


@compiled
def _experts(model: Any, plan: Any, system: Any, sums: Any, space: Any, tokens: float) -> None:
    """Router, dispatch, experts and combination of a mixture of experts, evenly loaded."""
    e, width = system.element_bytes, float(model.hidden)
    full = plan.recompute == FULL
    routed = tokens * model.active_experts
    local = float(model.experts) / plan.expert
    inner = float(model.expert_feedforward) / plan.tensor
    wide = inner * (model.matrices - 1)
    linear(system, sums, 0, 1.0, tokens, width, float(model.experts), full)
    moved = (tokens + 3.0 * routed) * width * e
    elementwise(system, sums, routed * width, moved, routed * width, moved, full)
    shard = float(plan.tensor) if plan.sequence_parallel else 1.0
    size = routed * width * e / shard
    # Experts spread over context ranks first, then over data ranks, wherever those are.
    near, ranks, far = float(plan.context_stride), float(plan.context), float(plan.data_stride)
    seconds = 2.0 * exchange_s(system, size, float(plan.expert), near, ranks, far)
    for phase in range(4):
        if phase != 2 and (phase != AGAIN or full):
            sums[phase, NETWORK] += seconds
            sums[phase, NETWORK_BYTES] += 2.0 * size
    linear(system, sums, plan.fp8, local, routed / local, width, wide, full)
    _activation(model, system, sums, space, routed * inner, full)
    linear(system, sums, plan.fp8, local, routed / local, inner, width, full)
    if model.shared_experts:
        common = float(model.shared_experts) * inner
        linear(system, sums, plan.fp8, 1.0, tokens, width, common * (model.matrices - 1), full)
        _activation(model, system, sums, space, tokens * common, full)
        linear(system, sums, plan.fp8, 1.0, tokens, common, width, full)
        space[STORED] += tokens * common * e
    space[STORED] += (routed * (width + inner) + tokens * width) * e
    space[WORKING] += (routed * (width + inner) + tokens * width) * e
    space[GRADIENTS] += routed * (width + wide) * e


@compiled
def _at_work(
    model: Any, plan: Any, system: Any, sparse: bool, tokens: float, kept: float, forward: float
) -> float:
    """Bytes of a layer at the fullest moment of its backward pass, gradients included.

    A tensor is freed once nothing reads it any more, so only the gradients on both sides of an
    operator are live, and the gradient of the residual stream. The moments that count are the
    backward passes of the second product, the activation and the first product of the
    feed-forward block, and that of the attention's core, before which the activations of the
    feed-forward block are free. A tensor-parallel group with sequence parallelism gathers the
    gradient of the second product and the input of the first one (Megatron-LM,
    ``megatron/core/tensor_parallel/layers.py``).

    Args:
        model: the transformer.
        plan: the plan.
        system: the cluster and its software.
        sparse: whether the layer has experts.
        tokens: of the micro-batch on this GPU.
        kept: bytes that the layer keeps if it does not recompute all.
        forward: those of its feed-forward block.
    """
    e = system.element_bytes
    rows = tokens * (float(model.active_experts) if sparse else 1.0)
    flow = rows * model.hidden * e
    inner = rows * (model.expert_feedforward if sparse else model.feedforward) / plan.tensor * e
    wide = inner * (model.matrices - 1)
    gathered = flow if plan.sequence_parallel and plan.tensor > 1 and not sparse else 0.0
    activation = 0.0 if system.fused_activation else wide  # freed before the first product
    feed = max(inner + flow, wide, wide - inner - activation + gathered + flow)
    query = float(model.heads * model.head_size) / plan.tensor
    value = max(1.0, float(model.kv_heads) / plan.tensor) * model.head_size
    core, again = tokens * (2.0 * query + 2.0 * value) * e, 0.0
    if not system.flash:
        scores = query / model.head_size * plan.micro_batch
        scores *= float(model.sequence) / plan.context * model.sequence
        core = 2.0 * scores * e
        if plan.recompute >= ATTENTION:
            again = 2.0 * scores * e + (scores if system.dropout else 0.0)
    stream = tokens * model.hidden * e / (plan.tensor if plan.sequence_parallel else 1.0)
    whole = again if plan.recompute == FULL else 0.0
    return float(kept + stream + max(whole + feed, again + core - forward))


@compiled
def layer(
    model: Any, plan: Any, system: Any, sparse: bool, edge: bool, sums: Any, space: Any
) -> None:
    """Adds up the kernels and the bytes of one layer for one micro-batch.

    Args:
        model: the transformer.
        plan: the plan.
        system: the cluster and its software.
        sparse: whether the layer has experts.
        edge: whether it is the last one before a message to another stage.
        sums: float64, shape (4, SLOTS), in which seconds, kernels, operations and bytes are added.
        space: float64, shape (3,), in which bytes are added.
    """
    tokens = float(plan.micro_batch) * model.sequence / plan.context
    flow = tokens * model.hidden
    parts = flow / plan.tensor if plan.sequence_parallel else flow
    split = plan.sequence_parallel == 1 or (edge and plan.scatter_gather == 1)
    full = plan.recompute == FULL
    for _ in range(2):
        _norm(system, sums, space, parts, float(model.hidden), full)
        _residual(system, sums, space, parts, full)
    _attention(model, plan, system, sums, space, tokens, split)
    before = space[STORED]
    if sparse:
        _experts(model, plan, system, sums, space, tokens)
    else:
        _dense(model, plan, system, sums, space, tokens, split)
    if not system.operators:
        kept, forward = space[STORED], space[STORED] - before
        space[WORKING] = _at_work(model, plan, system, sparse, tokens, kept, forward)
        space[GRADIENTS] = 0.0
    if full:
        space[STORED] = flow * system.element_bytes
        if plan.sequence_parallel and not system.operators:
            space[STORED] = parts * system.element_bytes
