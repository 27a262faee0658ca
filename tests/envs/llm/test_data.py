"""Chips, clusters, models and stacks: what ships, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.llm.data.cluster import cluster_names, load_chip, load_cluster
from archgym.envs.llm.data.model import load_model, model_names
from archgym.envs.llm.data.stack import load_stack, stack_names
from archgym.envs.llm.training.workload import WORKLOADS
from archgym.envs.llm.training.workload import load_workload as load_training
from archgym.errors import ArchgymError


def test_everything_that_ships_can_be_read_and_names_its_source() -> None:
    for name in model_names():
        assert load_model(name).source
    for name in cluster_names():
        assert load_cluster(name).source
        assert load_cluster(name).device.source
    for name in stack_names():
        assert load_stack(name).source
    for name in WORKLOADS:
        assert load_training(name).name == name


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("gpt_1.7b", 1.65),
        ("gpt_18.4b", 18.4),
        ("gpt_175b", 174.6),
        ("gpt_1t", 1008.0),
        ("llama3_8b", 8.03),
        ("llama3_70b", 70.6),
        ("llama3_405b", 405.9),
        ("mixtral_8x7b", 46.7),
    ],
)
def test_parameters_are_the_published_ones(name: str, billions: float) -> None:
    assert load_model(name).parameters / 1e9 == pytest.approx(billions, rel=0.02)


def test_operations_are_those_of_megatrons_formula() -> None:
    """96 l h^2 (1 + s / 6h + V / 16 l h) by token with recomputation: 72 without."""
    model = load_model("gpt_175b")
    layers, hidden = model.layers, model.hidden
    formula = 72.0 * layers * hidden**2
    formula *= 1 + model.sequence / (6 * hidden) + model.vocabulary / (12 * layers * hidden)
    assert model.flops_per_token == pytest.approx(formula, rel=1e-9)


def test_a_configuration_of_hugging_face_is_read(tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert load_model(path).parameters == load_model("llama3_8b").parameters
    del config["hidden_size"]
    path.write_text(json.dumps(config))
    with pytest.raises(ArchgymError, match="lacks hidden_size"):
        load_model(str(path))
    with pytest.raises(ArchgymError, match="cannot read"):
        load_model(str(tmp_path / "confg.json"))


def test_a_configuration_can_be_changed_and_its_sequence_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LATENT, "max_position_embeddings": 163840}))
    changed = {"base": str(path), "sequence": 4096}
    assert load_model(path).sequence == 163840
    assert load_model(changed).sequence == 4096
    assert load_model(changed).parameters == load_model(path).parameters
    with pytest.raises(ArchgymError, match="unknown field 'seq'"):
        load_model({"base": str(path), "seq": 4096})
    with pytest.raises(ArchgymError, match="cannot read"):
        load_model({"base": str(tmp_path / "confg.json")})
    plain = dict.fromkeys(("latent_size", "rotary_size", "query_rank", "value_size"), 0)
    cluster = {"cluster": "dgx_h200", "gpus": 512, "batch": 4096}
    with pytest.raises(ArchgymError, match=r"latent attention .* as base and latent_size"):
        load_training({"model": changed, **cluster})
    for sequence in (4096, 8192):
        model = {**changed, **plain, "sequence": sequence}
        assert f"(sequence {sequence}) on 512" in load_training({"model": model, **cluster}).name


LATENT = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "head_dim": 64,  # the rotary part alone, as newer configurations give it
    "vocab_size": 129280,
    "max_position_embeddings": 4096,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def test_latent_attention_is_read_from_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LATENT))
    model = load_model(path)
    assert model.parameters == pytest.approx(671e9, rel=1e-3), "the report says 671B"
    assert model.parameters == load_model("deepseek_v3").parameters
    path.write_text(json.dumps({"model_type": "a_model_that_sees", "text_config": LATENT}))
    assert load_model(path).parameters == model.parameters
    path.write_text(json.dumps({**LATENT, "q_lora_rank": None}))
    narrow, wide = 1536 * (7168 + 128 * 192), 7168 * 128 * 192
    assert load_model(path).parameters == model.parameters + 61 * (wide - narrow)
    path.write_text(json.dumps({**LATENT, "qk_nope_head_dim": "128"}))
    with pytest.raises(ArchgymError, match="qk_nope_head_dim is '128'"):
        load_model(path)
    with pytest.raises(ArchgymError, match="deepseek_v3 has latent attention"):
        load_training({"model": "deepseek_v3", "cluster": "dgx_h200", "gpus": 512, "batch": 4096})


def test_layers_that_are_not_modelled_are_refused_and_gates_are_found(tmp_path: Path) -> None:
    plain = {**LATENT, "kv_lora_rank": None, "head_dim": 128, "n_routed_experts": None}
    path = tmp_path / "config.json"
    for more in ({"layer_types": ["linear_attention", "full_attention"]}, {"mamba_d_state": 128}):
        path.write_text(json.dumps({**plain, **more}))
        with pytest.raises(ArchgymError, match="state of fixed size"):
            load_model(path)
    gated = {**plain, "model_type": "gemma2", "hidden_act": "gelu_pytorch_tanh"}
    path.write_text(json.dumps(gated))
    with_gate = load_model(path)
    path.write_text(json.dumps({**gated, "model_type": "starcoder2"}))
    assert with_gate.parameters - load_model(path).parameters == 61 * 7168 * 18432


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"base": "llama3_8b", "rotary_size": 64}, "rotary_size is 64; it needs latent_size"),
        ({"base": "llama3_8b", "latent_size": 512}, "kv_heads is 8; with latent_size"),
        ({"base": "deepseek_v3", "rotary_size": 200}, "at most head_size, 192"),
        ("gpt_7.5", "Did you mean 'gpt_7.5b'"),
        ({"base": "gpt_7.5b", "layer": 4}, "Did you mean 'layers'"),
        ({"base": "gpt_7.5b", "layers": 0}, "model: layers is 0"),
        ({"base": "gpt_7.5b", "layers": 2.5}, "whole number"),
        ({"base": "gpt_7.5b", "kv_heads": 5}, "kv_heads is 5"),
        ({"layers": 4}, "'hidden' is missing"),
        (7, "a name"),
    ],
)
def test_models_that_are_not_possible_are_refused(spec: Any, message: str) -> None:
    with pytest.raises(ArchgymError, match=message):
        load_model(spec)


def test_chips_and_clusters_that_are_not_possible_are_refused() -> None:
    with pytest.raises(ArchgymError, match="Did you mean 'a100'"):
        load_chip("a10")
    with pytest.raises(ArchgymError, match="memory_gib is -1"):
        load_chip({"base": "a100", "memory_gib": -1})
    with pytest.raises(ArchgymError, match="Did you mean 'node_gpus'"):
        load_cluster({"base": "dgx_a100", "node_gpu": 4})
    with pytest.raises(ArchgymError, match="pairs of size and"):
        load_stack({"base": "megatron", "matrix_steps": [[1, 2, 3]]})
    with pytest.raises(ArchgymError, match="Did you mean 'efficiency'"):
        load_stack({"base": "megatron", "links": [{"eficiency": 0.5}]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus": 0}, "gpus is 0"),
        ({"gpus": 12}, "whole nodes of 8"),
        ({"batch": "many"}, "batch is 'many'"),
        ({"gpu": 8}, "Did you mean 'gpus'"),
        ({"model": "gpt"}, "unknown model"),
    ],
)
def test_workloads_that_are_not_possible_are_refused(change: dict[str, Any], message: str) -> None:
    spec = {"model": "gpt_1.7b", "cluster": "dgx_a100", "gpus": 8, "batch": 64, **change}
    with pytest.raises(ArchgymError, match=message):
        load_training(spec)
    with pytest.raises(ArchgymError, match="'gpus' is missing"):
        load_training({"model": "gpt_1.7b", "cluster": "dgx_a100", "batch": 64})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory_gb_per_s": float("nan")}, "memory_gb_per_s is nan; it must be a number from"),
        ({"memory_gb_per_s": float("inf")}, "memory_gb_per_s is inf; it must be a number from"),
        ({"matrix_tflops": -1}, "matrix_tflops is -1; it must be a number from"),
        ({"matrix_share": 1.5}, "matrix_share is 1.5; it must be a number from 0.01 to 1"),
        ({"fp8_tflops": 10}, "fp8_tflops is 10; it must be at least matrix_tflops, 989"),
        ({"fp4_tflops": 1000}, "fp4_tflops is 1000; it must be at least fp8_tflops, 1979"),
        ({"vector_tflops": 5000}, "vector_tflops is 5000; it must be at most matrix_tflops, 989"),
        ({"idle_w": 800}, "idle_w is 800; it must be at most power_w, 700"),
        ({"name": 5}, "name is 5; it must be a text"),
    ],
)
def test_chips_that_break_physics_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchgymError, match=message):
        load_chip({"base": "h100", **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node_gpus": 0}, "node_gpus is 0; it must be a number from 1"),
        ({"node_gb_per_s": 0}, "node_gb_per_s is 0; it must be a number from"),
        ({"node_gb_per_s": 4000}, "node_gb_per_s is 4000; it must be at most .* 2039"),
        ({"host_gb_per_s": 60}, "host_gb_per_s is 60 for each of 8 GPUs, 480 together; .* 410"),
        ({"islands": 2}, "between_gb_per_s is 0; with 2 islands it must be above 0"),
        ({"between_gb_per_s": 1}, "between_gb_per_s is 1; with one island it must be 0"),
        ({"chip": {"base": "a100", "idle_w": 500}}, "idle_w is 500; it must be at most power_w"),
    ],
)
def test_clusters_that_break_physics_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchgymError, match=message):
        load_cluster({"base": "dgx_a100", **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"matrix_steps": [[0, 2]]}, "shares above 0 and at most 1"),
        ({"memory_steps": [[0, 0.5], [10, 0.9]]}, "the largest size first"),
        ({"vector_steps": [[10, 0.5]]}, "the last size 0"),
        ({"links": [{"efficiency": 0}]}, "efficiency is 0; it must be a number above 0, at most 1"),
        ({"links": [{"efficiency": 1.5}]}, "efficiency is 1.5; it must be"),
        ({"links": [{"latency_us": -1}]}, "latency_us is -1; it must be a number of at least 0"),
        ({"links": [{"usage": 1}]}, "usage is 1; it must be a number from 0 to below 1"),
        ({"links": [{"p2p": 0}]}, "p2p is 0; it must be a number above 0"),
        ({"links": [{"all_reduce": [1, -2]}]}, "a factor above 0 and a chunk of at least -1"),
    ],
)
def test_stacks_that_break_physics_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchgymError, match=message):
        load_stack({"base": "megatron", **change})


def test_the_hosts_of_many_chips_need_no_figures() -> None:
    """Left out, the memory of a node's processors is as fast as all of its chips copy, or more."""
    links = {"chip": "h100", "node_gb_per_s": 200, "network_gb_per_s": 12.5}
    for chips, expected in ((1, 400), (32, 400), (72, 900), (256, 3200)):
        assert load_cluster({**links, "node_gpus": chips}).host_memory_gb_per_s == expected
    with pytest.raises(ArchgymError, match=r"900 together; it must be at most .*, 400"):
        load_cluster({**links, "node_gpus": 72, "host_memory_gb_per_s": 400})
