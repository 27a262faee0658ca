"""A model's ``config.json`` in Hugging Face's form."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from archgym.envs.llm.data.experts import EXPERT_COUNTS, expert_fields
from archgym.errors import InvalidValueError
from archgym.reading.files import meant_file, read_json

__all__ = ["Config", "read_config"]

_LIMIT_BYTES: Final = 1 << 20
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "feedforward": ("intermediate_size", "n_inner", "ffn_dim"),
    "heads": ("num_attention_heads", "n_head"),
    "vocabulary": ("vocab_size",),
    "sequence": ("max_position_embeddings", "n_positions"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "head_size": ("head_dim",),
    "experts": EXPERT_COUNTS,
    "active_experts": ("num_experts_per_tok",),
    "shared_experts": ("n_shared_experts", "num_shared_experts"),
    "expert_feedforward": ("moe_intermediate_size",),
    "latent_size": ("kv_lora_rank",),
    "rotary_size": ("qk_rope_head_dim",),
    "query_rank": ("q_lora_rank",),
    "value_size": ("v_head_dim",),
}
"""Names that configurations have for each field of a model, the first that is there counts."""
_REQUIRED: Final = tuple(_NAMES)[:6]
_PARTS: Final = ("text_config", "llm_config", "language_config")
"""What the language part is called in models that also see or hear."""
_WIDE_KINDS: Final = ("gpt2", "gpt_bigcode", "gptj", "gpt_neo", "codegen", "falcon", "bloom")
"""Kinds (``model_type``) that may leave out the feed-forward width: four times the hidden one."""
_ACTIVATIONS: Final = ("hidden_act", "hidden_activation", "activation_function", "activation")
_GATED: Final = ("silu", "swiglu", "swish")
"""Activations that the gated blocks of Llama and its kin have."""
_GATED_KINDS: Final = ("gemma",)
"""Beginnings of ``model_type`` whose blocks have a gate with another activation."""
_TIED: Final = "tie_word_embeddings"
_OWN_OUTPUT_KINDS: Final = (
    "llama", "mllama", "mistral", "mixtral", "qwen2", "qwen3", "phi", "deepseek", "glm", "gpt_oss",
    "gpt_neox", "gptj", "codegen", "granite", "nemotron", "olmo", "stablelm", "exaone4", "apertus",
    "seed_oss", "persimmon",
)  # fmt: skip
"""Beginnings of ``model_type`` whose output layer has a matrix of its own where a file says nothing
of it (:data:`_TIED` in the configuration classes of transformers 4.56); of others it is
that of the embedding."""
_LATENT: Final = ("rotary_size", "query_rank", "value_size")
_ENCODER_KEYS: Final = ("is_encoder_decoder", "encoder_layers", "num_decoder_layers")
"""Keys that only models with an encoder set."""
_RECURRENT: Final = ("linear_attention", "mamba", "recurrent", "conv")
"""Kinds of layers without a cache that grows, by their names in ``layer_types``."""
_RECURRENT_KEYS: Final = (
    "mamba_d_state", "ssm_cfg", "ssm_state_size", "state_size", "linear_num_value_heads",
    "full_attention_interval", "attn_type_list", "linear_attn_config", "block_types",
    "conv_L_cache",
)  # fmt: skip
"""Keys that only configurations with such layers have."""


@dataclass(frozen=True)
class Config:
    """What a configuration file says of a model.

    Attributes:
        fields: fields of :class:`archgym.envs.llm.data.model.Model`.
        keys: what the file calls them, for messages.
    """

    fields: Mapping[str, Any]
    keys: Mapping[str, str]


def read_config(path: Path, given: Collection[str] = ()) -> Config:
    """The fields of a model from a configuration file.

    Args:
        path: a ``config.json``.
        given: fields that the user gives beside the file, which it may therefore leave out.

    Raises:
        InvalidValueError: if the file cannot be read, lacks a field, has a value that is not
            possible, or describes what is not modelled; names the file and the key.
    """
    try:
        whole = read_json(path, _LIMIT_BYTES)
    except FileNotFoundError:
        place = "" if path.is_absolute() else ", seen from the folder of the command"
        raise InvalidValueError(
            f"{path}: cannot read the configuration: there is no such file{place}{meant_file(path)}"
        ) from None
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"{path}: cannot read the configuration: {error}") from None
    if not isinstance(whole, Mapping):
        raise InvalidValueError(f"{path}: a configuration is a mapping, not {type(whole).__name__}")
    parts = (whole[part] for part in _PARTS if isinstance(whole.get(part), Mapping))
    data = next(parts, whole)
    _check_kind(path, data)
    keys = {
        field: next(key for key in names if data.get(key) is not None)
        for field, names in _NAMES.items()
        if any(data.get(key) is not None for key in names)
    }
    found: dict[str, Any] = {
        field: _whole(path, data, key, least=1 if field in _REQUIRED else 0)
        for field, key in keys.items()
    }
    kind = str(data.get("model_type", ""))
    if "feedforward" not in keys and (kind in _WIDE_KINDS or "n_embd" in data):
        found["feedforward"] = 4 * found.get("hidden", 0)
    _check_complete(path, data, {*found, *given})
    if data.get("multi_query") is True and not data.get("new_decoder_architecture"):
        found["kv_heads"] = 1  # of StarCoder and the first Falcon, whatever num_kv_heads says
    if found.get("latent_size"):
        # Some configurations give the rotary part alone as head_dim.
        rotary = _whole(path, data, "qk_rope_head_dim", least=1)
        found["head_size"] = _whole(path, data, "qk_nope_head_dim", least=1) + rotary
    else:
        found = {name: value for name, value in found.items() if name not in _LATENT}
    found |= expert_fields(path, data, found, given)
    if "gated" not in given:
        found["gated"] = _gated(path, data, kind)
    if "tied" not in given:
        found["tied"] = _tied(path, data if _TIED in data else whole, kind)
    found |= {
        "name": path.stem if path.stem != "config" else path.absolute().parent.name or path.stem,
        "doc": path.name,
        "source": "a config.json in Hugging Face's form",
    }
    return Config(found, keys)


def _check_kind(path: Path, data: Mapping[str, Any]) -> None:
    """Refuses models that are no decoder with attention over all tokens before in each layer."""
    encoder = next((key for key in _ENCODER_KEYS if data.get(key)), "")
    if encoder or "bert" in str(data.get("model_type", "")):
        reason = f"it has {encoder}" if encoder else f"model_type is {data['model_type']}"
        raise InvalidValueError(
            f"{path}: the model has an encoder ({reason}), which is not modelled; only decoders are"
        )
    kinds = data.get("layer_types")
    named = [str(kind) for kind in kinds] if isinstance(kinds, list) else []
    other = next((kind for kind in named if any(one in kind for one in _RECURRENT)), "")
    key = next((key for key in _RECURRENT_KEYS if data.get(key)), "")
    if other or key:
        raise InvalidValueError(
            f"{path}: the model has layers with a state of fixed size "
            f"({f'layer_types has {other!r}' if other else f'it has {key}'}), which are not "
            "modelled; only attention over the tokens before is"
        )


def _check_complete(path: Path, data: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuses a configuration without a field that every model has."""
    for field in _REQUIRED:
        if field in known:
            continue
        names = _NAMES[field]
        there = [str(key) for key, value in data.items() if value is not None]
        near = difflib.get_close_matches(names[0], there, n=1, cutoff=0.85)
        meant = f" (it has {near[0]!r})" if near else ""
        raise InvalidValueError(
            f"{path}: the configuration lacks {' or '.join(names)}{meant}. It can be given beside "
            f"the file: model: {{base: {path}, {field}: ...}}"
        )


def _gated(path: Path, data: Mapping[str, Any], kind: str) -> bool:
    """Whether feed-forward blocks have a gate."""
    activation = next((data[key] for key in _ACTIVATIONS if data.get(key) is not None), None)
    if kind.startswith(_GATED_KINDS):
        return True
    if activation is None and kind not in _WIDE_KINDS:
        raise InvalidValueError(
            f"{path}: the configuration lacks {' or '.join(_ACTIVATIONS[:3])}, which tells whether "
            f"feed-forward blocks have a gate ({', '.join(_GATED)} do). It can be given beside the "
            f"file: model: {{base: {path}, gated: true}}"
        )
    return activation in _GATED


def _tied(path: Path, data: Mapping[str, Any], kind: str) -> bool:
    """Whether embedding and output layer share their matrix."""
    value = data.get(_TIED, not kind.startswith(_OWN_OUTPUT_KINDS))
    if not isinstance(value, bool | None):
        raise InvalidValueError(f"{path}: {_TIED} is {value!r:.80}; it must be true or false")
    return bool(value)


def _whole(path: Path, data: Mapping[str, Any], key: str, least: int) -> int:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        quoted = ", without quotes" if isinstance(value, str) and value.strip().isdigit() else ""
        raise InvalidValueError(
            f"{path}: {key} is {value!r:.80}; it must be a whole number of at least {least}{quoted}"
        )
    return value
