"""Reads the statistics that DRAMsim3 writes about a run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from archgym.errors import SimulationError

__all__ = ["Statistics", "read_statistics"]


@dataclass(frozen=True)
class Statistics:
    """Statistics of all channels up to the epoch in which the last request was served.

    Attributes:
        cycles: cycles to the end of that epoch.
        idle_cycles: cycles that were simulated after it.
        reads_done: reads that have returned.
        writes_done: writes that were taken.
        columns: read and write commands.
        hits: those of them that found their row open.
        latency_cycles: sum of the read latencies.
        energy_v_ma_cycles: energy in volts x mA x cycles.
    """

    cycles: int
    idle_cycles: int
    reads_done: int
    writes_done: int
    columns: int
    hits: int
    latency_cycles: float
    energy_v_ma_cycles: float


def read_statistics(path: Path, epoch: int, channels: int) -> Statistics:
    """Reads the statistics of the epochs.

    Raises:
        SimulationError: if there are none, or they are not as DRAMsim3 writes them.
    """
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
        counts = np.array(
            [
                (
                    record["num_reads_done"],
                    record["num_writes_done"],
                    record["num_read_cmds"] + record["num_write_cmds"],
                    record["num_read_row_hits"] + record["num_write_row_hits"],
                    record["average_read_latency"] * record["num_reads_done"],
                    record["total_energy"],
                )
                for record in records
            ],
            dtype=np.float64,
        )
        counts = counts.reshape(-1, channels, 6).sum(axis=1)
        if not np.isfinite(counts).all() or len(counts) == 0:
            raise ValueError("no epochs, or a figure that is not finite")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SimulationError(
            f"the statistics of DRAMsim3 cannot be read: {type(error).__name__}: {error}"
        ) from error
    served = np.flatnonzero(counts[:, 0] + counts[:, 1])
    last = int(served[-1]) + 1 if len(served) else 0
    reads, writes, columns, hits, latency, energy = counts[:last].sum(axis=0)
    return Statistics(
        cycles=last * epoch,
        idle_cycles=(len(counts) - last) * epoch,
        reads_done=round(reads),
        writes_done=round(writes),
        columns=round(columns),
        hits=round(hits),
        latency_cycles=float(latency),
        energy_v_ma_cycles=float(energy),
    )
