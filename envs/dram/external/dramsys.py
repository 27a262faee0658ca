"""DRAMSys 5 as a simulator of the DRAM environment.

DRAMSys (RPTU Kaiserslautern-Landau and Fraunhofer IESE) is not on PyPI: it is built from source,
with its command line tool and, for energy, with DRAMPower. The executable is found on PATH as
``DRAMSys`` or through the environment variable ``ARCHGYM_DRAMSYS``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from archgym.envs.dram.controller.buffer_cost import buffer_bits
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.device.address_mapping import AddressMapping
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.external.dramsys_config import (
    TRACE_FILE,
    configuration,
    has_power,
    memspec,
    stl_trace,
)
from archgym.envs.dram.external.dramsys_output import Printed, Recorded, read_database, read_printed
from archgym.envs.dram.external.program import DramProgram
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import (
    InvalidValueError,
    MissingDependencyError,
    SimulationError,
)
from archgym.simulators.external import (
    private_folder,
    run_program,
)

__all__ = ["DramSysSimulator"]

_TIME = ("time_ns", "bandwidth_gb_per_s", "buffer_bits")
_ENERGY = ("energy_pj", "energy_per_bit_pj", "power_mw")


class DramSysSimulator(DramProgram):
    """Runs each design in a separate process, in an empty folder, with a time limit.

    All timing rules are DRAMSys's own, whatever ``timing_rules`` says. What it cannot express is
    refused with :class:`~archgym.errors.NotCoveredError`.

    Args:
        memory: the memory, of DDR3, DDR4 or LPDDR4.
        trace: the requests.
        controller: settings of :class:`~archgym.envs.dram.controller.config.ControllerConfig`
            that designs do not have.
        mappings: user-defined address mappings, by name.
        metric_names: the metrics that are wanted; those that DRAMSys does not give are left out.
        program: the executable; by default the one that
            :func:`archgym.simulators.external.find_program` finds.
        time_limit_s: wall-clock time of one design, s. A run takes some tenths of a second;
            ``staggered`` power-down may make DRAMSys 5.1 run for ever.
        threads: designs at a time; default one for each core.
        latencies: whether to read latencies and row hits from the database that DRAMSys records;
            a run takes about four times as long as without.
        energy: whether to work out the energy; default where DRAMSys has a power model, that is
            for one rank of DDR3 or DDR4. With power-down and pages that close automatically its
            energy is too high: DRAMPower 4 then counts some clocks twice.

    Attributes:
        name: ``dramsys``.
        version: the beginning of the executable's SHA-256.
        metric_names: the metrics that it gives.

    Raises:
        MissingDependencyError: if there is no such program.
        InvalidValueError: for a memory that DRAMSys does not have, or a bad option.
    """

    name = "dramsys"
    executable = "DRAMSys"
    variable = "ARCHGYM_DRAMSYS"
    install = (
        "Build DRAMSys 5.1 (https://github.com/tukl-msd/DRAMSys, tag v5.1; needs CMake and a C++17 "
        "compiler)."
    )
    options = (*DramProgram.options, "latencies", "energy")

    def __init__(
        self,
        memory: Memory,
        trace: Trace,
        *,
        controller: Mapping[str, Any] | None = None,
        mappings: Mapping[str, AddressMapping] | None = None,
        metric_names: tuple[str, ...] = (),
        program: Path | str | None = None,
        time_limit_s: float = 60.0,
        threads: int | None = None,
        latencies: bool = True,
        energy: bool | None = None,
    ) -> None:
        memspec(memory)  # refuses a memory that cannot be described
        super().__init__(
            memory,
            trace,
            controller=controller,
            mappings=mappings,
            program=program,
            time_limit_s=time_limit_s,
            threads=threads,
        )
        self.latencies = latencies
        self.energy = has_power(memory) if energy is None else energy
        if self.energy and not has_power(memory):
            raise InvalidValueError(
                f"simulator_options: energy is True, but DRAMSys has no power model for "
                f"{memory.name!r} ({self.device.standard}, {memory.ranks} ranks)"
            )
        reads = bool((trace.is_write == 0).any())
        writes = bool((trace.is_write != 0).any())
        self.metric_names = tuple(name for name in metric_names if self._gives(name, reads, writes))

    def simulate_one(self, design: Mapping[str, Any]) -> dict[str, float]:
        """Metrics of one design.

        Raises:
            NotCoveredError: if DRAMSys has no such setting.
            SimulationError: if it fails, or its output cannot be read.
            TimeoutError: if it takes too long.
            MissingDependencyError: if it cannot be started, or was built without DRAMPower.
        """
        config = self.config(design)
        stl, player_mhz = self._stl
        document = configuration(
            self.memory,
            self.mapping(config),
            config,
            player_mhz=player_mhz,
            power=self.energy,
            database=self.latencies,
        )
        with private_folder() as folder:
            traces = folder / "traces"
            traces.mkdir()
            (traces / TRACE_FILE).write_bytes(stl)
            (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
            try:
                output = run_program(
                    [self.program, "run.json", folder], folder, time_limit_s=self.time_limit_s
                )
            except SimulationError as error:
                if "included DRAMPower library" in str(error):
                    raise MissingDependencyError(
                        f"{self.program} was built without DRAMPower, so it gives no energy. Build "
                        "it with DRAMPower, or pass simulator_options={'energy': False}."
                    ) from error
                raise
            printed = read_printed(output.stdout, power=self.energy)
            recorded = self._read_database(folder, config) if self.latencies else None
        self._check(printed)
        values = self._values(printed, recorded)
        values["buffer_bits"] = float(buffer_bits(config, self.memory))
        return {name: values[name] for name in self.metric_names}

    @cached_property
    def _stl(self) -> tuple[bytes, int]:
        return stl_trace(self.trace, self.memory.capacity_bytes, self.device.bytes_per_request)

    def _gives(self, name: str, reads: bool, writes: bool) -> bool:
        if name in _ENERGY:
            return self.energy
        if name.startswith(("read_latency_", "write_latency_")):
            return self.latencies and (reads if name.startswith("read") else writes)
        return name in _TIME or (self.latencies and name == "row_hit_rate")

    def _read_database(self, folder: Path, config: ControllerConfig) -> Recorded:
        channels = self.memory.channels
        databases = [next(folder.glob(f"*_ch{i}.tdb"), None) for i in range(channels)]
        found = [path for path in databases if path is not None]
        if len(found) != channels:
            raise SimulationError(f"DRAMSys wrote {len(found)} databases for {channels} channels")
        return read_database(
            found,
            self.trace.arrival_ps,
            self.mapping(config).decode(self.trace.address).channel,
            config,
            self.device.t_ck_ps,
        )

    def _check(self, printed: Printed) -> None:
        """Refuses figures of a version that understands the memory specification otherwise."""
        expected = 8 * self.device.peak_bandwidth_gb_per_s
        seen = printed.peak_gbit_per_s
        if abs(seen / expected - 1) > 0.01:
            raise SimulationError(
                f"{self.program.name} takes the memory for one with a peak of {seen:g} Gb/s, it "
                f"has {expected:g}: this version reads memory specifications otherwise than "
                "DRAMSys 5.0 and 5.1 do"
            )
        if printed.time_ns <= 0:
            raise SimulationError(f"DRAMSys printed a total time of {printed.time_ns:g} ns")

    def _values(self, printed: Printed, recorded: Recorded | None) -> dict[str, float]:
        n = len(self.trace)
        moved = n * self.device.bytes_per_request
        values = {
            "time_ns": printed.time_ns,
            "bandwidth_gb_per_s": moved / printed.time_ns,
            "energy_pj": printed.energy_pj,
            "energy_per_bit_pj": printed.energy_pj / (8 * moved),
            "power_mw": printed.energy_pj / printed.time_ns,
        }
        if recorded is None:
            return values
        values["row_hit_rate"] = recorded.hits / n
        for kind, chosen in (
            ("read", self.trace.is_write == 0),
            ("write", self.trace.is_write != 0),
        ):
            done = recorded.done_ps[chosen]
            if not len(done):
                continue
            of_arrival = done - self.trace.arrival_ps[chosen]
            values |= _latencies(f"{kind}_latency_", of_arrival)
            values |= _latencies(f"{kind}_latency_accepted_", done - recorded.offered_ps[chosen])
        return values


def _latencies(prefix: str, latency_ps: np.ndarray[Any, np.dtype[np.int64]]) -> dict[str, float]:
    """Mean, quantiles (the smallest latency that the share does not exceed) and maximum, ns."""
    n = len(latency_ps)
    ordered = np.sort(latency_ps) * 1e-3
    return {
        f"{prefix}mean_ns": float(latency_ps.mean()) * 1e-3,
        f"{prefix}max_ns": float(ordered[-1]),
        **{
            f"{prefix}p{percent}_ns": float(ordered[min(percent * n // 100, n - 1)])
            for percent in (50, 95, 99)
        },
    }
