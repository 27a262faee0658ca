"""The embedded DRAM memory controller.

A cycle-accurate model. Each channel has the mechanisms of DRAMSys 5 (a machine per bank, a
scheduler, finite buffers with back pressure, page policies, postponed and pulled-in refresh,
power-down, response queue, arbiter), and the energy the DRAMPower 4 equations.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.drampower import COUNTED_STANDARDS, counted_activity
from archgym.envs.dram.controller.prepared_trace import ChannelTrace, PreparedTrace
from archgym.envs.dram.controller.result import Result, result_of
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.device.timing_constraints import Constraints, constraints
from archgym.envs.dram.kernel import layout as kernel
from archgym.envs.dram.kernel.event_loop import simulate_kernel
from archgym.errors import InvalidValueError, SimulationError

__all__ = ["simulate"]


def simulate(
    trace: PreparedTrace, config: ControllerConfig, *, log_commands: bool = False
) -> Result:
    """Run a trace through the controller.

    Args:
        trace: the requests, decoded for a memory and an address mapping by
            :func:`archgym.envs.dram.controller.prepared_trace.prepare`.
        config: the controller's settings.
        log_commands: whether to keep every command in ``Result.log``.

    Returns:
        Times, latencies, counts and energies of the run. Equal inputs give equal results.

    Raises:
        InvalidValueError: for a setting that the device does not have.
        SimulationError: if the controller cannot finish the trace.

    Example:
        >>> from archgym.envs.dram.device.memory import load_memory
        >>> from archgym.envs.dram.controller.prepared_trace import prepare
        >>> from archgym.envs.dram.traces.trace import Trace
        >>> one = Trace("one", np.array([0]), np.array([0]), np.array([0]))
        >>> config = ControllerConfig(refresh_policy="none")
        >>> simulate(prepare(one, load_memory("DDR3-1600")), config).cycles  # 1 + tRCD + RL + BL/2
        25
    """
    memory = trace.memory
    timings = _timings(memory, config.refresh_policy, config.timing_rules)
    if config.power_down_policy != "none" and memory.device.t_xp_cycles == 0:
        raise InvalidValueError(
            f"power_down_policy {config.power_down_policy!r}: {memory.name} has no figures for "
            "power-down (t_xp_cycles is 0)"
        )
    counted = (
        config.timing_rules == "dramsys51"
        and config.power_down_policy != "none"
        and memory.device.standard in COUNTED_STANDARDS
    )
    machines, logs = [], []
    for channel in trace.channels:
        machine = _run(channel, memory, config, timings, 0)
        if log_commands or counted:
            # The first run counts the commands.
            machine = _run(channel, memory, config, timings, int(machine.out[kernel.O_LOGGED]))
            logs.append(machine.log[: machine.out[kernel.O_LOGGED]])
        if machine.out[kernel.O_STATUS] != kernel.FINISHED:
            raise SimulationError(
                f"the controller stopped making progress on trace {trace.trace.name!r} with "
                f"{memory.name} and {config}"
            )
        machines.append(machine)
    activities = [counted_activity(log, memory.device, memory.ranks) for log in logs * counted]
    return result_of(trace, config, machines, logs if log_commands else None, activities)


@lru_cache(maxsize=256)
def _timings(memory: Memory, refresh_policy: str, timing_rules: str) -> NDArray[np.int64]:
    """The kernel's vector of entries with the timings filled in."""
    device = memory.device
    distances = constraints(device, refresh_policy=refresh_policy, timing_rules=timing_rules)
    t = np.zeros(kernel.N_ENTRIES, np.int64)
    t[kernel.T_RANKS] = memory.ranks
    t[kernel.T_BANKS] = device.banks
    t[kernel.T_GROUPS] = device.bank_groups
    t[kernel.T_UNIFORM] = _is_uniform(distances) and not device.traits.separate_buses
    t[kernel.T_LINE] = device.bytes_per_request.bit_length() - 1
    t[kernel.T_SEPARATE] = device.traits.separate_buses
    t[kernel.T_RP] = device.t_rp_cycles
    t[kernel.FIRST_DISTANCE : kernel.FIRST_STATE] = [
        getattr(distances, name) for name in kernel.DISTANCES
    ]
    return t


def _is_uniform(d: Constraints) -> bool:
    """Whether every command takes one clock."""
    return d.act_length == d.column_length == d.pre_length == d.ref_length == 1


def _run(
    channel: ChannelTrace,
    memory: Memory,
    config: ControllerConfig,
    timings: NDArray[np.int64],
    log_rows: int,
) -> kernel.Machine:
    """One channel's run; the kernel initialises the arrays that it works in."""
    n = len(channel.arrival)
    device = memory.device
    banks = memory.ranks * device.banks
    entries = timings.copy()
    entries[: kernel.N_SETTINGS] = config.settings()
    simple = config.arbiter == "simple" and config.resp_queue == "fifo"
    machine = kernel.Machine(
        arrival=channel.arrival,
        bank_of=channel.bank,
        rows=channel.row,
        is_write=channel.is_write,
        address=channel.address,
        times=np.zeros((kernel.SIMPLE_TIMES if simple else kernel.ALL_TIMES, n), np.int64),
        out=np.zeros(kernel.N_OUTPUTS, np.int64),
        log=np.empty((log_rows, kernel.LOG_COLUMNS), np.int64),
        s=entries,
        banks=np.zeros(banks, kernel.BANK),
        ranks=np.zeros(memory.ranks, kernel.RANK),
        proposals=np.zeros(kernel.PROPOSAL_ENTRIES, np.int64),
        queues=np.zeros(2 * banks, kernel.QUEUE),
        links=np.zeros((n, 2), np.int32),
    )
    simulate_kernel(machine)
    return machine
