"""What every serving run keeps: requests, tokens, blocks, time."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from archgym.envs.llm.serving.records import (
    OFFLOADS,
    PREEMPTIONS,
    PRIORITIES,
    ROUTINGS,
    SCHEDULERS,
    Deployment,
    Pool,
    Requests,
    Served,
)
from tests.envs.llm.serving.scenes import SPARSE, drawn, loop, serve

H100 = Pool("dgx_h100")
TIGHT = Pool("rtx_4090_node", cache_blocks=400, max_num_seqs=64)
DEPLOYMENTS = {
    "default": Deployment(H100),
    "whole prompts": Deployment(dataclasses.replace(H100, chunked_prefill=False)),
    "small chunks": Deployment(dataclasses.replace(H100, max_num_batched_tokens=300)),
    "shortest first": Deployment(
        dataclasses.replace(H100, max_num_seqs=8, scheduler="shortest_prompt")
    ),
    "prompts first": Deployment(dataclasses.replace(H100, priority="prefill")),
    "recompute": Deployment(TIGHT),
    "swap": Deployment(dataclasses.replace(TIGHT, preemption="swap")),
    "prompts first, swap": Deployment(
        dataclasses.replace(TIGHT, preemption="swap", priority="prefill")
    ),
    "prompts first, recompute": Deployment(
        dataclasses.replace(TIGHT, priority="prefill", max_num_batched_tokens=16)
    ),
    "speculative": Deployment(dataclasses.replace(H100, speculative_tokens=3)),
    "speculative, tight": Deployment(dataclasses.replace(TIGHT, speculative_tokens=3)),
    "stages": Deployment(dataclasses.replace(H100, tensor_parallel=2, pipeline_parallel=4)),
    "replicas": Deployment(dataclasses.replace(H100, replicas=3)),
    "least loaded": Deployment(dataclasses.replace(TIGHT, replicas=3), routing="least_loaded"),
    "affinity": Deployment(dataclasses.replace(H100, replicas=2), routing="prefix_affinity"),
    "split": Deployment(
        dataclasses.replace(H100, replicas=2), Pool("dgx_a100"), routing="least_loaded"
    ),
}


def same(one: Served, other: Served) -> None:
    for field in dataclasses.fields(Served):
        np.testing.assert_array_equal(
            getattr(one, field.name), getattr(other, field.name), err_msg=field.name
        )


@pytest.mark.parametrize("name", DEPLOYMENTS)
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_requests_tokens_and_blocks_are_kept(name: str, closed: bool) -> None:
    requests = loop(120, 24) if closed else drawn(120, 12)
    deployment = DEPLOYMENTS[name]
    served = serve(deployment, requests)
    assert served.fits.all()
    assert np.isfinite(served.finished_s).all()
    assert (served.first_token_s > served.arrival_s).all()
    assert (served.finished_s >= served.first_token_s).all()
    assert (served.queued_s >= 0).all()
    assert served.output_tokens.sum() == requests.output_tokens.sum()
    computed = served.prompt_tokens.sum() + served.cached_tokens.sum()
    if served.preemptions.sum() == 0 or deployment.main.preemption == "swap":
        assert computed == requests.prompt_tokens.sum()
    else:
        assert computed > requests.prompt_tokens.sum()
    assert (served.peak_blocks <= served.cache_blocks).all()
    replicas = sum(pool.replicas for pool in deployment.pools)
    assert served.busy_s.sum() <= served.finished_s.max() * replicas * (1 + 1e-9)


@pytest.mark.parametrize("name", DEPLOYMENTS)
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_leaping_is_stepping(name: str, closed: bool) -> None:
    requests = loop(60, 20, 3) if closed else drawn(60, 12, 3)
    same(serve(DEPLOYMENTS[name], requests), serve(DEPLOYMENTS[name], requests, leaps=False))


@pytest.mark.parametrize("name", ["default", "recompute", "replicas"])
def test_littles_law_holds(name: str) -> None:
    """The mean number of requests in the system is their rate times their time in it."""
    served = serve(DEPLOYMENTS[name], drawn(300, 12))
    arrival, end = served.arrival_s[0], served.finished_s[0]
    edges = np.sort(np.concatenate([arrival, end]))
    middle = (edges[:-1] + edges[1:]) / 2
    present = (arrival[:, None] <= middle).sum(0) - (end[:, None] <= middle).sum(0)
    span = edges[-1] - edges[0]
    mean = (present * np.diff(edges)).sum() / span
    rate = len(arrival) / span
    assert mean == pytest.approx(rate * (end - arrival).mean(), rel=0.01)


@pytest.mark.parametrize("name", ["default", "stages", "split", "replicas"])
def test_a_closed_loop_has_as_many_requests_as_users(name: str) -> None:
    users = 16
    served = serve(DEPLOYMENTS[name], loop(100, users))
    arrival, end = served.arrival_s[0], served.finished_s[0]
    for moment in np.linspace(0.05, arrival.max() * 0.999, 40):
        assert ((arrival <= moment) & (end > moment)).sum() == users


def test_cache_is_full_when_sequences_make_room() -> None:
    for name in ("recompute", "swap"):
        served = serve(DEPLOYMENTS[name], drawn(120, 12))
        assert served.preemptions.sum() > 0
        assert served.peak_blocks.max() == 400
    assert serve(DEPLOYMENTS["swap"], drawn(120, 12)).moved_bytes.sum() > 0
    assert serve(DEPLOYMENTS["default"], drawn(120, 12)).preemptions.sum() == 0


def test_shorter_prompts_are_first() -> None:
    requests = Requests.of([0, 0, 0, 0], [900, 800, 50, 700], [5, 5, 5, 5])
    pool = dataclasses.replace(H100, max_num_seqs=1, scheduler="shortest_prompt")
    assert serve(pool, requests).first_token_s[0].argsort().tolist() == [2, 3, 1, 0]
    pool = dataclasses.replace(pool, scheduler="fcfs")
    assert serve(pool, requests).first_token_s[0].argsort().tolist() == [0, 1, 2, 3]


def test_priority_of_prompts_stalls_those_that_decode() -> None:
    requests = drawn(150, 20)
    decode = serve(DEPLOYMENTS["small chunks"], requests)
    prompts = serve(
        dataclasses.replace(H100, max_num_batched_tokens=300, priority="prefill"), requests
    )
    assert prompts.queued_s.mean() < decode.queued_s.mean()
    assert prompts.iterations.sum() != decode.iterations.sum()


def test_a_split_deployment_moves_the_cache() -> None:
    requests = drawn(50, 4)
    served = serve(DEPLOYMENTS["split"], requests)
    going = requests.output_tokens > 1
    size = 2 * 32 * 8 * 128 * 2  # keys and values, layers, heads, their width, bytes
    assert served.moved_bytes[0, 1] == requests.prompt_tokens[going].sum() * size
    assert served.prompt_tokens[0, 0] == 0
    slow = dataclasses.replace(DEPLOYMENTS["split"], transfer_gb_per_s=0.05)
    late = serve(slow, requests)
    np.testing.assert_array_equal(late.first_token_s, served.first_token_s)
    assert late.finished_s.mean() > served.finished_s.mean()


def test_replicas_by_turns_are_runs_apart() -> None:
    requests = drawn(80, 20)
    both = serve(dataclasses.replace(H100, replicas=2), requests)
    for r in range(2):
        part = Requests.of(
            requests.arrival_s[r::2], requests.prompt_tokens[r::2], requests.output_tokens[r::2]
        )
        np.testing.assert_array_equal(both.finished_s[0, r::2], serve(H100, part).finished_s[0])


def test_batches_are_single_runs() -> None:
    from archgym.envs.llm.serving.simulator import simulate
    from tests.envs.llm.serving.scenes import ENGINE, FLEET, SMALL

    requests = drawn(40, 12)
    names = [name for name in DEPLOYMENTS if name != "stages"]
    together = simulate([DEPLOYMENTS[n] for n in names], SMALL, FLEET, requests, ENGINE)
    for i, name in enumerate(names):
        alone = serve(DEPLOYMENTS[name], requests)
        np.testing.assert_array_equal(together.finished_s[i], alone.finished_s[0])
        np.testing.assert_array_equal(together.energy_j[i], alone.energy_j[0])


def test_experts_are_served() -> None:
    requests = drawn(40, 4)
    for tensor, groups, expert in ((8, 1, 1), (8, 1, 8), (2, 4, 8)):
        pool = Pool(
            "dgx_h100",
            tensor_parallel=tensor,
            attention_data_parallel=groups,
            expert_parallel=expert,
        )
        served = serve(pool, requests, SPARSE)
        assert served.fits.all()
        assert served.output_tokens.sum() == requests.output_tokens.sum()


def drawn_deployment(rng: np.random.Generator, longest: int) -> Deployment:
    """Any settings, and a cache that holds little more than the longest request."""

    def pool() -> Pool:
        block = int(rng.choice([8, 16, 64]))
        return Pool(
            "dgx_h100",
            tensor_parallel=int(rng.choice([1, 4])),
            pipeline_parallel=int(rng.choice([1, 4])),
            replicas=int(rng.choice([1, 3])),
            max_num_seqs=int(rng.choice([1, 4, 256])),
            max_num_batched_tokens=int(rng.choice([16, 512, 8192])),
            chunked_prefill=bool(rng.random() < 0.7),
            scheduler=str(rng.choice(SCHEDULERS)),
            priority=str(rng.choice(PRIORITIES)),
            preemption=str(rng.choice(PREEMPTIONS)),
            block_size=block,
            cache_blocks=-(-longest // block) * int(rng.choice([1, 2, 6])),
            prefix_cache=bool(rng.random() < 0.5),
            offload=str(rng.choice(OFFLOADS)),
            offload_gib=float(rng.choice([0, 8])),
            speculative_tokens=int(rng.choice([0, 0, 3])),
        )

    split = pool() if rng.random() < 0.3 else None
    return Deployment(pool(), split, routing=str(rng.choice(ROUTINGS)))


@pytest.mark.parametrize("seed", range(40))
def test_any_deployment_serves_all_and_leaps_as_it_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 50))
    prompts, outputs = rng.integers(1, 1500, n), rng.integers(1, 150, n)
    prefixes = [[int(kind) * 9 + b for b in range(p // 512)] for kind, p in enumerate(prompts)]
    shared = [
        prefixes[int(i)][: p // 512] for i, p in zip(rng.integers(0, n, n), prompts, strict=True)
    ]
    requests = Requests.of(
        np.sort(rng.random(n)) * rng.choice([0, 1, 20]),
        prompts,
        outputs,
        shared,
        users=int(rng.choice([0, 0, 5])),
    )
    deployment = drawn_deployment(rng, int((prompts + outputs).max()) + 4)
    served = serve(deployment, requests)
    assert served.fits.all()
    assert (served.first_token_s > served.arrival_s).all()
    assert (served.finished_s >= served.first_token_s).all()
    assert served.output_tokens.sum() == outputs.sum()
    assert (served.peak_blocks <= served.cache_blocks).all()
    same(served, serve(deployment, requests, leaps=False))
