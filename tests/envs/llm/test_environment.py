"""The environment of training plans through its public interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.llm.data.model import load_model
from archgym.envs.llm.environment import LLMTraining
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space import DesignSpace, Integer, Ordinal

SMALL = "gpt_1.7b_a100_32"
PLAN = {
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "micro_batch": 1,
    "recompute": "none",
    "data_overlap": False,
    "sharding": "none",
    "offload_optimizer": False,
    "offload_activations": False,
    "rank_order": "tp-cp-dp-pp",
}


@pytest.fixture(scope="module")
def env() -> LLMTraining:
    made = archgym.make("LLMTraining-v0", workload=SMALL)
    assert isinstance(made, LLMTraining)
    return made


def metrics(env: archgym.Environment, design: Any) -> dict[str, float]:
    outcome = env.evaluate(design)
    assert outcome.status == "ok", outcome.reason
    return {name: value for name, value in outcome.metrics.items() if value is not None}


def columns(env: archgym.Environment, n: int) -> dict[str, Any]:
    designs = env.design_space.sample(n, np.random.default_rng(0))
    outcomes = env.evaluate_batch(designs)
    assert (outcomes.status == 0).all()
    return {name: outcomes.metrics[:, i] for i, name in enumerate(outcomes.metric_names)}


def test_an_objective_that_does_not_look_at_the_memory_is_told(env: LLMTraining) -> None:
    assert env.warnings == []
    for objective in ("minimize free_memory_gib", "minimize peak_memory_gib"):
        assert archgym.make("LLMTraining-v0", objective=objective).warnings == []
    (text,) = archgym.make("LLMTraining-v0", objective="minimize training_days").warnings
    assert "do not fit into the memory count as feasible; limits: [peak_memory_gib <= 80]" in text


def test_without_a_pipeline_there_is_no_bubble(env: LLMTraining) -> None:
    plans = [{**PLAN, "micro_batch": size} for size in (1, 2, 4)]
    plans = [env.design_space.canonical(plan) for plan in plans]
    assert [metrics(env, plan)["bubble_share"] for plan in plans] == [0.0] * 3
    larger = archgym.make("LLMTraining-v0", workload="llama3_70b_h100_256")
    single = {**larger.baseline_design, **PLAN, "micro_batch": 1, "context_parallel": 1}
    assert metrics(larger, larger.design_space.canonical(single))["bubble_share"] == 0.0


def test_parts_add_up_to_wholes(env: LLMTraining) -> None:
    column = columns(env, 300)
    parts = ("parameter", "gradient", "optimizer", "activation", "working")
    total = sum(column[f"{part}_memory_gib"] for part in parts)
    np.testing.assert_allclose(total, column["peak_memory_gib"], rtol=1e-9)
    np.testing.assert_allclose(column["free_memory_gib"], 80 - column["peak_memory_gib"])
    tokens = env.loaded.tokens
    rate = tokens / column["iteration_s"] / env.loaded.gpus
    np.testing.assert_allclose(column["tokens_per_s_per_gpu"], rate, rtol=1e-9)
    used = rate * env.loaded.model.flops_per_token / 312e12
    np.testing.assert_allclose(column["mfu_share"], used, rtol=1e-9)
    assert (column["mfu_share"] < 0.8).all()
    shares = column["bubble_share"] + column["exposed_communication_share"]
    assert (shares <= 1 + 1e-9).all()


def test_about_half_of_random_plans_do_not_fit() -> None:
    env = archgym.make("LLMTraining-v0", workload="gpt_175b_a100_512")
    fits = columns(env, 400)["peak_memory_gib"] <= 80
    assert 0.2 < fits.mean() < 0.8


def test_the_baseline_fits_and_is_within_published_utilisation() -> None:
    for workload in ("gpt_1.7b_a100_32", "gpt_18.4b_a100_256", "gpt_175b_a100_512"):
        env = archgym.make("LLMTraining-v0", workload=workload)
        found = env.evaluate(env.baseline_design)
        assert found.feasible
        assert 0.2 < (found.metrics["mfu_share"] or 0) < 0.6


def test_parameters_gradients_and_optimizer_by_hand(env: LLMTraining) -> None:
    found = metrics(env, PLAN)
    parameters = env.loaded.model.parameters / 2**30
    assert found["parameter_memory_gib"] == pytest.approx(2 * parameters, rel=0.01)
    assert found["gradient_memory_gib"] == pytest.approx(4 * parameters, rel=0.01)
    assert found["optimizer_memory_gib"] == pytest.approx(12 * parameters, rel=0.01)
    sharded = metrics(env, {**PLAN, "sharding": "optimizer"})
    assert sharded["optimizer_memory_gib"] == pytest.approx(12 * parameters / 32, rel=0.01)
    zero3 = metrics(env, {**PLAN, "sharding": "parameters"})
    assert zero3["parameter_memory_gib"] < 0.2 * found["parameter_memory_gib"]


def test_recomputation_trades_time_for_memory(env: LLMTraining) -> None:
    none = metrics(env, PLAN)
    attention = metrics(env, {**PLAN, "recompute": "attention", "recompute_layers_share": 1.0})
    full = metrics(env, {**PLAN, "recompute": "full", "recompute_layers_share": 1.0})
    half = metrics(env, {**PLAN, "recompute": "full", "recompute_layers_share": 0.5})
    assert none["activation_memory_gib"] >= attention["activation_memory_gib"]
    assert attention["activation_memory_gib"] > half["activation_memory_gib"]
    assert half["activation_memory_gib"] > full["activation_memory_gib"]
    assert none["iteration_s"] < half["iteration_s"] < full["iteration_s"]


def test_more_bandwidth_or_memory_never_makes_a_plan_slower() -> None:
    model, gpus, batch = "gpt_1.7b", 16, 64
    base = {"model": model, "cluster": "dgx_a100", "gpus": gpus, "batch": batch}
    env = archgym.make("LLMTraining-v0", workload=base)
    designs = env.design_space.sample(200, np.random.default_rng(1))
    before = env.evaluate_batch(designs).metrics[:, 0]
    changes: list[dict[str, Any]] = [
        {"node_gb_per_s": 600},
        {"network_gb_per_s": 50},
        {"chip": {"base": "a100", "memory_gb_per_s": 4000}},
        {"chip": {"base": "a100", "memory_gib": 160}},
        {"chip": {"base": "a100", "matrix_tflops": 624}},
    ]
    for change in changes:
        cluster = {"base": "dgx_a100", **change}
        better = archgym.make("LLMTraining-v0", workload={**base, "cluster": cluster})
        after = better.evaluate_batch(better.design_space.designs(list(designs))).metrics[:, 0]
        assert (after <= before * (1 + 1e-9)).all(), change


def test_interleaving_shortens_the_bubble_and_keeps_more(env: LLMTraining) -> None:
    plan = {
        **PLAN,
        "pipeline_parallel": 4,
        "micro_batch": 8,
        "schedule": "1f1b",
        "recompute": "full",
        "recompute_layers_share": 1.0,
    }
    plain = metrics(env, plan)
    chunks = metrics(env, {**plan, "schedule": "interleaved", "virtual_stages": 3})
    assert chunks["bubble_share"] < 0.8 * plain["bubble_share"]
    assert chunks["activation_memory_gib"] > plain["activation_memory_gib"]
    zero = metrics(env, {**plan, "schedule": "zero_bubble"})
    assert zero["bubble_share"] < plain["bubble_share"]
    gpipe = metrics(env, {**plan, "schedule": "gpipe"})
    assert gpipe["activation_memory_gib"] > plain["activation_memory_gib"]


def test_a_lower_fidelity_is_near_the_event_graph(env: LLMTraining) -> None:
    designs = env.design_space.sample(200, np.random.default_rng(2))
    full = np.array([r["iteration_s"] for r, _ in env.simulate_batch_at(designs, 1.0)])  # type: ignore[index]
    near = np.array([r["iteration_s"] for r, _ in env.simulate_batch_at(designs, 0.1)])  # type: ignore[index]
    assert np.median(np.abs(near / full - 1)) < 0.05


def test_spaces_follow_the_workload() -> None:
    dense = archgym.make("LLMTraining-v0", workload=SMALL).design_space
    experts = archgym.make("LLMTraining-v0", workload="mixtral_8x7b_h100_64").design_space
    long = archgym.make("LLMTraining-v0", workload="llama3_8b_h100_64").design_space
    assert "expert_parallel" in experts
    assert "context_parallel" in long
    assert "precision" in long
    assert not {"expert_parallel", "context_parallel", "precision"} & set(dense.names)


def test_who_names_a_parameter_of_another_workload_is_told_where_it_exists(
    env: LLMTraining,
) -> None:
    with pytest.raises(UnknownNameError, match=r"'precision' here: .* on a100; .* on h100, h200"):
        env.evaluate({**PLAN, "precision": "fp8"})
    fixed = env.design_space.fix({"micro_batch": 1})
    with pytest.raises(UnknownNameError, match=r"2,048 tokens are not cut .* 8,192 or more"):
        fixed.index("context_parallel")
    with pytest.raises(UnknownNameError, match=r"compute_bits.* on a100; there are on h100"):
        archgym.make("LLMServing-v0", workload="llama3_8b_a100_4_conv", fixed={"compute_bits": 8})


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean"):
        archgym.make("LLMTraining-v0", workload="gpt_1.7b_a100_3")
    with pytest.raises(UnknownNameError, match="unknown space"):
        archgym.make("LLMTraining-v0", space="small")
    with pytest.raises(InvalidValueError, match="no workloads"):
        LLMTraining.references(workloads=__file__)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["LLMTraining-v0", "LLMServing-v0", "LLMDevice-v0"])
def test_a_space_of_the_user_has_parameters_that_are_read(name: str) -> None:
    with pytest.raises(UnknownNameError, match="space: unknown parameter 'colour'"):
        archgym.make(name, space=DesignSpace([Integer("colour", 0, 3)]))
    env = archgym.make(name)
    assert archgym.make(name, space=env.design_space).design_space == env.design_space


def test_a_space_of_the_user_has_the_parameters_that_are_needed() -> None:
    some = DesignSpace([Ordinal("tensor_parallel", [1, 2, 4])])
    with pytest.raises(InvalidValueError, match="pipeline_parallel, micro_batch are missing"):
        archgym.make("LLMTraining-v0", space=some)


def test_an_unknown_model_may_be_one_of_the_users() -> None:
    spec = {"model": "llama4", "cluster": "dgx_a100", "gpus": 8, "batch": 64}
    with pytest.raises(UnknownNameError, match=r"config\.json"):
        archgym.make("LLMTraining-v0", workload=spec)


@pytest.mark.parametrize(
    ("workload", "least"), [("mixtral_8x7b_h100_64", 0.3), ("deepseek_v3_like_h200_512", 0.14)]
)
def test_the_baseline_of_a_mixture_of_experts_spreads_them(workload: str, least: float) -> None:
    env = archgym.make("LLMTraining-v0", workload=workload)
    outcome = env.evaluate(env.baseline_design)
    assert outcome.feasible
    share = outcome.metrics["mfu_share"]
    assert share is not None
    assert share >= least
    assert env.baseline_design["pipeline_parallel"] == 1
    # Megatron has experts beside tensor parallelism with sequence parallelism only.
    assert env.baseline_design["sequence_parallel"]


def test_parameters_of_experts_by_hand() -> None:
    model = load_model("mixtral_8x7b")
    assert model.expert_parameters == 32 * 8 * 3 * 4096 * 14336
    # 12.9e9 are active: Jiang et al., Mixtral of Experts (2024)
    assert model.active_parameters / 1e9 == pytest.approx(12.9, abs=0.05)
    assert load_model("llama3_8b").expert_parameters == 0
