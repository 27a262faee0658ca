"""DRAMsim3 as a simulator of a part of the DRAM environment.

DRAMsim3 (University of Maryland) is not on PyPI: it is built from source. The executable is found
on PATH as ``dramsim3main`` or through the environment variable ``ARCHGYM_DRAMSIM3``.

It is an independent cross-check with another controller: writes are posted and drained, reads
of queued lines are forwarded, a row is left after four hits, and a refresh stalls its rank at
once. Its mean read latency counts from acceptance; it reports no latency from arrival.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from archgym.envs.dram.controller.buffer_cost import buffer_bits
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.device.address_mapping import AddressMapping
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.external.dramsim3_config import NEVER_CYCLES, check_covered, ini_file
from archgym.envs.dram.external.dramsim3_output import Statistics, read_statistics
from archgym.envs.dram.external.program import DramProgram
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError, SimulationError
from archgym.simulators.external import (
    private_folder,
    run_program,
)

__all__ = ["DramSim3Simulator"]

_METRICS = (
    "time_ns",
    "read_latency_accepted_mean_ns",
    "bandwidth_gb_per_s",
    "energy_pj",
    "energy_per_bit_pj",
    "power_mw",
    "row_hit_rate",
    "buffer_bits",
)
_STANDARDS = ("DDR3", "DDR4")
EPOCHS = 1000
"""Number of epochs of a run, each with printed statistics; the end is known to one epoch."""
_MAX_CYCLES = NEVER_CYCLES - 1
_PATIENCE_CYCLES = 50_000


class DramSim3Simulator(DramProgram):
    """Runs each design in a separate process, in an empty folder, with a time limit.

    DRAMsim3 simulates a given number of cycles and never says when the trace has been served, so
    the run is extended until the statistics show that all reads have returned and all writes were
    taken. Time and energy are those at the end of that epoch, which is up to 0.2 % late.

    ``bankwise`` and ``shared`` buffers are its command queues, one per bank or one per rank;
    ``read_write`` ones are its two transaction queues, with :data:`COMMAND_QUEUE` requests per bank
    behind them.

    Args:
        memory: the memory, of DDR3 or DDR4.
        trace: the requests.
        controller: settings of :class:`~archgym.envs.dram.controller.config.ControllerConfig`
            that designs do not have.
        mappings: user-defined address mappings, by name.
        metric_names: the metrics that are wanted; those that DRAMsim3 does not give are left out.
        program: the executable; by default the one that
            :func:`archgym.simulators.external.find_program` finds.
        time_limit_s: wall-clock time of one design, s.
        threads: designs at a time; default one for each core.

    Attributes:
        name: ``dramsim3``.
        version: the beginning of the executable's SHA-256.
        metric_names: the metrics that it gives.

    Raises:
        MissingDependencyError: if there is no such program.
        InvalidValueError: for a memory that is neither DDR3 nor DDR4, or a bad option.
    """

    name = "dramsim3"
    executable = "dramsim3main"
    variable = "ARCHGYM_DRAMSIM3"
    install = (
        "Build DRAMsim3 (https://github.com/umd-memsys/DRAMsim3, commit 2981759; needs CMake and a "
        "C++11 compiler)."
    )

    def __init__(
        self,
        memory: Memory,
        trace: Trace,
        *,
        controller: Mapping[str, Any] | None = None,
        mappings: Mapping[str, AddressMapping] | None = None,
        metric_names: tuple[str, ...] = (),
        program: Path | str | None = None,
        time_limit_s: float = 120.0,
        threads: int | None = None,
    ) -> None:
        if memory.device.standard not in _STANDARDS or not memory.device.supplies:
            raise InvalidValueError(
                f"memory {memory.name!r}: simulator 'dramsim3' takes {' and '.join(_STANDARDS)} "
                f"with currents, not {memory.device.standard}"
            )
        super().__init__(
            memory,
            trace,
            controller=controller,
            mappings=mappings,
            program=program,
            time_limit_s=time_limit_s,
            threads=threads,
        )
        self.reads = int((trace.is_write == 0).sum())
        given = [name for name in _METRICS if self.reads or not name.startswith("read_")]
        self.metric_names = tuple(name for name in metric_names if name in given)

    def simulate_one(self, design: Mapping[str, Any]) -> dict[str, float]:
        """Metrics of one design.

        Raises:
            NotCoveredError: if DRAMsim3 has no such setting.
            SimulationError: if it fails, stops serving requests, or its output cannot be read.
            TimeoutError: if it takes too long.
        """
        config = self.config(design)
        check_covered(config)
        n = len(self.trace)
        end = time.monotonic() + self.time_limit_s
        last_arrival = int(self._arrival_cycles[-1])
        cycles = int(1.1 * max(last_arrival, n * self.device.burst_cycles)) + 5000
        while True:
            run = self.run(config, cycles, end)
            if run.reads_done >= self.reads and run.writes_done >= n - self.reads:
                break
            served = run.reads_done + run.writes_done
            if run.idle_cycles > self._patience:
                raise SimulationError(
                    f"DRAMsim3 stopped serving requests after {served} of {n} (its known livelock: "
                    "a write with a read of its line pending and the write buffer full)"
                )
            # At least twice as long, so that the number of runs stays small.
            cycles = max(2 * cycles, int(1.1 * cycles * n / max(served, n // 100, 1)))
            if cycles > _MAX_CYCLES:
                raise SimulationError(f"DRAMsim3 needs more than {_MAX_CYCLES} cycles")
        values = self._values(run)
        values["buffer_bits"] = float(buffer_bits(config, self.memory))
        return {name: values[name] for name in self.metric_names}

    @cached_property
    def _arrival_cycles(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return -(-self.trace.arrival_ps // self.device.t_ck_ps)

    @cached_property
    def _patience(self) -> int:
        """Cycles without any request served after which it is stuck."""
        gaps = np.diff(self._arrival_cycles, prepend=0)
        return int(gaps.max()) + _PATIENCE_CYCLES

    @cached_property
    def _requests(self) -> bytes:
        addresses = self.trace.address & (self.memory.capacity_bytes - 1)
        lines = [
            f"{address:#x} {'WRITE' if write else 'READ'} {cycle}\n"
            for address, write, cycle in zip(
                addresses.tolist(),
                (self.trace.is_write != 0).tolist(),
                self._arrival_cycles.tolist(),
                strict=True,
            )
        ]
        # Its reader repeats the last line at the end of the file: one that is never due.
        return "".join([*lines, f"0x0 READ {2**62}\n"]).encode("ascii")

    def run(self, config: ControllerConfig, cycles: int, end: float) -> Statistics:
        """Simulates at least a number of cycles; the trace may be unfinished then.

        Args:
            config: the controller.
            cycles: how many.
            end: value of :func:`time.monotonic` at which it is killed.
        """
        ini = ini_file(self.memory, self.mapping(config), config)
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"DRAMsim3 did not finish within {self.time_limit_s:g} s")
        epoch = max(1, cycles // EPOCHS)
        cycles = -(-cycles // epoch) * epoch
        with private_folder() as folder:
            (folder / "memory.ini").write_text(f"{ini}epoch_period = {epoch}\n", encoding="ascii")
            (folder / "requests.trace").write_bytes(self._requests)
            arguments = f"memory.ini -c {cycles} -t requests.trace -o ."
            try:
                run_program([self.program, *arguments.split()], folder, time_limit_s=left)
            except TimeoutError:
                raise TimeoutError(
                    f"DRAMsim3 did not finish within {self.time_limit_s:g} s"
                ) from None
            return read_statistics(folder / "outepoch.json", epoch, self.memory.channels)

    def _values(self, run: Statistics) -> dict[str, float]:
        cycle_ns = self.device.t_ck_ps * 1e-3
        time_ns = run.cycles * cycle_ns
        moved = len(self.trace) * self.device.bytes_per_request
        # It calls volts x mA x cycles picojoules; a cycle is not a nanosecond.
        energy = run.energy_v_ma_cycles * cycle_ns
        values = {
            "time_ns": time_ns,
            "bandwidth_gb_per_s": moved / time_ns,
            "energy_pj": energy,
            "energy_per_bit_pj": energy / (8 * moved),
            "power_mw": energy / time_ns,
            "row_hit_rate": run.hits / run.columns if run.columns else 0.0,
        }
        if self.reads:
            values["read_latency_accepted_mean_ns"] = run.latency_cycles / self.reads * cycle_ns
        return values
