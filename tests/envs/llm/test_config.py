"""Models from a ``config.json``: the published numbers of parameters, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.llm.data.model import load_model
from archgym.envs.llm.training.workload import load_workload
from archgym.errors import ArchgymError
from tests.cli.conftest import Called, call  # noqa: F401 - a fixture

LLAMA: dict[str, Any] = {
    "model_type": "llama",
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
QWEN2_MOE = {
    **LLAMA,
    "model_type": "qwen2_moe",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "vocab_size": 151936,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
LLAMA4_SCOUT = {
    **LLAMA,
    "model_type": "llama4_text",
    "hidden_size": 5120,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_local_experts": 16,
    "num_experts_per_tok": 1,
    "interleave_moe_layer_step": 1,
    "vocab_size": 202048,
}
STARCODER = {
    "model_type": "gpt_bigcode",
    "n_embd": 6144,
    "n_inner": 24576,
    "n_layer": 40,
    "n_head": 48,
    "multi_query": True,
    "n_positions": 8192,
    "vocab_size": 49152,
    "activation_function": "gelu_pytorch_tanh",
}
FALCON_40B = {
    "model_type": "falcon",
    "hidden_size": 8192,
    "num_hidden_layers": 60,
    "num_attention_heads": 128,
    "num_kv_heads": 8,
    "new_decoder_architecture": True,
    "multi_query": True,
    "vocab_size": 65024,
}
QWEN25_SMALL = {
    **LLAMA,
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}
QWEN2_7B = {
    **QWEN25_SMALL,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}
QWEN3_MOE = {
    **LLAMA,
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "vocab_size": 151936,
}
GEMMA2_9B = {
    "model_type": "gemma2",
    "hidden_size": 3584,
    "intermediate_size": 14336,
    "num_hidden_layers": 42,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "vocab_size": 256000,
    "max_position_embeddings": 8192,
    "hidden_activation": "gelu_pytorch_tanh",
}
GPT_OSS = {
    **LLAMA,
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_hidden_layers": 36,
    "num_attention_heads": 64,
    "head_dim": 64,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "vocab_size": 201088,
}
DEEPSEEK_V2_LITE = {
    **LLAMA,
    "model_type": "deepseek_v2",
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "n_routed_experts": 64,
    "num_experts_per_tok": 6,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "vocab_size": 102400,
}


def silent(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration, nothing said of the matrix of the output layer."""
    return {key: value for key, value in config.items() if key != "tie_word_embeddings"}


def written(folder: Path, config: Any, name: str = "config.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(config))
    return path


@pytest.mark.parametrize(
    ("config", "given", "billions"),
    [
        (LLAMA, {}, 8.03),
        ({"text_config": LLAMA, "vision_config": {}}, {}, 8.03),
        (QWEN2_MOE, {}, 14.3),  # Qwen1.5-MoE-A2.7B
        (LLAMA4_SCOUT, {}, 107.8),  # 109 with what sees
        (
            {**LLAMA4_SCOUT, "num_local_experts": 128, "interleave_moe_layer_step": 2},
            {"dense_layers": 24},
            400.6,  # Maverick
        ),
        (STARCODER, {}, 15.5),
        (FALCON_40B, {"sequence": 2048}, 41.3),
        (QWEN25_SMALL, {}, 0.494),  # one table
        (QWEN2_7B, {}, 7.616),  # biases of queries, keys and values are 0.002 %
        (QWEN3_MOE, {}, 30.53),  # heads wider than their share of the stream
        (GEMMA2_9B, {}, 9.242),  # one table, as nothing is said of it
        (GPT_OSS, {}, 116.8),
        (DEEPSEEK_V2_LITE, {}, 15.71),  # shared experts, latent attention
        ({**LLAMA, "hidden_act": None}, {"gated": True}, 8.03),
        (silent(LLAMA), {}, 8.03),  # as a class of transformers says where the file does not
        ({"text_config": silent(LLAMA4_SCOUT)}, {}, 107.8),
        ({"text_config": silent(QWEN2_7B), "tie_word_embeddings": True}, {}, 7.07),
        (silent(FALCON_40B), {"sequence": 2048}, 41.3),
    ],
)
def test_parameters_of_a_configuration_are_the_published_ones(
    config: Any, given: dict[str, Any], billions: float, tmp_path: Path
) -> None:
    model = load_model({"base": str(written(tmp_path, config)), **given})
    assert model.parameters / 1e9 == pytest.approx(billions, rel=0.004)


def test_what_was_read_of_a_model_is_shown(call: Callable[..., Called], tmp_path: Path) -> None:  # noqa: F811
    moe = {"base": str(written(tmp_path, QWEN2_MOE)), "sequence": 4096}
    workload = {"model": moe, "cluster": "dgx_h100", "gpus": 8, "batch": 64}
    shown = call("show", "LLMTraining-v0", "--workload", json.dumps(workload)).out
    assert "14.32e9 parameters, 2.689e9 of them active; 196,608 bytes" in " ".join(shown.split())
    data = call("show", "LLMServing-v0", "--workload", "llama3_70b_h100_8_conv", "--json").json
    assert data["workload_doc"].startswith("70.56e9 parameters; 327,680 bytes of keys")


def test_one_head_of_keys_is_read_from_multi_query(tmp_path: Path) -> None:
    assert load_model(written(tmp_path, STARCODER)).kv_heads == 1
    model = {"base": str(written(tmp_path, FALCON_40B)), "sequence": 2048}
    assert load_model(model).kv_heads == 8


@pytest.mark.parametrize(
    ("change", "dense"),
    [
        ({"mlp_only_layers": [0, 1]}, 2),
        ({"first_k_dense_replace": 3, "moe_layer_freq": 1}, 3),
        ({"moe_layer_freq": [0] + [1] * 23}, 1),
    ],
)
def test_the_first_layers_without_experts_are_counted(
    change: dict[str, Any], dense: int, tmp_path: Path
) -> None:
    assert load_model(written(tmp_path, {**QWEN2_MOE, **change})).dense_layers == dense


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**QWEN2_MOE, "decoder_sparse_step": 2}, r"decoder_sparse_step, 12 of .*dense_layers: 12"),
        ({**QWEN2_MOE, "mlp_only_layers": [3]}, "by mlp_only_layers, 1 of the 24 layers"),
        ({**QWEN2_MOE, "mlp_only_layers": [99]}, "a list of layers, from 0 to 23"),
        ({**QWEN2_MOE, "moe_layer_freq": 2}, "by moe_layer_freq, 12 of the 24 layers"),
        ({**QWEN2_MOE, "moe_layer_freq": "2"}, "moe_layer_freq is '2'; it must be a whole number"),
        ({**QWEN2_MOE, "shared_expert_intermediate_size": 2000}, "as wide as a whole number of ex"),
        ({**QWEN2_MOE, "first_k_dense_replace": 0, "num_experts_per_tok": 64}, "from 1 to experts"),
        ({**LLAMA, "moe_num_experts": 64}, r"has experts \(moe_num_experts is 64\), but"),
        ({**LLAMA, "hidden_act": None}, "lacks hidden_act .*gated: true"),
        ({**LLAMA, "intermediate_size": None}, "lacks intermediate_size .*feedforward: "),
        ({**LLAMA, "vocab_size": 0}, r"config\.json: vocab_size is 0; .* at least 1"),
        ({**LLAMA, "num_hidden_layers": -4}, r"config\.json: num_hidden_layers is -4"),
        ({**LLAMA, "hidden_size": "4096"}, "hidden_size is '4096'; .*without quotes"),
        ({**LLAMA, "hidden_size": 4096.5}, "hidden_size is 4096.5; it must be a whole number"),
        ({**LLAMA, "num_attention_heads": 48, "num_key_value_heads": 48}, "from num_attention_h"),
        ({**LLAMA, "is_encoder_decoder": True}, "it has is_encoder_decoder.* only decoders are"),
        ({**LLAMA, "model_type": "bert"}, "model_type is bert"),
        ({**LLAMA, "layer_types": ["conv", "full_attention"]}, "layer_types has 'conv'"),  # LFM2
        ({**LLAMA, "conv_L_cache": 3}, "it has conv_L_cache"),
        ({**LLAMA, "block_types": ["recurrent", "attention"]}, "it has block_types"),
        ({**LLAMA, "tie_word_embeddings": "false"}, "is 'false'; it must be true or false"),
        ([LLAMA], "a configuration is a mapping, not list"),
    ],
)
def test_what_is_not_modelled_or_not_possible_is_refused(
    config: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ArchgymError, match=message):
        load_model(written(tmp_path, config))


def test_a_file_that_is_not_there_or_in_the_wrong_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArchgymError, match=r"no such file\. Did you mean '.*config\.json'"):
        load_model(str(written(tmp_path, LLAMA).with_name("confg.json")))
    with pytest.raises(ArchgymError, match="no such file, seen from the folder of the command"):
        load_model("none/config.json")
    with pytest.raises(ArchgymError, match=r"as in \{model: my/config.json, cluster: \.\.\., gpus"):
        load_workload("my/config.json")


def test_a_mistyped_key_is_named(tmp_path: Path) -> None:
    config = {**LLAMA, "num_hidden_layer": 32}
    del config["num_hidden_layers"]
    path = written(tmp_path, config)
    with pytest.raises(ArchgymError, match=r"lacks num_hidden_layers .*\(it has 'num_hidden_laye"):
        load_model(path)
    assert load_model({"base": str(path), "layers": 32}).layers == 32


def test_a_model_is_called_as_its_file_or_as_the_folder_of_a_config_json(tmp_path: Path) -> None:
    folder = tmp_path / "my-llama"
    folder.mkdir()
    assert load_model(written(folder, LLAMA)).name == "my-llama"
    paths = [written(folder, LLAMA, f"{name}.json") for name in ("small", "large")]
    cluster = {"cluster": "dgx_h100", "gpus": 64, "batch": 64}
    names = [
        load_workload({"model": {"base": str(path), "sequence": 4096}, **cluster}).name
        for path in paths
    ]
    assert names == [f"{name} (sequence 4096) on 64 of dgx_h100" for name in ("small", "large")]
    other = {"base": str(paths[0]), "layers": 16}
    assert load_model(other).name == "small, changed"
