"""Shared by the tests of the memory controller: traces by hand, random traces and designs."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from archgym.envs.dram.controller import config as choices
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.controller.result import COMMANDS, Result
from archgym.envs.dram.device.address_mapping import mapping_names
from archgym.envs.dram.device.memory import Memory, load_memory
from archgym.envs.dram.device.timing_constraints import refresh_policies
from archgym.envs.dram.traces.trace import Trace

DDR3 = load_memory("DDR3-1600")
DDR4 = load_memory("DDR4-2400")
PLAIN = ControllerConfig(refresh_policy="none")
_VALUES: dict[str, tuple[Any, ...]] = {
    "page_policy": choices.PAGE_POLICIES,
    "scheduler": choices.SCHEDULERS,
    "scheduler_buffer": choices.SCHEDULER_BUFFERS,
    "request_buffer_size": (1, 2, 3, 8, 24),
    "resp_queue": choices.RESP_QUEUES,
    "refresh_max_postponed": (0, 1, 4),
    "refresh_max_pulledin": (0, 1, 4),
    "arbiter": choices.ARBITERS,
    "max_active_transactions": (1, 2, 5, 64),
    "page_timeout_cycles": (1, 20, 200),
    "write_policy": choices.WRITE_POLICIES,
    "think_delay_fw_cycles": (0, 1, 3),
}


def bank_row(bank: int, row: int, column: int = 0) -> int:
    """DDR3-1600 address of a place under the mapping rbc: row 29-16, bank 15-13, column 12-3."""
    return row << 16 | bank << 13 | column << 3


def make_trace(*requests: tuple[int, str, int], clock_ps: int = 1250) -> Trace:
    """Trace of (arrival clock, "R" or "W", address)."""
    times, kinds, addresses = zip(*requests, strict=True)
    return Trace(
        "by hand",
        np.array(times) * clock_ps,
        np.array(addresses),
        np.array([kind == "W" for kind in kinds], np.uint8),
    )


def mixed_trace(seed: int, n: int, gap_ns: float, spread: int = 40, lines: int = 2**23) -> Trace:
    """Reads and writes over few rows of all banks, with bursts and idle gaps."""
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(gap_ns, n) * rng.choice([0, 1, 1, 1, 30], n)
    near = rng.integers(0, lines, spread)
    address = (rng.choice(near, n) + rng.integers(0, 4, n)) % lines * 64
    is_write = (rng.random(n) < 0.4).astype(np.uint8)
    return Trace(f"mixed {seed}", np.cumsum(gaps * 1000).astype(np.int64), address, is_write)


def random_config(seed: int, memory: Memory, **fixed: Any) -> ControllerConfig:
    """A random design of all that the memory can have, address mapping included."""
    rng = np.random.default_rng(seed)
    values = {name: allowed[rng.integers(len(allowed))] for name, allowed in _VALUES.items()}
    policies = refresh_policies(memory.device)
    values["refresh_policy"] = policies[rng.integers(len(policies))]
    mappings = mapping_names(memory)
    values["address_mapping"] = mappings[rng.integers(len(mappings))]
    if memory.device.t_xp_cycles:
        values["power_down_policy"] = choices.POWER_DOWN_POLICIES[rng.integers(2)]
    if values["scheduler"] == "fifo" and values["write_policy"] == "completed":
        values["cmd_mux"] = choices.CMD_MUXES[rng.integers(2)]
    return ControllerConfig(**{**values, **fixed})


def simulated(
    trace: Trace, memory: Memory, config: ControllerConfig = PLAIN, *, log: bool = False
) -> Result:
    return simulate(prepare(trace, memory, config.address_mapping), config, log_commands=log)


def run(*requests: tuple[int, str, int], memory: Memory = DDR3, **changes: Any) -> Result:
    """Requests by hand, without refresh unless the changes say so, with the log."""
    trace = make_trace(*requests, clock_ps=memory.device.t_ck_ps)
    return simulated(trace, memory, dataclasses.replace(PLAIN, **changes), log=True)


def named(result: Result, channel: int = 0) -> list[tuple[int, str, int, int, int]]:
    """The log with the commands' names: cycle, command, rank, bank, row."""
    return [(cycle, COMMANDS[code], *rest) for cycle, code, *rest in result.log[channel].tolist()]


def cycles_of(result: Result, name: str, rank: int = 0) -> list[int]:
    return [cycle for cycle, command, of, _, _ in named(result) if (command, of) == (name, rank)]


def bursts(result: Result) -> list[tuple[str, int]]:
    """Kind (r or w) and bank of each column command, in order."""
    return [
        (name[0], bank)
        for _, name, _, bank, _ in named(result)
        if name in ("rd", "rda", "wr", "wra")
    ]


def kinds(result: Result) -> str:
    return "".join(kind for kind, _ in bursts(result))
