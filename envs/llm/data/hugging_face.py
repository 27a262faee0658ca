"""A model's ``config.json`` in Hugging Face's form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from archgym.errors import InvalidValueError
from archgym.reading.files import meant_file, read_json

__all__ = ["read_config"]

_LIMIT_BYTES: Final = 1 << 20
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "feedforward": ("intermediate_size", "n_inner", "ffn_dim"),
    "heads": ("num_attention_heads", "n_head"),
    "vocabulary": ("vocab_size",),
    "sequence": ("max_position_embeddings", "n_positions"),
    "kv_heads": ("num_key_value_heads",),
    "head_size": ("head_dim",),
    "experts": ("num_local_experts", "n_routed_experts", "num_experts"),
    "active_experts": ("num_experts_per_tok",),
    "shared_experts": ("n_shared_experts",),
    "expert_feedforward": ("moe_intermediate_size",),
    "dense_layers": ("first_k_dense_replace",),
    "latent_size": ("kv_lora_rank",),
    "rotary_size": ("qk_rope_head_dim",),
    "query_rank": ("q_lora_rank",),
    "value_size": ("v_head_dim",),
}
"""Names that configurations have for each field of a model, the first that is there counts."""
_OPTIONAL: Final = tuple(_NAMES)[6:]
_GATED: Final = ("silu", "swiglu", "swish")
"""Activations that the gated blocks of Llama and its kin have."""
_GATED_KINDS: Final = ("gemma",)
"""Beginnings of ``model_type`` whose blocks have a gate with another activation."""
_LATENT: Final = ("rotary_size", "query_rank", "value_size")
_RECURRENT: Final = ("linear_attention", "mamba", "recurrent")
"""Kinds of layers without a cache that grows, by their names in ``layer_types``."""
_RECURRENT_KEYS: Final = (
    "mamba_d_state", "ssm_cfg", "ssm_state_size", "state_size", "linear_num_value_heads",
    "full_attention_interval", "attn_type_list", "linear_attn_config",
)  # fmt: skip
"""Keys that only configurations with such layers have."""


def read_config(path: Path) -> dict[str, Any]:
    """The fields of a model from a configuration file.

    Args:
        path: a ``config.json``.

    Returns:
        Fields of :class:`archgym.envs.llm.data.model.Model`.

    Raises:
        InvalidValueError: if the file cannot be read or lacks a field; names both.
    """
    try:
        data = read_json(path, _LIMIT_BYTES)
    except (OSError, ValueError) as error:
        hint = meant_file(path) if isinstance(error, FileNotFoundError) else ""
        raise InvalidValueError(f"{path}: cannot read the configuration: {error}{hint}") from None
    if not isinstance(data, Mapping):
        raise InvalidValueError(f"{path}: a configuration is a mapping, not {type(data).__name__}")
    if isinstance(data.get("text_config"), Mapping):  # of a model that also sees or hears
        data = data["text_config"]
    _check_layers(path, data)
    found: dict[str, Any] = {"name": path.parent.name or path.stem, "doc": str(path.name)}
    for field, names in _NAMES.items():
        given = [data[name] for name in names if data.get(name) is not None]
        if given:
            found[field] = given[0]
        elif field == "feedforward" and "hidden" in found:
            found[field] = 4 * found["hidden"]  # GPT-2 leaves it out
        elif field not in _OPTIONAL:
            raise InvalidValueError(f"{path}: the configuration lacks {' or '.join(names)}")
    if found.get("latent_size"):
        # Some configurations give the rotary part alone as head_dim.
        found["head_size"] = _whole(path, data, "qk_nope_head_dim") + _whole(
            path, data, "qk_rope_head_dim"
        )
    else:
        found = {name: value for name, value in found.items() if name not in _LATENT}
    kind = str(data.get("model_type", ""))
    activation = data.get("hidden_act", data.get("activation_function", ""))
    found["gated"] = activation in _GATED or kind.startswith(_GATED_KINDS)
    found["tied"] = bool(data.get("tie_word_embeddings", True))
    found["source"] = "a config.json in Hugging Face's form"
    return found


def _check_layers(path: Path, data: Mapping[str, Any]) -> None:
    """Refuses layers that are no attention over all tokens before."""
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


def _whole(path: Path, data: Mapping[str, Any], key: str) -> int:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidValueError(
            f"{path}: {key} is {value!r:.80}; beside kv_lora_rank it must be a whole number of at "
            "least 1"
        )
    return value
