"""Time of the kernels of an iteration, but for attention, by the number of its tokens."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from archgym.envs.llm.cost.collectives import ALL_REDUCE, collective_s, exchange_s, send_s
from archgym.envs.llm.cost.efficiency import combined_s, matrix_s, memory_s
from archgym.envs.llm.serving.compiled import compiled

__all__ = ["SHARE", "fill_tables"]

SHARE: Final = np.dtype(
    [
        *(
            (name, np.float64)
            for name in (
                "weight_bytes",
                "compute_bytes",
                "tensor",
                "groups",
                "expert",
                "expert_speed",
                "nano",
                "stages",
            )
        ),
        ("narrow", np.int64),
    ]
)
"""A GPU's share of a model.

Bytes of a weight and of an input of a product; GPUs of a group that shares attention, groups with
sequences of their own, GPUs over which experts are spread, speed of their kernels by that of
others; parts of a batch, stages; ``narrow``: products in fewer than 16 bits.
"""


@compiled
def _linear(
    system: Any, share: Any, sums: Any, batch: float, rows: float, inner: float, columns: float
) -> None:
    """Adds a product with weights: its seconds, and those of its arithmetic alone."""
    size = batch * inner * columns * share.weight_bytes
    size += batch * rows * (inner * share.compute_bytes + 2.0 * columns)
    arithmetic = matrix_s(system, share.narrow, batch, rows, columns, inner)
    sums[0] += combined_s(system, arithmetic, memory_s(system, size))
    sums[1] += arithmetic


@compiled
def _move(system: Any, sums: Any, size: float) -> None:
    """Adds an element-wise kernel that reads and writes ``size`` bytes."""
    sums[0] += combined_s(system, 0.0, memory_s(system, size))


@compiled
def _reduce_s(system: Any, size: float, count: float) -> float:
    """Seconds of an all-reduce: in rings or trees, or by reading from all others at once."""
    if count <= 1:
        return 0.0
    seconds = collective_s(system, ALL_REDUCE, size, count, 1.0, -1, 1.0)
    if count <= system.link_size[0]:
        rate = system.link_rate[0] * system.link_share[0]
        seconds = min(seconds, system.link_latency[0] + size * (count - 1.0) / rate)
    return float(seconds + system.kernel_s)


@compiled
def _dense(model: Any, system: Any, share: Any, sums: Any, tokens: float) -> None:
    inner = model.feedforward / share.tensor
    _linear(system, share, sums, 1.0, tokens, model.hidden, inner * (model.matrices - 1.0))
    _move(system, sums, tokens * inner * (2.0 * (model.matrices - 1.0) + share.compute_bytes))
    _linear(system, share, sums, 1.0, tokens, inner, model.hidden)


@compiled
def _experts(model: Any, system: Any, share: Any, sums: Any, tokens: float) -> None:
    """Router and experts of all tokens of the groups; the busiest GPU counts.

    A GPU's share of routed tokens varies as if each one chose its experts at random: the expected
    largest of ``expert`` normal numbers lies ``sqrt(2 ln expert)`` deviations above the mean.
    """
    together = tokens * share.groups
    routed = together * model.active_experts / share.expert
    if share.expert > 1:
        routed += np.sqrt(2.0 * np.log(share.expert) * routed)
        routed = min(routed, together * min(model.active_experts, model.experts / share.expert))
    untouched = (1.0 - float(model.active_experts) / model.experts) ** together
    local = max(1.0, model.experts / share.expert * (1.0 - untouched))
    inner = model.expert_feedforward * share.expert / (share.tensor * share.groups)
    wide = inner * (model.matrices - 1.0)
    _linear(system, share, sums, 1.0, tokens, model.hidden, float(model.experts))
    _move(system, sums, (tokens + 2.0 * routed) * model.hidden * 2.0)
    before, worked = sums[0], sums[1]
    _linear(system, share, sums, local, routed / local, model.hidden, wide)
    _move(system, sums, routed * inner * (2.0 * (model.matrices - 1.0) + share.compute_bytes))
    _linear(system, share, sums, local, routed / local, inner, model.hidden)
    sums[0] = before + (sums[0] - before) / share.expert_speed
    sums[1] = worked + (sums[1] - worked) / share.expert_speed
    if model.shared_experts > 0:
        common = model.shared_experts * model.expert_feedforward / share.tensor
        _linear(system, share, sums, 1.0, tokens, model.hidden, common * (model.matrices - 1.0))
        _linear(system, share, sums, 1.0, tokens, common, model.hidden)


@compiled
def _latent(model: Any, system: Any, share: Any, sums: Any, tokens: float) -> None:
    """Adds the products of latent attention, and what lies between them.

    Every GPU of a group computes what all heads share. The product between the latent vector and
    heads has the same operations whether keys and values are expanded, as for prompts, or queries
    and results are brought to the latent vector, as in decoding.
    """
    heads = model.heads / share.tensor
    cached = float(model.latent_size + model.rotary_size)
    query = heads * model.head_size
    expanded = heads * (model.head_size - model.rotary_size + model.value_size)
    _linear(system, share, sums, 1.0, tokens, model.hidden, model.query_rank + cached)
    _move(system, sums, 4.0 * tokens * (model.query_rank + cached))  # norms, writing the cache
    inner = float(model.query_rank if model.query_rank > 0 else model.hidden)
    _linear(system, share, sums, 1.0, tokens, inner, query)
    _move(system, sums, 4.0 * tokens * query)  # positions
    _linear(system, share, sums, 1.0, tokens, float(model.latent_size), expanded)
    _linear(system, share, sums, 1.0, tokens, heads * model.value_size, float(model.hidden))


@compiled
def _layer(model: Any, system: Any, share: Any, sparse: bool, sums: Any, tokens: float) -> float:
    """Adds the kernels of a layer for the tokens of one group; seconds of its collectives."""
    for _ in range(2):  # the sum with the residual stream, and its norm
        _move(system, sums, tokens * model.hidden * (6.0 + share.compute_bytes))
    if model.latent_size > 0:
        _latent(model, system, share, sums, tokens)
    else:
        query = model.heads * model.head_size / share.tensor
        value = max(1.0, model.kv_heads / share.tensor) * model.head_size
        _linear(system, share, sums, 1.0, tokens, model.hidden, query + 2.0 * value)
        _move(system, sums, 4.0 * tokens * (query + 2.0 * value))  # positions, writing the cache
        _linear(system, share, sums, 1.0, tokens, query, model.hidden)
    flow = 2.0 * tokens * model.hidden
    network = _reduce_s(system, flow, share.tensor)
    if not sparse:
        _dense(model, system, share, sums, tokens)
        return float(network + _reduce_s(system, flow, share.tensor))
    _experts(model, system, share, sums, tokens)
    if share.groups > 1:
        stride = share.tensor * share.groups / max(share.expert, share.groups)
        sent = flow * min(float(model.active_experts), share.expert) / share.tensor
        members = max(share.expert, share.groups)
        exchanged = exchange_s(system, sent, members, stride, members, stride)
        return float(network + 2.0 * (exchanged + system.kernel_s))
    return float(network + _reduce_s(system, flow, share.tensor))


@compiled
def fill_tables(model: Any, system: Any, share: Any, nodes: Any, tables: Any) -> None:
    """Tabulates seconds of products, collectives, output layer and arithmetic by tokens.

    Args:
        model: the transformer.
        system: the cluster and its software.
        share: what a GPU has of the model.
        nodes: tokens, shape (n,); those of all groups together.
        tables: float64, shape (4, n), is filled.
    """
    dense = model.dense_layers if model.experts else model.layers
    sums = np.zeros(2)
    for i in range(1, len(nodes)):
        tokens = max(1.0, nodes[i] / share.groups / share.nano)
        for kind in range(2):
            count = float(model.layers - dense if kind else dense)
            if count == 0:
                continue
            sums[:] = 0.0
            network = _layer(model, system, share, kind == 1, sums, tokens)
            tables[0, i] += count * share.nano * sums[0]
            tables[1, i] += count * share.nano * network
            tables[3, i] += count * share.nano * sums[1]
        if share.stages > 1:
            size = 2.0 * tokens * model.hidden / share.tensor
            stride = share.tensor * share.groups
            tables[1, i] += share.stages * send_s(system, size, 0.0, stride, -1, 1.0)
        if model.vocabulary > 0:
            sums[:] = 0.0
            rows = max(1.0, nodes[i] / share.groups)
            columns = model.vocabulary / share.tensor
            size = 2.0 * (model.hidden * columns + rows * (model.hidden + columns))
            arithmetic = matrix_s(system, 0, 1.0, rows, columns, model.hidden)
            tables[2, i] = combined_s(system, arithmetic, memory_s(system, size))
            _move(system, sums, 8.0 * rows * columns)  # sampling in 32 bits
            tables[2, i] += sums[0]
    for row in range(4):
        tables[row, 0] = tables[row, 1]
