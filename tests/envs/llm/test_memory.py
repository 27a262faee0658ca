"""Memory of plans by hand: what layers keep, what the loss needs, who shares the optimizer."""

from __future__ import annotations

from typing import Any

import pytest

import archgym
from archgym.envs.llm.cost.evaluate import evaluate_plans
from archgym.envs.llm.data.as_records import GIB, model_record, system_record
from archgym.envs.llm.environment import LLMTraining
from archgym.envs.llm.training.plan import plan_records

PLAN = {
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "context_parallel": 1,
    "micro_batch": 1,
    "recompute": "none",
    "data_overlap": False,
    "sharding": "none",
    "offload_optimizer": False,
    "offload_activations": False,
    "precision": "bf16",
    "rank_order": "tp-cp-dp-pp",
}
SEQUENCE, HIDDEN, INNER, KEYS, VOCABULARY = 8192, 4096, 14336, 1024, 128256
"""Of Llama 3 8B, whose heads are as wide as its hidden size."""


def made(gpus: int, **changes: Any) -> LLMTraining:
    workload = {"model": "llama3_8b", "cluster": "dgx_h100", "gpus": gpus, "batch": 16, **changes}
    env = archgym.make("LLMTraining-v0", workload=workload)
    assert isinstance(env, LLMTraining)
    return env


def metrics(env: LLMTraining, **changes: Any) -> dict[str, float]:
    found = env.evaluate(env.design_space.canonical({**PLAN, **changes})).metrics
    return {name: value for name, value in found.items() if value is not None}


def gradients_s(env: LLMTraining, **changes: Any) -> float:
    designs = env.design_space.designs([env.design_space.canonical({**PLAN, **changes})])
    loaded = env.loaded
    plans = plan_records(designs, loaded.gpus, loaded.batch)
    system = system_record(loaded.cluster, loaded.stack, loaded.gpus)
    return float(evaluate_plans(model_record(loaded.model), plans, system)["data_s"][0])


def kept() -> float:
    """GiB of a layer: inputs of two norms, of three products, gate, up and their product, and what
    fused attention keeps (queries, keys, values, output)."""
    token = 4 * HIDDEN + 2 * HIDDEN + 2 * KEYS + 3 * INNER
    return 2 * token * SEQUENCE / GIB


def test_a_gated_layer_keeps_gate_up_and_their_product() -> None:
    """All 32 layers but the one at work."""
    found = metrics(made(8))
    assert found["activation_memory_gib"] == pytest.approx(31 * kept(), rel=1e-6)


def test_the_loss_has_the_logits_in_16_and_in_32_bits() -> None:
    """They and the last layer are larger than that layer and its gradients."""
    env = made(8)
    logits = SEQUENCE * VOCABULARY * (2 + 4) / GIB
    ends = 2 * SEQUENCE * HIDDEN * 2 / GIB  # input and output of the last norm
    unread = 2 * (2 * HIDDEN**2 + 2 * HIDDEN * KEYS + 3 * HIDDEN * INNER + 4 * HIDDEN) / GIB
    found = metrics(env)["working_memory_gib"]
    assert found == pytest.approx(kept() + logits + ends + unread + 2.0, rel=1e-6)


def test_full_recomputation_brings_one_layer_back() -> None:
    """Layers keep their inputs; with few words, the layer at work needs more than the loss."""
    env = made(8, model={"base": "llama3_8b", "vocabulary": 1024})
    found = metrics(env, recompute="full", recompute_layers_share=1.0)
    flow = SEQUENCE * HIDDEN * 2 / GIB
    assert found["activation_memory_gib"] == pytest.approx(32 * flow, rel=1e-6)
    # The gradients of gate and up are there at the fullest moment, and that of the stream.
    work = kept() + flow + 2 * SEQUENCE * 2 * INNER / GIB
    unread = 2 * (2 * HIDDEN**2 + 2 * HIDDEN * KEYS + 3 * HIDDEN * INNER + 4 * HIDDEN) / GIB
    assert found["working_memory_gib"] == pytest.approx(work + unread + 2.0, rel=1e-6)


def test_context_ranks_share_the_optimizer_without_data_parallelism() -> None:
    env = made(8)
    alone: dict[str, Any] = {"tensor_parallel": 2, "context_parallel": 4, "tensor_overlap": "none"}
    alone |= {"sequence_parallel": True, "gather_again": True}
    names = set(env.design_space.canonical({**PLAN, **alone, "sharding": "optimizer"}))
    assert {"sharding", "data_overlap"} <= names
    whole = metrics(env, **alone)["optimizer_memory_gib"]
    split = metrics(env, **alone, sharding="optimizer")["optimizer_memory_gib"]
    assert whole == pytest.approx(12 * env.loaded.model.parameters / 2 / GIB, rel=0.01)
    assert split == pytest.approx(whole / 4, rel=1e-6)
    single: dict[str, Any] = {
        "tensor_parallel": 8,
        "context_parallel": 1,
        "sequence_parallel": True,
    }
    single |= {"gather_again": True, "tensor_overlap": "none"}
    assert not {"sharding", "data_overlap"} & set(env.design_space.canonical({**PLAN, **single}))


def test_context_ranks_add_up_gradients_as_data_ranks_do() -> None:
    env = made(8)
    assert gradients_s(env, context_parallel=8) == pytest.approx(gradients_s(env), rel=1e-9)
    late = gradients_s(env, context_parallel=8, sharding="optimizer")
    soon = gradients_s(env, context_parallel=8, sharding="optimizer", data_overlap=True)
    assert soon < late


def test_stages_between_data_ranks_leave_each_gpu_its_share_of_the_gradients() -> None:
    """One GPU a node: two context ranks exchange whole gradients, two data ranks half of them."""
    far: dict[str, Any] = {"pipeline_parallel": 4, "schedule": "1f1b", "rank_order": "tp-cp-pp-dp"}
    cluster = {"base": "dgx_h100", "node_gpus": 1}
    both = gradients_s(made(16, cluster=cluster), **far, context_parallel=2)
    data = gradients_s(made(8, cluster=cluster), **far)
    assert both == pytest.approx(data, rel=1e-9)


def test_an_offloaded_optimizer_leaves_the_gradients_on_the_gpu() -> None:
    """The host, which makes the step, has weights, mean and variance in 32 bits: 12 bytes each."""
    env = made(8)
    kept, given = metrics(env), metrics(env, offload_optimizer=True)
    state = kept["optimizer_memory_gib"]
    assert given["gradient_memory_gib"] == kept["gradient_memory_gib"]
    assert given["optimizer_memory_gib"] == 0
    assert given["host_memory_gib"] == pytest.approx(state, rel=1e-6)
    assert given["peak_memory_gib"] == pytest.approx(kept["peak_memory_gib"] - state, rel=1e-6)
