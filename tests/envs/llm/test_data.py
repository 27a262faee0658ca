"""Chips, clusters, models and stacks: what ships, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.llm.data.cluster import cluster_names, load_chip, load_cluster
from archgym.envs.llm.data.model import load_model, model_names
from archgym.envs.llm.data.stack import load_stack, stack_names
from archgym.envs.llm.training.workload import WORKLOADS, load_workload
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
        assert load_workload(name).name == name


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


@pytest.mark.parametrize(
    ("spec", "message"),
    [
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
        load_workload(spec)
    with pytest.raises(ArchgymError, match="'gpus' is missing"):
        load_workload({"model": "gpt_1.7b", "cluster": "dgx_a100", "batch": 64})
