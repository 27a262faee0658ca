"""Workloads and fleets: what can be written, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import archgym
from archgym.envs.llm.deployment.fleet import FLEETS, load_fleet
from archgym.envs.llm.deployment.workload import WORKLOADS, load_workload
from archgym.errors import InvalidValueError, UnknownNameError

SPEC = {
    "model": "llama3_8b",
    "fleet": {"dgx_a100": 2},
    "requests": {"generator": "poisson", "count": 20},
}


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_what_ships_can_be_read(name: str) -> None:
    workload = load_workload(name)
    assert workload.name == name
    assert len(workload.requests(10)) == 10


def test_fleets_of_several_kinds() -> None:
    assert {name: load_fleet(name).name for name in FLEETS} == {name: name for name in FLEETS}
    mixed = load_fleet({"dgx_a100": 16, "dgx_h100": 8})
    assert mixed.labels == ["a100", "h100"]
    assert mixed.gpus == 16
    old = {"cluster": {"base": "dgx_a100", "chip": {"base": "a100", "usd_per_hour": 1}}, "gpus": 4}
    groups = [{"cluster": "dgx_a100", "gpus": 4}, {**old, "label": "old"}]
    assert load_fleet({"groups": groups}).labels == ["a100", "old"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "llama3_8"}, "Did you mean 'llama3_8b'"),
        ({"fleet": "h100_9"}, "Did you mean 'h100_8'"),
        ({"fleet": {"dgx_h10": 8}}, "Did you mean 'dgx_h100'"),
        ({"fleet": {"dgx_h100": 0}}, r"groups\[0\]: gpus is 0; it must be a whole number"),
        ({"fleet": {"dgx_h100": 2.5}}, "gpus is 2.5"),
        ({"fleet": []}, "fleet is .*; it must be a name"),
        ({"fleet": {"groups": []}}, "it must be a mapping from clusters"),
        ({"fleet": {"groups": {"dgx_h100": 8}, "pool": 3}}, "unknown key 'pool'.*pool_gib"),
        ({"fleet": {"groups": {"dgx_h100": 8}, "pool_gib": 3}}, "both pool_gib and pool_gb_per_s"),
        ({"fleet": {"groups": {"dgx_h100": 8}, "host_gib": -1}}, "host_gib is -1"),
        (
            {"fleet": {"groups": [{"cluster": "dgx_h100", "gpus": 2}] * 2}},
            "group 'h100' already; give it a label",
        ),
        ({"request": "azure_conv"}, "unknown key 'request'. Did you mean 'requests'"),
        ({"requests": "azure_con"}, "Did you mean 'azure_conv'"),
        ({"engine": "vlm"}, "Did you mean 'vllm'"),
        ({"ttft_limit_ms": 0}, "ttft_limit_ms is 0; it must be a number from"),
        ({"tpot_limit_ms": "50"}, "tpot_limit_ms is '50'"),
        ({"attainment_goal": 1.5}, "attainment_goal is 1.5; it must be a number from 0 to 1"),
        ({"acceptance": float("nan")}, "acceptance is nan"),
    ],
)
def test_a_bad_workload_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        load_workload({**SPEC, **changes})


def test_requests_that_all_come_at_once_have_no_sustainable_rate(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    path.write_text("arrival_s,prompt_tokens,output_tokens\n0,100,50\n0,100,50\n")
    spec = {**SPEC, "requests": str(path)}
    with pytest.raises(InvalidValueError, match=r"batch\.csv arrive at once.*attainment_goal: 0"):
        load_workload(spec)
    assert len(load_workload({**spec, "attainment_goal": 0}).requests()) == 2
    assert load_workload({**spec, "requests": {"file": str(path), "users": 2}}).traffic.users == 2


def test_a_missing_part_says_what_it_may_be() -> None:
    with pytest.raises(InvalidValueError, match="'fleet' is missing; it is a mapping from clus"):
        load_workload({"model": "llama3_8b", "requests": "azure_conv"})
    with pytest.raises(InvalidValueError, match="it must be a name"):
        load_workload(7)  # type: ignore[arg-type]


def test_the_hash_is_of_what_metrics_depend_on() -> None:
    base = load_workload(SPEC)
    same = load_workload({**SPEC, "model": {"base": "llama3_8b", "doc": "another line"}})
    assert base.sha256 == same.sha256
    others: list[dict[str, Any]] = [
        {"model": {"base": "llama3_8b", "layers": 31}},
        {"fleet": {"dgx_a100": 3}},
        {"requests": {"generator": "poisson", "count": 20, "seed": 1}},
        {"engine": {"base": "vllm", "step_us": 1}},
        {"tpot_limit_ms": 40},
        {"fleet": {"groups": {"dgx_a100": 2}, "host_gib": 8}},
    ]
    assert len({load_workload({**SPEC, **one}).sha256 for one in others} | {base.sha256}) == 7


def test_a_model_from_a_config_file(tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 4,
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
        "hidden_act": "silu",
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert load_workload({**SPEC, "model": str(path)}).model.kv_heads == 2


def test_a_changed_chip_keeps_the_speeds_of_the_engine() -> None:
    """A chip with a price of one's own is as fast as the one that it changes."""
    times = []
    for chip in ("h100", {"base": "h100", "usd_per_hour": 2.5}, {"base": "h100", "name": "mine"}):
        cluster = {"base": "dgx_h100", "chip": chip}
        fleet = {"groups": [{"cluster": cluster, "gpus": 1, "label": "h100"}]}
        requests = {"trace": "azure_conv", "rate_per_s": 2, "count": 20}
        env = archgym.make(
            "LLMServing-v0", workload={"model": "llama3_8b", "fleet": fleet, "requests": requests}
        )
        times.append(env.evaluate(env.baseline_design).metrics["iteration_mean_ms"])
    assert times[0] == times[1] == times[2]


@pytest.mark.parametrize(
    ("speeds", "message"),
    [
        ({"a10": 0.5}, "Did you mean 'a100'"),
        ({"a100": 1.5}, r"speeds\['a100'\] is 1.5; .* reach 0.83 of its peak, .* at most 1.2048"),
        ({"a100": float("nan")}, "is nan; it must be a number above 0"),
    ],
)
def test_speeds_that_no_chip_has_are_refused(speeds: dict[str, float], message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        load_workload({**SPEC, "engine": {"base": "vllm", "speeds": speeds}})


@pytest.mark.parametrize("line", ["nan,10,10", "-1,10,10", "1e300,10,10", "1,0,10", "1,nan,10"])
def test_lines_of_a_trace_that_are_no_requests_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"arrival_s,prompt_tokens,output_tokens\n0,10,10\n{line}\n")
    with pytest.raises(InvalidValueError, match="line 3, column"):
        load_workload({**SPEC, "requests": str(path)})
