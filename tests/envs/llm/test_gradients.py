"""Who adds up which gradients, and what goes around a ring: experts, tables, keys and values."""

from __future__ import annotations

from typing import Any

import pytest

import archgym
from archgym.envs.llm.cost.evaluate import evaluate_plans
from archgym.envs.llm.data.as_records import model_record, system_record
from archgym.envs.llm.environment import LLMTraining
from archgym.envs.llm.training.plan import plan_records

PLAN = {
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "context_parallel": 1,
    "expert_parallel": 1,
    "micro_batch": 1,
    "recompute": "none",
    "data_overlap": False,
    "sharding": "none",
    "offload_optimizer": False,
    "offload_activations": False,
    "precision": "bf16",
    "rank_order": "tp-cp-dp-pp",
    "schedule": "1f1b",
}
EXPERTS = {"experts": 8, "active_experts": 2, "expert_feedforward": 2048}
SHARDINGS = ("none", "optimizer", "gradients", "parameters")


def result(
    model: dict[str, Any], plan: dict[str, Any], cluster: dict[str, Any] | None = None
) -> dict[str, float]:
    """Seconds and bytes of a plan on 16 GPUs."""
    shape = {"base": "llama3_8b", "layers": 8, "sequence": 8192, **model}
    workload = {"model": shape, "cluster": cluster or "dgx_h100", "gpus": 16, "batch": 32}
    env = archgym.make("LLMTraining-v0", workload=workload)
    assert isinstance(env, LLMTraining)
    given = {k: v for k, v in {**PLAN, **plan}.items() if k in env.design_space.names}
    designs = env.design_space.designs([env.design_space.canonical(given)])
    system = system_record(env.loaded.cluster, env.loaded.stack, 16)
    plans = plan_records(designs, 16, 32)
    found = evaluate_plans(model_record(env.loaded.model), plans, system)[0]
    return {name: float(found[name]) for name in found.dtype.names}


@pytest.mark.parametrize("sharding", SHARDINGS)
@pytest.mark.parametrize("overlap", [False, True])
def test_experts_that_all_ranks_hold_are_added_up_as_dense_layers_are(
    sharding: str, overlap: bool
) -> None:
    """A dense layer as wide as all experts together has as many parameters, but for the router.

    Where sums overlap, both are exposed by layers as long as these; the mixture computes less.
    """
    plan = {"sharding": sharding, "data_overlap": overlap}
    dense, mixture = result({"feedforward": 16384}, plan), result(EXPERTS, plan)
    if not overlap:
        # Experts have collectives, and latencies, of their own.
        assert mixture["data_s"] == pytest.approx(dense["data_s"], rel=2e-2)
    else:
        assert mixture["data_s"] >= 0.99 * dense["data_s"]
    assert mixture["optimizer_s"] == pytest.approx(dense["optimizer_s"], rel=2e-3)
    for part in ("weights_bytes", "gradients_bytes", "optimizer_bytes"):
        assert mixture[part] == pytest.approx(dense[part], rel=2e-3)


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_experts_of_one_rank_each_are_not_added_up(sharding: str) -> None:
    """With 16 experts on 16 ranks, only attention, router and tables are."""
    plan = {"sharding": sharding, "expert_parallel": 16}
    sixteen = {**EXPERTS, "experts": 16}
    narrow, wide = (
        result({**sixteen, "expert_feedforward": width}, plan)["data_s"] for width in (2048, 4096)
    )
    assert narrow == pytest.approx(wide, rel=1e-9)


def test_sharding_experts_gradients_repeats_their_sum_in_every_micro_batch() -> None:
    """Two micro-batches: twice the reduce-scatter, and one gather of the parameters."""
    once = result(EXPERTS, {"sharding": "optimizer"})["data_s"]
    twice = result(EXPERTS, {"sharding": "gradients"})["data_s"]
    every = result(EXPERTS, {"sharding": "parameters"})["data_s"]
    assert 1.5 < twice / once < 1.8  # (2 x 4 + 2) bytes by (4 + 2)
    assert 2.5 < every / once < 2.8  # 2 x (2 + 2 + 4) bytes


def test_ranks_with_the_same_experts_are_far_where_stages_lie_between() -> None:
    """In nodes of four, ranks with the same experts are no neighbours."""
    cluster = {"base": "dgx_h100", "node_gpus": 4}
    plan = {"pipeline_parallel": 4, "expert_parallel": 2}
    near, far = (
        result(EXPERTS, {**plan, "rank_order": order}, cluster)
        for order in ("tp-cp-dp-pp", "tp-cp-pp-dp")
    )
    assert far["data_s"] > 2 * near["data_s"]
    assert far["tensor_s"] > near["tensor_s"]  # tokens go to experts on other nodes


def test_experts_beyond_the_context_ranks_are_as_far_as_data_ranks() -> None:
    """Of 8 ranks with different experts, 4 share a node of four; only 2 where stages lie between.

    Then 6 of 8 parts cross the network, not 4 of 8.
    """
    cluster = {"base": "dgx_h100", "node_gpus": 4, "network_gb_per_s": 1}
    plan = {"context_parallel": 2, "pipeline_parallel": 2, "expert_parallel": 8}
    near, far = (
        result(EXPERTS, {**plan, "rank_order": order}, cluster)["tensor_s"]
        for order in ("tp-cp-dp-pp", "tp-cp-pp-dp")
    )
    assert far / near == pytest.approx(6 / 4, rel=0.02)


def test_a_stage_with_both_tables_adds_up_and_updates_both() -> None:
    """Two untied tables are as one tied table of twice the words."""
    for sharding in SHARDINGS:
        plan = {"sharding": sharding}
        both = result({"vocabulary": 128000, "tied": False}, plan)
        one = result({"vocabulary": 256000, "tied": True}, plan)
        for name in ("data_s", "optimizer_s", "weights_bytes"):
            assert both[name] == pytest.approx(one[name], rel=1e-9), (name, sharding)


def test_each_rank_passes_on_all_keys_and_values_but_those_of_its_neighbour() -> None:
    """On slow links nothing hides them: (n - 1) / n of the sequence, three times a layer."""
    cluster = {"base": "dgx_h100", "node_gpus": 1, "network_gb_per_s": 0.1}
    for context in (2, 4, 8):
        plan = {"context_parallel": context, "pipeline_parallel": 1}
        found = result({}, plan, cluster)["tensor_s"]
        keys = 2 * 2 * 1024 * 8192  # bytes of keys and values of a sequence in a layer
        moved = 3 * 8 * keys * (context - 1) / context
        batches = 32 * context / 16
        # The attention that runs beside hides a little of it.
        assert found == pytest.approx(batches * moved / (0.75 * 0.1e9), rel=0.02)
