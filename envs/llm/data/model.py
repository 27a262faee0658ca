"""Transformers: their shapes, parameters and floating-point operations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from archgym.envs.llm.data.fields import Entry, catalogue, field, read_entry
from archgym.envs.llm.data.hugging_face import read_config
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["LATENT", "Model", "load_model", "model_names"]

_FILE = "models.yaml"
LATENT = ("latent_size", "rotary_size", "query_rank", "value_size")
"""Fields of models with latent attention."""


@dataclass(frozen=True)
class Model(Entry):
    """A decoder-only transformer.

    Attributes:
        layers: transformer layers.
        hidden: width of the residual stream.
        feedforward: inner width of the dense feed-forward blocks.
        heads: attention heads.
        vocabulary: tokens; 0 leaves out embedding and output layer.
        sequence: tokens a sequence.
        kv_heads: heads of keys and values; 0 for as many as ``heads``.
        head_size: width of a head; 0 for ``hidden / heads``.
        gated: whether feed-forward blocks have a gate (SwiGLU: three matrices instead of two).
        tied: whether embedding and output layer share their matrix.
        experts: experts of a layer; 0 for a dense model.
        active_experts: experts that a token visits.
        shared_experts: experts that every token visits.
        expert_feedforward: inner width of an expert.
        dense_layers: first layers without experts.
        latent_size: with latent attention (DeepSeek-V2), width of the vector from which keys and
            values of all heads are computed, and which is cached instead of them; 0 without.
        rotary_size: with latent attention, width of the part of a key that carries its position,
            cached beside; the last part of ``head_size``.
        query_rank: with latent attention, inner width of the product that gives the queries; 0 for
            one product.
        value_size: with latent attention, width of a head's values; 0 for ``head_size``.
    """

    layers: int = field(1)
    hidden: int = field(1)
    feedforward: int = field(1)
    heads: int = field(1)
    vocabulary: int = field(0)
    sequence: int = field(1)
    kv_heads: int = field(0, default=0)
    head_size: int = field(0, default=0)
    gated: bool = field(default=False)
    tied: bool = field(default=True)
    experts: int = field(0, default=0)
    active_experts: int = field(0, default=0)
    shared_experts: int = field(0, default=0)
    expert_feedforward: int = field(0, default=0)
    dense_layers: int = field(0, default=0)
    latent_size: int = field(0, default=0)
    rotary_size: int = field(0, default=0)
    query_rank: int = field(0, default=0)
    value_size: int = field(0, default=0)

    def __post_init__(self) -> None:
        if not self.kv_heads:
            object.__setattr__(self, "kv_heads", self.heads)
        if not self.head_size:
            if self.hidden % self.heads:
                raise InvalidValueError(
                    f"model: hidden is {self.hidden}; without head_size it must be a multiple of "
                    f"heads, {self.heads}"
                )
            object.__setattr__(self, "head_size", self.hidden // self.heads)
        if self.heads % self.kv_heads:
            raise InvalidValueError(
                f"model: kv_heads is {self.kv_heads}; it must divide heads, {self.heads}"
            )
        self._check_latent()
        if self.experts and not 1 <= self.active_experts <= self.experts:
            raise InvalidValueError(
                f"model: active_experts is {self.active_experts}; it must be from 1 to experts, "
                f"{self.experts}"
            )
        if self.dense_layers > self.layers:
            raise InvalidValueError(
                f"model: dense_layers is {self.dense_layers}; it must be at most layers, "
                f"{self.layers}"
            )
        if self.experts and not self.expert_feedforward:
            object.__setattr__(self, "expert_feedforward", self.feedforward)

    def _check_latent(self) -> None:
        """Refuses fields of latent attention that do not go together."""
        if not self.latent_size:
            for name in LATENT[1:]:
                if getattr(self, name):
                    raise InvalidValueError(
                        f"model: {name} is {getattr(self, name)}; it needs latent_size"
                    )
            return
        if self.kv_heads != self.heads:
            raise InvalidValueError(
                f"model: kv_heads is {self.kv_heads}; with latent_size every head has keys of its "
                f"own, so it must be heads, {self.heads}, or be left out"
            )
        if self.rotary_size > self.head_size:
            raise InvalidValueError(
                f"model: rotary_size is {self.rotary_size}; it must be at most head_size, "
                f"{self.head_size}"
            )
        if not self.value_size:
            object.__setattr__(self, "value_size", self.head_size)

    @property
    def attention_parameters(self) -> int:
        """Parameters of the attention block of a layer, without norms."""
        query = self.heads * self.head_size
        if self.latent_size:
            common, own = self.latent_parameters
            return common + own
        return 2 * self.hidden * query + 2 * self.hidden * self.kv_heads * self.head_size

    @property
    def latent_parameters(self) -> tuple[int, int]:
        """Parameters of latent attention in a layer: those that heads share, and those of heads."""
        query = self.heads * self.head_size
        common = self.hidden * (self.query_rank + self.latent_size + self.rotary_size)
        own = (self.query_rank or self.hidden) * query
        expanded = self.head_size - self.rotary_size + self.value_size
        own += self.heads * (self.latent_size * expanded + self.value_size * self.hidden)
        return common, own

    @property
    def matrices(self) -> int:
        """Matrices of a feed-forward block: two, or three with a gate."""
        return 3 if self.gated else 2

    @property
    def parameters(self) -> int:
        """All parameters, embedding included.

        Biases of products and learned positions are left out: 1.3 % of a GPT of 125e6 parameters,
        less than 0.2 % of those from 1e9 on.
        """
        dense = self.layers if not self.experts else self.dense_layers
        block = self.matrices * self.hidden * self.feedforward
        expert = self.matrices * self.hidden * self.expert_feedforward
        router = self.hidden * self.experts
        sparse = (self.experts + self.shared_experts) * expert + router
        layers = self.layers * (self.attention_parameters + 4 * self.hidden)
        layers += dense * block + (self.layers - dense) * sparse
        return layers + self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def expert_parameters(self) -> int:
        """Parameters of the experts among which tokens choose; 0 for a dense model."""
        sparse = self.layers - self.dense_layers
        return sparse * self.experts * self.matrices * self.hidden * self.expert_feedforward

    @property
    def active_parameters(self) -> int:
        """Parameters that a token visits, embedding included: all of a dense model."""
        if not self.experts:
            return self.parameters
        unvisited = self.experts - self.active_experts
        return self.parameters - self.expert_parameters * unvisited // self.experts

    @property
    def cached_bytes(self) -> int:
        """Keys and values of a token in all layers, with 16 bits, bytes."""
        values = 2 * self.kv_heads * self.head_size
        return 2 * self.layers * (self.latent_size + self.rotary_size or values)

    @property
    def summary(self) -> str:
        """One line by which it can be checked that a configuration was read as it was meant."""
        active = f", {self.active_parameters / 1e9:.4g}e9 of them active" if self.experts else ""
        return (
            f"{self.parameters / 1e9:.4g}e9 parameters{active}; {self.cached_bytes:,} bytes of "
            "keys and values a token in 16 bits"
        )

    @property
    def flops_per_token(self) -> float:
        """Operations that training needs by token, forward and backward, nothing recomputed.

        Matrix products only; attention as if no entry were masked (Narayanan et al., SC 2021).
        """
        dense = self.layers if not self.experts else self.dense_layers
        block = self.matrices * self.hidden * self.feedforward
        expert = self.matrices * self.hidden * self.expert_feedforward
        visited = (self.active_experts + self.shared_experts) * expert + self.hidden * self.experts
        widths = self.head_size + (self.value_size or self.head_size)
        attention = self.sequence * self.heads * widths
        layers = self.layers * (self.attention_parameters + attention)
        layers += dense * block + (self.layers - dense) * visited
        return 6.0 * (layers + self.vocabulary * self.hidden)


def load_model(spec: str | Path | Mapping[str, Any]) -> Model:
    """A model by name, by the path of a ``config.json``, or from a mapping.

    Args:
        spec: a name of :func:`model_names`, the path of a configuration in Hugging Face's form
            (it ends in ``.json``), or a mapping of fields, where ``base`` is the name or path of
            one to change.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    if _is_config(spec):
        return _from_config(Path(spec), {})
    if isinstance(spec, Mapping) and _is_config(spec.get("base")):
        changes = {key: value for key, value in spec.items() if key != "base"}
        return _from_config(Path(spec["base"]), changes)
    try:
        return read_entry(Model, spec, _FILE, "model")
    except UnknownNameError as error:
        if isinstance(spec, str):
            error.args = (f"{error} The path of a config.json (ends in .json) names others.",)
        raise


def _from_config(path: Path, changes: Mapping[str, Any]) -> Model:
    """The model of a configuration file, some of its fields changed."""
    config = read_config(path, changes.keys())
    fields = {**config.fields, **changes}
    if not set(changes) <= {"name", "sequence"}:
        fields["name"] = changes.get("name", f"{config.fields['name']}, changed")
    try:
        return read_entry(Model, fields, _FILE, "model")
    except InvalidValueError as error:
        named = [
            f"{field} from {key}"
            for field, key in config.keys.items()
            if field not in changes and field != key and re.search(rf"\b{field}\b", str(error))
        ]
        where = f" (read: {', '.join(named)})" if named else ""
        raise InvalidValueError(f"{path}: {error}{where}") from None


def _is_config(spec: Any) -> TypeGuard[str | Path]:
    return isinstance(spec, Path) or (isinstance(spec, str) and spec.endswith(".json"))


def model_names() -> dict[str, str]:
    """The models that ship, with a line on each."""
    return {name: str(entry["doc"]) for name, entry in catalogue(_FILE).items()}
