"""What must hold for every plan: parts add up, work is conserved, better hardware never slows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import archgym
from archgym.envs.llm.cost.evaluate import evaluate_plans
from archgym.envs.llm.data.as_records import model_record, system_record
from archgym.envs.llm.data.cluster import load_cluster
from archgym.envs.llm.environment import LLMTraining
from archgym.envs.llm.training.plan import plan_records
from archgym.envs.llm.training.workload import WORKLOADS
from archgym.space import Designs

NAMES = ("gpt_1.7b_a100_32", "gpt_175b_a100_512", "llama3_8b_h100_64", "mixtral_8x7b_h100_64")


def made(workload: Any) -> LLMTraining:
    env = archgym.make("LLMTraining-v0", workload=workload)
    assert isinstance(env, LLMTraining)
    return env


def results(env: LLMTraining, designs: Designs) -> tuple[NDArray[Any], NDArray[Any]]:
    loaded = env.loaded
    plans = plan_records(designs, loaded.gpus, loaded.batch)
    system = system_record(loaded.cluster, loaded.stack, loaded.gpus)
    return plans, evaluate_plans(model_record(loaded.model), plans, system)


@pytest.mark.parametrize("workload", NAMES)
def test_times_of_parts_add_up_to_the_iteration(workload: str) -> None:
    env = made(workload)
    _, found = results(env, env.design_space.sample(500, np.random.default_rng(0)))
    parts = ("compute", "recompute", "bubble", "tensor", "pipeline", "data", "optimizer", "offload")
    total = sum(found[f"{part}_s"] for part in parts)
    np.testing.assert_allclose(total, found["iteration_s"], rtol=1e-9)
    assert all((found[f"{part}_s"] >= 0).all() for part in parts)


@pytest.mark.parametrize("workload", ["gpt_1.7b_a100_32", "gpt_175b_a100_512"])
def test_every_plan_does_the_operations_of_the_model(workload: str) -> None:
    """However it is cut; what is recomputed comes on top, and the attention skips its mask."""
    env = made(workload)
    plans, found = results(env, env.design_space.sample(500, np.random.default_rng(0)))
    copies = plans["tensor"] * plans["context"] * plans["data"] * plans["micro_batches"]
    done = found["flops"] * copies
    needed = env.loaded.model.flops_per_token * env.loaded.tokens
    kept = plans["recompute"] == 0
    assert done[kept].max() / done[kept].min() < 1.005
    assert 0.94 < done[kept].min() / needed < 1.0
    assert (done[~kept] > done[kept].min()).all()
    assert done.max() / needed < 4 / 3


@pytest.mark.parametrize("workload", ["mixtral_8x7b_h100_64", "deepseek_v3_like_h200_512"])
def test_experts_do_the_operations_of_the_model(workload: str) -> None:
    """Wherever they are; a router is on every GPU of a tensor-parallel group, so without one."""
    env = made(workload)
    plans, found = results(env, env.design_space.sample(500, np.random.default_rng(0)))
    kept = (plans["recompute"] == 0) & (plans["tensor"] == 1)
    copies = plans["context"] * plans["data"] * plans["micro_batches"]
    done = (found["flops"] * copies)[kept]
    needed = env.loaded.model.flops_per_token * env.loaded.tokens
    np.testing.assert_allclose(done, done[0])
    assert 0.92 < done[0] / needed < 1.0


def test_a_reduce_scatter_and_an_all_gather_move_what_an_all_reduce_does() -> None:
    env = made("gpt_7.5b_a100_64")
    plan = {**env.baseline_design, "recompute": "none", "scatter_gather": False}
    plan |= {"sequence_parallel": False, "tensor_parallel": 8, "pipeline_parallel": 1}
    del plan["recompute_layers_share"]
    space = env.design_space
    both = [plan, {**plan, "sequence_parallel": True, "gather_again": False}]
    _, found = results(env, space.designs([space.canonical(one) for one in both]))
    assert found["network_bytes"][0] == pytest.approx(found["network_bytes"][1])


def better(cluster: str) -> list[dict[str, Any]]:
    whole = load_cluster(cluster)
    chip = whole.device
    bandwidths = ("node_gb_per_s", "network_gb_per_s", "host_gb_per_s", "host_memory_gb_per_s")
    changes: list[dict[str, Any]] = [{name: 1.5 * getattr(whole, name)} for name in bandwidths]
    rates = ("memory_gb_per_s", "memory_gib", "matrix_tflops")
    return [
        *changes,
        *({"chip": {"base": whole.chip, name: 1.5 * getattr(chip, name)}} for name in rates),
    ]


@pytest.mark.parametrize(
    "workload", ["gpt_7.5b_a100_64", "llama3_70b_h100_256", "gpt_7.5b_islands_32"]
)
def test_more_bandwidth_memory_or_arithmetic_never_makes_a_plan_slower(workload: str) -> None:
    spec = WORKLOADS[workload][1]
    env = made(spec)
    designs = env.design_space.sample(300, np.random.default_rng(1))
    _, before = results(env, designs)
    for change in better(spec["cluster"]):
        cluster = {"base": spec["cluster"], **change}
        _, after = results(made({**spec, "cluster": cluster}), designs)
        assert (after["iteration_s"] <= before["iteration_s"] * (1 + 1e-9)).all(), change


def test_equal_gpus_on_equal_links_may_be_permuted() -> None:
    links = [{"efficiency": 0.8, "latency_us": 5}, {"efficiency": 0.8, "latency_us": 5}]
    spec: Mapping[str, Any] = {
        "model": "gpt_1.7b",
        "cluster": {"base": "dgx_a100", "node_gpus": 1, "network_gb_per_s": 25},
        "gpus": 32,
        "batch": 128,
        "stack": {"base": "megatron", "links": links},
    }
    env = made(spec)
    ordered = env.design_space.fix({"rank_order": "tp-cp-dp-pp"})
    designs = list(ordered.sample(200, np.random.default_rng(3)))
    several = [one for one in designs if "rank_order" in one]
    other = [{**one, "rank_order": "tp-cp-pp-dp"} for one in several]
    _, first = results(env, env.design_space.designs(several))
    _, second = results(env, env.design_space.designs(other))
    np.testing.assert_allclose(first["iteration_s"], second["iteration_s"], rtol=1e-9)


def test_more_gpus_wait_for_a_slower_one() -> None:
    def speed(gpus: int, spread: float) -> float:
        env = made(
            {
                "model": "gpt_1.7b",
                "cluster": "dgx_a100",
                "gpus": gpus,
                "batch": gpus,
                "stack": {"base": "megatron", "spread": spread},
            }
        )
        plan = {**env.baseline_design, "tensor_parallel": 1, "pipeline_parallel": 1}
        found = env.evaluate(env.design_space.canonical(plan))
        return float(found.metrics["tokens_per_s_per_gpu"] or 0)

    alone = speed(8, 0.02) / speed(8, 0.0)
    many = speed(512, 0.02) / speed(512, 0.0)
    assert many < alone < 1
