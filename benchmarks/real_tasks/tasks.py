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


def _on(
    environment: str, name: str, half: Half, workload: Any, objective: Any = None, **more: Any
) -> RealTask:
    return RealTask(name, environment, half, _with({"workload": workload, **more}, objective))


_SOC_PRODUCT = {"product": {"latency_ms": 1, "power_mw": 1, "area_mm2": 1}}

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
    # Fewer instructions than the environment's own, so that a simulation takes milliseconds.
    _on("CPU-v0", "cpu-sqlite", "develop", {"recorded": "sqlite", "instructions": 300_000}),
    _on(
        "CPU-v0",
        "cpu-zstd-memory",
        "develop",
        {"recorded": "zstd", "instructions": 100_000},
        space="memory",
    ),
    _on(
        "CPU-v0",
        "cpu-sort-energy",
        "judge",
        {"recorded": "sort", "instructions": 300_000},
        {"minimize": "energy_per_instruction_pj", "limits": ["access_time_mean_ns <= 2"]},
    ),
    _on(
        "CPU-v0",
        "cpu-perl-core",
        "judge",
        {"recorded": "perl", "instructions": 100_000},
        {"maximize": "ipc_rate", "limits": ["area_um2 <= 8e6"]},
        space="core",
    ),
    _on("SoC-v0", "soc-edge-detection", "develop", "edge_detection"),
    _on(
        "SoC-v0",
        "soc-audio-energy",
        "develop",
        "audio",
        {"minimize": "energy_mj", "limits": ["latency_budget_share <= 1", "area_mm2 <= 20"]},
    ),
    _on("SoC-v0", "soc-audio-product", "develop", "audio", _SOC_PRODUCT),
    _on("SoC-v0", "soc-edge-product", "develop", "edge_detection", _SOC_PRODUCT),
    _on("SoC-v0", "soc-cava", "judge", "cava"),
    _on("SoC-v0", "soc-ar-product", "judge", "ar", _SOC_PRODUCT),
    _on("FPGA-v0", "fpga-jet-small", "develop", "jet_small"),
    _on(
        "FPGA-v0",
        "fpga-image-latency",
        "develop",
        "image_6x6",
        {"minimize": "latency_ns", "limits": ["lut_count <= 2000", "sqnr_db >= 15"]},
        fixed={"device": "ice40_hx8k"},
    ),
    _on("FPGA-v0", "fpga-control", "judge", "control"),
    _on(
        "FPGA-v0",
        "fpga-digits-luts",
        "judge",
        "digits",
        {"minimize": "lut_count", "limits": ["sqnr_db >= 20", "latency_ns <= 20000"]},
    ),
    _on("GPUKernel-v0", "gpu-square", "develop", "square_3072"),
    _on("GPUKernel-v0", "gpu-attention-bert", "develop", "attention_bert", space="attention"),
    _on("GPUKernel-v0", "gpu-mlp-energy", "judge", "mlp_up", "minimize energy_mj"),
    _on("GPUKernel-v0", "gpu-attention-llama", "judge", "attention_llama", space="attention"),
    _on("LLMTraining-v0", "training-gpt", "develop", "gpt_7.5b_a100_64"),
    _on(
        "LLMTraining-v0",
        "training-llama-energy",
        "develop",
        "llama3_70b_h100_256",
        {"minimize": "energy_j_per_token", "limits": ["peak_memory_gib <= 80"]},
    ),
    _on("LLMTraining-v0", "training-mixtral", "judge", "mixtral_8x7b_h100_64"),
    _on("LLMTraining-v0", "training-llama-405b", "judge", "llama3_405b_h100_1024"),
    _on("LLMDevice-v0", "device-phone", "develop", "phone"),
    _on(
        "LLMDevice-v0",
        "device-board-speed",
        "develop",
        "edge_board",
        {
            "maximize": "tokens_per_s",
            "limits": [
                "loss_predicted_nats_per_token <= 2.7",
                "area_mm2 <= 50",
                "free_memory_gib >= 0",
            ],
        },
    ),
    _on("LLMDevice-v0", "device-laptop", "judge", "laptop"),
    _on(
        "LLMDevice-v0",
        "device-box-cost",
        "judge",
        "shared_box",
        {
            "minimize": "cost_usd",
            "limits": [
                "loss_predicted_nats_per_token <= 2.5",
                "token_latency_ms <= 40",
                "free_memory_gib >= 0",
            ],
        },
    ),
    _on("LLMServing-v0", "serving-conv", "develop", "llama3_8b_a100_4_conv"),
    _on(
        "LLMServing-v0",
        "serving-mixed-fleet",
        "develop",
        "llama3_70b_a100_16_h100_8_conv",
        {
            "minimize": "cost_usd_per_mtoken",
            "limits": ["attainment_share >= 0.9", "memory_use_share <= 1"],
        },
    ),
    _on("LLMServing-v0", "serving-mixtral", "judge", "mixtral_8x7b_h100_8_conv"),
    _on(
        "LLMServing-v0",
        "serving-users-latency",
        "judge",
        "llama3_8b_a100_4_users",
        {"minimize": "ttft_p99_ms", "limits": ["tpot_p99_ms <= 50", "memory_use_share <= 1"]},
    ),
)
