"""Traces that differ in all that features tell: what a proxy of many workloads is trained on."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from archgym.envs.dram.traces.generators import GENERATORS, Generator
from archgym.envs.dram.traces.workload import recorded_names

__all__ = ["VARIED"]

_RECORDED_REQUESTS, _GENERATED_REQUESTS = 10_000, 5_000
_EACH = 4
"""Variants of a generator, besides its defaults."""
_MORE: Final = {"program": 20}
"""Generators with another number of variants."""
_RANGES: Final = {
    "interval_ns": (0.35, 4.0),
    "run_requests": (0.25, 16.0),
    "block_requests": (0.05, 2.0),
    "burst_requests": (0.1, 4.0),
    "idle_ns": (0.1, 8.0),
    "streams": (0.25, 4.0),
}
"""Factors by which a parameter is multiplied, from and to, log-uniform."""
_SHARES: Final = ("jitter_share", "read_share", "random_share", "hot_share")


def _variant(generator: Generator, number: int, rng: np.random.Generator) -> dict[str, Any]:
    spec: dict[str, Any] = {"generator": generator.name, "requests": _GENERATED_REQUESTS}
    spec["seed"] = number
    for parameter in generator.parameters:
        name, default = parameter.name, parameter.default
        value: float = default
        if name in _RANGES:
            low, high = _RANGES[name]
            value = float(np.clip(default * low * (high / low) ** rng.random(), 1e-3, 1e9))
            value = max(1, round(value)) if isinstance(default, int) else round(value, 2)
        elif name in _SHARES:
            low = 0.35 if name == "read_share" else 0.0
            value = round(float(low + (1.0 - low) * rng.random()), 2)
            value = 1.0 if name == "read_share" and value > 0.9 else value
        elif name == "footprint_bytes":
            value = int(2 ** rng.integers(22, 33))
        elif name == "stride_bytes":
            value = int(default * 2 ** rng.integers(0, 5))
        elif name == "exponent":
            value = int(rng.integers(2, 13)) / 8
        if value != default:
            spec[name] = value
    if "stride_bytes" in spec:
        spec["footprint_bytes"] = 1 << 30
    return spec


def _varied() -> tuple[dict[str, Any], ...]:
    rng = np.random.default_rng(0)
    found: list[dict[str, Any]] = [
        {"recorded": name, "requests": _RECORDED_REQUESTS} for name in recorded_names()
    ]
    for name, generator in GENERATORS.items():
        found.append({"generator": name, "requests": _GENERATED_REQUESTS})
        numbers = range(1, 1 + _MORE.get(name, _EACH))
        found += [_variant(generator, number, rng) for number in numbers]
    return tuple(found)


VARIED: Final = _varied()
"""Beginnings of the recorded programs, and variants of each generator."""
