"""Seconds of the passes of every stage, from those of its layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.llm.cost.collectives import ALL_REDUCE
from archgym.envs.llm.cost.compiled import compiled
from archgym.envs.llm.cost.efficiency import staircase
from archgym.envs.llm.cost.kernels import (
    AGAIN,
    BYTES,
    FLOPS,
    FORWARD,
    INPUTS,
    MEMORY,
    NETWORK,
    NETWORK_BYTES,
    TIME,
    WEIGHTS,
    elementwise,
    linear,
    network_s,
    phase_s,
)
from archgym.envs.llm.cost.layer import STORED, WORKING
from archgym.envs.llm.cost.memory import OPTIMIZER
from archgym.envs.llm.cost.pipeline import ZERO_BUBBLE

__all__ = [
    "BUSY",
    "EXPOSED",
    "MOVED",
    "OPERATIONS",
    "REPEATED",
    "SHIFTED",
    "TOTALS",
    "TRAFFIC",
    "ends_s",
    "stage_passes",
]

BUSY, REPEATED, EXPOSED, SHIFTED, OPERATIONS, TRAFFIC, MOVED = 0, 1, 2, 3, 4, 5, 6
"""Totals of a stage for one micro-batch: seconds of kernels, of those that recompute, of networks
and of offload; operations, bytes of the memory and of the networks."""
TOTALS = 7


@compiled
def _offloaded_s(system: Any, plan: Any, sums: Any, space: Any, parameters: float) -> Any:
    """Seconds by which moving a layer's data to the host and back lengthens both passes.

    Network cards and host share the link of a GPU: what a tensor-parallel group that spans nodes
    sends goes over it too.
    """
    weights = parameters * system.element_bytes if plan.offload_weights else 0.0
    kept = space[STORED] if plan.offload_activations else 0.0
    state = 0.0
    if plan.offload_optimizer and system.operators:
        state = parameters * system.master_bytes
        state /= plan.data * plan.context if plan.sharding >= OPTIMIZER else 1
    found = np.zeros(2)
    for side in range(2):
        size = max(weights, kept) if side == 0 else weights + kept + state
        if size <= 0:
            continue
        busy = memory = 0.0
        for phase in range(4):
            late = phase == WEIGHTS and plan.schedule == ZERO_BUBBLE
            if (phase == FORWARD) == (side == 0) and not late:
                share = plan.recompute_share if phase == AGAIN else 1.0
                busy += share * phase_s(system, sums, phase)
                if not system.operators and plan.tensor > system.link_size[0]:
                    size += share * sums[phase, NETWORK_BYTES]
                if system.operators and phase != AGAIN:  # no copy beside memory accesses
                    memory += sums[phase, MEMORY]
        rate = system.host_rate * staircase(system.host_limits, system.host_shares, size)
        found[side] = max(0.0, size / rate + memory - busy)
    return found


@compiled
def ends_s(model: Any, plan: Any, system: Any, sums: Any, space: Any, last: bool) -> None:
    """Kernels of the embedding (first stage), or of the output layer and the loss (last).

    Beside the kept activations, the logits live once as the output layer wrote them and once in
    32 bits, in which the loss overwrites them with the softmax (Megatron-LM,
    ``megatron/core/tensor_parallel/cross_entropy.py``). In the backward pass of the output layer
    their gradient lives, with the gradient of its input and a gradient of its weights that nobody
    reads (``layers.py`` there). Input and output of the last norm are kept.
    """
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
    parts = flow / plan.tensor if plan.sequence_parallel else flow
    gathered = flow if plan.sequence_parallel and plan.tensor > 1 else 0.0
    loss = scores * (e + 4.0)
    unread = model.hidden * columns * e if system.dummy_gradients else 0.0
    space[WORKING] += 2.0 * parts * e + gathered * e + max(loss, scores * e + flow * e + unread)


@compiled
def _add_totals(total: Any, part: Any, times: float, share: float) -> None:
    """Adds ``times`` layers to the totals of a stage, of which ``share`` recompute."""
    for phase in range(4):
        weight = times * share if phase == AGAIN else times
        total[REPEATED if phase == AGAIN else BUSY] += weight * part[phase, TIME]
        total[EXPOSED] += weight * part[phase, NETWORK]
        total[OPERATIONS] += weight * part[phase, FLOPS]
        total[TRAFFIC] += weight * part[phase, BYTES]
        total[MOVED] += weight * part[phase, NETWORK_BYTES]


@compiled
def _add_passes(plan: Any, system: Any, part: Any, times: float, passes: Any, shift: Any) -> None:
    """Adds ``times`` layers to the passes of a chunk: forward, backward, and late ones.

    Args:
        plan: the plan.
        system: the cluster.
        part: sums of a layer by phase.
        times: how many layers.
        passes: takes the seconds, shape (3,).
        shift: seconds by which offload lengthens forward and backward pass.
    """
    passes[0] += times * (phase_s(system, part, FORWARD) + shift[0])
    back = phase_s(system, part, INPUTS) + shift[1]
    back += plan.recompute_share * phase_s(system, part, AGAIN)
    passes[1] += times * back
    late = times * phase_s(system, part, WEIGHTS)
    passes[2 if plan.schedule == ZERO_BUBBLE else 1] += late


@compiled
def stage_passes(
    model: Any, plan: Any, system: Any, sums: Any, ends: Any, space: Any, per_layer: Any,
    passes: Any, layers: Any, totals: Any,
) -> None:  # fmt: skip
    """Spreads the layers over stages and chunks, and adds up the seconds of each chunk.

    Args:
        model: the transformer.
        plan: the plan.
        system: the cluster and its software.
        sums: of a layer, shape (2, 2, 4, SLOTS): dense or sparse; inside or at the edge of a chunk.
        ends: of the embedding and of the output layer, shape (2, 4, SLOTS).
        space: bytes of a layer, shape (2, 3).
        per_layer: parameters of a layer, shape (2, 2).
        passes: takes seconds of forward, backward and late passes, shape (stages, virtual, 3).
        layers: takes the numbers of dense and sparse layers, shape (stages, 2).
        totals: takes the totals of each stage, shape (stages, TOTALS).
    """
    chunks = plan.pipeline * plan.virtual
    whole, more = model.layers // chunks, model.layers % chunks
    first = 0
    none = np.zeros(2)
    for row in range(chunks):
        stage, chunk = row % plan.pipeline, row // plan.pipeline
        count = whole + (1 if row < more else 0)
        sparse = 0
        if model.experts:
            sparse = max(0, first + count - max(first, model.dense_layers))
        first += count
        for kind in range(2):
            n = float(sparse if kind else count - sparse)
            if n <= 0:
                continue
            layers[stage, kind] += n
            parameters = per_layer[kind, 0] + per_layer[kind, 1]
            for edge in range(2):
                times = 1.0 if edge else n - 1.0
                part = sums[kind, edge]
                shift = _offloaded_s(system, plan, part, space[kind], parameters)
                totals[stage, SHIFTED] += times * (shift[0] + shift[1])
                _add_passes(plan, system, part, times, passes[stage, chunk], shift)
                _add_totals(totals[stage], part, times, plan.recompute_share)
        for end in range(2):
            if model.vocabulary and row == (chunks - 1 if end else 0):
                _add_passes(plan, system, ends[end], 1.0, passes[stage, chunk], none)
                _add_totals(totals[stage], ends[end], 1.0, 0.0)
