"""What follows the last backward pass of a stage: gradients, optimizer, parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.llm.cost.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    REDUCE_SCATTER,
    collective_s,
)
from archgym.envs.llm.cost.compiled import compiled
from archgym.envs.llm.cost.efficiency import combined_s, memory_s, vector_s
from archgym.envs.llm.cost.kernels import FORWARD, MEMORY
from archgym.envs.llm.cost.memory import (
    GRADIENT,
    OPTIMIZER,
    PARAMETER,
    share_of_rank,
    table_parameters,
)

__all__ = ["after_s", "lengthen_passes"]


@compiled
def _data_s(system: Any, plan: Any, size: float, kind: int, expert: int) -> float:
    """Seconds of a collective of those that add up gradients: all data and context ranks.

    Where other ranks lie between its parts, each GPU exchanges its share of the vector with those
    of its place in the other parts, while a context-parallel group exchanges within itself; the
    two overlap in chunks, so the slower one counts.

    Args:
        system: the cluster.
        plan: the plan.
        size: bytes of the whole vector on each GPU.
        kind: which collective.
        expert: neighbours that hold different experts, so that one of as many ranks takes part;
            1 for parameters that all ranks hold.
    """
    near, context = float(plan.context_stride * expert), max(1.0, plan.context / expert)
    data = np.floor(float(plan.data * plan.context) / expert / context)
    tier, slowed = plan.data_tier, plan.data_slowed
    if plan.data_stride <= plan.context_stride * plan.context:
        return float(collective_s(system, kind, size, data * context, near, tier, slowed))
    inside = collective_s(system, kind, size, context, near, tier, slowed)
    far = plan.data_stride * max(1.0, float(expert) / plan.context)
    return float(max(inside, collective_s(system, kind, size / context, data, far, tier, slowed)))


@compiled
def _synchronised_s(system: Any, plan: Any, size: float, expert: int) -> float:
    """Seconds in which data- and context-parallel ranks add up gradients of ``size`` bytes.

    Where the optimizer is sharded, the updated parameters are gathered too. Gradients that are
    sharded themselves have been added up by then. ``expert`` is as in :func:`_data_s`.
    """
    if size <= 0:
        return 0.0
    if plan.sharding == 0:
        return _data_s(system, plan, size, ALL_REDUCE, expert)
    weights = size * (1.0 if system.operators else system.element_bytes / system.gradient_bytes)
    seconds = 0.0
    if system.operators or plan.sharding == OPTIMIZER:
        seconds += _data_s(system, plan, size, REDUCE_SCATTER, expert)
    if plan.sharding < PARAMETER:
        seconds += _data_s(system, plan, weights, ALL_GATHER, expert)
    return seconds


@compiled
def _host_optimizer_s(system: Any, parameters: float, back: float) -> float:
    """Seconds of a step of the host over the parameters of a GPU.

    Gradients go to the host during the last backward pass; then the host's processors read and
    write the state, at their share of its memory's bandwidth; then the parameters come back.
    """
    gradients = max(0.0, system.gradient_bytes * parameters / system.host_rate - back)
    moved = 2.0 * system.master_bytes + system.gradient_bytes + system.element_bytes
    step = moved * parameters / (system.host_memory_rate * system.memory_share)
    return float(gradients + step + system.element_bytes * parameters / system.host_rate)


@compiled
def _optimizer_s(system: Any, plan: Any, parameters: float, layers: float, back: float) -> float:
    """Seconds of the optimizer's step over ``parameters`` on this GPU.

    Args:
        system: the cluster.
        plan: the plan.
        parameters: those that this GPU updates.
        layers: of the stage.
        back: seconds of the last micro-batch's backward pass in which the network is idle.
    """
    if plan.offload_optimizer and not system.operators:
        return _host_optimizer_s(system, parameters, back)
    if system.operators:
        each = parameters / max(1.0, layers)
        seconds = combined_s(
            system,
            vector_s(system, 11.0 * each),
            memory_s(system, system.master_bytes * each),
        )
        return seconds * max(1.0, layers)
    moved = 2.0 * system.master_bytes + system.gradient_bytes + system.element_bytes
    return float(memory_s(system, moved * parameters) + 4.0 * system.kernel_s)


@compiled
def _exposed_s(
    plan: Any, system: Any, part: Any, back: float, number: float, each: float, total: float
) -> float:
    """Seconds of the gradients' sums that backward passes do not hide.

    The sums of a chunk run beside the backward passes of the chunks before it; those of the last
    chunk beside its other layers; those of the first layer beside nothing.

    Args:
        plan: the plan.
        system: the cluster.
        part: sums of a layer by phase.
        back: seconds of the stage's backward passes for one micro-batch.
        number: layers of the stage.
        each: seconds of the sums of a layer.
        total: of the stage.
    """
    if not plan.data_overlap:
        return total
    chunk = max(1.0, number / plan.virtual)
    window = back / number
    if system.operators:  # no collective beside memory accesses
        for phase in range(4):
            window -= part[phase, MEMORY] if phase != FORWARD else 0.0
    usage = system.link_usage[1]
    late = max((chunk - 1.0) * (each - window), (chunk - 1.0) * each * usage)
    whole = chunk * each
    before = max(whole * usage, whole - plan.pipeline * chunk * window)
    return float(each + late + (plan.virtual - 1.0) * before + total - each * number)


@compiled
def _lengthened_s(busy: float, network: float, usage: float) -> float:
    """Seconds by which collectives lengthen the kernels that they run beside.

    Args:
        busy: seconds of the kernels alone.
        network: of the collectives.
        usage: share of the kernels' speed that is lost while a collective runs.
    """
    return float(max(network - busy, usage * network))


@compiled
def lengthen_passes(
    plan: Any, system: Any, parameters: float, experts: float, number: float, passes: Any
) -> float:
    """Adds the collectives that sharding repeats in every micro-batch to a stage's passes.

    Sharded parameters are gathered for every pass, and gradients spread after every backward
    one, layer by layer. Where that overlaps, the first layer's has nothing to run beside.

    Args:
        plan: the plan.
        system: the cluster.
        parameters: of the stage, without experts.
        experts: parameters of its experts, which the ranks share that hold the same ones.
        number: layers of the stage.
        passes: seconds of forward, backward and late passes, shape (virtual, 3).

    Returns:
        Seconds added for a micro-batch.
    """
    count = float(plan.data * plan.context)
    if system.operators or plan.sharding < GRADIENT or count <= 1 or not number:
        return 0.0
    added = gather = spread = 0.0
    for kind in range(2):
        each, expert = (experts if kind else parameters) / number, plan.expert if kind else 1
        if plan.sharding == PARAMETER:
            gather += _data_s(system, plan, each * system.element_bytes, ALL_GATHER, expert)
        spread += _data_s(system, plan, each * system.gradient_bytes, REDUCE_SCATTER, expert)
    others = max(0.0, number / plan.virtual - 1.0)
    for chunk in range(plan.virtual):
        for side in range(2):
            one = gather + (spread if side else 0.0)
            more = one + others * one
            if plan.data_overlap:
                more = one
                more += _lengthened_s(passes[chunk, side], others * one, system.link_usage[1])
            passes[chunk, side] += more
            added += more
    return added


@compiled
def after_s(
    model: Any, plan: Any, system: Any, stage: int, layers: Any, per_layer: Any, back: float,
    part: Any, fields: Any,
) -> None:  # fmt: skip
    """Seconds of a stage after its last backward pass.

    Args:
        model: the transformer.
        plan: the plan.
        system: the cluster.
        stage: number of the stage.
        layers: dense and sparse layers of the stage.
        per_layer: parameters of a layer, shape (2, 2): dense and sparse; shared and experts.
        back: seconds of the stage's backward passes for one micro-batch.
        part: sums of a layer by phase.
        fields: takes the seconds of gradients and of the optimizer.
    """
    count = float(plan.data * plan.context)
    number = layers[0] + layers[1]
    shared = layers[0] * per_layer[0, 0] + layers[1] * per_layer[1, 0]
    experts = layers[1] * per_layer[1, 1]
    table = table_parameters(model, plan, stage)
    fields[0] = total = 0.0
    width = system.element_bytes if system.operators else system.gradient_bytes
    if count > 1 and number:
        each = _synchronised_s(system, plan, shared / number * width, 1)
        each += _synchronised_s(system, plan, experts / number * width, plan.expert)
        if system.operators:
            total = each * number
        else:  # buckets of many layers
            total = _synchronised_s(system, plan, shared * width, 1)
            total += _synchronised_s(system, plan, experts * width, plan.expert)
            each = min(each, total / number)
        total += _synchronised_s(system, plan, table * width, 1)
        if plan.sharding < PARAMETER:
            fields[0] = _exposed_s(plan, system, part, back, number, each, total)
    if table and model.tied and plan.pipeline > 1 and not system.operators:
        stride = float(plan.pipeline_stride * (plan.pipeline - 1))
        fields[0] += collective_s(
            system, ALL_REDUCE, table * width, 2.0, stride, -1, plan.pipeline_slowed
        )
    left = max(0.0, back - total) if plan.data_overlap else back
    updated = shared + experts + table
    if plan.sharding >= OPTIMIZER:
        updated = share_of_rank(plan, shared + table, experts)
    fields[1] = _optimizer_s(system, plan, updated, number, left)
