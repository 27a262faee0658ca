"""Workloads come with experiments and datasets: a value in one that is not possible is refused.

Whatever stands in the place of a value, the end is an environment or a message.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest

import archgym
from archgym.errors import ArchgymError

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 1.5, 1 << 63, 10**30, 10**400, 1e308, float("inf"), float("nan")),
    *("", "x" * 5000, "\x1b[2J", [], {}, [[]], [1], {"a": 1}, {"base": []}),
)
WORKLOADS: dict[str, Any] = {
    "LLMTraining-v0": {
        "model": {"base": "gpt_1.7b", "layers": 24},
        "cluster": {"base": "dgx_a100", "chip": {"base": "a100"}, "node_gpus": 8},
        "gpus": 32,
        "batch": 512,
        "stack": {
            "base": "megatron",
            "matrix_steps": [[0, 1]],
            "links": [{"efficiency": 0.8, "steps": True, "reduce_scatter": [1.0, -1.0]}],
        },
        "links": {"seed": 0, "least_share": 0.3},
        "training_gtokens": 20,
    },
    "LLMServing-v0": {
        "model": {"base": "llama3_8b", "layers": 32},
        "fleet": {
            "groups": [{"cluster": {"base": "dgx_a100"}, "gpus": 4, "label": "a"}],
            "host_gib": 100,
        },
        "requests": {"generator": "poisson", "count": 20, "rate_per_s": 20},
        "engine": {"base": "vllm", "speeds": {"a100": 1.0}, "graph_tokens": 512},
        "ttft_limit_ms": 1000,
    },
    "LLMDevice-v0": {"base": "phone", "prompt": 64, "budgets": {"area_mm2": 50}, "name": "q"},
    "CPU-v0": {"programs": [{"generator": "stream", "instructions": 1000}]},
    "DRAM-v0": {"generator": "stream", "requests": 100},
    "FPGA-v0": {"input": [6], "layers": [{"dense": 2, "bias": [0, 0]}], "name": "q"},
    "SoC-v0": {"graphs": ["audio"]},
    "GPUKernel-v0": {"gemm": [64, 64, 64], "dtype": "fp16"},
    "NAS-v0": {"tasks": ["digits"], "mode": "own", "weights": [1]},
    "Accelerator-v0": {
        "layers": [{"K": 8, "C": 3, "R": 3, "S": 3, "P": 8, "Q": 8, "stride": 1, "count": 1}],
        "name": "q",
        "count": 2,
    },
}


def places(data: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value."""
    yield above
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places(value, (*above, key))


def replaced(data: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    data = copy.deepcopy(data)
    node = data
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    return data


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_value_that_is_not_possible_is_refused(name: str) -> None:
    archgym.make(name, workload=WORKLOADS[name]).close()
    for place in places(WORKLOADS[name]):
        for value in VALUES:
            with contextlib.suppress(ArchgymError):
                archgym.make(name, workload=replaced(WORKLOADS[name], place, value)).close()
