"""The tasks: an environment, its arguments, and whether it is for development or for judging."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import archgym
from archgym.errors import UnknownNameError

__all__ = ["TASKS", "RealTask", "task_named"]

Half = Literal["develop", "judge"]


@dataclass(frozen=True)
class RealTask:
    """A search task as a user would set it.

    Attributes:
        name: short name.
        environment: registered name.
        half: ``develop``, or ``judge`` for those that nothing may be tuned on.
        arguments: of the environment; what is left out is at its default.
    """

    name: str
    environment: str
    half: Half
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> archgym.Environment:
        """A fresh environment."""
        return archgym.make(self.environment, **self.arguments)


def task_named(name: str) -> RealTask:
    """A task by name.

    Raises:
        UnknownNameError: if there is no such task.
    """
    for task in TASKS:
        if task.name == name:
            return task
    raise UnknownNameError("task", name, [task.name for task in TASKS])


def _dram(name: str, half: Half, program: str, objective: Any = None) -> RealTask:
    # The first requests of a recorded program, so that a simulation takes about two milliseconds.
    workload = {"recorded": program, "requests": 3000}
    arguments: dict[str, Any] = {"workload": workload}
    return RealTask(name, "DRAM-v0", half, _with(arguments, objective))


def _with(arguments: dict[str, Any], objective: Any) -> dict[str, Any]:
    return arguments if objective is None else {**arguments, "objective": objective}


def _on(environment: str, name: str, half: Half, workload: str, objective: Any = None) -> RealTask:
    return RealTask(name, environment, half, _with({"workload": workload}, objective))


TASKS: tuple[RealTask, ...] = (
    _dram("dram-sqlite", "develop", "sqlite"),
    _dram(
        "dram-tkrzw-energy",
        "develop",
        "tkrzw",
        {
            "minimize": "energy_per_bit_pj",
            "limits": ["read_latency_p99_ns <= 120", "buffer_bits <= 65536"],
        },
    ),
    _dram("dram-json-p99", "judge", "python_json", "minimize read_latency_p99_ns"),
    _dram(
        "dram-xz-latency",
        "judge",
        "xz",
        {"minimize": "read_latency_mean_ns", "limits": ["power_mw <= 900"]},
    ),
    _on("TPE-v0", "tpe-resnet18", "develop", "resnet18"),
    _on(
        "TPE-v0",
        "tpe-mobilenet-latency",
        "develop",
        "mobilenet_v2",
        {"minimize": "latency_ns", "limits": ["area_um2 <= 250000", "power_mw <= 200"]},
    ),
    _on("TPE-v0", "tpe-bert-energy", "judge", "bert_base", "minimize energy_per_mac_pj"),
    _on(
        "TPE-v0",
        "tpe-resnet50-density",
        "judge",
        "resnet50",
        {"maximize": "tops_per_mm2", "limits": ["power_mw <= 150"]},
    ),
    _on("NAS-v0", "nas-digits-cells", "develop", "digits_cells"),
    _on("NAS-v0", "nas-mbconv", "develop", "digits_mbconv"),
    _on("NAS-v0", "nas-digits", "judge", "digits"),
    _on("NAS-v0", "nas-digits-twice", "judge", "digits_twice"),
    _on("Accelerator-v0", "accelerator-resnet18-edp", "develop", "resnet18"),
    _on(
        "Accelerator-v0",
        "accelerator-bert-latency",
        "develop",
        "bert_base",
        {"minimize": "latency_cycles", "limits": ["area_um2 <= 3e6"]},
    ),
    _on(
        "Accelerator-v0",
        "accelerator-mobilenet-edp",
        "judge",
        "mobilenet_v2",
        {"minimize": "edp_js", "limits": ["area_um2 <= 3e6"]},
    ),
    _on(
        "Accelerator-v0",
        "accelerator-vit-energy",
        "judge",
        "vit_b_16",
        {"minimize": "energy_pj", "limits": ["latency_ns <= 3e7", "area_um2 <= 4e6"]},
    ),
    RealTask(
        "accelerator-mapping",
        "Accelerator-v0",
        "develop",
        {"workload": "mnasnet_b1", "space": "mapping", "objective": "minimize latency_cycles"},
    ),
    RealTask(
        "dram-cloud-product",
        "DRAM-v0",
        "judge",
        {
            "workload": "cloud_2",
            "objective": {"product": {"read_latency_mean_ns": 1, "power_mw": 1}},
        },
    ),
)
