"""Command traces: the commands that the controller sends to a memory, as a CSV file."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import check_capacity, prepare
from archgym.envs.dram.controller.result import COMMANDS
from archgym.envs.dram.device.address_mapping import address_mapping
from archgym.envs.dram.device.memory import Memory, MemorySpec, load_memory
from archgym.envs.dram.traces.workload import WorkloadSpec, load_workload
from archgym.envs.dram.validation.timing_checker import violations
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["COLUMNS", "CommandTrace", "command_trace"]

COLUMNS = ("time_ns", "cycle", "command", "channel", "rank", "bank", "row")
"""Columns of the CSV file: time and cycle of the command's first clock; the bank is counted over
all bank groups of the rank. Bank and row are empty where they do not apply; the bank of a command
for one bank in every group is that of the first group."""


@dataclass(frozen=True)
class CommandTrace:
    """The commands of a run.

    Attributes:
        memory: the memory.
        config: the controller.
        cycles: length of the run, clocks.
        logs: log of each channel that has requests, by index; see ``Result.log``.
    """

    memory: Memory
    config: ControllerConfig
    cycles: int
    logs: Mapping[int, NDArray[np.int64]]

    def write_csv(self, path: str | os.PathLike[str]) -> int:
        """Write the commands of all channels in the order of time.

        Returns:
            The number of commands.

        Raises:
            InvalidValueError: if the file cannot be written.
        """
        channel = np.concatenate([np.full(len(log), c) for c, log in self.logs.items()])
        joined = np.concatenate(list(self.logs.values()))
        order = np.argsort(joined[:, 0], kind="stable")
        t_ck_ps = self.memory.device.t_ck_ps
        try:
            with open(path, "w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(COLUMNS)
                for number, (cycle, code, rank, bank, row) in zip(
                    channel[order].tolist(), joined[order].tolist(), strict=True
                ):
                    time_ps = cycle * t_ck_ps
                    time_ns = f"{time_ps // 1000}.{time_ps % 1000:03d}"
                    place = [rank, bank if bank >= 0 else "", row if row >= 0 else ""]
                    writer.writerow([time_ns, cycle, COMMANDS[code], number, *place])
        except OSError as error:
            raise InvalidValueError(f"{os.fspath(path)}: cannot be written ({error})") from error
        return len(joined)

    def violations(self) -> list[str]:
        """Violations of timing rules that the independent checker finds, one line each."""
        found = []
        for channel, log in self.logs.items():
            wrong = violations(
                self.memory, log, refresh_policy=self.config.refresh_policy, cycles=self.cycles
            )
            found += [f"channel {channel}, {what}" for what in wrong]
        return found


def command_trace(
    workload: WorkloadSpec, memory: MemorySpec, settings: Mapping[str, Any] | None = None
) -> CommandTrace:
    """Run a workload and keep every command.

    Args:
        workload: see :func:`archgym.envs.dram.traces.workload.load_workload`.
        memory: see :func:`archgym.envs.dram.device.memory.load_memory`.
        settings: fields of :class:`archgym.envs.dram.controller.config.ControllerConfig`.

    Raises:
        UnknownNameError, InvalidValueError: for a name or value that is not possible.
        TraceError: if the workload's file cannot be read.
        SimulationError: if the controller cannot finish the trace.

    Example:
        >>> trace = command_trace({"generator": "stream", "requests": 100}, "DDR4-2400")
        >>> trace.violations()
        []
    """
    known = [field.name for field in fields(ControllerConfig)]
    for name in settings or {}:
        if name not in known:
            raise UnknownNameError("controller setting", name, known)
    config = ControllerConfig(**(settings or {}))
    loaded = load_memory(memory)
    trace = load_workload(workload)
    check_capacity(trace, loaded)
    mapping = address_mapping(config.address_mapping, loaded, config.channel_interleave)
    prepared = prepare(trace, loaded, mapping)
    result = simulate(prepared, config, log_commands=True)
    numbers = [int(mapping.decode(part.address[:1]).channel[0]) for part in prepared.channels]
    return CommandTrace(loaded, config, result.cycles, dict(zip(numbers, result.log, strict=True)))
