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
}
"""Names that configurations have for each field of a model, the first that is there counts."""
_OPTIONAL: Final = tuple(_NAMES)[6:]
_GATED: Final = ("silu", "swiglu", "swish")
"""Activations that the gated blocks of Llama and its kin have."""


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
    found: dict[str, Any] = {"name": path.parent.name or path.stem, "doc": str(path.name)}
    for field, names in _NAMES.items():
        given = [data[name] for name in names if data.get(name) is not None]
        if given:
            found[field] = given[0]
        elif field == "feedforward" and "hidden" in found:
            found[field] = 4 * found["hidden"]  # GPT-2 leaves it out
        elif field not in _OPTIONAL:
            raise InvalidValueError(f"{path}: the configuration lacks {' or '.join(names)}")
    found["gated"] = data.get("hidden_act", data.get("activation_function", "")) in _GATED
    found["tied"] = bool(data.get("tie_word_embeddings", True))
    found["source"] = "a config.json in Hugging Face's form"
    return found
