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
from archgym.envs.llm.cost.memory import GRADIENT, OPTIMIZER, PARAMETER, table_parameters

__all__ = ["after_s"]


@compiled
def _data_s(system: Any, plan: Any, size: float, kind: int, count: float) -> float:
    stride = float(plan.context_stride if plan.context > 1 else plan.data_stride)
    return float(collective_s(system, kind, size, count, stride, plan.data_tier))


@compiled
def _synchronised_s(system: Any, plan: Any, size: float) -> float:
    """Seconds in which a data-parallel group adds up gradients of ``size`` bytes.

    Where the optimizer is sharded, the updated parameters are gathered too.
    """
    if size <= 0:
        return 0.0
    count = float(plan.data * plan.context)
    if plan.sharding == 0:
        return _data_s(system, plan, size, ALL_REDUCE, count)
    weights = size * (1.0 if system.operators else system.element_bytes / system.gradient_bytes)
    spread = _data_s(system, plan, size, REDUCE_SCATTER, count)
    return spread + (
        _data_s(system, plan, weights, ALL_GATHER, count) if plan.sharding < PARAMETER else 0.0
    )


@compiled
def _optimizer_s(system: Any, plan: Any, parameters: float, layers: float) -> float:
    """Seconds of the optimizer's step over ``parameters`` on this GPU."""
    if plan.sharding >= OPTIMIZER:
        parameters /= plan.data * plan.context
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
def _synchronised_experts(system: Any, plan: Any, size: float) -> float:
    """Gradients of experts, over the ranks that hold the same ones."""
    count = np.floor(float(plan.data * plan.context) / plan.expert)
    stride = float(plan.context_stride if plan.context > 1 else plan.data_stride) * plan.expert
    return float(collective_s(system, ALL_REDUCE, size, count, stride, plan.data_tier))


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
def _repeated_s(
    plan: Any, system: Any, busy: float, parameters: float, width: float, count: float
) -> float:
    """Seconds of the collectives that sharding repeats in every micro-batch."""
    seconds = 0.0
    if plan.sharding == PARAMETER:
        seconds = 2.0 * _data_s(system, plan, parameters * system.element_bytes, ALL_GATHER, count)
    if plan.sharding >= GRADIENT and not system.operators:
        seconds += _data_s(system, plan, parameters * width, REDUCE_SCATTER, count)
        seconds *= 1.0 if plan.sharding == PARAMETER else 1.0 - 1.0 / plan.micro_batches
    if plan.data_overlap:
        seconds = max(0.0, seconds - busy)
    seconds *= plan.micro_batches
    return float(seconds)


@compiled
def after_s(
    model: Any, plan: Any, system: Any, stage: int, layers: Any, per_layer: Any, busy: float,
    back: float, part: Any, fields: Any,
) -> None:  # fmt: skip
    """Seconds of a stage after its last backward pass.

    Args:
        model: the transformer.
        plan: the plan.
        system: the cluster.
        stage: number of the stage.
        layers: dense and sparse layers of the stage.
        per_layer: parameters of a layer, shape (2, 2): dense and sparse; shared and experts.
        busy: seconds of the stage's passes for one micro-batch.
        back: of the backward ones among them.
        part: sums of a layer by phase.
        fields: takes the seconds of gradients and of the optimizer.
    """
    count = float(plan.data * plan.context)
    number = layers[0] + layers[1]
    shared = layers[0] * per_layer[0, 0] + layers[1] * per_layer[1, 0]
    experts = layers[1] * per_layer[1, 1]
    table = 0.0
    if model.vocabulary and stage in (0, plan.pipeline - 1):
        table = table_parameters(model, plan)
    fields[0] = 0.0
    width = system.element_bytes if system.operators else system.gradient_bytes
    if count > 1 and number:
        each = _synchronised_s(system, plan, shared / number * width)
        if system.operators:
            total = each * number
        else:  # buckets of many layers
            total = _synchronised_s(system, plan, shared * width)
            each = min(each, total / number)
        total += _synchronised_s(system, plan, table * width)
        if plan.sharding < PARAMETER:
            fields[0] = _exposed_s(plan, system, part, back, number, each, total)
        if experts > 0:
            fields[0] += _synchronised_experts(system, plan, experts * width)
        fields[0] += _repeated_s(plan, system, busy, shared + table, width, count)
    if table and model.tied and plan.pipeline > 1 and not system.operators:
        stride = float(plan.pipeline_stride * (plan.pipeline - 1))
        fields[0] += collective_s(system, ALL_REDUCE, table * width, 2.0, stride, -1)
    fields[1] = _optimizer_s(system, plan, shared + experts + table, number)
