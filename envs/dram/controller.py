"""The embedded DRAM memory controller: one run, results.

A cycle-accurate model of one channel with one rank. Its controller has the mechanisms of DRAMSys 5
(a machine per bank, a scheduler, finite buffers with back pressure, page policies, postponed
and pulled-in refresh, response queue, arbiter), its energy the DRAMPower 4 equations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram import controller_kernel as kernel
from archgym.envs.dram.config import ControllerConfig
from archgym.envs.dram.device import Device
from archgym.envs.dram.energy import Activity, Energy, rank_energy
from archgym.envs.dram.mapping import AddressMapping, address_mapping
from archgym.envs.dram.trace import Trace
from archgym.errors import InvalidValueError, SimulationError

__all__ = [
    "COMMANDS",
    "PreparedTrace",
    "Result",
    "prepare",
    "simulate",
    "simulate_many",
]

COMMANDS = ("nop", "act", "pre", "rd", "rda", "wr", "wra", "preab", "refab")
"""Commands by their code in the command log."""


@dataclass(frozen=True)
class Result:
    """What a run took.

    Latencies of reads and writes end when the initiator has the response; a write is answered
    after its burst. Averages over no request are NaN.

    Attributes:
        time_ns: from time 0 of the trace to the last response, ns.
        cycles: the same in clock cycles.
        reads: reads served.
        writes: writes served.
        read_latency_mean_ns: mean read latency from the arrival in the trace, ns.
        read_latency_p95_ns: 95th percentile of the same, ns.
        read_latency_p99_ns: 99th percentile of the same, ns.
        read_latency_max_ns: longest of the same, ns.
        read_latency_accepted_mean_ns: mean read latency from when the request was at the head
            of the input and offered to the controller, ns.
        write_latency_mean_ns: mean write latency from the arrival in the trace, ns.
        bandwidth_gb_per_s: bytes moved by the total time, GB/s (10^9 bytes).
        row_hit_rate: share of the column commands that were not the first since their row's
            activate.
        commands: number of each command, by the names in :data:`COMMANDS` except ``nop``.
        active_ns: time with at least one bank open, ns.
        precharged_ns: time with all banks closed, ns.
        energy: energy by part, pJ, of all chips of the rank.
        energy_pj: total energy, pJ.
        energy_per_bit_pj: total energy by the bits moved, pJ.
        power_mw: total energy by the total time, mW.
        log: with ``log_commands``, the commands in order: cycle, code (index into
            :data:`COMMANDS`), bank and row, shape (n_commands, 4); bank and row are -1 for
            ``preab`` and ``refab``.
        latency_ns: with ``log_commands``, the latency of each request from its arrival, ns, in
            the order of the trace, shape (n,).
    """

    time_ns: float
    cycles: int
    reads: int
    writes: int
    read_latency_mean_ns: float
    read_latency_p95_ns: float
    read_latency_p99_ns: float
    read_latency_max_ns: float
    read_latency_accepted_mean_ns: float
    write_latency_mean_ns: float
    bandwidth_gb_per_s: float
    row_hit_rate: float
    commands: dict[str, int]
    active_ns: float
    precharged_ns: float
    energy: Energy
    energy_pj: float
    energy_per_bit_pj: float
    power_mw: float
    log: NDArray[np.int64] | None = field(default=None, repr=False)
    latency_ns: NDArray[np.float64] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class _Decoded:
    arrival: NDArray[np.int64]
    bank: NDArray[np.int32]
    row: NDArray[np.int32]
    is_write: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class PreparedTrace:
    """A trace decoded for one device and address mapping; made by :func:`prepare`.

    Attributes:
        trace: the trace.
        device: the device whose geometry and clock were used.
        arrival: clock cycle of each arrival (the first edge at or after it), shape (n,).
        bank: bank of each request, shape (n,).
        row: row of each request, shape (n,).
        is_write: 1 for a write, 0 for a read, shape (n,).
    """

    trace: Trace
    device: Device
    arrival: NDArray[np.int64]
    bank: NDArray[np.int32]
    row: NDArray[np.int32]
    is_write: NDArray[np.uint8]


_decoded: WeakKeyDictionary[Trace, dict[tuple[AddressMapping, int], _Decoded]] = WeakKeyDictionary()


def prepare(trace: Trace, device: Device, mapping: str | AddressMapping = "rbc") -> PreparedTrace:
    """Decode a trace; the work is done once for each trace, clock and mapping.

    Args:
        trace: the requests.
        device: gives geometry and clock.
        mapping: a name, or a mapping of one's own.

    Raises:
        UnknownNameError: if the device has no mapping of that name.
        InvalidValueError: if a mapping of one's own does not fit the device's geometry.
        SimulationError: if the trace is too long for the simulator's integers.
    """
    if isinstance(mapping, str):
        mapping = address_mapping(mapping, device)
    of_trace = _decoded.setdefault(trace, {})
    key = (mapping, device.t_ck_ps)
    found = of_trace.get(key)
    if found is None:
        found = of_trace[key] = _decode(trace, device, mapping)
    return PreparedTrace(trace, device, found.arrival, found.bank, found.row, found.is_write)


def _decode(trace: Trace, device: Device, mapping: AddressMapping) -> _Decoded:
    sizes = [1 << len(field) for field in (mapping.bank, mapping.bank_group, mapping.row)]
    if sizes != [device.banks_per_group, device.bank_groups, device.rows]:
        raise InvalidValueError(
            f"mapping {mapping.name!r} is for {sizes[0]} banks in each of {sizes[1]} groups with "
            f"{sizes[2]} rows; {device.name} has {device.banks_per_group}, {device.bank_groups} "
            f"and {device.rows}"
        )
    arrival = -(-trace.arrival_ps // device.t_ck_ps)
    if len(trace) >= kernel.MAX_REQUESTS or arrival[-1] >= kernel.NEVER // 2:
        raise SimulationError(
            f"trace {trace.name!r} is too long: at most {kernel.MAX_REQUESTS - 1} requests within "
            f"{kernel.NEVER // 2} clock cycles"
        )
    bank, row, _ = mapping.decode(trace.address)
    return _Decoded(
        arrival=arrival,
        bank=bank.astype(np.int32),
        row=row.astype(np.int32),
        is_write=(trace.is_write != 0).astype(np.uint8),
    )


def _timings(d: Device) -> NDArray[np.int64]:
    """Timing vector of the kernel."""
    write_data = d.wl_cycles + d.burst_cycles
    return np.array(
        [
            d.banks,
            d.bank_groups,
            d.t_rcd_cycles,
            d.t_rp_cycles,
            d.t_ras_cycles,
            d.t_rc_cycles,
            d.t_ccd_s_cycles,
            d.t_ccd_l_cycles,
            d.t_rrd_s_cycles,
            d.t_rrd_l_cycles,
            d.t_faw_cycles,
            d.t_rtp_cycles,
            d.read_to_write_cycles,
            write_data + d.t_wtr_s_cycles,
            write_data + d.t_wtr_l_cycles,
            write_data + d.t_wr_cycles,
            d.rl_cycles + d.burst_cycles,
            write_data,
            d.t_refi_cycles,
            d.t_rfc_cycles,
        ],
        np.int64,
    )


def simulate(
    trace: Trace | PreparedTrace,
    device: Device,
    config: ControllerConfig,
    *,
    log_commands: bool = False,
) -> Result:
    """Run a trace through the controller.

    Args:
        trace: the requests. A :class:`PreparedTrace` overrides the mapping of the config.
        device: the memory.
        config: the controller's settings.
        log_commands: whether to keep every command in ``Result.log``.

    Returns:
        Times, latencies, counts and energies of the run. Equal inputs give equal results.

    Raises:
        UnknownNameError: if the device has no such address mapping.
        InvalidValueError: if a prepared trace is for a device of other geometry or clock.
        SimulationError: if the controller cannot finish the trace.

    Example:
        >>> from archgym.envs.dram.device import load_device
        >>> one = Trace("one", np.array([0]), np.array([0]), np.array([0]))
        >>> config = ControllerConfig(refresh_policy="none")
        >>> simulate(one, load_device("DDR3-1600"), config).cycles  # 1 + tRCD + RL + BL/2
        25
    """
    if isinstance(trace, Trace):
        trace = prepare(trace, device, config.address_mapping)
    elif _geometry(trace.device) != _geometry(device):
        raise InvalidValueError(
            f"trace {trace.trace.name!r} was prepared for {trace.device.name}, not for "
            f"{device.name}"
        )
    requests = trace.trace
    n = len(requests)
    log = np.empty((4 * n + 64 if log_commands else 0, 4), np.int64)
    while True:
        machine = _machine(trace, device, config, log)
        kernel.simulate_kernel(machine)
        out = machine.out
        if out[kernel.O_STATUS] != kernel.FINISHED:
            raise SimulationError(
                f"the controller stopped making progress on trace {requests.name!r} with "
                f"{device.name} and {config}"
            )
        logged = int(out[kernel.O_LOGGED])
        if not log_commands or logged <= len(log):
            break
        log = np.empty((logged, 4), np.int64)
    return _result(trace, device, machine, log[:logged] if log_commands else None)


def _geometry(device: Device) -> tuple[int, ...]:
    return (device.banks, device.bank_groups, device.rows, device.t_ck_ps)


def _machine(
    trace: PreparedTrace, device: Device, config: ControllerConfig, log: NDArray[np.int64]
) -> kernel.Machine:
    """Arrays of a run; the kernel initialises what it works in."""
    n = len(trace.trace)
    return kernel.Machine(
        arrival=trace.arrival,
        bank_of=trace.bank,
        rows=trace.row,
        is_write=trace.is_write,
        address=trace.trace.address,
        t=_timings(device),
        c=config.settings(),
        done=np.zeros(n, np.int64),
        free_at=np.zeros(n, np.int64),
        out=np.zeros(kernel.N_OUTPUTS, np.int64),
        log=log,
        s=np.zeros(kernel.N_STATE, np.int64),
        limits=np.zeros(4 * device.bank_groups, np.int64),
        banks=np.zeros((device.banks, kernel.BANK_COLUMNS), np.int64),
        proposals=np.zeros((kernel.PROPOSAL_ROWS, device.banks), np.int64),
        queues=np.zeros((2 * device.banks, kernel.QUEUE_COLUMNS), np.int64),
        links=np.zeros((n, 2), np.int32),
        ends=np.zeros(1 if config.arbiter == "simple" else n, np.int64),
        held=np.empty(n if config.resp_queue == "reorder" else 1, np.int64),
        at_arbiter=np.empty(n if config.arbiter == "reorder" else 1, np.int64),
    )


def simulate_many(
    trace: Trace, device: Device, configs: Sequence[ControllerConfig], *, threads: int = 1
) -> list[Result]:
    """Run a trace with several configurations; it is decoded once for each address mapping.

    Args:
        trace: the requests.
        device: the memory.
        configs: the configurations, any number.
        threads: runs at a time; the compiled part of a run holds no lock.

    Returns:
        One result for each configuration, in their order, whatever the number of threads.

    Raises:
        SimulationError: if one of them cannot finish; use :func:`simulate` to tell which.
    """
    for mapping in {config.address_mapping for config in configs}:
        prepare(trace, device, mapping)
    if threads <= 1:
        return [simulate(trace, device, config) for config in configs]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda config: simulate(trace, device, config), configs))


def _result(
    trace: PreparedTrace, device: Device, machine: kernel.Machine, log: NDArray[np.int64] | None
) -> Result:
    arrival_ps = trace.trace.arrival_ps
    n = len(arrival_ps)
    read_latency = np.empty(n, np.int64)
    totals = np.empty(kernel.N_LATENCIES, np.int64)
    kernel.sum_latencies(machine, arrival_ps, device.t_ck_ps, read_latency, totals)
    reads, read_ps, accepted_ps, longest_ps, write_ps = totals.tolist()
    p95, p99 = _quantiles(read_latency[:reads], (0.95, 0.99))
    out = machine.out.tolist()
    commands = dict(zip(COMMANDS[1:], out[1:], strict=False))
    energy = rank_energy(
        device,
        Activity(
            activates=commands["act"],
            precharges=out[kernel.O_PRECHARGES],
            reads=reads,
            writes=n - reads,
            refreshes=commands["refab"],
            active_cycles=out[kernel.O_ACTIVE],
            precharged_cycles=out[kernel.O_PRECHARGED],
        ),
    )
    cycle_ns = device.t_ck_ps * 1e-3
    time_ns = out[kernel.O_END] * cycle_ns
    moved = n * device.bytes_per_request
    total_pj = energy.total_pj
    return Result(
        time_ns=time_ns,
        cycles=out[kernel.O_END],
        reads=reads,
        writes=n - reads,
        read_latency_mean_ns=_mean_ns(read_ps, reads),
        read_latency_p95_ns=p95,
        read_latency_p99_ns=p99,
        read_latency_max_ns=longest_ps * 1e-3 if reads else math.nan,
        read_latency_accepted_mean_ns=_mean_ns(accepted_ps, reads),
        write_latency_mean_ns=_mean_ns(write_ps, n - reads),
        bandwidth_gb_per_s=moved / time_ns,
        row_hit_rate=out[kernel.O_HITS] / n,
        commands=commands,
        active_ns=out[kernel.O_ACTIVE] * cycle_ns,
        precharged_ns=out[kernel.O_PRECHARGED] * cycle_ns,
        energy=energy,
        energy_pj=total_pj,
        energy_per_bit_pj=total_pj / (8 * moved),
        power_mw=total_pj / time_ns,
        log=log,
        latency_ns=None if log is None else machine.done * cycle_ns - arrival_ps * 1e-3,
    )


def _mean_ns(total_ps: int, count: int) -> float:
    return total_ps * 1e-3 / count if count else math.nan


def _quantiles(latency_ps: NDArray[np.int64], shares: tuple[float, ...]) -> list[float]:
    """Latencies, ns, below which the given shares of the requests lie."""
    n = len(latency_ps)
    if n == 0:
        return [math.nan] * len(shares)
    places = [min(int(share * n), n - 1) for share in shares]
    latency_ps.partition(places)
    return [float(latency_ps[place]) * 1e-3 for place in places]
