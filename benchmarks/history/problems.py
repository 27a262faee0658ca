"""The problems, and those whose searches are their history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import archgym

__all__ = ["PAIRS", "TABLES", "Problem"]

_PROGRAMS = ("dijkstra", "fft", "sort", "matmul")
_TAIL = {"read_latency_p99_ns": 1, "energy_per_bit_pj": 1}
_MEAN = {"read_latency_mean_ns": 1, "energy_per_bit_pj": 1}
_SMALL = ["buffer_bits <= 2048"]
_OBJECTIVES: Mapping[str, Mapping[str, Any]] = {
    "tail": {"product": {**_TAIL, "buffer_bits": 0.25}},
    "small-tail": {"product": _TAIL, "limits": _SMALL},
    "small-mean": {"product": _MEAN, "limits": _SMALL},
}
"""Those of the experiment ``lottery``."""


@dataclass(frozen=True)
class Problem:
    """What is searched, and what was searched before.

    Attributes:
        name: short name.
        environment: registered name.
        arguments: of the environment.
        earlier: arguments of the same environment, one for each earlier search.
    """

    name: str
    environment: str
    arguments: Mapping[str, Any]
    earlier: tuple[Mapping[str, Any], ...]

    def make(self) -> archgym.Environment:
        """A fresh environment."""
        return archgym.make(self.environment, **self.arguments)


def _table(program: str, goal: str) -> Problem:
    def arguments(program: str) -> dict[str, Any]:
        return {"simulator": f"tabular:dram-archgym-{program}", "objective": _OBJECTIVES[goal]}

    others = tuple(arguments(other) for other in _PROGRAMS if other != program)
    return Problem(f"{program}-{goal}", "DRAM-v0", arguments(program), others)


def _dram(program: str) -> dict[str, Any]:
    # The first requests of a recorded program, so that a simulation takes about two milliseconds.
    return {"recorded": program, "requests": 3000}


def _pair(
    name: str,
    environment: str,
    workload: Any,
    earlier: Any,
    objective: Any = None,
    then: Any = None,
) -> Problem:
    """A workload, the earlier one, and the objectives, the same unless another one is given."""
    now = {"workload": workload} | ({} if objective is None else {"objective": objective})
    then = objective if then is None else then
    before = {"workload": earlier} | ({} if then is None else {"objective": then})
    return Problem(name, environment, now, (before,))


TABLES = tuple(_table(program, goal) for program in _PROGRAMS for goal in _OBJECTIVES)
_SMALL_CHIP = {"limits": ["area_um2 <= 3e6"]}
PAIRS = (
    _pair("dram-sqlite", "DRAM-v0", _dram("sqlite"), _dram("python_json")),
    _pair(
        "dram-tkrzw-p99",
        "DRAM-v0",
        _dram("tkrzw"),
        _dram("xz"),
        {"minimize": "read_latency_p99_ns", "limits": ["power_mw <= 900"]},
        "minimize energy_per_bit_pj",
    ),
    _pair("tpe-mobilenet", "TPE-v0", "mobilenet_v2", "resnet18"),
    _pair("tpe-bert-energy", "TPE-v0", "bert_base", "resnet50", "minimize energy_per_mac_pj"),
    _pair(
        "accelerator-resnet50-edp",
        "Accelerator-v0",
        "resnet50",
        "mobilenet_v2",
        {"minimize": "edp_js", **_SMALL_CHIP},
    ),
    _pair(
        "accelerator-bert-latency",
        "Accelerator-v0",
        "bert_base",
        "vit_b_16",
        {"minimize": "latency_cycles", **_SMALL_CHIP},
        {"minimize": "energy_pj", **_SMALL_CHIP},
    ),
    _pair("nas-digits", "NAS-v0", "digits", "digits", None, "minimize latency_cycles"),
    _pair(
        "nas-digits-energy",
        "NAS-v0",
        "digits",
        "digits",
        {"minimize": "energy_nj", "limits": ["accuracy_percent >= 85"]},
        {"maximize": "accuracy_percent"},
    ),
)
"""Of each environment two: another workload, or another objective on one."""
