"""Results of a run of the DRAM controller: latencies, energy, row hits, commands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.energy import Activity, Energy, energy, total_activity
from archgym.envs.dram.controller.prepared_trace import PreparedTrace
from archgym.envs.dram.kernel import latency as lat
from archgym.envs.dram.kernel import layout as kernel

__all__ = ["COMMANDS", "Latency", "Limits", "Result"]

COMMANDS = (
    "nop", "act", "pre", "rd", "rda", "wr", "wra", "preab", "refab", "presb", "refpb", "refsb",
    "pde", "pdx", "sre", "srx",
)  # fmt: skip
"""Commands by their code in the command log."""
_SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True)
class Latency:
    """Latencies of some requests, ns; NaN if there are none.

    Attributes:
        mean_ns: mean.
        p50_ns: median: half of the requests took less.
        p95_ns: 95th percentile.
        p99_ns: 99th percentile.
        max_ns: longest.
    """

    mean_ns: float
    p50_ns: float
    p95_ns: float
    p99_ns: float
    max_ns: float


@dataclass(frozen=True)
class Limits:
    """The smallest values of the controller's limits at which a higher value changes nothing.

    They hold as far as the run's own limits were at least as high; where one was lower, the run
    came up to it.

    Attributes:
        request_buffer_size: one more than the requests that ever shared a buffer.
        refresh_max_postponed: one more than the refreshes (rounds of them, where not all banks
            are refreshed at once) that were ever owed.
        refresh_max_pulledin: one more than the refreshes (rounds) that were ever ahead.
        max_active_transactions: above the requests that were ever under way.
    """

    request_buffer_size: int
    refresh_max_postponed: int
    refresh_max_pulledin: int
    max_active_transactions: int


@dataclass(frozen=True)
class Result:
    """Results of one run.

    Latencies end when the initiator has the response. They start at the arrival in the trace, or,
    ``accepted``, when the request was at the head of the input and offered to the controller.

    Attributes:
        time_ns: from time 0 of the trace to the last response, ns.
        cycles: the same in clock cycles.
        reads: reads served.
        writes: writes served.
        forwarded: of the reads, those answered from a buffered write.
        merged: of the writes, those merged into a buffered write.
        read_latency: of the reads from arrival.
        read_latency_accepted: of the reads from the offer.
        write_latency: of the writes from arrival.
        write_latency_accepted: of the writes from the offer.
        bandwidth_gb_per_s: bytes moved by the total time, GB/s (10^9 bytes).
        row_hits: column commands that were not the first since their row's activate.
        row_misses: the first after an activate of a closed bank.
        row_conflicts: the first after another row had to be closed for them.
        commands: number of each command, by the names in :data:`COMMANDS` except ``nop``.
        active_ns: time with at least one bank open, ns, summed over ranks like the next four.
        precharged_ns: time with all banks closed, ns.
        power_down_active_ns: time in power-down with a bank open, ns.
        power_down_precharged_ns: time in power-down with all banks closed, ns.
        self_refresh_ns: time in self-refresh, ns.
        energy: energy by part, pJ, of all chips.
        energy_pj: total energy, pJ; NaN for a device without a power model, like the next two.
        energy_per_bit_pj: total energy by the bits moved, pJ.
        power_mw: total energy by the total time, mW.
        limits: which limits of the controller would have been high enough.
        log: with ``log_commands``, the commands in order: cycle, code (index into
            :data:`COMMANDS`), rank, bank within the rank and row, shape (n_commands, 5), for
            each channel; bank and row are -1 where they do not apply.
        latency_ns: with ``log_commands``, the latency of each request from its arrival, ns,
            channel after channel, shape (n,).
    """

    time_ns: float
    cycles: int
    reads: int
    writes: int
    forwarded: int
    merged: int
    read_latency: Latency
    read_latency_accepted: Latency
    write_latency: Latency
    write_latency_accepted: Latency
    bandwidth_gb_per_s: float
    row_hits: int
    row_misses: int
    row_conflicts: int
    commands: dict[str, int]
    active_ns: float
    precharged_ns: float
    power_down_active_ns: float
    power_down_precharged_ns: float
    self_refresh_ns: float
    energy: Energy
    energy_pj: float
    energy_per_bit_pj: float
    power_mw: float
    limits: Limits
    log: tuple[NDArray[np.int64], ...] = field(default=(), repr=False)
    latency_ns: NDArray[np.float64] | None = field(default=None, repr=False)

    @property
    def row_hit_rate(self) -> float:
        """Share of the requests that found their row open."""
        return self.row_hits / (self.reads + self.writes)


def result_of(
    trace: PreparedTrace,
    config: ControllerConfig,
    machines: Sequence[kernel.Machine],
    logs: Sequence[NDArray[np.int64]] | None,
    counted: Sequence[Activity] = (),
) -> Result:
    """Sum up the machines of a run, one a channel with requests.

    Args:
        trace: what was run.
        config: the controller.
        machines: of the channels, after the run.
        logs: their commands, if they are wanted in the result.
        counted: activities that the energy follows from, in place of the machines' own.
    """
    device = trace.memory.device
    out = np.sum([machine.out for machine in machines], axis=0).tolist()
    cycles = max(int(machine.out[kernel.O_END]) for machine in machines)
    # A channel that ends earlier stays in standby, its banks closed, until the last one ends.
    idle = sum(cycles - int(machine.out[kernel.O_END]) for machine in machines)
    idle += cycles * (trace.memory.channels - len(machines))
    precharged = out[kernel.O_PRECHARGED] + idle * trace.memory.ranks
    commands = dict(zip(COMMANDS[1:], out[1:], strict=False))
    groups = device.bank_groups
    own = [
        Activity(
            activates=commands["act"],
            precharges=out[kernel.O_PRECHARGES],
            reads=commands["rd"] + commands["rda"],
            writes=commands["wr"] + commands["wra"],
            refreshes=commands["refab"],
            bank_refreshes=commands["refpb"] + groups * commands["refsb"],
            active_cycles=out[kernel.O_ACTIVE],
            precharged_cycles=precharged,
            down_active_cycles=out[kernel.O_DOWN_ACTIVE],
            down_precharged_cycles=out[kernel.O_DOWN_PRECHARGED],
            self_refresh_cycles=out[kernel.O_SELF_REFRESHED],
        )
    ]
    parts = energy(device, total_activity(counted or own))
    cycle_ns = device.t_ck_ps * 1e-3
    time_ns = cycles * cycle_ns
    n = sum(len(machine.arrival) for machine in machines)
    latencies, reads = _latencies(trace, machines)
    moved = n * device.bytes_per_request
    total_pj = parts.total_pj if device.supplies else math.nan
    hits, conflicts = out[kernel.O_HITS], out[kernel.O_CONFLICTS]
    merged, forwarded = out[kernel.O_MERGED], out[kernel.O_FORWARDED]
    return Result(
        time_ns=time_ns,
        cycles=cycles,
        reads=reads,
        writes=n - reads,
        forwarded=forwarded,
        merged=merged,
        read_latency=latencies[lat.READ],
        read_latency_accepted=latencies[lat.READ_OFFERED],
        write_latency=latencies[lat.WRITE],
        write_latency_accepted=latencies[lat.WRITE_OFFERED],
        bandwidth_gb_per_s=moved / time_ns,
        row_hits=hits,
        row_misses=n - merged - forwarded - hits - conflicts,
        row_conflicts=conflicts,
        commands=commands,
        active_ns=out[kernel.O_ACTIVE] * cycle_ns,
        precharged_ns=precharged * cycle_ns,
        power_down_active_ns=out[kernel.O_DOWN_ACTIVE] * cycle_ns,
        power_down_precharged_ns=out[kernel.O_DOWN_PRECHARGED] * cycle_ns,
        self_refresh_ns=out[kernel.O_SELF_REFRESHED] * cycle_ns,
        energy=parts,
        energy_pj=total_pj,
        energy_per_bit_pj=total_pj / (8 * moved),
        power_mw=total_pj / time_ns,
        limits=_limits(trace, machines, config),
        log=tuple(logs or ()),
        latency_ns=None if logs is None else _by_request(trace, machines, cycle_ns),
    )


def _limits(
    trace: PreparedTrace, machines: Sequence[kernel.Machine], config: ControllerConfig
) -> Limits:
    def maximum(entry: int, sign: int = 1) -> int:
        return max(sign * int(machine.out[entry]) for machine in machines)

    device = trace.memory.device
    rounds = {"per_bank": device.banks, "same_bank": device.banks_per_group}
    in_round = rounds.get(config.refresh_policy, 1)
    return Limits(
        request_buffer_size=maximum(kernel.O_MAX_QUEUED) + 1,
        refresh_max_postponed=maximum(kernel.O_MAX_OWED) // in_round + 1,
        refresh_max_pulledin=maximum(kernel.O_MIN_OWED, -1) // in_round + 1,
        max_active_transactions=maximum(kernel.O_MAX_ACTIVE) + 1,
    )


def _by_request(
    trace: PreparedTrace, machines: Sequence[kernel.Machine], cycle_ns: float
) -> NDArray[np.float64]:
    return np.concatenate(
        [
            machine.times[kernel.DONE] * cycle_ns - channel.arrival_ps * 1e-3
            for machine, channel in zip(machines, trace.channels, strict=True)
        ]
    )


def _latencies(
    trace: PreparedTrace, machines: Sequence[kernel.Machine]
) -> tuple[list[Latency], int]:
    """Latencies by the rows of the kernel's table, and the number of reads."""
    tables = np.zeros((len(machines), 4, 3), np.int64)
    values: list[list[NDArray[np.int64]]] = [[], [], [], []]
    for machine, channel, table in zip(machines, trace.channels, tables, strict=True):
        latency = np.empty(len(machine.arrival), np.int64)
        offered = np.empty(len(machine.arrival), np.int64)
        lat.collect_latencies(
            machine, channel.arrival_ps, trace.memory.device.t_ck_ps, latency, offered, table
        )
        reads = int(table[lat.READ, lat.L_COUNT])
        for row, part in enumerate(
            (latency[:reads], latency[reads:], offered[:reads], offered[reads:])
        ):
            values[row].append(part)
    found = []
    for row, parts in enumerate(values):
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
        found.append(_latency(joined, tables[:, row, :]))
    return found, int(tables[:, lat.READ, lat.L_COUNT].sum())


def _latency(values: NDArray[np.int64], table: NDArray[np.int64]) -> Latency:
    n = len(values)
    if n == 0:
        return Latency(*[math.nan] * 5)
    highest = int(table[:, lat.L_MAX].max())
    places = np.array([min(int(share * n), n - 1) for share in _SHARES])
    at = np.empty(len(places), np.int64)
    lat.select(values, highest, places, at, np.empty((8, 2049), np.int64))
    p50, p95, p99 = (at * 1e-3).tolist()
    return Latency(int(table[:, lat.L_SUM].sum()) * 1e-3 / n, p50, p95, p99, highest * 1e-3)
