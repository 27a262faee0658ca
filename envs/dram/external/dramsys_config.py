"""A design, a memory and a trace in the form that DRAMSys 5.0 and 5.1 read: one JSON, one STL file.

Names and meanings: DRAMSys 5.1, ``src/configuration`` (``McConfig.h``, the ``MemSpec`` classes).
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.device.address_mapping import DRAMSYS_FIELDS, AddressMapping
from archgym.envs.dram.device.device import Device
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.device.memspec import CURRENTS, GEOMETRY, SUPPLIES, TIMINGS
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError, NotCoveredError

__all__ = [
    "STANDARDS_COVERED",
    "TRACE_FILE",
    "configuration",
    "controller_settings",
    "has_power",
    "memspec",
    "stl_trace",
]

TRACE_FILE = "trace.stl"
SIMULATION = "run"

_VALUES: dict[str, tuple[str, dict[str, str]]] = {
    "page_policy": (
        "PagePolicy",
        {
            "open": "Open",
            "open_adaptive": "OpenAdaptive",
            "closed": "Closed",
            "closed_adaptive": "ClosedAdaptive",
        },
    ),
    "scheduler": (
        "Scheduler",
        {
            "fifo": "Fifo",
            "fr_fcfs": "FrFcfs",
            "fr_fcfs_grp": "FrFcfsGrp",
            "grp_fr_fcfs": "GrpFrFcfs",
            "grp_fr_fcfs_wm": "GrpFrFcfsWm",
        },
    ),
    "scheduler_buffer": (
        "SchedulerBuffer",
        {"bankwise": "Bankwise", "read_write": "ReadWrite", "shared": "Shared"},
    ),
    "resp_queue": ("RespQueue", {"fifo": "Fifo", "reorder": "Reorder"}),
    "refresh_policy": (
        "RefreshPolicy",
        {
            "none": "NoRefresh",
            "all_bank": "AllBank",
            "per_bank": "PerBank",
            "same_bank": "SameBank",
        },
    ),
    "power_down_policy": ("PowerDownPolicy", {"none": "NoPowerDown", "staggered": "Staggered"}),
    "arbiter": ("Arbiter", {"simple": "Simple", "fifo": "Fifo", "reorder": "Reorder"}),
    "cmd_mux": ("CmdMux", {"oldest": "Oldest", "strict": "Strict"}),
}
_NUMBERS = {
    "request_buffer_size": "RequestBufferSize",
    "refresh_max_postponed": "RefreshMaxPostponed",
    "refresh_max_pulledin": "RefreshMaxPulledin",
    "max_active_transactions": "MaxActiveTransactions",
    "high_watermark": "HighWatermark",
    "low_watermark": "LowWatermark",
    "think_delay_fw_cycles": "ThinkDelayFw",
    "think_delay_bw_cycles": "ThinkDelayBw",
    "phy_delay_fw_cycles": "PhyDelayFw",
    "phy_delay_bw_cycles": "PhyDelayBw",
    "arbitration_delay_fw_cycles": "ArbitrationDelayFw",
    "arbitration_delay_bw_cycles": "ArbitrationDelayBw",
}
_ELSEWHERE = ("address_mapping", "channel_interleave", "timing_rules", "page_timeout_cycles")
"""The mapping is a separate part, DRAMSys always has its own timing rules, and the time-out is
read by a page policy only that DRAMSys does not have."""

# What DRAMSys asks for and does not use without power-down and with one refresh mode, and clocks
# that only say the same once more.
_MORE_TIMINGS: dict[str, dict[str, int | str]] = {
    "DDR3": {"AL": 0, "CL": "RL", "DQSCK": 0, "XPDLL": "XP"},
    "DDR4": {"AL": 0, "CL": "RL", "DQSCK": 0, "XPDLL": "XP", "REFM": 1},
    "LPDDR4": {"CCDMW": 32, "ESCKE": 3},
}
STANDARDS_COVERED = tuple(_MORE_TIMINGS)
"""Standards of which a memory can be described to DRAMSys."""


def controller_settings(config: ControllerConfig) -> dict[str, Any]:
    """The ``mcconfig`` of a controller.

    Raises:
        NotCoveredError: for a setting that DRAMSys does not have.
    """
    settings: dict[str, Any] = {"RefreshManagement": False, "PowerDownPolicy": "NoPowerDown"}
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name in _NUMBERS:
            settings[_NUMBERS[field.name]] = int(value)
        elif field.name in _VALUES:
            name, values = _VALUES[field.name]
            if value not in values:
                raise NotCoveredError(f"DRAMSys has no {field.name} {value!r}")
            settings[name] = values[value]
        elif field.name not in _ELSEWHERE and value != field.default:
            assert field.default is not MISSING
            raise NotCoveredError(
                f"DRAMSys has no setting for {field.name}; it is {value!r}, and must stay at "
                f"{field.default!r}"
            )
    # DRAMSys 5.1 ignores RequestBufferSize where reads and writes have a buffer each.
    for kind in ("Read", "Write"):
        settings[f"RequestBufferSize{kind}"] = settings["RequestBufferSize"]
    return settings


def has_power(memory: Memory) -> bool:
    """Whether DRAMSys 5.1 has a power model for the memory; it has none for several ranks."""
    device = memory.device
    return bool(device.supplies) and device.standard in SUPPLIES and memory.ranks == 1


def configuration(
    memory: Memory,
    mapping: AddressMapping,
    config: ControllerConfig,
    *,
    player_mhz: int,
    power: bool,
    database: bool,
) -> dict[str, Any]:
    """The whole configuration as one document.

    Args:
        memory: the memory.
        mapping: its address mapping.
        config: the controller.
        player_mhz: clock in which the times of the trace count.
        power: whether DRAMSys works out the energy.
        database: whether it records every request and command in an SQLite file.

    Raises:
        NotCoveredError: for a setting that DRAMSys does not have.
        InvalidValueError: for a memory of a standard that it does not have.
    """
    return {
        "simulation": {
            "simulationid": SIMULATION,
            "simconfig": {
                "SimulationName": SIMULATION,
                "DatabaseRecording": database,
                "PowerAnalysis": power,
                "EnableWindowing": False,
                "Debug": False,
                "SimulationProgressBar": False,
                "CheckTLM2Protocol": False,
                "UseMalloc": False,
                "AddressOffset": 0,
                "WindowSize": 1000,
                "StoreMode": "NoStorage",
            },
            "memspec": memspec(memory),
            "addressmapping": _address_bits(mapping),
            "mcconfig": controller_settings(config),
            "tracesetup": [{"clkMhz": player_mhz, "name": TRACE_FILE}],
        }
    }


def memspec(memory: Memory) -> dict[str, Any]:
    """The memory in DRAMSys's form; the opposite of :mod:`archgym.envs.dram.device.memspec`.

    Raises:
        InvalidValueError: for a standard that it does not have.
    """
    device = memory.device
    if device.standard not in STANDARDS_COVERED:
        raise InvalidValueError(
            f"memory {device.name!r}: DRAMSys (its public part) cannot simulate {device.standard} "
            f"here, only {', '.join(STANDARDS_COVERED)}"
        )
    timing: dict[str, Any] = {"tCK": device.t_ck_ps, "clkMhz": round(1e6 / device.t_ck_ps)}
    for ours, theirs in TIMINGS[device.standard].items():
        timing[theirs] = getattr(device, ours)
    for theirs, value in _MORE_TIMINGS[device.standard].items():
        timing[theirs] = timing[value] if isinstance(value, str) else value
    if device.standard == "LPDDR4":
        timing["RCAB"] = device.t_ras_cycles + device.t_rp_ab_cycles
    spec: dict[str, Any] = {
        "memoryId": device.name,
        "memoryType": device.standard,
        "memarchitecturespec": {
            **{theirs: getattr(device, ours) for ours, theirs in GEOMETRY.items()},
            "nbrOfBankGroups": device.bank_groups,
            "nbrOfDevices": device.devices_per_rank,
            "nbrOfRanks": memory.ranks,
            "nbrOfChannels": memory.channels,
            "dataRate": device.traits.beats_per_cycle,
        },
        "memtimingspec": timing,
    }
    if device.supplies and device.standard in SUPPLIES:  # DDR3 is refused without
        spec["mempowerspec"] = _currents(device)
    return spec


def _currents(device: Device) -> dict[str, float]:
    power: dict[str, float] = {}
    by_name = {supply.name: supply for supply in device.supplies}
    for name, (voltage, suffix) in SUPPLIES[device.standard].items():
        supply = by_name.get(name)
        power[voltage] = 0.0 if supply is None else supply.voltage_v
        for ours, theirs in CURRENTS.items():
            power[f"{theirs}{suffix}"] = 0.0 if supply is None else getattr(supply, ours)
    # Slow and fast exit of power-down draw the same here.
    power["idd2p0"], power["idd3p0"] = power["idd2p1"], power["idd3p1"]
    return power


def _address_bits(mapping: AddressMapping) -> dict[str, list[int | list[int]]]:
    bits = {}
    for theirs, ours in DRAMSYS_FIELDS.items():
        if entries := getattr(mapping, ours):
            bits[theirs] = [list(entry) if len(entry) > 1 else entry[0] for entry in entries]
    return bits


def stl_trace(trace: Trace, capacity_bytes: int, line_bytes: int) -> tuple[bytes, int]:
    """A trace as an STL file, and the clock, MHz, in which its times count.

    Args:
        trace: the requests.
        capacity_bytes: of the memory, a power of two; addresses beyond it fold into it.
        line_bytes: bytes of a burst, a power of two; addresses point at the start of one.
    """
    in_ns = not (trace.arrival_ps % 1000).any()
    times = trace.arrival_ps // 1000 if in_ns else trace.arrival_ps
    addresses = trace.address & (capacity_bytes - 1) & ~np.int64(line_bytes - 1)
    verbs = ("read", "write")
    lines = [
        f"{time}: {verbs[write]} {address:#x}\n"
        for time, write, address in zip(
            times.tolist(), (trace.is_write != 0).tolist(), addresses.tolist(), strict=True
        )
    ]
    return "".join(lines).encode("ascii"), 1000 if in_ns else 1_000_000
