"""Workloads: what a device is asked, how fast and with how much it shall answer."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from archgym.envs.llm.data.fields import spelled_out
from archgym.envs.llm.device.data.records import (
    Software,
    Technology,
    load_software,
    load_technology,
    software_names,
)
from archgym.envs.llm.device.loss import LAWS
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = [
    "DEFAULT_WORKLOAD",
    "WORKLOADS",
    "Workload",
    "WorkloadSpec",
    "describe_workloads",
    "load_workload",
]

WorkloadSpec = str | Mapping[str, Any]
DEFAULT_WORKLOAD: Final = "phone"
_BUDGETS: Final = {
    "token_latency_ms": "ms of a token",
    "prefill_latency_ms": "ms of the prompt",
    "energy_mj_per_token": "mJ of a token",
    "area_mm2": "mm2 of the processor's die",
}
_COUNTS: Final = {"prompt": 1 << 20, "output": 1 << 20, "batch": 4096}
_MAX_GTOKENS: Final = 1e6


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Requests and budgets.

    Attributes:
        name: label.
        prompt: tokens of a prompt.
        output: tokens of an answer.
        batch: sequences that are answered together.
        training_gtokens: tokens on which models are trained, in 1e9.
        budgets: limits of the default objective by metric; may be empty.
        software: what software leaves of the hardware.
        technology: energies, areas and prices.
        law: scaling law of shape and data.
    """

    name: str
    prompt: int
    output: int
    batch: int = 1
    training_gtokens: float = 300.0
    budgets: Mapping[str, float] = field(default_factory=dict)
    software: Software
    technology: Technology
    law: str = LAWS[0]

    @property
    def context(self) -> float:
        """Tokens that a token of the answer attends to, in the mean."""
        return self.prompt + (self.output + 1) / 2

    @property
    def limits(self) -> list[str]:
        """Limits of the default objective."""
        bounds = [f"{name} <= {value:g}" for name, value in self.budgets.items()]
        return [*bounds, "free_memory_gib >= 0"]

    @property
    def sha256(self) -> str:
        """Hash of everything that metrics depend on."""
        data = dataclasses.asdict(self)
        for key in ("name", "budgets"):
            del data[key]
        for record in ("software", "technology"):
            for prose in ("doc", "source"):
                del data[record][prose]
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


WORKLOADS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "phone": (
        "a phone: prompts of 512 tokens, answers of 128",
        {
            "prompt": 512,
            "output": 128,
            "budgets": {
                "token_latency_ms": 40,
                "prefill_latency_ms": 1000,
                "energy_mj_per_token": 50,
                "area_mm2": 50,
            },
        },
    ),
    "laptop": (
        "a laptop: prompts of 2,048 tokens, answers of 512",
        {
            "prompt": 2048,
            "output": 512,
            "budgets": {
                "token_latency_ms": 25,
                "prefill_latency_ms": 1500,
                "energy_mj_per_token": 250,
                "area_mm2": 150,
            },
        },
    ),
    "edge_board": (
        "a board of a robot: prompts of 256 tokens, answers of 32",
        {
            "prompt": 256,
            "output": 32,
            "budgets": {
                "token_latency_ms": 10,
                "prefill_latency_ms": 100,
                "energy_mj_per_token": 150,
                "area_mm2": 100,
            },
        },
    ),
    "shared_box": (
        "a box for eight users at home: prompts of 1,024 tokens, answers of 256",
        {
            "prompt": 1024,
            "output": 256,
            "batch": 8,
            "budgets": {
                "token_latency_ms": 40,
                "prefill_latency_ms": 4000,
                "energy_mj_per_token": 150,
                "area_mm2": 200,
            },
        },
    ),
}
"""Workloads that ship."""


def load_workload(spec: WorkloadSpec) -> Workload:
    """A workload by name, or from a mapping.

    Args:
        spec: a name of :data:`WORKLOADS`, or a mapping with ``prompt`` and ``output`` (tokens) and
            perhaps ``base`` (a name whose fields the others replace), ``batch``,
            ``training_gtokens``, ``budgets`` (a mapping of limits), ``software`` (a name or a
            mapping), ``prices`` (a mapping of fields of the technology) and ``law``.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    shipped = {name: mapping for name, (_, mapping) in WORKLOADS.items()}
    label, spec = spelled_out("workload", spec, shipped)
    label, values = label or "custom", dict(spec)
    base = values.pop("base", None)
    if base is not None:
        if not isinstance(base, str) or base not in WORKLOADS:
            raise UnknownNameError("workload", f"{base!s:.80}", WORKLOADS, "workload: base")
        values = {**WORKLOADS[base][1], **values}
        label = f"{base}, changed"
    known = ("prompt", "output", "batch", "training_gtokens", "budgets", "software", "prices",
             "law", "name")  # fmt: skip
    for key in values:
        if key not in known:
            raise UnknownNameError("key", str(key), known, "workload")
    for key in ("prompt", "output"):
        if key not in values:
            raise InvalidValueError(f"workload: {key!r} is missing; it is a number of tokens")
    if (law := values.get("law", LAWS[0])) not in LAWS:
        raise UnknownNameError("law", str(law), LAWS, "workload")
    if not isinstance(name := values.get("name", label), str) or not name:
        raise InvalidValueError(f"workload: name is {name!r:.80}; it must be a text")
    return Workload(
        name=name,
        prompt=_count("prompt", values["prompt"]),
        output=_count("output", values["output"]),
        batch=_count("batch", values.get("batch", 1)),
        training_gtokens=_gtokens(values.get("training_gtokens", 300.0)),
        budgets=_budgets(values.get("budgets", {})),
        software=load_software(values.get("software", "embedded")),
        technology=load_technology(_mapping("prices", values.get("prices", {}))),
        law=str(law),
    )


def describe_workloads() -> str:
    """What a mapping may have, in a sentence."""
    return (
        f"a name ({', '.join(WORKLOADS)}), or a mapping with prompt and output (tokens) and "
        "perhaps base (one of the names), batch, training_gtokens (1e9 tokens), budgets (limits "
        f"by metric: {', '.join(_BUDGETS)}), software ({', '.join(software_names())}; or a "
        f"mapping), prices (fields of the technology) and law ({', '.join(LAWS)})"
    )


def _count(key: str, value: Any) -> int:
    most = _COUNTS[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidValueError(
            f"workload: {key} is {value!r:.80}; it must be a whole number from 1 to {most:,}"
        )
    return value


def _gtokens(value: Any) -> float:
    return _positive("training_gtokens", value, _MAX_GTOKENS)


def _budgets(value: Any) -> dict[str, float]:
    found = {}
    for key, bound in _mapping("budgets", value).items():
        if key not in _BUDGETS:
            raise UnknownNameError("budget", str(key), _BUDGETS, "workload: budgets")
        found[key] = _positive(f"budgets: {key}", bound, 1e9)
    return found


def _positive(key: str, value: Any, most: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= most:
        raise InvalidValueError(
            f"workload: {key} is {value!r:.80}; it must be a number above 0, at most {most:g}"
        )
    return float(value)


def _mapping(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidValueError(f"workload: {key} is {value!r:.80}; it must be a mapping")
    return value
