"""The serving simulator: many deployments of a model under the same requests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.data.as_records import GIB
from archgym.envs.llm.data.cluster import Cluster
from archgym.envs.llm.data.model import Model
from archgym.envs.llm.serving.coefficients import coefficients
from archgym.envs.llm.serving.engine import Engine
from archgym.envs.llm.serving.layout import COST, NODES, POOL, REPLICA, REQUEST
from archgym.envs.llm.serving.memory import Memory, memory_of, token_bytes
from archgym.envs.llm.serving.records import ROUTINGS, Deployment, Pool, Requests, Served
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["simulate"]

_MEMORY_POWER_SHARE: Final = 0.6
"""Power above idle of a chip that waits for its memory, by that of full arithmetic (Splitwise,
ISCA 2024, figure 8: decoding draws about 60 % of what a prompt does; an assumption elsewhere)."""
_BY_REQUEST: Final = ("arrival_s", "first_token_s", "finished_s", "queued_s")
_COUNTS_BY_REQUEST: Final = ("preemptions", "cached_tokens")
_BY_POOL: Final = (
    "busy_s", "block_seconds", "weights_gib", "peak_memory_gib", "moved_bytes", "energy_j",
)  # fmt: skip
_COUNTS_BY_POOL: Final = (
    "iterations", "prompt_tokens", "output_tokens", "peak_blocks", "cache_blocks",
)  # fmt: skip


def simulate(
    deployments: Sequence[Deployment],
    model: Model,
    fleet: Mapping[str, Cluster],
    requests: Requests,
    engine: Engine,
    *,
    leaps: bool = True,
) -> Served:
    """Serves the requests once with each deployment.

    Args:
        deployments: how the model is served.
        model: the transformer; its ``sequence`` is not used.
        fleet: clusters by the names that pools give.
        requests: when they arrive, and their lengths.
        engine: the serving software and its constants.
        leaps: whether stretches that only decode are passed at once; the result is the same
            without, more slowly.

    Returns:
        Times by request and totals by pool.

    Raises:
        UnknownNameError: if a pool names a cluster that the fleet lacks.
        InvalidValueError: if a pool's parallelism does not divide the model's shapes, or a setting
            cannot work with the others; names both.
    """
    served = _empty(len(deployments), len(requests))
    ids, starts = _prefixes(requests)
    known: dict[tuple[Pool, bool], Any] = {}
    for d, deployment in enumerate(deployments):
        parts = []
        for pool in deployment.pools:
            _check(pool, model, fleet, requests, engine)
            key = (dataclasses.replace(pool, replicas=1), pool is deployment.prefill)
            if key not in known:
                known[key] = _prepare(pool, model, fleet[pool.cluster], engine)
            parts.append(known[key])
        for p, part in enumerate(parts):
            memory: Memory = part[0]
            served.cache_blocks[d, p] = max(0, memory.blocks)
            served.weights_gib[d, p] = memory.weights / GIB
        longest = requests.prompt_tokens + requests.output_tokens
        served.fits[d] = all(
            memory.blocks >= -(-int(longest.max() + pool.speculative_tokens) // pool.block_size)
            for pool, (memory, *_) in zip(deployment.pools, parts, strict=True)
        )
        if served.fits[d]:
            _serve_one(
                served, d, deployment, model, fleet, requests, engine, parts, ids, starts, leaps
            )  # fmt: skip
    return served


def _prefixes(requests: Requests) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids from 0 on, and the first one of each request."""
    if not len(requests.prefix_starts):
        return np.zeros(1, np.int64), np.zeros(len(requests) + 1, np.int64)
    _, ids = np.unique(requests.prefix_ids, return_inverse=True)
    return np.append(ids.astype(np.int64), 0), requests.prefix_starts


def _prepare(pool: Pool, model: Model, cluster: Cluster, engine: Engine) -> tuple[Any, ...]:
    from archgym.envs.llm.serving.entries import tabulate  # imports numba

    memory = memory_of(model, cluster.device, engine, pool)
    cost, share, tables, shapes, system = coefficients(model, cluster, engine, pool, memory)
    if engine.form == "kernels":
        tabulate(shapes, system, share, NODES, tables)
    return memory, cost, tables


def _serve_one(
    served: Served, d: int, deployment: Deployment, model: Model, fleet: Mapping[str, Cluster],
    requests: Requests, engine: Engine, parts: Sequence[Any], ids: NDArray[np.int64],
    starts: NDArray[np.int64], leaps: bool,
) -> None:  # fmt: skip
    from archgym.envs.llm.serving.events import serve  # imports numba

    n = len(requests)
    pools = np.zeros(2, POOL)
    costs = np.zeros(2, COST)
    tables = np.zeros((2, *parts[0][2].shape))
    counts = [0, 0]
    for p, (pool, (memory, cost, table)) in enumerate(zip(deployment.pools, parts, strict=True)):
        pools[p] = _pool_record(pool, memory, requests, deployment, p, leaps)
        costs[p] = cost[0]
        tables[p] = table
        counts[p] = pool.replicas
    if deployment.prefill is not None:
        costs["transfer_latency_s"][1] = deployment.transfer_latency_us * 1e-6
        size = token_bytes(model, deployment.prefill, engine)
        if deployment.transfer_gb_per_s:
            costs["transfer_s"][1] = size / (deployment.transfer_gb_per_s * 1e9)
    replicas = [_replicas(count) for count in counts]
    state = np.zeros(n, REQUEST)
    state["arrival"] = requests.arrival_s
    state["prompt"] = state["target"] = requests.prompt_tokens
    state["output"] = requests.output_tokens
    state["next"] = state["first"] = state["queued"] = -1
    caching = any(pool.prefix_cache for pool in deployment.pools) and starts[-1] > 0
    shape = (sum(counts), int(ids.max()) + 1 if caching else 1)
    users, older, newer = (np.full(shape, -1, np.int64) for _ in range(3))
    most = max(
        min(pool.max_num_seqs * pool.attention_data_parallel, n) for pool in deployment.pools
    )
    running = np.zeros((sum(counts), most), np.int64)
    serve(
        pools, costs, NODES, tables, replicas[0], replicas[1], state, users, older, newer, ids,
        starts if caching else np.zeros(n + 1, np.int64), running, requests.users,
    )  # fmt: skip
    _collect(served, d, deployment, fleet, parts, replicas, state, costs)


def _pool_record(
    pool: Pool, memory: Memory, requests: Requests, deployment: Deployment, p: int, leaps: bool
) -> NDArray[Any]:
    record = np.zeros(1, POOL)
    groups = pool.attention_data_parallel
    prefix_blocks = requests.prefix_tokens // pool.block_size
    size = memory.block * pool.replica_gpus * max(1, prefix_blocks)
    tier = max(0.0, pool.offload_gib * GIB - memory.offloaded) if pool.offload != "none" else 0.0
    capacity = tier * pool.replica_gpus
    values = {
        "max_seqs": pool.max_num_seqs * groups,
        "max_tokens": pool.max_num_batched_tokens * groups,
        "chunked": pool.chunked_prefill,
        "shortest": pool.scheduler == "shortest_prompt",
        "prefill_first": pool.priority == "prefill",
        "swap": pool.preemption == "swap",
        "block": pool.block_size,
        "blocks": memory.blocks,
        "prefix_cache": pool.prefix_cache and len(requests.prefix_starts) > 0,
        "prefix_blocks": prefix_blocks,
        "prefix_tokens": requests.prefix_tokens,
        "tier_prefixes": int(capacity // size) if pool.prefix_cache else 0,
        "hands_over": p == 1,
        "routing": ROUTINGS.index(deployment.routing),
        "leaps": leaps,
    }
    for name, value in values.items():
        record[name] = value
    return record[0]  # type: ignore[no-any-return]


def _replicas(count: int) -> NDArray[Any]:
    replicas = np.zeros(count, REPLICA)
    for name in (
        "coming", "waiting", "last_waiting", "oldest", "newest", "tier_oldest", "tier_newest",
    ):  # fmt: skip
        replicas[name] = -1
    return replicas


def _collect(
    served: Served, d: int, deployment: Deployment, fleet: Mapping[str, Cluster],
    parts: Sequence[Any], replicas: Sequence[NDArray[Any]], state: NDArray[Any],
    costs: NDArray[Any],
) -> None:  # fmt: skip
    served.arrival_s[d] = state["arrival"]
    served.first_token_s[d] = state["first"]
    served.finished_s[d] = state["finished"]
    served.queued_s[d] = state["queued"]
    served.preemptions[d] = state["preempted"]
    served.cached_tokens[d] = state["cached"]
    end = float(state["finished"].max())
    for p, (pool, (memory, *_)) in enumerate(zip(deployment.pools, parts, strict=True)):
        of = replicas[p]
        served.busy_s[d, p] = of["busy"].sum()
        served.iterations[d, p] = of["iterations"].sum()
        served.prompt_tokens[d, p] = of["prompt_tokens"].sum()
        served.output_tokens[d, p] = of["output_tokens"].sum()
        served.peak_blocks[d, p] = of["peak"].max()
        served.block_seconds[d, p] = of["block_seconds"].sum()
        blocks = of["peak"].max() / pool.attention_data_parallel
        served.peak_memory_gib[d, p] = (memory.resident + blocks * memory.block) / GIB
        served.moved_bytes[d, p] = of["moved"].sum()
        chip = fleet[pool.cluster].device
        active = (1.0 - _MEMORY_POWER_SHARE) * of["arithmetic"].sum()
        active += _MEMORY_POWER_SHARE * of["gpu"].sum()
        watts = chip.idle_w * end * pool.replicas + (chip.power_w - chip.idle_w) * active
        served.energy_j[d, p] = watts * pool.replica_gpus
    if deployment.prefill is not None:
        going = state["output"] > 1
        tokens = float(state["prompt"][going].sum())
        served.moved_bytes[d, 1] += tokens * float(costs["transfer_bytes"][1])


def _check(
    pool: Pool,
    model: Model,
    fleet: Mapping[str, Cluster],
    requests: Requests,
    engine: Engine,
) -> None:
    """Refuses what no replica could be."""
    if pool.cluster not in fleet:
        raise UnknownNameError("cluster", pool.cluster, fleet, "deployment")
    if engine.form == "kernels":
        _check_shapes(pool, model)
    if pool.max_num_batched_tokens <= pool.speculative_tokens:
        raise InvalidValueError(
            f"deployment: max_num_batched_tokens is {pool.max_num_batched_tokens}; it must be "
            f"above speculative_tokens, {pool.speculative_tokens}"
        )
    if pool.prefix_cache and requests.prefix_tokens % pool.block_size:
        raise InvalidValueError(
            f"deployment: block_size is {pool.block_size}; with prefix_cache it must divide the "
            f"requests' prefix_tokens, {requests.prefix_tokens}"
        )


def _check_shapes(pool: Pool, model: Model) -> None:
    """Refuses parallelism that does not divide the model."""
    tensor = pool.tensor_parallel
    rules = {
        "tensor_parallel": (tensor, "heads", model.heads),
        "pipeline_parallel": (pool.pipeline_parallel, "layers", model.layers),
        "expert_parallel": (pool.expert_parallel, "experts", max(1, model.experts)),
    }
    for name, (value, of, whole) in rules.items():
        if name == "pipeline_parallel" and value <= whole:
            continue
        if whole % value:
            raise InvalidValueError(
                f"deployment: {name} is {value}; it must "
                f"{'be at most' if name == 'pipeline_parallel' else 'divide'} the model's {of}, "
                f"{whole}"
            )
    fewer, more = sorted((tensor, model.kv_heads))
    if more % fewer:
        raise InvalidValueError(
            f"deployment: tensor_parallel is {tensor}; it must divide, or be a multiple of, the "
            f"model's kv_heads, {model.kv_heads}"
        )


def _empty(deployments: int, requests: int) -> Served:
    """Results that say that nothing was simulated."""
    arrays: dict[str, NDArray[Any]] = {"fits": np.zeros(deployments, np.bool_)}
    for name in _BY_REQUEST:
        arrays[name] = np.full((deployments, requests), np.nan)
    for name in _COUNTS_BY_REQUEST:
        arrays[name] = np.zeros((deployments, requests), np.int64)
    for name in _BY_POOL:
        arrays[name] = np.zeros((deployments, 2))
    for name in _COUNTS_BY_POOL:
        arrays[name] = np.zeros((deployments, 2), np.int64)
    return Served(**arrays)
