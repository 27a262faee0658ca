"""The metrics of the DRAM environment: what each is, and its value for a simulated controller."""

from __future__ import annotations

import math

from archgym.envs.dram.controller.buffer_cost import buffer_bits
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.result import Result
from archgym.envs.dram.device.memory import Memory
from archgym.problem.metrics import Metric

METRICS = (
    Metric("time_ns", "ns", "minimize", "from time 0 of the trace to the last response"),
    Metric("read_latency_mean_ns", "ns", "minimize", "mean over reads, arrival to data"),
    Metric("read_latency_p99_ns", "ns", "minimize", "99th percentile over reads, arrival to data"),
    Metric("read_latency_max_ns", "ns", "minimize", "longest of the reads, arrival to data"),
    Metric(
        "read_latency_accepted_mean_ns",
        "ns",
        "minimize",
        "mean over reads, from being offered to the controller to data",
    ),
    Metric("write_latency_mean_ns", "ns", "minimize", "mean over writes, arrival to answer"),
    Metric("write_latency_p99_ns", "ns", "minimize", "99th percentile over writes, to the answer"),
    Metric("bandwidth_gb_per_s", "GB/s", "maximize", "bytes moved by the total time"),
    Metric("energy_pj", "pJ", "minimize", "energy of all chips of the memory"),
    Metric("energy_per_bit_pj", "pJ", "minimize", "energy by the bits moved"),
    Metric("power_mw", "mW", "minimize", "energy by the total time"),
    Metric("row_hit_rate", "", "maximize", "share of column commands that find their row open"),
    Metric("buffer_bits", "bits", "minimize", "storage in the controller's queues"),
)
READ_METRICS = (
    "read_latency_mean_ns",
    "read_latency_p99_ns",
    "read_latency_max_ns",
    "read_latency_accepted_mean_ns",
)
WRITE_METRICS = ("write_latency_mean_ns", "write_latency_p99_ns")
TOTALS = ("time_ns", "energy_pj")
"""Metrics that grow with the trace."""
ENERGY_METRICS = ("energy_pj", "energy_per_bit_pj", "power_mw")


def metrics_of(result: Result, config: ControllerConfig, memory: Memory) -> dict[str, float]:
    """Metrics of a simulated controller; those that the trace or the memory lacks are left out."""
    values = {
        "time_ns": result.time_ns,
        "read_latency_mean_ns": result.read_latency.mean_ns,
        "read_latency_p99_ns": result.read_latency.p99_ns,
        "read_latency_max_ns": result.read_latency.max_ns,
        "read_latency_accepted_mean_ns": result.read_latency_accepted.mean_ns,
        "write_latency_mean_ns": result.write_latency.mean_ns,
        "write_latency_p99_ns": result.write_latency.p99_ns,
        "bandwidth_gb_per_s": result.bandwidth_gb_per_s,
        "energy_pj": result.energy_pj,
        "energy_per_bit_pj": result.energy_per_bit_pj,
        "power_mw": result.power_mw,
        "row_hit_rate": result.row_hit_rate,
        "buffer_bits": float(buffer_bits(config, memory)),
    }
    return {name: value for name, value in values.items() if not math.isnan(value)}
