"""What the serving simulator takes and gives: requests, deployments, results.

Times are in seconds from the first possible arrival, lengths in tokens, sizes in bytes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archgym.errors import InvalidValueError, UnknownNameError

__all__ = [
    "OFFLOADS",
    "PREEMPTIONS",
    "PRIORITIES",
    "ROUTINGS",
    "SCHEDULERS",
    "Deployment",
    "Pool",
    "Requests",
    "Served",
]

SCHEDULERS: Final = ("fcfs", "shortest_prompt")
PRIORITIES: Final = ("decode", "prefill")
PREEMPTIONS: Final = ("recompute", "swap")
ROUTINGS: Final = ("round_robin", "least_loaded", "prefix_affinity")
OFFLOADS: Final = ("none", "host", "pool")

_BITS: Final = (4, 8, 16)


@dataclass(frozen=True)
class Requests:
    """Requests in order of arrival.

    Attributes:
        arrival_s: shape (n,), not falling; with ``users`` the earliest possible arrival.
        prompt_tokens: shape (n,), at least 1.
        output_tokens: shape (n,), at least 1; the first one ends the prefill.
        prefix_ids: ids of blocks of the prompts, those of all requests one after the other; equal
            ids stand for equal tokens with an equal past, as the hash ids of Mooncake's traces do.
        prefix_starts: shape (n + 1,): the ids of request ``i`` are
            ``prefix_ids[prefix_starts[i]:prefix_starts[i + 1]]``. Empty where no prompt has any.
        prefix_tokens: tokens of such a block (Mooncake: 512).
        users: of a closed loop: as many requests are under way at any time, the next one arrives
            when one ends. 0 for an open loop, where requests arrive at ``arrival_s``.
    """

    arrival_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    prefix_ids: NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    prefix_starts: NDArray[np.int64] = dataclasses.field(
        default_factory=lambda: np.zeros(0, np.int64)
    )
    prefix_tokens: int = 512
    users: int = 0

    @classmethod
    def of(
        cls,
        arrival_s: ArrayLike,
        prompt_tokens: ArrayLike,
        output_tokens: ArrayLike,
        prefixes: list[list[int]] | None = None,
        *,
        prefix_tokens: int = 512,
        users: int = 0,
    ) -> Requests:
        """Requests from sequences of numbers, and a list of block ids for each one.

        Raises:
            InvalidValueError: naming the field, the request and what is allowed.
        """
        ids, starts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if prefixes is not None:
            starts = np.cumsum([0, *map(len, prefixes)], dtype=np.int64)
            ids = np.array([one for prefix in prefixes for one in prefix], np.int64)
        return cls(
            np.asarray(arrival_s, np.float64),
            np.asarray(prompt_tokens, np.int64),
            np.asarray(output_tokens, np.int64),
            ids,
            starts,
            prefix_tokens,
            users,
        )

    def __post_init__(self) -> None:
        n = len(self.arrival_s)
        for name in ("prompt_tokens", "output_tokens"):
            values = getattr(self, name)
            if len(values) != n:
                raise InvalidValueError(
                    f"requests: {name} has {len(values)} values; arrival_s has {n}"
                )
            if n and values.min() < 1:
                bad = int(values.argmin())
                raise InvalidValueError(
                    f"requests: {name}[{bad}] is {values[bad]}; it must be at least 1"
                )
        if n == 0:
            raise InvalidValueError("requests: there are none; at least one is needed")
        if not np.isfinite(self.arrival_s).all() or self.arrival_s.min() < 0:
            raise InvalidValueError("requests: arrival_s must be finite numbers of at least 0")
        if (np.diff(self.arrival_s) < 0).any():
            bad = int(np.argmax(np.diff(self.arrival_s) < 0)) + 1
            raise InvalidValueError(
                f"requests: arrival_s[{bad}] is {self.arrival_s[bad]:g}, earlier than the one "
                f"before, {self.arrival_s[bad - 1]:g}; requests must be in order of arrival"
            )
        if self.users < 0 or self.prefix_tokens < 1:
            raise InvalidValueError(
                f"requests: users is {self.users} and prefix_tokens {self.prefix_tokens}; they "
                "must be at least 0 and 1"
            )
        starts = self.prefix_starts
        if len(starts) and (
            len(starts) != n + 1
            or starts[0] != 0
            or starts[-1] != len(self.prefix_ids)
            or (np.diff(starts) < 0).any()
        ):
            raise InvalidValueError(
                f"requests: prefix_starts must be {n + 1} rising numbers from 0 to the "
                f"{len(self.prefix_ids)} ids of prefix_ids"
            )

    def __len__(self) -> int:
        return len(self.arrival_s)

    def first(self, n: int) -> Requests:
        """The first ``n`` requests."""
        starts = self.prefix_starts[: n + 1]
        return dataclasses.replace(
            self,
            arrival_s=self.arrival_s[:n],
            prompt_tokens=self.prompt_tokens[:n],
            output_tokens=self.output_tokens[:n],
            prefix_starts=starts,
            prefix_ids=self.prefix_ids[: starts[-1]] if len(starts) else self.prefix_ids,
        )


@dataclass(frozen=True)
class Pool:
    """Equal replicas of a model, each of which runs one scheduler.

    Attributes:
        cluster: name of the cluster (chip and links) in the fleet that is given to the simulator.
        tensor_parallel: GPUs that share each layer.
        pipeline_parallel: stages of layers.
        attention_data_parallel: groups of ``tensor_parallel`` GPUs with sequences and a cache of
            their own, which share the experts.
        expert_parallel: GPUs over which whole experts are spread; 1 cuts each expert over all GPUs
            of a stage, and it divides ``tensor_parallel * attention_data_parallel``.
        replicas: copies of the model.
        max_num_seqs: sequences that run at a time.
        max_num_batched_tokens: new tokens of an iteration.
        chunked_prefill: whether a prompt may be cut over iterations.
        scheduler: who is admitted first, of ``SCHEDULERS``.
        priority: whether running sequences are served first, or whether waiting prompts are
            prefilled in iterations of their own, of ``PRIORITIES``.
        preemption: what happens to the cache of a sequence that has to make room, of
            ``PREEMPTIONS``.
        memory_share: share of the memory that weights, activations and cache may take.
        block_size: tokens of a block of the cache.
        cache_blocks: blocks of a replica; 0 for as many as fit.
        weight_bits: precision of the weights, 4, 8 or 16.
        cache_bits: precision of the cache, 4, 8 or 16.
        compute_bits: precision of the products, 4, 8 or 16.
        prefix_cache: whether blocks of ended sequences serve later prompts with equal prefixes.
        offload: tier behind the GPU's memory, of ``OFFLOADS``: the host's memory, or a pool of
            memory that all GPUs reach. It takes swapped sequences and evicted prefixes.
        offload_gib: capacity of the tier by GPU, 2^30 bytes.
        offload_gb_per_s: its bandwidth by GPU, one way; 0 for the cluster's to the host.
        offload_weights: share of the weights that the tier holds, and that are read from it in
            every iteration, while layers before run.
        speculative_tokens: tokens that a draft model proposes in an iteration.
        acceptance: probability that a proposed token is accepted.
        draft_share: time of the draft model for a token, by that of the model.
        nano_batches: parts of a batch of which one's network and attention run beside another
            one's products; 1, 2 or 4.
    """

    cluster: str
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    attention_data_parallel: int = 1
    expert_parallel: int = 1
    replicas: int = 1
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    chunked_prefill: bool = True
    scheduler: str = "fcfs"
    priority: str = "decode"
    preemption: str = "recompute"
    memory_share: float = 0.9
    block_size: int = 16
    cache_blocks: int = 0
    weight_bits: int = 16
    cache_bits: int = 16
    compute_bits: int = 16
    prefix_cache: bool = False
    offload: str = "none"
    offload_gib: float = 0.0
    offload_gb_per_s: float = 0.0
    offload_weights: float = 0.0
    speculative_tokens: int = 0
    acceptance: float = 0.7
    draft_share: float = 0.05
    nano_batches: int = 1

    def __post_init__(self) -> None:
        counts = (
            "tensor_parallel", "pipeline_parallel", "attention_data_parallel", "expert_parallel",
            "replicas", "max_num_seqs", "max_num_batched_tokens", "block_size", "nano_batches",
        )  # fmt: skip
        for name in counts:
            _check(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        for name in ("cache_blocks", "offload_gib", "offload_gb_per_s", "speculative_tokens"):
            _check(name, getattr(self, name), getattr(self, name) >= 0, "at least 0")
        for name in ("weight_bits", "cache_bits", "compute_bits"):
            _check(name, getattr(self, name), getattr(self, name) in _BITS, "4, 8 or 16")
        _check("memory_share", self.memory_share, 0 < self.memory_share <= 1, "above 0, at most 1")
        _check("offload_weights", self.offload_weights, 0 <= self.offload_weights <= 1, "0 to 1")
        _check("acceptance", self.acceptance, 0 <= self.acceptance < 1, "at least 0, below 1")
        _check("draft_share", self.draft_share, 0 <= self.draft_share <= 1, "0 to 1")
        names = {
            "scheduler": SCHEDULERS,
            "priority": PRIORITIES,
            "preemption": PREEMPTIONS,
            "offload": OFFLOADS,
        }
        for name, allowed in names.items():
            if getattr(self, name) not in allowed:
                raise UnknownNameError(name, getattr(self, name), allowed, "deployment")
        if self.group_gpus % self.expert_parallel:
            raise InvalidValueError(
                f"deployment: expert_parallel is {self.expert_parallel}; it must divide "
                f"tensor_parallel times attention_data_parallel, {self.group_gpus}"
            )

    @property
    def group_gpus(self) -> int:
        """GPUs of a stage of a replica."""
        return self.tensor_parallel * self.attention_data_parallel

    @property
    def replica_gpus(self) -> int:
        """GPUs of a replica."""
        return self.group_gpus * self.pipeline_parallel

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.replica_gpus * self.replicas


@dataclass(frozen=True)
class Deployment:
    """How a model is served.

    Attributes:
        main: the replicas that do all of the work, or the decoding where prefill is split off.
        prefill: replicas that only prefill; ``None`` where ``main`` does it.
        routing: to which replica a request goes, of ``ROUTINGS``.
        transfer_gb_per_s: bandwidth by replica from prefill to decode; 0 for the network cards
            of the prefill replica's GPUs.
        transfer_latency_us: of such a transfer.
    """

    main: Pool
    prefill: Pool | None = None
    routing: str = "round_robin"
    transfer_gb_per_s: float = 0.0
    transfer_latency_us: float = 100.0

    def __post_init__(self) -> None:
        if self.routing not in ROUTINGS:
            raise UnknownNameError("routing", self.routing, ROUTINGS, "deployment")
        for name in ("transfer_gb_per_s", "transfer_latency_us"):
            _check(name, getattr(self, name), getattr(self, name) >= 0, "at least 0")

    @property
    def pools(self) -> tuple[Pool, ...]:
        """``main``, and ``prefill`` after it where there is one."""
        return (self.main,) if self.prefill is None else (self.main, self.prefill)

    @property
    def gpus(self) -> int:
        """GPUs of all pools."""
        return sum(pool.gpus for pool in self.pools)


@dataclass(frozen=True)
class Served:
    """What the requests of each deployment saw, and what the deployments did.

    Arrays by request have shape (deployments, requests), arrays by pool (deployments, 2): the
    main pool, then the prefill pool (zeros where there is none), summed over replicas.

    Attributes:
        fits: whether weights, activations and the longest request fit, shape (deployments,). Where
            they do not, nothing is simulated and times are NaN.
        arrival_s: arrival; as requested in an open loop, the end of another request in a closed
            one.
        first_token_s: end of the iteration that gave the first token.
        finished_s: end of the iteration that gave the last one.
        queued_s: time from arrival to the first iteration with the request.
        preemptions: how often the request lost its blocks.
        cached_tokens: tokens of the prompt that the prefix cache held when it was admitted.
        busy_s: seconds in iterations.
        iterations: how many there were.
        prompt_tokens: prompt tokens that were computed, repeated ones included.
        output_tokens: tokens given; those of the prefill count in the pool that ends the request.
        peak_blocks: largest number of blocks in use at a time, of one replica.
        block_seconds: integral of blocks in use over time.
        cache_blocks: blocks of a replica.
        weights_gib: weights on a GPU, 2^30 bytes.
        peak_memory_gib: most that a GPU needs: weights, activations, and the blocks in use.
        moved_bytes: moved between pools, and to or from the offload tier.
        energy_j: of all GPUs, idle times until the last request included.
    """

    fits: NDArray[np.bool_]
    arrival_s: NDArray[np.float64]
    first_token_s: NDArray[np.float64]
    finished_s: NDArray[np.float64]
    queued_s: NDArray[np.float64]
    preemptions: NDArray[np.int64]
    cached_tokens: NDArray[np.int64]
    busy_s: NDArray[np.float64]
    iterations: NDArray[np.int64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    peak_blocks: NDArray[np.int64]
    block_seconds: NDArray[np.float64]
    cache_blocks: NDArray[np.int64]
    weights_gib: NDArray[np.float64]
    peak_memory_gib: NDArray[np.float64]
    moved_bytes: NDArray[np.float64]
    energy_j: NDArray[np.float64]


def _check(name: str, value: Any, good: bool, allowed: str) -> None:
    if not good:
        raise InvalidValueError(f"deployment: {name} is {value!r}; it must be {allowed}")
