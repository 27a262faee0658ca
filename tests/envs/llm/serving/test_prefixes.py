"""Prefixes that prompts share: what the cache keeps, what it forgets, where requests go."""

from __future__ import annotations

import dataclasses

import numpy as np

from archgym.envs.llm.serving.records import Deployment, Pool, Requests
from tests.envs.llm.serving.scenes import serve

POOL = Pool("dgx_h100", prefix_cache=True)


def shared(kinds: int, n: int, blocks: int = 4, gap: float = 1.0) -> Requests:
    """Prompts of ``kinds`` kinds in turn, each with a prefix of so many blocks of 512 tokens."""
    prefixes = [[kind * 100 + b for b in range(blocks)] for kind in range(kinds)]
    return Requests.of(
        np.arange(n) * gap,
        np.full(n, blocks * 512 + 100),
        np.full(n, 20),
        [prefixes[i % kinds] for i in range(n)],
    )


def test_later_prompts_find_the_prefix() -> None:
    requests = shared(2, 10)
    served = serve(POOL, requests)
    assert served.cached_tokens[0].tolist() == [0, 0] + [4 * 512] * 8
    assert served.prompt_tokens.sum() == requests.prompt_tokens.sum() - 8 * 4 * 512
    without = serve(dataclasses.replace(POOL, prefix_cache=False), requests)
    assert without.cached_tokens.sum() == 0
    ttft = served.first_token_s - served.arrival_s
    assert (ttft[0, 2:] < (without.first_token_s - without.arrival_s)[0, 2:]).all()


def test_a_prompt_that_is_all_prefix_still_computes_a_token() -> None:
    requests = Requests.of([0, 1], [1024, 1024], [5, 5], [[1, 2], [1, 2]])
    assert serve(POOL, requests).cached_tokens[0].tolist() == [0, 512]


def test_prompts_at_the_same_time_do_not_find_each_other() -> None:
    requests = Requests.of([0, 0], [1124, 1124], [5, 5], [[1, 2], [1, 2]])
    served = serve(dataclasses.replace(POOL, max_num_batched_tokens=4096), requests)
    assert served.cached_tokens.sum() == 0


def test_the_least_recently_used_is_forgotten() -> None:
    # A request needs 135 blocks of 16 tokens, of which 128 stay cached; two prefixes do not fit.
    small = dataclasses.replace(POOL, cache_blocks=200)
    assert serve(small, shared(1, 6)).cached_tokens[0].tolist() == [0] + [2048] * 5
    assert serve(small, shared(2, 6)).cached_tokens[0].max() < 2048
    assert (
        serve(dataclasses.replace(POOL, cache_blocks=300), shared(2, 6))
        .cached_tokens[0, 2:]
        .tolist()
        == [2048] * 4
    )


def test_the_tier_gives_back_what_the_cache_forgot() -> None:
    small = dataclasses.replace(POOL, cache_blocks=200)
    tiered = dataclasses.replace(small, offload="host", offload_gib=16)
    requests = shared(2, 10)
    without, served = serve(small, requests), serve(tiered, requests)
    assert served.cached_tokens.sum() > without.cached_tokens.sum()
    assert served.cached_tokens[0, 2:].min() == 2048
    assert served.moved_bytes[0, 0] > 0
    ttft = (served.first_token_s - served.arrival_s)[0, 2:]
    assert (ttft < (without.first_token_s - without.arrival_s)[0, 2:]).all()
    faster = serve(dataclasses.replace(tiered, offload_gb_per_s=400.0), requests)
    assert (faster.first_token_s - faster.arrival_s)[0, 2:].mean() < ttft.mean()


def test_weights_take_their_part_of_the_tier_first() -> None:
    """Half of 16 GB of weights fill a tier of 7 GiB; one of 16 GiB has room for prefixes too."""
    requests = shared(2, 10)
    hits = []
    for size in (7, 16):
        pool = dataclasses.replace(POOL, cache_blocks=200, offload="host", offload_gib=size)
        served = serve(dataclasses.replace(pool, offload_weights=0.5), requests)
        hits.append(int(served.cached_tokens.sum()))
    assert hits[0] < hits[1]


def test_affinity_sends_prompts_to_their_prefix() -> None:
    requests = shared(3, 30, gap=2.0)
    pool = dataclasses.replace(POOL, replicas=2)
    turns = serve(Deployment(pool), requests)
    affine = serve(Deployment(pool, routing="prefix_affinity"), requests)
    assert affine.cached_tokens.sum() == 27 * 2048
    assert turns.cached_tokens.sum() == 24 * 2048
