"""The DRAM memory-controller environment."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

from archgym.environment import Environment
from archgym.envs.dram.config import ControllerConfig
from archgym.envs.dram.controller import simulate
from archgym.envs.dram.cost import buffer_bits
from archgym.envs.dram.device import Device, device_names, load_device
from archgym.envs.dram.space import BASELINE, SPACES, design_space
from archgym.envs.dram.trace import Trace
from archgym.envs.dram.workload import (
    WorkloadSpec,
    load_workload,
    workload_label,
    workload_names,
)
from archgym.errors import UnknownNameError
from archgym.metrics import Metric
from archgym.space import DesignSpace

__all__ = ["DramEnvironment"]

DEFAULT_MEMORY = "DDR4-2400"
_READ_METRICS = (
    "read_latency_mean_ns",
    "read_latency_p99_ns",
    "read_latency_accepted_mean_ns",
)


class DramEnvironment(Environment):
    """Search the design of a DRAM memory controller on a memory trace.

    >>> import archgym
    >>> env = archgym.make("DRAM-v0", workload={"generator": "stream", "requests": 1000})
    >>> outcome = env.evaluate(env.baseline)
    >>> outcome.metrics["row_hit_rate"] > 0.9
    True

    Args:
        memory: name of a device (``archgym show DRAM-v0`` lists them) or path of a device file.
        controller: settings of :class:`archgym.envs.dram.config.ControllerConfig` that are not
            searched: delays of the front end, watermarks, ``timing_rules``.
        workload: name of a recorded program or a generator, path of a trace file, or a mapping;
            see :func:`archgym.envs.dram.workload.load_workload`.
        **arguments: of :class:`archgym.Environment`; ``space="archgym"`` gives exactly the ten
            knobs of ArchGym (with ``memory="DDR3-1600"``, its memory too).

    Attributes:
        device: the memory.
        trace: the workload's requests.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
        TraceError: if the workload's file cannot be read.
    """

    metrics: ClassVar = (
        Metric("time_ns", "ns", "minimize", "from time 0 of the trace to the last response"),
        Metric("read_latency_mean_ns", "ns", "minimize", "mean over reads, arrival to data"),
        Metric(
            "read_latency_p99_ns", "ns", "minimize", "99th percentile over reads, arrival to data"
        ),
        Metric(
            "read_latency_accepted_mean_ns",
            "ns",
            "minimize",
            "mean over reads, from being offered to the controller to data",
        ),
        Metric("bandwidth_gb_per_s", "GB/s", "maximize", "bytes moved by the total time"),
        Metric("energy_pj", "pJ", "minimize", "energy of all chips of the rank"),
        Metric("energy_per_bit_pj", "pJ", "minimize", "energy by the bits moved"),
        Metric("power_mw", "mW", "minimize", "energy by the total time"),
        Metric("row_hit_rate", "", "maximize", "share of column commands that find their row open"),
        Metric("buffer_bits", "bits", "minimize", "storage in the controller's queues"),
    )
    default_objective: ClassVar = {
        "product": {"read_latency_mean_ns": 1, "energy_per_bit_pj": 1},
        "limits": ["buffer_bits <= 131072"],
    }
    baseline: ClassVar = BASELINE
    default_workload: ClassVar = "sqlite"
    version: ClassVar = "1"
    not_modelled: ClassVar = (
        "more than one channel or one rank",
        "refresh per bank or per bank group (DDR3 and DDR4 have none)",
        "power-down and self-refresh",
        "forwarding from and merging of queued writes; a write is answered after its burst",
        "requests longer than one burst (64 bytes), masked writes, error correction",
        "additive latency",
        "energy of input/output, termination and the controller; the energy is the DRAM core's",
        "temperature, refresh management, row-hammer defences and errors",
        "traces of more than 16.7 million requests or 1.4e11 clock cycles",
    )

    def __init__(
        self,
        *,
        memory: str | os.PathLike[str] = DEFAULT_MEMORY,
        controller: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        self.device: Device = load_device(memory)
        self.controller: dict[str, Any] = dict(controller or {})
        self.trace: Trace
        searched = design_space("default", self.device).names
        settings = {f.name for f in fields(ControllerConfig)} - set(searched)
        for name in self.controller:
            if name not in settings:
                raise UnknownNameError("controller setting", name, settings, "controller")
        ControllerConfig(**self.controller)  # refuses bad values before anything runs
        super().__init__(**arguments)

    def simulate(self, design: Mapping[str, Any]) -> dict[str, float]:
        """Runs the trace through the controller that the design describes."""
        config = ControllerConfig(**{**self.controller, **design})
        result = simulate(self.trace, self.device, config)
        values = {
            metric.name: float(getattr(result, metric.name))
            for metric in self.metrics
            if metric.name != "buffer_bits"
        }
        values = {name: value for name, value in values.items() if not math.isnan(value)}
        return {**values, "buffer_bits": float(buffer_bits(config, self.device))}

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Loads the trace."""
        self.trace = load_workload(spec)

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """Recorded programs and generators, with a line on each."""
        return workload_names()

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The memories and the settings of the controller."""
        searched = design_space("default", load_device(DEFAULT_MEMORY)).names
        settings = [f.name for f in fields(ControllerConfig) if f.name not in searched]
        return {
            "memory": f"{', '.join(device_names())}, or the path of a device file",
            "controller": f"a mapping with any of {', '.join(settings)}",
        }

    @property
    def workload_name(self) -> str:
        """Short label of the trace."""
        return workload_label(self.workload)

    @property
    def workload_sha256(self) -> str:
        """Hash of the trace's requests."""
        return self.trace.sha256

    @property
    def settings(self) -> dict[str, Any]:
        """The memory and what is set of the controller."""
        return {"memory": self.device.name, "controller": self.controller}

    @property
    def metrics_given(self) -> tuple[str, ...]:
        """All, but read latencies only if the trace reads."""
        reads = bool((self.trace.is_write == 0).any())
        return tuple(m.name for m in self.metrics if reads or m.name not in _READ_METRICS)

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The design spaces, for the default memory."""
        device = load_device(DEFAULT_MEMORY)
        return {name: design_space(name, device) for name in SPACES}

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            return space
        if space not in SPACES:
            raise UnknownNameError("space", space, SPACES)
        return design_space(space, self.device)
