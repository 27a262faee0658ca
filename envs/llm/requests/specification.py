"""What users write for the requests of a workload."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from archgym.envs.llm.requests.drawn import Drawn, Lengths, draw_arrivals, draw_prefixes
from archgym.envs.llm.requests.table import MAX_REQUESTS, MAX_TOKENS, read_requests
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.workload import kind_of

__all__ = ["GENERATORS", "TRACES", "RequestsSpec", "Traffic", "load_requests"]

RequestsSpec = str | Path | Mapping[str, Any]
"""The name of a trace, the path of a file, or a mapping with one of the keys ``trace``, ``file``,
``generator``."""

TRACES: Final[Mapping[str, str]] = {
    "azure_conv": "conversations: 3,000 requests to a service of Azure (2023), 5.3 a second",
    "azure_code": "code completion: 3,000 requests to a service of Azure (2023), 4.9 a second",
}
"""Traces that ship, with a line on each."""
GENERATORS: Final[Mapping[str, str]] = {
    "poisson": "independent arrivals at a mean rate",
    "gamma": "arrivals with gamma-distributed gaps: bursts where their variation is above 1",
    "closed_loop": "a number of users, each of whom waits for an answer before the next request",
}
"""Kinds of arrivals that are drawn, with a line on each."""
_KINDS: Final = ("trace", "file", "generator")
_COUNT: Final = 1000
_BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "rate_per_s": (1e-4, 1e5),
    "count": (10, MAX_REQUESTS),
    "seed": (0, 2**31),
    "variation": (0, 20),
    "prompt_tokens": (1, MAX_TOKENS),
    "prompt_variation": (0, 10),
    "output_tokens": (1, MAX_TOKENS),
    "output_variation": (0, 10),
    "longest_tokens": (1, MAX_TOKENS),
    "users": (1, 100_000),
    "prefixes": (1, 100_000),
    "prefix_tokens": (1, MAX_TOKENS),
    "prefix_block_tokens": (1, 4096),
}
_WHOLE: Final = ("count", "seed", "longest_tokens", "users", "prefixes", "prefix_tokens",
                 "prefix_block_tokens")  # fmt: skip
_DEFAULTS: Final[Mapping[str, float]] = {
    "rate_per_s": 2.0,
    "count": _COUNT,
    "seed": 0,
    "variation": 3.0,
    "prompt_tokens": 1024,
    "prompt_variation": 0.0,
    "output_tokens": 256,
    "output_variation": 0.0,
    "longest_tokens": 8192,
    "users": 32,
    "prefixes": 0,
    "prefix_tokens": 1024,
    "prefix_block_tokens": 512,
}
_DRAWN: Final = ("count", "seed", "prompt_tokens", "prompt_variation", "output_tokens",
                 "output_variation", "longest_tokens", "prefixes", "prefix_tokens",
                 "prefix_block_tokens")  # fmt: skip
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "trace": ("rate_per_s", "count", "users"),
    "file": ("only", "rate_per_s", "count", "users", "prefix_block_tokens"),
    "poisson": ("rate_per_s", *_DRAWN),
    "gamma": ("rate_per_s", "variation", *_DRAWN),
    "closed_loop": ("users", *_DRAWN),
}
"""Settings that each kind of requests, or each generator, has."""


@dataclass(frozen=True)
class Traffic:
    """Requests, and how they are issued.

    Attributes:
        name: label.
        drawn: the requests.
        users: of a closed loop, each of whom issues the next request when one is answered; 0 for
            an open one, in which requests come at their times.
        prefix_block_tokens: tokens of a block with a name, where prompts share prefixes.
    """

    name: str
    drawn: Drawn
    users: int = 0
    prefix_block_tokens: int = 512

    @property
    def shares_prefixes(self) -> bool:
        """Whether some prompts begin alike."""
        return bool(self.drawn.prefixes)

    @property
    def longest_tokens(self) -> int:
        """Prompt and output of the longest request."""
        return int((self.drawn.prompt_tokens + self.drawn.output_tokens).max())

    def first(self, count: int) -> Traffic:
        """The same with the first requests only."""
        drawn = self.drawn
        if count >= len(drawn):
            return self
        kept = Drawn(
            drawn.arrival_s[:count],
            drawn.prompt_tokens[:count],
            drawn.output_tokens[:count],
            drawn.prefixes[:count],
        )
        return replace(self, drawn=kept)

    @property
    def sha256(self) -> str:
        """Hash of all that metrics depend on."""
        drawn = self.drawn
        found = hashlib.sha256(f"{self.users} {self.prefix_block_tokens}".encode())
        for values in (drawn.arrival_s, drawn.prompt_tokens, drawn.output_tokens, *drawn.prefixes):
            found.update(np.ascontiguousarray(values).tobytes() + b"|")
        return found.hexdigest()


def load_requests(spec: RequestsSpec) -> Traffic:
    """Requests by name, from a file, or from a generator.

    >>> traffic = load_requests({"generator": "poisson", "rate_per_s": 4, "count": 100})
    >>> len(traffic.drawn), traffic.users
    (100, 0)

    Args:
        spec: a name of :data:`TRACES`, the path of a file
            (:func:`archgym.envs.llm.requests.table.read_requests`), or a mapping with ``trace``,
            ``file`` or ``generator`` and settings: ``rate_per_s`` (of a trace or file, its times
            are stretched to that mean rate), ``count`` (the first ones are kept), ``users`` (a
            closed loop of so many; the times of arrival are then left out), ``only`` (of a file: a
            mapping from columns to texts, which its lines must have).

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    if isinstance(spec, Path) or (isinstance(spec, str) and _is_path(spec)):
        spec = {"file": str(spec)}
    elif isinstance(spec, str):
        if spec not in TRACES:
            raise UnknownNameError("requests", spec, TRACES)
        spec = {"trace": spec}
    kind = kind_of(spec, _KINDS, settings=_BOUNDS, forms="a trace, a path")
    chosen = str(spec[kind])
    if kind != "file":
        named = TRACES if kind == "trace" else GENERATORS
        if chosen not in named:
            raise UnknownNameError(kind, chosen, named, "requests")
    allowed = _KEYS[chosen if kind == "generator" else kind]
    for key in spec:
        if key not in (kind, *allowed):
            raise UnknownNameError("key", key, allowed, f"requests: {kind} {chosen}")
    values = {key: _checked(key, spec[key]) for key in allowed if key in spec and key != "only"}
    if kind == "generator":
        return _generated(chosen, {**_DEFAULTS, **values}, "rate_per_s" in values)
    return _recorded(kind, chosen, _only(spec.get("only", {})), values)


def _is_path(text: str) -> bool:
    return text.endswith((".csv", ".csv.gz", ".parquet"))


def _recorded(
    kind: str, chosen: str, only: Mapping[str, str], values: Mapping[str, float]
) -> Traffic:
    if kind == "trace":
        folder = resources.files("archgym.envs.llm.requests").joinpath("traces")
        with resources.as_file(folder.joinpath(f"{chosen}.csv.gz")) as path:
            drawn = read_requests(path)
    else:
        drawn = read_requests(Path(chosen), only)
    label = ", ".join([Path(chosen).name, *only.values()])
    blocks = int(values.get("prefix_block_tokens", _DEFAULTS["prefix_block_tokens"]))
    traffic = Traffic(label, drawn, prefix_block_tokens=blocks)
    traffic = traffic.first(int(values.get("count", _COUNT)))
    _check_prefixes(traffic)
    if "users" in values:
        if "rate_per_s" in values:
            raise InvalidValueError("requests: users and rate_per_s exclude each other")
        return _closed(traffic, int(values["users"]))
    if "rate_per_s" in values:
        rate, native = values["rate_per_s"], traffic.drawn.rate_per_s
        if native <= 0:
            raise InvalidValueError(f"requests: all of {label} arrive at once, so it has no rate")
        drawn = replace(traffic.drawn, arrival_s=traffic.drawn.arrival_s * (native / rate))
        traffic = replace(traffic, drawn=drawn, name=f"{label} at {rate:g}/s")
    return traffic


def _generated(kind: str, values: Mapping[str, float], named: bool) -> Traffic:
    generator = np.random.default_rng(int(values["seed"]))
    count, longest = int(values["count"]), int(values["longest_tokens"])
    lengths = []
    for part in ("prompt", "output"):
        mean = values[f"{part}_tokens"]
        if round(mean) > longest:
            raise InvalidValueError(
                f"requests: {part}_tokens is {mean:g}; lengths are cut at longest_tokens, "
                f"{longest}, so it must be at most that; for longer ones give longest_tokens too"
            )
        lengths.append(Lengths(mean, values[f"{part}_variation"], longest))
    variation = values["variation"] if kind == "gamma" else 1.0
    arrivals = draw_arrivals(count, values["rate_per_s"], variation, generator)
    prompts, outputs = (one.draw(count, generator) for one in lengths)
    prefixes = []
    block = int(values["prefix_block_tokens"])
    if values["prefixes"]:
        blocks = int(values["prefix_tokens"]) // block
        if not blocks:
            raise InvalidValueError(
                f"requests: prefix_tokens is {values['prefix_tokens']:g}; it must be at least a "
                f"block, prefix_block_tokens, {block}"
            )
        prefixes = draw_prefixes(count, int(values["prefixes"]), blocks, generator)
        prompts = prompts + blocks * block
    drawn = Drawn(arrivals, prompts, outputs, prefixes)
    label = f"{kind} {values['prompt_tokens']:g} to {values['output_tokens']:g} tokens"
    traffic = Traffic(label, drawn, prefix_block_tokens=block)
    if kind == "closed_loop":
        return _closed(traffic, int(values["users"]))
    return replace(traffic, name=f"{label} at {values['rate_per_s']:g}/s") if named else traffic


def _closed(traffic: Traffic, users: int) -> Traffic:
    drawn = replace(traffic.drawn, arrival_s=np.zeros(len(traffic.drawn)))
    return replace(traffic, drawn=drawn, users=users, name=f"{traffic.name}, {users} users")


def _check_prefixes(traffic: Traffic) -> None:
    for i, blocks in enumerate(traffic.drawn.prefixes):
        most = int(traffic.drawn.prompt_tokens[i]) // traffic.prefix_block_tokens
        if len(blocks) > most:
            raise InvalidValueError(
                f"requests: {traffic.name}, request {i + 1}: {len(blocks)} prefix hashes; its "
                f"prompt has {most} full blocks of prefix_block_tokens, "
                f"{traffic.prefix_block_tokens}"
            )


def _only(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidValueError(
            f"requests: only is {value!r:.80}; it must be a mapping from columns to texts"
        )
    return {str(column): str(text) for column, text in value.items()}


def _checked(key: str, value: Any) -> float:
    least, most = _BOUNDS[key]
    whole = key in _WHOLE
    if (
        isinstance(value, bool)
        or not isinstance(value, int if whole else int | float)
        or not least <= value <= most
    ):
        raise InvalidValueError(
            f"requests: {key} is {value!r:.80}; it must be a {'whole ' if whole else ''}number "
            f"from {least:g} to {most:g}"
        )
    return float(value) if not whole else value
