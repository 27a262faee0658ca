"""One training iteration of one plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.llm.cost.collectives import ALL_GATHER, collective_s, send_s
from archgym.envs.llm.cost.compiled import compiled
from archgym.envs.llm.cost.kernels import SLOTS
from archgym.envs.llm.cost.layer import STORED, WORKING, layer
from archgym.envs.llm.cost.memory import layer_parameters, memory, table_parameters
from archgym.envs.llm.cost.pipeline import GPIPE, ZERO_BUBBLE, run_pipeline
from archgym.envs.llm.cost.stages import (
    BUSY,
    EXPOSED,
    MOVED,
    OPERATIONS,
    REPEATED,
    SHIFTED,
    TOTALS,
    TRAFFIC,
    ends_s,
    stage_passes,
)
from archgym.envs.llm.cost.synchronisation import after_s, lengthen_passes

__all__ = ["iteration"]


@compiled
def _layers(model: Any, plan: Any, system: Any, sums: Any, space: Any, per_layer: Any) -> None:
    """Adds up the kernels, bytes and parameters of each kind of layer that the model has."""
    for kind in range(2):
        if kind == 1 and not model.experts:
            continue
        if kind == 0 and model.experts and not model.dense_layers:
            continue
        layer(model, plan, system, kind == 1, False, sums[kind, 0], space[kind])
        if plan.scatter_gather and system.operators:
            room = np.zeros(3)
            layer(model, plan, system, kind == 1, True, sums[kind, 1], room)
        else:
            sums[kind, 1] = sums[kind, 0]
        if plan.recompute and plan.recompute_share < 1.0:
            kept = _kept_bytes(model, plan, system, kind == 1)
            space[kind, STORED] *= plan.recompute_share
            space[kind, STORED] += (1.0 - plan.recompute_share) * kept
        per_layer[kind, 0], per_layer[kind, 1] = layer_parameters(model, plan, kind == 1)


@compiled
def _kept_bytes(model: Any, plan: Any, system: Any, sparse: bool) -> float:
    """Bytes that a layer keeps which does not recompute."""
    recompute = plan.recompute
    plan.recompute = 0
    room = np.zeros(3)
    layer(model, plan, system, sparse, False, np.zeros((4, SLOTS)), room)
    plan.recompute = recompute
    return float(room[STORED])


@compiled
def _sends(model: Any, plan: Any, system: Any, send: Any) -> None:
    """Seconds of a message from each stage to the next one."""
    tokens = float(plan.micro_batch) * model.sequence / plan.context
    message = tokens * model.hidden * system.element_bytes
    if plan.sequence_parallel or plan.scatter_gather:
        message /= plan.tensor
    stride = float(plan.pipeline_stride)
    gather = 0.0
    if plan.scatter_gather and not system.operators:
        gather = collective_s(
            system, ALL_GATHER, message * plan.tensor, float(plan.tensor), 1.0, plan.tensor_tier,
            plan.tensor_slowed,
        )  # fmt: skip
    if plan.pipeline > 1:
        for stage in range(plan.pipeline):
            send[stage] = gather
            send[stage] += send_s(
                system, message, stage * stride, stride, plan.pipeline_tier, plan.pipeline_slowed
            )


@compiled
def _closed(plan: Any, passes: Any, send: Any, done: Any) -> None:
    """The classic bubble: the slowest stage for every micro-batch, the others once."""
    stages = plan.pipeline
    slowest = total = 0.0
    for stage in range(stages):
        each = passes[stage].sum()
        each += (send[stage] + send[(stage - 1) % stages]) * plan.virtual
        slowest = max(slowest, each)
        total += each
    rest = (total - slowest) / plan.virtual
    if plan.schedule == ZERO_BUBBLE:
        rest = max(0.0, rest - 2.0 * (stages - 1) * passes[0, 0, 2])
    done[:] = plan.micro_batches * slowest + rest


@compiled
def _run(plan: Any, passes: Any, send: Any, closed: bool, done: Any) -> None:
    """The time at which each stage has run its passes."""
    if plan.pipeline == 1:
        done[0] = plan.micro_batches * passes.sum()
        return
    if closed:
        _closed(plan, passes, send, done)
        return
    forward = passes[:, :, 0].copy()
    backward = passes[:, :, 1].copy()
    late = passes[:, :, 2].copy()
    batches, virtual = plan.micro_batches, plan.virtual
    if not run_pipeline(plan.schedule, batches, virtual, forward, backward, late, send, done):
        run_pipeline(GPIPE, batches, virtual, forward, backward, late, send, done)


@compiled
def iteration(model: Any, plan: Any, system: Any, closed: bool, out: Any) -> None:
    """Time and memory of an iteration.

    Args:
        model: the transformer.
        plan: the plan.
        system: the cluster and its software.
        closed: whether the bubble is estimated in closed form instead of by the event graph.
        out: a record of results.
    """
    stages, virtual, batches = plan.pipeline, plan.virtual, plan.micro_batches
    sums, space, per_layer = np.zeros((2, 2, 4, SLOTS)), np.zeros((2, 3)), np.zeros((2, 2))
    _layers(model, plan, system, sums, space, per_layer)
    ends, room = np.zeros((2, 4, SLOTS)), np.zeros(3)
    if model.vocabulary:
        ends_s(model, plan, system, ends[0], room, False)
        ends_s(model, plan, system, ends[1], room, True)
    passes, totals = np.zeros((stages, virtual, 3)), np.zeros((stages, TOTALS))
    layers, send, done = np.zeros((stages, 2)), np.zeros(stages), np.zeros(stages)
    stage_passes(model, plan, system, sums, ends, space, per_layer, passes, layers, totals)
    backs, sharded = np.zeros(stages), np.zeros(stages)
    for stage in range(stages):
        shared = layers[stage, 0] * per_layer[0, 0] + layers[stage, 1] * per_layer[1, 0]
        shared += table_parameters(model, plan, stage)
        experts = layers[stage, 1] * per_layer[1, 1]
        number = layers[stage].sum()
        sharded[stage] = lengthen_passes(plan, system, shared, experts, number, passes[stage])
        backs[stage] = passes[stage, :, 1:].sum()
    _sends(model, plan, system, send)
    _run(plan, passes, send, closed, done)
    worst, latest, fields = 0, -1.0, np.zeros(2)
    kind = 0 if sums[0, 0].sum() > 0 else 1
    for stage in range(stages):
        after_s(
            model, plan, system, stage, layers[stage], per_layer, backs[stage], sums[kind, 0],
            fields,
        )  # fmt: skip
        if done[stage] + fields.sum() > latest:
            latest, worst = done[stage] + fields.sum(), stage
            out.data_s = fields[0] + batches * sharded[stage]
            out.optimizer_s = fields[1]
    out.iteration_s = latest
    out.compute_s = batches * totals[worst, BUSY]
    out.recompute_s = batches * totals[worst, REPEATED]
    out.tensor_s = batches * totals[worst, EXPOSED]
    out.offload_s = batches * totals[worst, SHIFTED]
    out.pipeline_s = 0.0
    if stages > 1:
        # The last chunk sends nothing on, the first one nothing back.
        ahead = virtual - (1 if worst == stages - 1 else 0)
        back = virtual - (1 if worst == 0 else 0)
        out.pipeline_s = batches * (ahead * send[worst] + back * send[(worst - 1) % stages])
    spent = out.compute_s + out.recompute_s + out.tensor_s + out.offload_s + out.pipeline_s
    out.bubble_s = max(0.0, latest - spent - out.data_s - out.optimizer_s)
    out.flops, out.memory_bytes = totals[:, OPERATIONS].sum(), totals[:, TRAFFIC].sum()
    out.network_bytes = totals[:, MOVED].sum()
    memory(model, plan, system, layers, per_layer, space, room[WORKING], out)
