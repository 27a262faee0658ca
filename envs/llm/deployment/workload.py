"""Workloads: a model, a fleet, requests, and the limits within which they must be served."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from archgym.envs.llm.data.cluster import chip_names
from archgym.envs.llm.data.fields import spelled_out
from archgym.envs.llm.data.model import LATENT, Model, load_model, model_names
from archgym.envs.llm.data.stack import load_stack
from archgym.envs.llm.deployment.fleet import FLEETS, Fleet, load_fleet
from archgym.envs.llm.requests.specification import TRACES, Traffic, load_requests
from archgym.envs.llm.serving.engine import Engine, load_engine
from archgym.envs.llm.serving.records import Requests
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["DEFAULT_WORKLOAD", "WORKLOADS", "Workload", "WorkloadSpec", "load_workload"]

WorkloadSpec = str | Mapping[str, Any]
_KEYS: Final = ("model", "fleet", "requests")
_DEFAULT_ENGINE: Final = "vllm"
_FIGURES: Final[Mapping[str, tuple[float, float, float]]] = {
    "ttft_limit_ms": (1000.0, 1e-3, 1e9),
    "tpot_limit_ms": (50.0, 1e-3, 1e9),
    "attainment_goal": (0.9, 0.0, 1.0),
    "acceptance": (0.7, 0.0, 0.99),
    "draft_share": (0.05, 0.0, 1.0),
}
"""Numbers that may be given: what they are unless given, their smallest and largest value."""


@dataclass(frozen=True)
class Workload:
    """What is served to whom on what.

    Attributes:
        name: label in tables and datasets.
        model: the transformer.
        fleet: GPUs among which a deployment chooses.
        traffic: the requests.
        engine: the serving software.
        ttft_limit_ms: longest time to the first token of a request that counts as served well.
        tpot_limit_ms: longest time per output token after it.
        attainment_goal: share of the requests within both limits at a rate that is sustainable;
            with 0 every rate is, and none is searched.
        acceptance: probability that a token of the draft model is accepted.
        draft_share: time of the draft model for a token, by that of the model.
    """

    name: str
    model: Model
    fleet: Fleet
    traffic: Traffic
    engine: Engine
    ttft_limit_ms: float = _FIGURES["ttft_limit_ms"][0]
    tpot_limit_ms: float = _FIGURES["tpot_limit_ms"][0]
    attainment_goal: float = _FIGURES["attainment_goal"][0]
    acceptance: float = _FIGURES["acceptance"][0]
    draft_share: float = _FIGURES["draft_share"][0]

    def requests(self, count: int | None = None) -> Requests:
        """The requests as the simulator takes them.

        Args:
            count: how many of the first ones; all unless given.
        """
        traffic = self.traffic if count is None else self.traffic.first(count)
        drawn = traffic.drawn
        prefixes = [one.tolist() for one in drawn.prefixes] if drawn.prefixes else None
        return Requests.of(
            drawn.arrival_s,
            drawn.prompt_tokens,
            drawn.output_tokens,
            prefixes,
            prefix_tokens=traffic.prefix_block_tokens,
            users=traffic.users,
        )

    @property
    def sha256(self) -> str:
        """Hash of everything that metrics depend on."""
        prose = ("name", "doc", "source", "base", "stack")
        unread = () if self.model.experts else ("expert_speed",)
        absent = () if self.model.latent_size else LATENT
        data: dict[str, Any] = {
            "model": _figures(asdict(self.model), (*prose, *absent)),
            "fleet": self.fleet.figures(),
            "requests": self.traffic.sha256,
            "engine": _figures(asdict(self.engine), (*prose, *unread)),
            "stack": _figures(asdict(load_stack(self.engine.stack)), prose),
        }
        data |= {name: getattr(self, name) for name in _FIGURES}
        text = json.dumps(data, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()


def _figures(data: Mapping[str, Any], prose: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in prose}


def _named(doc: str, model: str, fleet: Any, requests: Any, **more: Any) -> tuple[str, Any]:
    return doc, {"model": model, "fleet": fleet, "requests": requests, **more}


WORKLOADS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "llama3_8b_a100_4_conv": _named(
        "Llama 3 8B on up to 4 A100, conversations, 20 a second",
        "llama3_8b", "a100_4", {"trace": "azure_conv", "rate_per_s": 20},
    ),
    "llama3_8b_a100_4_code": _named(
        "Llama 3 8B on up to 4 A100, code completion, 2 a second",
        "llama3_8b", "a100_4", {"trace": "azure_code", "rate_per_s": 2},
    ),
    "llama3_70b_h100_8_conv": _named(
        "Llama 3 70B on up to 8 H100, conversations, 8 a second",
        "llama3_70b", "h100_8", {"trace": "azure_conv", "rate_per_s": 8},
    ),
    "llama3_70b_h100_16_code": _named(
        "Llama 3 70B on up to 16 H100, code completion, 2 a second",
        "llama3_70b", "h100_16", {"trace": "azure_code", "rate_per_s": 2},
    ),
    "llama3_70b_a100_16_h100_8_conv": _named(
        "Llama 3 70B on a fleet of 16 A100 and 8 H100, conversations, 6 a second",
        "llama3_70b", "a100_16_h100_8", {"trace": "azure_conv", "rate_per_s": 6},
    ),
    "gpt_175b_h100_8_pooled_conv": _named(
        "GPT-3 175B on up to 8 H100 with a pool of memory behind them, one request a second",
        "gpt_175b", "h100_8_pooled", {"trace": "azure_conv", "rate_per_s": 1},
        tpot_limit_ms=100,
    ),
    "mixtral_8x7b_h100_8_conv": _named(
        "Mixtral 8x7B on up to 8 H100, conversations, 40 a second",
        "mixtral_8x7b", "h100_8", {"trace": "azure_conv", "rate_per_s": 40},
    ),
    "llama3_8b_a100_4_prefixes": _named(
        "Llama 3 8B on up to 4 A100, 40 shared prompts of 2,048 tokens, 20 requests a second",
        "llama3_8b", "a100_4",
        {"generator": "poisson", "rate_per_s": 20, "prompt_tokens": 256,
         "prompt_variation": 1.0, "output_tokens": 192, "output_variation": 0.8, "prefixes": 40,
         "prefix_tokens": 2048},
    ),
    "llama3_8b_a100_4_bursts": _named(
        "Llama 3 8B on up to 4 A100, bursts of short requests, 60 a second on average",
        "llama3_8b", "a100_4",
        {"generator": "gamma", "rate_per_s": 60, "variation": 3,
         "prompt_tokens": 256, "prompt_variation": 1.0, "output_tokens": 128,
         "output_variation": 0.8},
    ),
    "llama3_8b_a100_4_users": _named(
        "Llama 3 8B on up to 4 A100, a closed loop of 64 users",
        "llama3_8b", "a100_4",
        {"generator": "closed_loop", "users": 64, "prompt_tokens": 512,
         "prompt_variation": 1.0, "output_tokens": 256, "output_variation": 0.8},
    ),
}  # fmt: skip
"""Workloads that ship."""
DEFAULT_WORKLOAD: Final = "llama3_70b_h100_8_conv"


def load_workload(spec: WorkloadSpec) -> Workload:
    """A workload by name, or from a mapping.

    Args:
        spec: a name of :data:`WORKLOADS`, or a mapping with ``model`` (a name, a mapping, or the
            path of a ``config.json``), ``fleet`` (:func:`archgym.envs.llm.deployment.fleet
            .load_fleet`), ``requests`` (:func:`archgym.envs.llm.requests.specification
            .load_requests`), and perhaps ``engine`` (a name or a mapping), ``ttft_limit_ms``,
            ``tpot_limit_ms``, ``attainment_goal``, ``acceptance``, ``draft_share``.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    shipped = {name: mapping for name, (_, mapping) in WORKLOADS.items()}
    label, spec = spelled_out("workload", spec, shipped, _KEYS)
    allowed = (*_KEYS, "engine", *_FIGURES)
    for key in spec:
        if key not in allowed:
            raise UnknownNameError("key", key, allowed, "workload")
    for key in _KEYS:
        if key not in spec:
            raise InvalidValueError(f"workload: {key!r} is missing; {_meaning(key)}")
    model, fleet = load_model(spec["model"]), load_fleet(spec["fleet"])
    traffic = load_requests(spec["requests"])
    engine = load_engine(spec.get("engine", _DEFAULT_ENGINE))
    if model.latent_size and engine.form != "kernels":
        raise InvalidValueError(
            f"workload: model {model.name} has latent attention, which an engine of form "
            f"{engine.form} does not know; take vllm, tensorrt_llm or sglang"
        )
    _check_speeds(engine, fleet)
    figures = {key: _figure(key, spec[key]) for key in _FIGURES if key in spec}
    goal = figures.get("attainment_goal", _FIGURES["attainment_goal"][0])
    if goal > 0 and not traffic.users and not traffic.drawn.rate_per_s:
        raise InvalidValueError(
            f"workload: requests: all of {traffic.name} arrive at once, so there is no rate of "
            "which a sustainable one could be found; give attainment_goal: 0, which looks for "
            "none, or users, which makes the file a closed loop"
        )
    label = label or f"{model.name} on {fleet.name}, {traffic.name}"
    return Workload(label, model, fleet, traffic, engine, **figures)


def _check_speeds(engine: Engine, fleet: Fleet) -> None:
    """Refuses speeds of chips that do not exist, and those by which a chip beats its peak."""
    chips = [cluster.device for cluster in fleet.clusters.values()]
    known = [*chip_names(), *(chip.name for chip in chips)]
    for name in engine.speeds or {}:
        if name not in known:
            raise UnknownNameError("chip", str(name), known, "engine: speeds")
    for chip in chips:
        best = max(chip.matrix_share, chip.fp8_share if chip.fp8_tflops else 0.0)
        if (speed := engine.speed_on(chip)) * best > 1:
            raise InvalidValueError(
                f"engine: speeds[{chip.name!r}] is {speed:g}; the best kernels of the chip reach "
                f"{best:g} of its peak, so it must be at most {1 / best:g}"
            )


def _figure(key: str, value: Any) -> float:
    _, least, most = _FIGURES[key]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise InvalidValueError(
            f"workload: {key} is {value!r:.80}; it must be a number from {least:g} to {most:g}"
        )
    return float(value)


def _meaning(key: str) -> str:
    if key == "model":
        return f"it is a mapping, the path of a config.json or one of {', '.join(model_names())}"
    if key == "fleet":
        return f"it is a mapping from clusters to numbers of GPUs, or one of {', '.join(FLEETS)}"
    return f"it is a mapping, the path of a CSV file or one of {', '.join(TRACES)}"
