"""Which layers of a configuration in Hugging Face's form have experts, and which experts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from archgym.errors import InvalidValueError

__all__ = ["EXPERT_COUNTS", "expert_fields"]

EXPERT_COUNTS: Final = ("num_local_experts", "n_routed_experts", "num_experts")
"""What configurations call the number of experts of a layer."""
_SHARED_WIDTHS: Final = ("shared_expert_intermediate_size", "shared_intermediate_size")
"""Width of one expert that every token visits (Qwen2-MoE, Granite)."""
_STEPS: Final = ("decoder_sparse_step", "interleave_moe_layer_step")
"""With n, the layers n - 1, 2n - 1, ... have experts (Qwen-MoE; Llama 4)."""


def expert_fields(
    path: Path, data: Mapping[str, Any], found: Mapping[str, Any], given: Collection[str]
) -> dict[str, int]:
    """Fields of a model that follow from how a configuration arranges its experts.

    Args:
        path: of the configuration, for messages.
        data: what it holds.
        found: fields that were read from it by name.
        given: fields that the user gives beside the file.

    Raises:
        InvalidValueError: for an arrangement that is not modelled; names the key, and how the
            model can be given all the same.
    """
    if not found.get("experts"):
        _check_dense(path, data, {*found, *given})
        return {}
    fields: dict[str, int] = {}
    if "intermediate_size_mlp" in data:  # Llama 4: intermediate_size is that of an expert
        fields["expert_feedforward"] = found["feedforward"]
        fields["feedforward"] = _number(path, data, "intermediate_size_mlp")
        fields["shared_experts"] = 1
    width = fields.get("expert_feedforward", found.get("expert_feedforward")) or found.get(
        "feedforward", 0
    )
    for key in _SHARED_WIDTHS:
        if data.get(key) and "shared_experts" not in given:
            shared = _number(path, data, key)
            if not width or shared % width:
                raise InvalidValueError(
                    f"{path}: {key} is {shared}; the shared expert must be as wide as a whole "
                    f"number of experts, {width} each. shared_experts can be given beside the "
                    f"file: model: {{base: {path}, shared_experts: 1}}"
                )
            fields["shared_experts"] = shared // width
    if "dense_layers" not in given and "layers" in found:
        fields["dense_layers"] = _dense_layers(path, data, found["layers"])
    return fields


def _check_dense(path: Path, data: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuses to take a model for a dense one whose experts have names that are not read."""
    unread = [
        str(key)
        for key, value in data.items()
        if "expert" in str(key) and isinstance(value, int) and value > 1
    ]
    if unread and "experts" not in known and not any(key in data for key in EXPERT_COUNTS):
        raise InvalidValueError(
            f"{path}: the model has experts ({unread[0]} is {data[unread[0]]}), but the "
            f"configuration lacks {' or '.join(EXPERT_COUNTS)}. What it says of them can be given "
            f"beside the file: model: {{base: {path}, experts: ..., active_experts: ..., "
            "expert_feedforward: ...}"
        )


def _dense_layers(path: Path, data: Mapping[str, Any], layers: int) -> int:
    """How many layers are dense: the first ones, as other arrangements are not modelled."""
    by_key = dict(_dense(path, data, layers))
    dense = set().union(*by_key.values())
    if dense != set(range(len(dense))):
        raise InvalidValueError(
            f"{path}: by {' and '.join(by_key)}, {len(dense)} of the {layers} layers have no "
            "experts, and they are not the first ones; only that is modelled. To count as many, "
            f"all of them first: model: {{base: {path}, dense_layers: {len(dense)}}}"
        )
    return len(dense)


def _dense(path: Path, data: Mapping[str, Any], layers: int) -> Iterator[tuple[str, set[int]]]:
    """The layers without experts, by each key of the configuration that says so."""
    every = range(layers)
    if data.get(key := "first_k_dense_replace"):
        yield key, set(range(min(layers, _number(path, data, key))))
    if data.get(key := "mlp_only_layers"):
        if not isinstance(data[key], list) or not all(i in every for i in data[key]):
            raise InvalidValueError(
                f"{path}: {key} is {data[key]!r:.80}; it must be a list of layers, from 0 to "
                f"{layers - 1}"
            )
        yield key, set(data[key])
    for key in _STEPS:
        if data.get(key) and (step := _number(path, data, key)) > 1:
            yield key, {i for i in every if (i + 1) % step}
    if data.get(key := "moe_layer_freq"):
        if isinstance(data[key], list):  # one entry a layer: 1 with experts, 0 without
            yield key, {i for i, sparse in enumerate(data[key][:layers]) if not sparse}
        elif (step := _number(path, data, key)) > 1:
            yield key, {i for i in every if i % step}


def _number(path: Path, data: Mapping[str, Any], key: str) -> int:
    value = data[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidValueError(
            f"{path}: {key} is {value!r:.80}; it must be a whole number of at least 1"
        )
    return value
