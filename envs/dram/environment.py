"""The DRAM memory-controller environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from archgym.environment.environment import Environment
from archgym.envs.dram.controller.batch import simulate_configs
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.prepared_trace import PreparedTrace, check_capacity, prepare
from archgym.envs.dram.controller.result import Result
from archgym.envs.dram.device.address_mapping import AddressMapping, address_mapping, read_mapping
from archgym.envs.dram.device.data_sheets import device_names, device_sources, load_device
from archgym.envs.dram.device.memory import Memory, MemorySpec, load_memory
from archgym.envs.dram.external.program import DramProgram
from archgym.envs.dram.metrics import (
    ENERGY_METRICS,
    METRICS,
    READ_METRICS,
    TOTALS,
    WRITE_METRICS,
    metrics_of,
)
from archgym.envs.dram.space import BASELINE, SPACES, design_space
from archgym.envs.dram.trace_features import FEATURES, trace_features
from archgym.envs.dram.traces.demand import demand_warning, late_warning
from archgym.envs.dram.traces.trace import Trace
from archgym.envs.dram.traces.varied import VARIED
from archgym.envs.dram.traces.workload import (
    WorkloadSpec,
    load_workload,
    workload_label,
    workload_names,
)
from archgym.errors import UnknownNameError
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult, Simulator
from archgym.space import Designs, DesignSpace, param

__all__ = ["DramEnvironment"]

DEFAULT_MEMORY = "DDR4-2400"


def _dramsys(environment: DramEnvironment) -> Simulator:
    """DRAMSys 5.1, installed by the user: every knob; DDR3, DDR4 and LPDDR4."""
    from archgym.envs.dram.external.dramsys import DramSysSimulator

    return environment.run_by(DramSysSimulator)


def _dramsim3(environment: DramEnvironment) -> Simulator:
    """DRAMsim3, installed by the user: some of the knobs and metrics; DDR3 and DDR4."""
    from archgym.envs.dram.external.dramsim3 import DramSim3Simulator

    return environment.run_by(DramSim3Simulator)


class DramEnvironment(Environment):
    """Search the design of a DRAM memory controller on a memory trace.

    >>> import archgym
    >>> env = archgym.make("DRAM-v0", workload={"generator": "stream", "requests": 1000})
    >>> outcome = env.evaluate(env.baseline)
    >>> outcome.metrics["row_hit_rate"] > 0.9
    True

    Args:
        memory: name of a device (``archgym show DRAM-v0`` lists them), path of a device file, or
            ``{"device": ..., "channels": 2, "ranks": 2}``.
        controller: settings of :class:`archgym.envs.dram.controller.config.ControllerConfig` that
            are not searched: delays of the front end, ``timing_rules``.
        address_mappings: user-defined address mappings, which the ``default`` space offers beside
            the named ones: by name, the bits of each field, or the path of a JSON file with them
            (see :func:`archgym.envs.dram.device.address_mapping.mapping_from_bits`).
        workload: name of a recorded program or a generator, path of a trace file, or a mapping;
            see :func:`archgym.envs.dram.traces.workload.load_workload`.
        simulator_options: with ``simulator="dramsys"`` or ``"dramsim3"``, arguments of
            :class:`~archgym.envs.dram.external.dramsys.DramSysSimulator` or
            :class:`~archgym.envs.dram.external.dramsim3.DramSim3Simulator`: ``time_limit_s``,
            ``threads``, ``program``, and of DRAMSys ``latencies``, ``energy``.
        **arguments: of :class:`archgym.Environment`; ``space="archgym"`` gives exactly the ten
            knobs of ArchGym (with ``memory="DDR3-1600"``, its memory too).

    Attributes:
        memory: the memory.
        trace: the workload's requests.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not allowed.
        TraceError: if the workload's file cannot be read.
    """

    metrics: ClassVar = METRICS
    default_objective: ClassVar = {
        "product": {"read_latency_mean_ns": 1, "energy_per_bit_pj": 1},
        "limits": ["buffer_bits <= 131072"],
    }
    objective_without_energy: ClassVar = {
        "minimize": "read_latency_mean_ns",
        "limits": ["buffer_bits <= 131072"],
    }
    """The default objective for a memory without a power model."""
    baseline: ClassVar = BASELINE
    compiles: ClassVar = True
    default_workload: ClassVar = "sqlite"
    version: ClassVar = "3"
    fidelities: tuple[Fidelity, ...] = (
        Fidelity(0.1, 0.1, "the first tenth of the requests"),
        Fidelity(0.3, 0.3, "the first three tenths of the requests"),
        FULL,
    )
    simulators: ClassVar = {"dramsys": _dramsys, "dramsim3": _dramsim3}
    modelled: ClassVar = (
        "every command of every bank, clock by clock, under the timing rules of its standard; a "
        "bank is a state machine",
        "finite request, response and bank buffers with back pressure, and an arbiter",
        "request schedulers, page policies, the address mapping, channels and ranks",
        "refresh of all banks, of one bank and of the same bank of every group, postponed or "
        "pulled in; power-down and self-refresh",
        "posted writes with forwarding to reads",
        "energy of commands and standby, by the currents of the device",
    )
    caveats: ClassVar = {
        "refresh_policy=none: nothing is refreshed, and a real memory loses its data; "
        "exclude: {refresh_policy: [none]} searches without it (per_bank and same_bank, where a "
        "memory has them, keep the other banks busy; all_bank stops them all)": (
            param("refresh_policy") == "none"
        ),
    }
    not_modelled: ClassVar = (
        "requests longer than one burst: a request moves one, of 64 bytes on DDR3, DDR4 and DDR5, "
        "of 32 on LPDDR4, LPDDR5 and HBM2, where a line of 64 bytes would need two",
        "masked writes and error correction",
        "sharing of one initiator by channels: each has its own front end",
        "the write clock of LPDDR5 (always on) and the command bus that pseudo channels share",
        "additive latency",
        "retention: postponed and pulled-in refreshes together may lie further apart than nine "
        "intervals, as in DRAMSys",
        "energy of input/output, termination and the controller; the energy is the DRAM core's",
        "temperature, refresh management, row-hammer defences and errors",
        "changes of a trace's rate below full fidelity: totals of its first requests are scaled up "
        "by their number, so an idle beginning counts several times",
        "traces of more than 16.7 million requests or 1.4e11 clock cycles",
    )

    def __init__(
        self,
        *,
        memory: MemorySpec = DEFAULT_MEMORY,
        controller: Mapping[str, Any] | None = None,
        address_mappings: Mapping[str, Mapping[str, Any] | str | os.PathLike[str]] | None = None,
        **arguments: Any,
    ) -> None:
        self.memory: Memory = load_memory(memory)
        self.address_mappings: dict[str, AddressMapping] = {
            name: read_mapping(name, bits, self.memory)
            for name, bits in (address_mappings or {}).items()
        }
        self.controller: dict[str, Any] = dict(controller or {})
        self.trace: Trace
        searched = design_space("default", self.memory, tuple(self.address_mappings)).names
        settings = {f.name for f in fields(ControllerConfig)} - set(searched)
        for name in self.controller:
            if name not in settings:
                raise UnknownNameError("controller setting", name, settings, "controller")
        if self.memory.channels > 1:
            self.baseline = {**BASELINE, "channel_interleave": "request"}  # type: ignore[misc]
        if not self.memory.device.supplies and arguments.get("objective") is None:
            arguments["objective"] = self.objective_without_energy
        ControllerConfig(**self.controller)  # refuses bad values before anything runs
        super().__init__(**arguments)

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        """Runs the trace through the controllers that the designs describe, on all cores.

        Below full fidelity it is the trace's first requests. Totals (time and energy) are scaled
        up to the whole trace; latencies, rates and shares are those of the part.
        """
        configs = [self.config(design) for design in designs]
        scale = len(self.trace) / len(self._part(fidelity))

        def scaled(result: Result, config: ControllerConfig) -> dict[str, float]:
            found = metrics_of(result, config, self.memory)
            return {k: v * scale if k in TOTALS else v for k, v in found.items()}

        def prepared(config: ControllerConfig) -> PreparedTrace:
            return self.prepare(config, fidelity)

        return simulate_configs(configs, prepared, scaled)

    def run_by(self, program: type[DramProgram]) -> DramProgram:
        """An external program that runs this environment's trace on its memory."""
        return program.with_options(
            self.simulator_options,
            self.memory,
            self.trace,
            controller=self.controller,
            mappings=self.address_mappings,
            metric_names=tuple(metric.name for metric in self.metrics),
        )

    def config(self, design: Mapping[str, Any]) -> ControllerConfig:
        """The controller that a design describes, with the fixed settings."""
        return ControllerConfig(**{**self.controller, **design})

    def prepare(self, config: ControllerConfig, fidelity: float = 1.0) -> PreparedTrace:
        """The trace, or its first requests, decoded as a controller maps addresses."""
        key = (config.address_mapping, config.channel_interleave, fidelity)
        found = self._prepared.get(key)
        if found is None:
            own = self.address_mappings.get(config.address_mapping)
            mapping = own or address_mapping(key[0], self.memory, key[1])
            found = self._prepared[key] = prepare(self._part(fidelity), self.memory, mapping)
        return found

    def _part(self, fidelity: float) -> Trace:
        """The trace, or its first requests."""
        if fidelity == 1:
            return self.trace
        found = self._parts.get(fidelity)
        if found is None:
            found = self._parts[fidelity] = self.trace.prefix(fidelity)
        return found

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Loads the trace, and leaves out fidelities that have no reads, or no writes, of it."""
        self.trace = load_workload(spec)
        check_capacity(self.trace, self.memory)
        self._prepared: dict[tuple[str, str, float], PreparedTrace] = {}
        self._parts: dict[float, Trace] = {}
        self._features: dict[str, float] = {}
        kinds = len(np.unique(self.trace.is_write != 0))
        self.fidelities = tuple(
            one
            for one in self.fidelities
            if len(np.unique(self._part(one.value).is_write != 0)) == kinds
        )

    @property
    def workload_features(self) -> dict[str, float]:
        """Intensity, locality, parallelism and others of the trace, computed once."""
        if not self._features:
            self._features = trace_features(self.trace, self.memory)
        return dict(self._features)

    @classmethod
    def workload_feature_docs(cls) -> dict[str, str]:
        """Meaning of :attr:`workload_features`."""
        return dict(FEATURES)

    @classmethod
    def varied_workloads(cls) -> tuple[WorkloadSpec, ...]:
        """Beginnings of the recorded programs, and variants of each generator."""
        return VARIED

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """Recorded programs and generators, with a line on each."""
        return workload_names()

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The memories and the settings of the controller."""
        searched = design_space("default", load_memory(DEFAULT_MEMORY)).names
        settings = [f.name for f in fields(ControllerConfig) if f.name not in searched]
        return {
            "memory": f"{', '.join(map(_described, device_names()))}, the path of a device file, "
            "or a mapping with device, channels, ranks",
            "controller": f"a mapping with any of {', '.join(settings)}",
            "address_mappings": "user-defined mappings: a mapping from names to bits or JSON files",
            "simulator_options": "for 'dramsys' and 'dramsim3': a mapping with any of "
            "time_limit_s, threads, program; for 'dramsys' also latencies, energy",
        }

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Sources of each device's figures, and of the energy equations."""
        devices = {f"device {name}": device_sources(name) for name in device_names()}
        return {
            **devices,
            "energy": "the equations of DRAMPower 4 on the devices' currents",
            "mechanisms": "after DRAMSys 5; timing rules of the JEDEC standards, or with "
            "timing_rules=dramsys51 those of DRAMSys 5.1",
        }

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Figures of DRAMSys, Ramulator and DRAMsim3 on known designs.

        :mod:`archgym.envs.dram.validation.reference` says which tables can be read.
        """
        from archgym.envs.dram.validation.reference import read_reference, shipped_references

        names = [metric.name for metric in cls.metrics]
        if table is None:
            return shipped_references(names)
        return read_reference(table, names, traces=workloads, memory=hardware)

    @property
    def workload_name(self) -> str:
        """Short label of the trace."""
        return workload_label(self.workload)

    def hash_workload(self) -> str:
        """Hash of the trace's requests."""
        return self.trace.sha256

    @property
    def settings(self) -> dict[str, Any]:
        """The memory, and the controller settings that are fixed."""
        return {
            "memory": self.memory.spec,
            "memory_sha256": self.memory.sha256,
            "address_mappings": {
                name: mapping.bits() for name, mapping in self.address_mappings.items()
            },
            "controller": self.controller,
        }

    @property
    def warnings(self) -> list[str]:
        """A trace that asks for more than the memory can give, or begins late."""
        if not hasattr(self, "trace"):  # a table or a proxy stands in, and needs none
            return []
        found = (demand_warning(self.trace, self.memory), late_warning(self.trace, self.memory))
        return [text for text in found if text]

    @property
    def metrics_given(self) -> tuple[str, ...]:
        """All metrics but latencies of requests that the trace lacks, and energy without model."""
        missing: tuple[str, ...] = ()
        if not bool((self.trace.is_write == 0).any()):
            missing += READ_METRICS
        if not bool((self.trace.is_write != 0).any()):
            missing += WRITE_METRICS
        if not self.memory.device.supplies:
            missing += ENERGY_METRICS
        return tuple(m.name for m in self.metrics if m.name not in missing)

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The design spaces, for the default memory."""
        memory = load_memory(DEFAULT_MEMORY)
        return {name: design_space(name, memory) for name in SPACES}

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            return space
        if space not in SPACES:
            raise UnknownNameError("space", space, SPACES)
        return design_space(space, self.memory, tuple(self.address_mappings))


def _described(name: str) -> str:
    """A device's name, marked if nothing independent has confirmed its figures."""
    unvalidated = load_device(name).validation == "unvalidated"
    return f"{name} (unvalidated)" if unvalidated else name
