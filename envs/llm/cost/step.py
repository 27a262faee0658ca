"""One training iteration of one plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.llm.cost.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    REDUCE_SCATTER,
    collective_s,
    send_s,
)
from archgym.envs.llm.cost.compiled import compiled
from archgym.envs.llm.cost.efficiency import combined_s, memory_s, staircase, vector_s
from archgym.envs.llm.cost.kernels import (
    AGAIN,
    ARITHMETIC,
    BYTES,
    COUNT,
    FLOPS,
    FORWARD,
    INPUTS,
    MEMORY,
    NETWORK,
    NETWORK_BYTES,
    SLOTS,
    TIME,
    WEIGHTS,
    elementwise,
    linear,
    network_s,
)
from archgym.envs.llm.cost.layer import GRADIENTS, STORED, WORKING, layer
from archgym.envs.llm.cost.memory import layer_parameters, table_parameters
from archgym.envs.llm.cost.pipeline import GPIPE, ZERO_BUBBLE, in_flight, run_pipeline

__all__ = ["iteration"]

_OPTIMIZER, _GRADIENT, _PARAMETER = 1, 2, 3
"""What is sharded over the data-parallel group, each with those before it."""


@compiled
def _phase_s(system: Any, sums: Any, phase: int) -> float:
    """Seconds of a phase of a layer: of the GPU, or of the host that launches its kernels."""
    busy = sums[phase, TIME] + sums[phase, NETWORK]
    return float(max(busy, sums[phase, COUNT] * system.host_s))


@compiled
def _offloaded_s(system: Any, plan: Any, sums: Any, space: Any, parameters: float) -> Any:
    """Seconds by which moving a layer's data to the host and back lengthens both passes."""
    weights = parameters * system.element_bytes if plan.offload_weights else 0.0
    kept = space[STORED] if plan.offload_activations else 0.0
    state = 0.0
    if plan.offload_optimizer:
        state = parameters * system.master_bytes
        state /= plan.data if plan.sharding >= _OPTIMIZER else 1
    found = np.zeros(2)
    for side in range(2):
        size = max(weights, kept) if side == 0 else weights + kept + state
        if size <= 0:
            continue
        rate = system.host_rate * staircase(system.host_limits, system.host_shares, size)
        busy = memory = 0.0
        for phase in range(4):
            if (phase == FORWARD) == (side == 0):
                busy += sums[phase, TIME] + sums[phase, NETWORK]
                memory += sums[phase, MEMORY] if phase != AGAIN else 0.0
        found[side] = max(0.0, size / rate + memory - busy)
    return found


@compiled
def _ends_s(model: Any, plan: Any, system: Any, sums: Any, space: Any, last: bool) -> None:
    """Kernels of the embedding (first stage), or of the output layer and the loss (last)."""
    e = system.element_bytes
    tokens = float(plan.micro_batch) * model.sequence / plan.context
    flow = tokens * model.hidden
    if not last:
        elementwise(system, sums, 0.0, 2.0 * flow * e, 0.0, 3.0 * flow * e, False)
        sums[FORWARD, NETWORK] += network_s(system, plan, sums, FORWARD, ALL_REDUCE, flow)
        return
    columns = float(model.vocabulary) / plan.tensor
    linear(system, sums, 0, 1.0, tokens, float(model.hidden), columns, False)
    scores = tokens * columns
    each = system.loss_bytes if plan.tensor > 1 else system.loss_bytes_alone
    elementwise(
        system, sums, 5.0 * scores, 0.5 * each * scores, 3.0 * scores, 0.5 * each * scores, False
    )
    sums[INPUTS, NETWORK] += network_s(system, plan, sums, INPUTS, ALL_REDUCE, flow)
    space[WORKING] += scores * 8.0


@compiled
def _data_s(system: Any, plan: Any, size: float, kind: int, count: float) -> float:
    stride = float(plan.context_stride if plan.context > 1 else plan.data_stride)
    return float(collective_s(system, kind, size, count, stride, plan.data_tier))


@compiled
def _synchronised_s(system: Any, plan: Any, size: float) -> float:
    """Seconds in which the data-parallel group adds up ``size`` bytes of gradients, and shares the
    updated parameters where the optimizer is sharded.
    """  # noqa: D205
    count = float(plan.data * plan.context)
    if plan.sharding == 0:
        return _data_s(system, plan, size, ALL_REDUCE, count)
    weights = size * (1.0 if system.operators else system.element_bytes / system.gradient_bytes)
    spread = _data_s(system, plan, size, REDUCE_SCATTER, count)
    return spread + (
        _data_s(system, plan, weights, ALL_GATHER, count) if plan.sharding < _PARAMETER else 0.0
    )


@compiled
def _optimizer_s(system: Any, plan: Any, parameters: float, layers: float) -> float:
    """Seconds of the optimizer's step over ``parameters`` on this GPU."""
    if plan.sharding >= _OPTIMIZER:
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
def iteration(model: Any, plan: Any, system: Any, closed: bool, out: Any) -> bool:
    """Time and memory of an iteration.

    Args:
        model: the transformer.
        plan: the plan.
        system: the cluster and its software.
        closed: whether the bubble is estimated in closed form instead of by the event graph.
        out: a record of results.

    Returns:
        Whether the schedule can run at all.
    """
    stages, virtual = plan.pipeline, plan.virtual
    batches = plan.micro_batches
    sums = np.zeros((2, 2, 4, SLOTS))
    space = np.zeros((2, 3))
    per_layer = np.zeros((2, 2))
    for sparse in range(2):
        if sparse == (0 if model.experts and not model.dense_layers else 1) and (
            sparse == 0 or not model.experts
        ):
            continue
        for edge in range(2):
            if edge and not plan.scatter_gather:
                sums[sparse, 1] = sums[sparse, 0]
                continue
            room = np.zeros(3)
            layer(model, plan, system, sparse == 1, edge == 1, sums[sparse, edge], room)
            space[sparse] = room
            if plan.recompute and plan.recompute_share < 1.0:
                kept = _kept_bytes(model, plan, system, sparse == 1)
                space[sparse, STORED] *= plan.recompute_share
                space[sparse, STORED] += (1.0 - plan.recompute_share) * kept
        per_layer[sparse, 0], per_layer[sparse, 1] = layer_parameters(model, plan, sparse == 1)
    ends = np.zeros((2, 4, SLOTS))
    room = np.zeros((2, 3))
    if model.vocabulary:
        _ends_s(model, plan, system, ends[0], room[0], False)
        _ends_s(model, plan, system, ends[1], room[1], True)

    send = np.zeros(stages)
    tokens = float(plan.micro_batch) * model.sequence / plan.context
    message = tokens * model.hidden * system.element_bytes
    if plan.sequence_parallel or plan.scatter_gather:
        message /= plan.tensor
    if stages > 1:
        for stage in range(stages):
            sender = float(stage * plan.pipeline_stride)
            send[stage] = send_s(
                system, message, sender, float(plan.pipeline_stride), plan.pipeline_tier
            )

    forward, backward = np.zeros((stages, virtual)), np.zeros((stages, virtual))
    weights = np.zeros((stages, virtual))
    totals = np.zeros((stages, 7))  # shares of a stage's busy time, for one micro-batch
    layers = np.zeros((stages, 2))
    shift = np.zeros(2)
    chunks = stages * virtual
    whole, more = model.layers // chunks, model.layers % chunks
    first = 0
    for row in range(chunks):
        stage, chunk = row % stages, row // stages
        count = whole + (1 if row < more else 0)
        sparse_count = 0
        if model.experts:
            sparse_count = max(0, first + count - max(first, model.dense_layers))
        first += count
        layers[stage, 0] += count - sparse_count
        layers[stage, 1] += sparse_count
        for sparse in range(2):
            n = float(sparse_count if sparse else count - sparse_count)
            if n <= 0:
                continue
            shift[:] = _offloaded_s(
                system, plan, sums[sparse, 0], space[sparse],
                per_layer[sparse, 0] + per_layer[sparse, 1],
            )  # fmt: skip
            for edge in range(2):
                times = min(n, 1.0) if edge else n - 1.0
                if times <= 0:
                    continue
                part = sums[sparse, edge]
                recomputed = _phase_s(system, part, AGAIN)
                share = plan.recompute_share
                forward[stage, chunk] += times * (_phase_s(system, part, FORWARD) + shift[0])
                back = _phase_s(system, part, INPUTS) + share * recomputed + shift[1]
                late = _phase_s(system, part, WEIGHTS)
                if plan.schedule == ZERO_BUBBLE:
                    weights[stage, chunk] += times * late
                else:
                    back += late
                backward[stage, chunk] += times * back
                totals[stage, 0] += times * (
                    part[FORWARD, TIME] + part[INPUTS, TIME] + part[WEIGHTS, TIME]
                )
                totals[stage, 1] += times * share * part[AGAIN, TIME]
                totals[stage, 2] += times * (
                    part[FORWARD, NETWORK] + part[INPUTS, NETWORK] + part[WEIGHTS, NETWORK]
                    + share * part[AGAIN, NETWORK]
                )  # fmt: skip
                totals[stage, 3] += times * (shift[0] + shift[1])
                for phase in range(4):
                    weight = times * (share if phase == AGAIN else 1.0)
                    totals[stage, 4] += weight * part[phase, FLOPS]
                    totals[stage, 5] += weight * part[phase, BYTES]
                    totals[stage, 6] += weight * part[phase, NETWORK_BYTES]
        for end in range(2):
            if row == (chunks - 1 if end else 0) and model.vocabulary:
                part = ends[end]
                forward[stage, chunk] += _phase_s(system, part, FORWARD)
                extra = _phase_s(system, part, INPUTS)
                if plan.schedule == ZERO_BUBBLE:
                    weights[stage, chunk] += _phase_s(system, part, WEIGHTS)
                else:
                    extra += _phase_s(system, part, WEIGHTS)
                backward[stage, chunk] += extra
                for phase in range(3):
                    totals[stage, 0] += part[phase, TIME]
                    totals[stage, 2] += part[phase, NETWORK]
                    totals[stage, 4] += part[phase, FLOPS]
                    totals[stage, 5] += part[phase, BYTES]
                    totals[stage, 6] += part[phase, NETWORK_BYTES]

    done = np.zeros(stages)
    if stages == 1:
        done[0] = batches * (forward.sum() + backward.sum() + weights.sum())
    elif closed:
        _closed(plan, forward, backward, weights, send, done)
    elif not run_pipeline(plan.schedule, batches, virtual, forward, backward, weights, send, done):
        run_pipeline(GPIPE, batches, virtual, forward, backward, weights, send, done)

    worst = -1
    latest = -1.0
    fields = np.zeros(3)
    for stage in range(stages):
        _after(model, plan, system, stage, layers[stage], per_layer, backward, sums, fields)
        if done[stage] + fields[0] + fields[1] > latest:
            latest = done[stage] + fields[0] + fields[1]
            worst = stage
            out.data_s, out.optimizer_s = fields[0], fields[1]
    out.iteration_s = latest
    out.compute_s = batches * totals[worst, 0]
    out.recompute_s = batches * totals[worst, 1]
    out.tensor_s = batches * totals[worst, 2]
    out.offload_s = batches * totals[worst, 3]
    sends = 0.0
    if stages > 1:
        sends = send[worst] * virtual + send[(worst - 1) % stages] * virtual
    out.pipeline_s = batches * sends
    busy = batches * (forward[worst].sum() + backward[worst].sum() + weights[worst].sum())
    out.bubble_s = max(0.0, done[worst] - busy - out.pipeline_s)
    out.flops, out.memory_bytes = totals[:, 4].sum(), totals[:, 5].sum()
    out.network_bytes = totals[:, 6].sum()
    _memory(model, plan, system, layers, per_layer, space, room, out)
    return True


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
def _closed(plan: Any, forward: Any, backward: Any, weights: Any, send: Any, done: Any) -> None:
    """The classic bubble: the slowest stage for every micro-batch, the others once."""
    stages = len(done)
    slowest = total = 0.0
    for stage in range(stages):
        each = forward[stage].sum() + backward[stage].sum() + weights[stage].sum()
        each += (send[stage] + send[(stage - 1) % stages]) * plan.virtual
        slowest = max(slowest, each)
        total += each
    rest = (total - slowest) / plan.virtual
    if plan.schedule == ZERO_BUBBLE:
        late = weights[0, 0]
        rest = max(0.0, rest - 2.0 * (stages - 1) * late)
    done[:] = plan.micro_batches * slowest + rest


@compiled
def _after(
    model: Any, plan: Any, system: Any, stage: int, layers: Any, per_layer: Any, backward: Any,
    sums: Any, fields: Any,
) -> None:  # fmt: skip
    """Seconds of a stage after its last backward pass: gradients and optimizer."""
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
        chunk = max(1.0, number / plan.virtual)
        each = _synchronised_s(system, plan, shared / number * width)
        if system.operators:
            total = each * number
        else:  # buckets of many layers
            total = _synchronised_s(system, plan, shared * width)
            each = min(each, total)
        if table:
            total += _synchronised_s(system, plan, table * width)
        if plan.data_overlap:
            window = 0.0
            for phase in range(4):
                kept = sums[0, 0, phase, TIME] - sums[0, 0, phase, MEMORY] * system.operators
                window += kept if phase != FORWARD else 0.0
                window += sums[0, 0, phase, NETWORK] if phase != FORWARD else 0.0
            hidden = (chunk - 1.0) * window
            late = max(0.0, (chunk - 1.0) * each - hidden)
            usage = system.link_usage[1]
            late = max(late, (chunk - 1.0) * each * usage)
            before = (plan.virtual - 1.0) * max(
                chunk * each * usage, chunk * each - plan.pipeline * chunk * window
            )
            fields[0] = each + late + before + (total - each * number)
        else:
            fields[0] = total
        if experts > 0:
            fields[0] += _synchronised_experts(system, plan, experts * width)
        if plan.sharding == _PARAMETER:
            size = (shared + table) * system.element_bytes
            gather = 2.0 * _data_s(system, plan, size, ALL_GATHER, count)
            busy = backward[stage].sum() * 1.4
            extra = max(0.0, gather - busy) if plan.data_overlap else gather
            fields[0] += plan.micro_batches * extra
        if plan.sharding >= _GRADIENT and not system.operators:
            more = plan.micro_batches - 1.0
            spread = _data_s(system, plan, (shared + table) * width, REDUCE_SCATTER, count)
            busy = backward[stage].sum()
            fields[0] += more * (max(0.0, spread - busy) if plan.data_overlap else spread)
    if table and model.tied and plan.pipeline > 1 and not system.operators:
        stride = float(plan.pipeline_stride * (plan.pipeline - 1))
        fields[0] += collective_s(system, ALL_REDUCE, table * width, 2.0, stride, -1)
    fields[1] = _optimizer_s(system, plan, shared + experts + table, number)


@compiled
def _synchronised_experts(system: Any, plan: Any, size: float) -> float:
    """Gradients of experts, over the ranks that hold the same ones."""
    count = np.floor(float(plan.data * plan.context) / plan.expert)
    stride = float(plan.context_stride if plan.context > 1 else plan.data_stride) * plan.expert
    return float(collective_s(system, ALL_REDUCE, size, count, stride, plan.data_tier))


@compiled
def _memory(
    model: Any, plan: Any, system: Any, layers: Any, per_layer: Any, space: Any, room: Any,
    out: Any,
) -> None:  # fmt: skip
    """The memory of the stage that needs most, by part."""
    count = float(plan.data * plan.context)
    out.peak_bytes = -1.0
    e = system.element_bytes
    for stage in range(plan.pipeline):
        number = layers[stage, 0] + layers[stage, 1]
        own = layers[stage, 0] * per_layer[0, 0] + layers[stage, 1] * per_layer[1, 0]
        experts = layers[stage, 1] * per_layer[1, 1]
        last = stage == plan.pipeline - 1
        table = 0.0
        if model.vocabulary:
            table = table_parameters(model, plan) * float((stage == 0) + last)
            if plan.pipeline == 1 and model.tied:
                table *= 0.5
        parameters = own + experts + table
        split = max(1.0, count)
        fewer = max(1.0, np.floor(count / plan.expert))

        one = per_layer[0, 0] if layers[stage, 0] else per_layer[1, 0] + per_layer[1, 1]
        weights = parameters * e
        if plan.sharding == _PARAMETER:
            weights = ((own + table) / split + experts / fewer + 2.0 * one) * e
        gradients = parameters * system.gradient_bytes
        if plan.sharding >= _GRADIENT:
            gradients = ((own + table) / split + experts / fewer) * system.gradient_bytes
        if system.operators:  # one layer is added up in 32 bits
            single = parameters / max(1.0, number)
            shards = split if plan.sharding >= _OPTIMIZER else 1.0
            gradients = single * 4.0 + (parameters - single) * system.gradient_bytes / shards
        elif plan.sharding >= _GRADIENT:
            gradients += one * system.gradient_bytes
        state = parameters * system.master_bytes
        if plan.sharding >= _OPTIMIZER:
            state = ((own + table) / split + experts / fewer) * system.master_bytes
        flight = in_flight(plan.schedule, plan.pipeline, plan.virtual, plan.micro_batches, stage)
        stored = layers[stage, 0] * space[0, STORED] + layers[stage, 1] * space[1, STORED]
        work = max(space[0, WORKING], space[1, WORKING])
        slopes = max(space[0, GRADIENTS], space[1, GRADIENTS])
        host = 0.0
        kept = stored * flight
        if plan.recompute != 2:  # the layer at work is among those kept
            kept -= space[0, STORED] if layers[stage, 0] else space[1, STORED]
        if plan.offload_weights:
            host += weights
            weights *= min(1.0, 2.0 / max(1.0, number))
        if plan.offload_activations:
            host += kept
            kept = min(kept, 2.0 * stored / max(1.0, number))
        if plan.offload_optimizer:
            host += state + gradients
            share = min(1.0, 2.0 / max(1.0, number))
            state, gradients = state * share, gradients * share
        work += slopes + (room[1, WORKING] if last else 0.0) + system.overhead_bytes
        peak = weights + gradients + state + kept + work
        if peak > out.peak_bytes:
            out.peak_bytes, out.weights_bytes, out.gradients_bytes = peak, weights, gradients
            out.optimizer_bytes, out.activations_bytes = state, kept
            out.working_bytes, out.host_bytes = work, host
            out.peak_stage = float(stage)
