"""Whether a deployment fits into the memory of its GPUs, and what it leaves for the cache."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from archgym.envs.llm.data.as_records import GIB
from archgym.envs.llm.deployment.workload import Workload
from archgym.envs.llm.serving.memory import Memory, memory_of
from archgym.envs.llm.serving.records import Deployment, Pool

__all__ = ["Room", "room_of"]


@dataclass(frozen=True)
class Room:
    """Memory of a deployment.

    Attributes:
        use_share: weights, activations and the cache of the longest request, by the memory that
            they may take, or offloaded weights by their tier, if that is more; of the pool that
            needs most. Above 1 it does not fit.
        cache_gib: room for keys and values on a GPU of the main pool, 2^30 bytes.
        simulated: the deployment; where it does not fit, with a cache for the longest request
            nevertheless, as if the memory were just large enough.
    """

    use_share: float
    cache_gib: float
    simulated: Deployment


def room_of(deployment: Deployment, workload: Workload) -> Room:
    """The memory of a deployment.

    Args:
        deployment: what is tried.
        workload: model, fleet and requests.
    """
    pools, uses = [], []
    for pool in deployment.pools:
        use, fitted = _fitted(pool, workload)
        uses.append(use)
        pools.append(fitted)
    main = _memory(deployment.main, workload)
    free = max(0, main.blocks) * main.block / deployment.main.attention_data_parallel / GIB
    simulated = dataclasses.replace(
        deployment, main=pools[0], prefill=pools[1] if len(pools) > 1 else None
    )
    return Room(max(uses), free, simulated)


def _memory(pool: Pool, workload: Workload) -> Memory:
    chip = workload.fleet.clusters[pool.cluster].device
    return memory_of(workload.model, chip, workload.engine, pool)


def _fitted(pool: Pool, workload: Workload) -> tuple[float, Pool]:
    """Share of the memory that a pool needs, and the pool as it is simulated."""
    memory = _memory(pool, workload)
    chip = workload.fleet.clusters[pool.cluster].device
    longest = workload.traffic.longest_tokens + pool.speculative_tokens
    needed = math.ceil(longest / pool.block_size)
    share = (memory.resident + needed * memory.block) / (chip.memory_gib * GIB * pool.memory_share)
    groups = pool.attention_data_parallel
    tier = pool.offload_gib * GIB
    offloaded = memory.offloaded / tier if tier else 0.0
    if share > 1 or memory.blocks < needed * groups:
        pool = dataclasses.replace(pool, cache_blocks=needed * groups)
    return max(share, offloaded), pool
