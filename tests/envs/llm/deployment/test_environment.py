"""LLMServing-v0: what its metrics obey, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.llm.deployment.environment import LLMServing
from archgym.envs.llm.deployment.plan import deployment_of
from archgym.envs.llm.deployment.workload import WORKLOADS, load_workload
from archgym.envs.llm.serving.simulator import simulate
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space import Categorical, DesignSpace, Ordinal

SMALL: dict[str, Any] = {
    "model": "llama3_8b",
    "fleet": "a100_4",
    "requests": {"trace": "azure_conv", "rate_per_s": 20, "count": 120},
}


def served(**changes: Any) -> LLMServing:
    env = archgym.make("LLMServing-v0", workload={**SMALL, **changes})
    assert isinstance(env, LLMServing)
    return env


@pytest.fixture(scope="module")
def small() -> LLMServing:
    return served()


def with_values(env: LLMServing, **values: Any) -> dict[str, float]:
    """Metrics of the baseline with other values."""
    design = {**env.baseline_design, **values}
    found = env.evaluate(env.design_space.canonical(design))
    assert found.status == "ok", found.reason
    return {name: value for name, value in found.metrics.items() if value is not None}


def test_a_deployment_that_sustains_the_highest_rate_that_is_tried_is_told(
    small: LLMServing,
) -> None:
    with_values(small)
    assert not any("the highest rate" in text for text in small.warnings)
    calm = served(requests={"trace": "azure_conv", "rate_per_s": 0.1, "count": 20})
    assert with_values(calm)["sustainable_requests_per_s"] == pytest.approx(1.6)
    (text,) = calm.warnings
    assert "sustains 1.6 requests/s, the highest rate that is tried" in text


def test_a_rate_at_which_all_requests_come_at_once_is_told() -> None:
    """300 requests are a burst for four A100: they say 1.7 times what 2,000 do (24.5/s)."""
    few = served(requests={"trace": "azure_conv", "rate_per_s": 20, "count": 300})
    assert with_values(few)["sustainable_requests_per_s"] > 40
    (text,) = few.warnings
    assert "at which all requests arrive within" in text
    assert text.endswith("give a larger count")
    many = served(requests={"trace": "azure_conv", "rate_per_s": 20, "count": 2000})
    with_values(many)
    assert many.warnings == []


def test_an_objective_that_does_not_look_at_the_memory_is_told() -> None:
    (text,) = archgym.make("LLMServing-v0", objective="minimize gpus_count").warnings
    assert "limits: [memory_use_share <= 1] rules them out" in text


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_the_baseline_of_every_workload_is_feasible(workload: str) -> None:
    spec = dict(WORKLOADS[workload][1])
    spec["requests"] = {**spec["requests"], "count": 60}
    env = archgym.make("LLMServing-v0", workload=spec)
    outcome = env.evaluate(env.baseline_design)
    assert outcome.feasible, outcome.reason
    assert outcome.metrics["sustainable_requests_per_s"] > 0  # type: ignore[operator]


def test_littles_law_holds_in_a_closed_loop() -> None:
    users = 12
    env = served(requests={"trace": "azure_conv", "users": users, "count": 1000})
    found = with_values(env)
    under_way = found["requests_per_s"] * found["e2e_mean_ms"] / 1e3
    assert under_way == pytest.approx(users, rel=0.03)  # fewer at the end


@pytest.mark.parametrize("split", [False, True])
def test_tokens_are_those_of_the_requests(small: LLMServing, split: bool) -> None:
    values = {"split": True, "prefill_tensor_parallel": 1, "prefill_pipeline_parallel": 1,
              "prefill_replicas": 2, "replicas": 2}  # fmt: skip
    found = with_values(small, **(values if split else {}))
    requests = small.loaded.requests()
    tokens = found["tokens_per_s_per_gpu"] * found["gpus_count"]
    answered = found["requests_per_s"] * requests.output_tokens.mean()
    assert tokens == pytest.approx(answered, rel=1e-9)


def test_percentiles_are_in_order_and_parts_are_no_longer_than_the_whole(small: LLMServing) -> None:
    found = with_values(small)
    for name in ("ttft", "tpot", "e2e"):
        low, middle, high = (found[f"{name}_p{p}_ms"] for p in (50, 90, 99))
        assert 0 < low <= middle <= high
    assert found["queue_mean_ms"] <= found["ttft_mean_ms"] <= found["e2e_mean_ms"]
    assert 0 < found["busy_share"] <= 1
    assert found["cache_use_share"] <= found["cache_peak_share"] <= 1


def test_the_sustainable_rate_is_where_the_goal_is_just_reached(small: LLMServing) -> None:
    rate = with_values(small)["sustainable_requests_per_s"]
    shares = []
    for factor in (0.8, 1.0, 1.25):
        requests = {**SMALL["requests"], "rate_per_s": rate * factor}
        shares.append(with_values(served(requests=requests))["attainment_share"])
    assert shares[0] >= 0.9 >= shares[2]
    assert shares[1] == pytest.approx(0.9, abs=0.08)


def test_more_replicas_serve_more_and_cost_more(small: LLMServing) -> None:
    found = [with_values(small, replicas=n) for n in (1, 2, 4)]
    rates = [one["sustainable_requests_per_s"] for one in found]
    assert rates[0] < rates[1] < rates[2]
    assert [one["cost_usd_per_hour"] for one in found] == pytest.approx([5.12, 10.24, 20.48])
    assert found[2]["ttft_p99_ms"] <= found[0]["ttft_p99_ms"]


@pytest.mark.parametrize(
    "better",
    [
        {"matrix_tflops": 624, "vector_tflops": 156},
        {"memory_gb_per_s": 4078},
        {"memory_gib": 160},
    ],
)
def test_a_better_chip_is_never_worse(small: LLMServing, better: dict[str, float]) -> None:
    cluster = {"base": "dgx_a100", "chip": {"base": "a100", **better}}
    group = {"cluster": cluster, "gpus": 4, "label": "a100"}
    faster = served(fleet={"groups": [group]})
    old, new = with_values(small), with_values(faster)
    assert new["sustainable_requests_per_s"] >= old["sustainable_requests_per_s"]
    assert new["e2e_mean_ms"] <= old["e2e_mean_ms"] * (1 + 1e-9)


def test_looser_limits_allow_higher_rates(small: LLMServing) -> None:
    tight = served(ttft_limit_ms=300, tpot_limit_ms=20)
    loose = served(ttft_limit_ms=3000, tpot_limit_ms=100)
    rates = [with_values(env)["sustainable_requests_per_s"] for env in (tight, small, loose)]
    assert rates == sorted(rates)
    assert rates[0] < rates[2]


def test_energy_falls_with_idle_power_and_costs_with_prices() -> None:
    def on(chip: dict[str, Any]) -> dict[str, float]:
        cluster = {"base": "dgx_a100", "chip": {"base": "a100", **chip}}
        groups = [{"cluster": cluster, "gpus": 4, "label": "a100"}]
        return with_values(served(fleet={"groups": groups}))

    usual, half = on({}), on({"usd_per_hour": 2.56, "idle_w": 0})
    assert half["cost_usd_per_mtoken"] == pytest.approx(usual["cost_usd_per_mtoken"] / 2)
    assert half["goodput_requests_per_usd"] == pytest.approx(2 * usual["goodput_requests_per_usd"])
    assert half["energy_j_per_token"] < usual["energy_j_per_token"]


def test_what_does_not_fit_is_infeasible_and_says_so() -> None:
    env = served(model="llama3_70b", fleet={"dgx_a100": 4})
    design = {**env.baseline_design, "tensor_parallel": 1, "pipeline_parallel": 1, "replicas": 1}
    outcome = env.evaluate(env.design_space.canonical(design))
    assert outcome.status == "ok"
    assert not outcome.feasible
    assert "memory_use_share" in outcome.reason
    assert 1.8 < outcome.metrics["memory_use_share"] < 2.2  # type: ignore[operator]


def test_a_small_cache_preempts_and_a_large_one_does_not() -> None:
    env = served(fleet={"groups": [{"cluster": {"base": "dgx_a100", "chip": {
        "base": "a100", "memory_gib": 24}}, "gpus": 1, "label": "a100"}]})  # fmt: skip
    tight = with_values(env, memory_share=0.8)
    roomy = with_values(served(fleet={"dgx_a100": 1}))
    assert tight["preemption_count"] > 0 == roomy["preemption_count"]
    assert tight["cache_peak_share"] > 0.9
    assert tight["cache_gib"] < roomy["cache_gib"]


def test_the_prefix_cache_saves_shared_prompts() -> None:
    requests = {"generator": "poisson", "rate_per_s": 20, "count": 120, "prompt_tokens": 128,
                "output_tokens": 64, "prefixes": 4, "prefix_tokens": 2048}  # fmt: skip
    env = served(requests=requests)
    off, on = (with_values(env, prefix_cache=flag) for flag in (False, True))
    assert off["prefix_hit_share"] == 0
    assert 0.7 < on["prefix_hit_share"] < 2048 / (2048 + 128)
    assert on["ttft_mean_ms"] < off["ttft_mean_ms"]


def test_a_slow_network_delays_what_is_handed_over() -> None:
    def split_on(gb_per_s: float) -> dict[str, float]:
        cluster = {"base": "dgx_a100", "network_gb_per_s": gb_per_s}
        env = served(fleet={"groups": [{"cluster": cluster, "gpus": 4, "label": "a100"}]})
        return with_values(env, split=True, prefill_tensor_parallel=1, replicas=2,
                           prefill_pipeline_parallel=1, prefill_replicas=2)  # fmt: skip

    slow, fast = split_on(0.5), split_on(50)
    assert slow["e2e_mean_ms"] > fast["e2e_mean_ms"]
    assert slow["ttft_mean_ms"] == pytest.approx(fast["ttft_mean_ms"])


def test_designs_use_no_more_gpus_of_a_kind_than_there_are() -> None:
    workload = load_workload("llama3_70b_a100_16_h100_8_conv")
    env = archgym.make("LLMServing-v0", workload="llama3_70b_a100_16_h100_8_conv")
    for design in env.design_space.sample(300, np.random.default_rng(0)):
        for group in workload.fleet.groups:
            pools = deployment_of(design, workload).pools
            assert sum(p.gpus for p in pools if p.cluster == group.label) <= group.gpus


def test_a_batch_gives_what_each_design_gives_alone(small: LLMServing) -> None:
    designs = small.design_space.sample(6, np.random.default_rng(3))
    together = small.evaluate_batch(designs).metrics
    fresh = served()
    for row, design in zip(together, designs, strict=True):
        alone = fresh.evaluate(design).metrics
        np.testing.assert_array_equal(row, [alone[metric.name] for metric in small.metrics])


def test_fewer_requests_estimate_the_same() -> None:
    env = served(requests={"trace": "azure_conv", "rate_per_s": 2, "count": 400})
    quarter = env.evaluate(env.baseline_design, fidelity=0.25).metrics
    full = env.evaluate(env.baseline_design).metrics
    for name in ("ttft_mean_ms", "tpot_mean_ms", "e2e_mean_ms"):
        assert quarter[name] == pytest.approx(full[name], rel=0.5)


def test_metrics_come_from_the_simulator(small: LLMServing) -> None:
    loaded = small.loaded
    deployment = deployment_of(small.baseline_design, loaded)
    requests = loaded.requests()
    result = simulate([deployment], loaded.model, loaded.fleet.clusters, requests, loaded.engine)
    ttft = (result.first_token_s - result.arrival_s)[0] * 1e3
    assert with_values(small)["ttft_p90_ms"] == pytest.approx(np.percentile(ttft, 90))
    assert int(result.output_tokens.sum()) == int(requests.output_tokens.sum())


def test_what_a_fleet_or_a_model_has_not_is_no_choice() -> None:
    plain = served().design_space
    experts = served(model="mixtral_8x7b", fleet="h100_8").design_space
    assert "expert_parallel" not in plain
    assert {"expert_parallel", "attention_data_parallel", "compute_bits"} <= set(experts.names)
    assert "compute_bits" not in plain  # A100
    assert "prefix_cache" not in plain
    assert "gpu_type" in served(fleet={"dgx_a100": 2, "dgx_h100": 2}).design_space
    assert 4 not in plain["weight_bits"].levels  # type: ignore[attr-defined]
    pooled = served(fleet="h100_8_pooled").design_space["offload"].levels  # type: ignore[attr-defined]
    assert "pool" in pooled


def test_a_space_of_ones_own() -> None:
    space = DesignSpace([
        Ordinal("tensor_parallel", [1, 2, 3, 4]),
        Ordinal("replicas", [1, 2, 4]),
        Categorical("scheduler", ["fcfs", "shortest_prompt"]),
    ])  # fmt: skip
    env = archgym.make("LLMServing-v0", workload=SMALL, space=space)
    shapes = [(2, 2), (4, 4), (3, 1), (1, 1)]
    found = env.evaluate_batch(
        [{"tensor_parallel": n, "replicas": m, "scheduler": "fcfs"} for n, m in shapes]
    )
    assert [one.status for one in found] == ["ok", "illegal", "illegal", "ok"]
    assert "more a100 than there are" in found[1].reason
    assert "tensor_parallel is 3; it must divide" in found[2].reason


def test_what_is_not_possible_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'llama3_8b_a100_4_conv'"):
        archgym.make("LLMServing-v0", workload="llama3_8b_a100_conv")
    with pytest.raises(UnknownNameError, match="unknown space"):
        archgym.make("LLMServing-v0", workload=SMALL, space="large")
    with pytest.raises(InvalidValueError, match="no workloads"):
        LLMServing.references(workloads=object())  # type: ignore[arg-type]


def test_offloaded_weights_have_to_fit_into_their_tier() -> None:
    """16 GB of weights on one GPU, three quarters of them on a host that has 8 or 16 GiB."""
    for host, fits in ((8, False), (16, True)):
        env = served(fleet={"groups": {"dgx_a100": 1}, "host_gib": host})
        design = {**env.baseline_design, "offload": "host", "preemption": "recompute"}
        found = env.evaluate(env.design_space.canonical({**design, "offload_weights": 0.75}))
        assert found.status == "ok"
        assert found.feasible == fits
        weights = 0.75 * 2 * env.loaded.model.parameters / 2**30
        if not fits:
            assert found.metrics["memory_use_share"] == pytest.approx(weights / host, rel=0.01)
