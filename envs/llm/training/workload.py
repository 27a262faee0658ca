"""Workloads: a model, a cluster, how many of its GPUs, and the batch of an iteration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.data.cluster import Cluster, cluster_names, load_cluster
from archgym.envs.llm.data.fields import LARGEST, Entry, spelled_out
from archgym.envs.llm.data.links import read_links
from archgym.envs.llm.data.model import LATENT, Model, load_model, model_names
from archgym.envs.llm.data.stack import Stack, load_stack, stack_names
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["DEFAULT_WORKLOAD", "WORKLOADS", "Workload", "WorkloadSpec", "load_workload"]

WorkloadSpec = str | Mapping[str, Any]
_KEYS = ("model", "cluster", "gpus", "batch")
_OPTIONAL = ("stack", "links", "training_gtokens")
_DEFAULT_STACK = "megatron"
_TOKENS_BY_PARAMETER = 20.0
"""Of a training run, where none are given: about what Hoffmann et al. (2022) found best."""


@dataclass(frozen=True)
class Workload:
    """What is trained on what.

    Attributes:
        name: label in tables and datasets.
        model: the transformer.
        cluster: chips and links.
        stack: software.
        gpus: GPUs that are used; the most of them, where a plan chooses.
        batch: sequences an iteration.
        links: bandwidths between nodes, where each was measured: 1e9 bytes a second and GPU, shape
            (n_nodes, n_nodes).
        gpu_counts: numbers of GPUs among which a plan chooses, ascending; one, if it does not.
        training_gtokens: tokens of the whole training, in 1e9.
    """

    name: str
    model: Model
    cluster: Cluster
    stack: Stack
    gpus: int
    batch: int
    links: NDArray[np.float64] | None = field(default=None, compare=False)
    gpu_counts: tuple[int, ...] = ()
    training_gtokens: float = 0.0

    def __post_init__(self) -> None:
        if not self.gpu_counts:
            object.__setattr__(self, "gpu_counts", (self.gpus,))
        if not self.training_gtokens:
            tokens = _TOKENS_BY_PARAMETER * self.model.parameters
            object.__setattr__(self, "training_gtokens", tokens / 1e9)

    @property
    def tokens(self) -> int:
        """Tokens an iteration."""
        return self.batch * self.model.sequence

    @property
    def chooses_gpus(self) -> bool:
        """Whether a plan chooses how many GPUs it uses."""
        return len(self.gpu_counts) > 1

    def on(self, gpus: int) -> Workload:
        """The same on so many GPUs."""
        return replace(self, gpus=gpus, gpu_counts=(gpus,))

    @property
    def sha256(self) -> str:
        """Hash of everything that metrics depend on."""
        data = {
            "model": _figures(self.model),
            "cluster": _figures(self.cluster),
            "chip": _figures(self.cluster.device),
            "stack": _figures(self.stack),
            "gpus": self.gpu_counts,
            "batch": self.batch,
            "training_gtokens": self.training_gtokens,
        }
        if self.links is not None:
            data["links"] = self.links.tolist()
        text = json.dumps(data, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()


def _figures(entry: Entry) -> dict[str, Any]:
    """What metrics depend on: all but names, prose, and what only serves: 4 bits, latents."""
    others = ("name", "doc", "source", "base", "chip", "fp4_tflops", "fp4_share", *LATENT)
    return {key: value for key, value in asdict(entry).items() if key not in others}


def _named(doc: str, *values: Any) -> tuple[str, dict[str, Any]]:
    return doc, dict(zip(_KEYS, values, strict=False))


WORKLOADS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "gpt_1.7b_a100_32": _named("GPT 1.7B on 32 A100", "gpt_1.7b", "dgx_a100", 32, 512),
    "gpt_7.5b_a100_64": _named("GPT 7.5B on 64 A100", "gpt_7.5b", "dgx_a100", 64, 512),
    "gpt_18.4b_a100_256": _named("GPT 18.4B on 256 A100", "gpt_18.4b", "dgx_a100", 256, 1024),
    "gpt_175b_a100_512": _named("GPT-3 175B on 512 A100", "gpt_175b", "dgx_a100", 512, 1536),
    "gpt_1t_a100_3072": _named("GPT 1T on 3,072 A100", "gpt_1t", "dgx_a100", 3072, 3072),
    "llama3_8b_h100_64": _named("Llama 3 8B on 64 H100", "llama3_8b", "dgx_h100", 64, 256),
    "llama3_70b_h100_256": _named("Llama 3 70B on 256 H100", "llama3_70b", "dgx_h100", 256, 512),
    "llama3_405b_h100_1024": _named(
        "Llama 3.1 405B on 1,024 H100", "llama3_405b", "dgx_h100", 1024, 1536
    ),
    "llama3_70b_gb200_144": _named(
        "Llama 3 70B on two racks of GB200", "llama3_70b", "gb200_nvl72", 144, 576
    ),
    "mixtral_8x7b_h100_64": _named("Mixtral 8x7B on 64 H100", "mixtral_8x7b", "dgx_h100", 64, 512),
    "deepseek_v3_like_h200_512": _named(
        "a mixture of 256 experts on 512 H200", "deepseek_v3_like", "dgx_h200", 512, 4096
    ),
    "gpt_7.5b_islands_32": _named(
        "GPT 7.5B on two islands of A100 with unlike networks", "gpt_7.5b", "two_islands", 32, 512
    ),
}
"""Workloads that ship."""
DEFAULT_WORKLOAD: Final = "gpt_7.5b_a100_64"


def load_workload(spec: WorkloadSpec) -> Workload:
    """A workload by name, or from a mapping.

    Args:
        spec: a name of :data:`WORKLOADS`, or a mapping with ``model`` (a name, the path of a
            ``config.json``, or a mapping that may change either), ``cluster`` (a name or a
            mapping), ``gpus`` (a number, or a list of numbers among which plans choose), ``batch``
            (sequences an iteration) and perhaps ``stack`` (``megatron`` unless given), ``links``
            (the path of a matrix, or synthetic ones; see
            :func:`archgym.envs.llm.data.links.read_links`) and
            ``training_gtokens`` (1e9 tokens of the whole training; 20 by parameter unless given).

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    shipped = {name: mapping for name, (_, mapping) in WORKLOADS.items()}
    label, spec = spelled_out("workload", spec, shipped, _KEYS)
    for key in spec:
        if key not in _KEYS + _OPTIONAL:
            raise UnknownNameError("key", key, _KEYS + _OPTIONAL, "workload")
    for key in _KEYS:
        if key not in spec:
            raise InvalidValueError(f"workload: {key!r} is missing; {_meaning(key)}")
    model, cluster = load_model(spec["model"]), load_cluster(spec["cluster"])
    if model.latent_size:
        raise InvalidValueError(
            f"workload: model {model.name} has latent attention (latent_size is "
            f"{model.latent_size}), which is modelled for serving only; for plain attention of its "
            f"heads, give model as a mapping with its name or path as base and {', '.join(LATENT)} "
            "each 0, or take deepseek_v3_like"
        )
    stack = load_stack(spec.get("stack", _DEFAULT_STACK))
    counts, batch = _gpu_counts(spec["gpus"], cluster), _whole("batch", spec["batch"])
    links = None
    if "links" in spec:
        if len(counts) > 1:
            raise InvalidValueError(
                f"workload: gpus is {list(counts)}; with links it must be one number, that of the "
                "nodes in the matrix"
            )
        nodes = max(1, counts[0] // cluster.node_gpus)
        links = read_links(spec["links"], nodes, cluster.network_gb_per_s)
    gtokens = _gtokens(spec["training_gtokens"]) if "training_gtokens" in spec else 0.0
    several = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    named = model.name
    if spec["model"] not in list(model_names()):  # a config.json names the longest sequence only
        named += f" (sequence {model.sequence})"
    label = label or f"{named} on {several} of {cluster.name}{_links_named(spec)}"
    return Workload(label, model, cluster, stack,
                    counts[-1], batch, links, counts, gtokens)  # fmt: skip


def _links_named(spec: Mapping[str, Any]) -> str:
    """What a label says of links, so that workloads with different ones can be told apart."""
    links = spec.get("links")
    if links is None:
        return ""
    if isinstance(links, Mapping):
        return f", synthetic links {links.get('seed', 0)}"
    return f", links {Path(links).name}"


def _gpu_counts(value: Any, cluster: Cluster) -> tuple[int, ...]:
    """The numbers of GPUs of a workload, ascending."""
    values = value if isinstance(value, list | tuple) else [value]
    if not values:
        raise InvalidValueError("workload: gpus is an empty list; it must have a number of GPUs")
    counts = sorted(_whole("gpus", one) for one in values)
    for gpus in counts:
        if counts.count(gpus) > 1:
            raise InvalidValueError(f"workload: gpus has {gpus} twice")
        if gpus > cluster.node_gpus and gpus % cluster.node_gpus:
            raise InvalidValueError(
                f"workload: gpus is {gpus}; more than one node must be whole nodes of "
                f"{cluster.node_gpus} GPUs"
            )
        if gpus % cluster.islands:
            raise InvalidValueError(
                f"workload: gpus is {gpus}; it must be a multiple of the {cluster.islands} islands"
            )
    return tuple(counts)


def _gtokens(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= LARGEST:
        raise InvalidValueError(
            f"workload: training_gtokens is {value!r:.80}; it must be a number above 0, of 1e9 "
            f"tokens, at most {LARGEST:g}"
        )
    return float(value)


def _whole(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20:
        raise InvalidValueError(
            f"workload: {key} is {value!r:.80}; it must be a whole number from 1 to {1 << 20:,}"
        )
    return value


def _meaning(key: str) -> str:
    named = {"model": model_names, "cluster": cluster_names, "stack": stack_names}
    if key in named:
        return f"it is a mapping or one of {', '.join(named[key]())}"
    several = " or a list of them, among which plans choose" if key == "gpus" else ""
    return f"it is a whole number{several}"
