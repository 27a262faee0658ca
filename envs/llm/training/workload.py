"""Workloads: a model, a cluster, how many of its GPUs, and the batch of an iteration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from archgym.envs.llm.data.cluster import Cluster, cluster_names, load_cluster
from archgym.envs.llm.data.model import Model, load_model, model_names
from archgym.envs.llm.data.stack import Stack, load_stack, stack_names
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["DEFAULT_WORKLOAD", "WORKLOADS", "Workload", "WorkloadSpec", "load_workload"]

WorkloadSpec = str | Mapping[str, Any]
_KEYS = ("model", "cluster", "gpus", "batch", "stack")
_DEFAULT_STACK = "megatron"


@dataclass(frozen=True)
class Workload:
    """What is trained on what.

    Attributes:
        name: label in tables and datasets.
        model: the transformer.
        cluster: chips and links.
        stack: software.
        gpus: GPUs that are used.
        batch: sequences an iteration.
    """

    name: str
    model: Model
    cluster: Cluster
    stack: Stack
    gpus: int
    batch: int

    @property
    def tokens(self) -> int:
        """Tokens an iteration."""
        return self.batch * self.model.sequence

    @property
    def sha256(self) -> str:
        """Hash of everything that metrics depend on."""
        data = {
            "model": asdict(self.model),
            "cluster": asdict(self.cluster),
            "chip": asdict(self.cluster.device),
            "stack": asdict(self.stack),
            "gpus": self.gpus,
            "batch": self.batch,
        }
        text = json.dumps(data, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()


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
        spec: a name of :data:`WORKLOADS`, or a mapping with ``model`` (a name, a mapping, or the
            path of a ``config.json``), ``cluster`` (a name or a mapping), ``gpus``, ``batch``
            (sequences an iteration) and, if it is not ``megatron``, ``stack``.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    label = ""
    if isinstance(spec, str):
        if spec not in WORKLOADS:
            raise UnknownNameError("workload", spec, WORKLOADS)
        label, spec = spec, WORKLOADS[spec][1]
    if not isinstance(spec, Mapping):
        raise InvalidValueError(
            f"workload is {spec!r:.80}; it must be a name ({', '.join(WORKLOADS)}) or a mapping "
            f"with {', '.join(_KEYS)}"
        )
    for key in spec:
        if key not in _KEYS:
            raise UnknownNameError("key", key, _KEYS, "workload")
    for key in _KEYS[:-1]:
        if key not in spec:
            raise InvalidValueError(f"workload: {key!r} is missing; {_meaning(key)}")
    model, cluster = load_model(spec["model"]), load_cluster(spec["cluster"])
    stack = load_stack(spec.get("stack", _DEFAULT_STACK))
    gpus, batch = _whole("gpus", spec["gpus"]), _whole("batch", spec["batch"])
    if gpus > cluster.node_gpus and gpus % cluster.node_gpus:
        raise InvalidValueError(
            f"workload: gpus is {gpus}; more than one node must be whole nodes of "
            f"{cluster.node_gpus} GPUs"
        )
    if gpus % cluster.islands:
        raise InvalidValueError(
            f"workload: gpus is {gpus}; it must be a multiple of the {cluster.islands} islands"
        )
    return Workload(label or f"{model.name} on {gpus} of {cluster.name}", model, cluster, stack,
                    gpus, batch)  # fmt: skip


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
    return "it is a whole number"
