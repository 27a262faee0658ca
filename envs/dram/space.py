"""The design spaces of the DRAM environment.

The knobs and their meanings are those of DRAMSys 5 (its ``mcconfig`` files), in our spelling;
see :class:`archgym.envs.dram.config.ControllerConfig` for what each value does.
"""

from __future__ import annotations

from archgym.envs.dram.config import (
    ARBITERS,
    CMD_MUXES,
    PAGE_POLICIES,
    REFRESH_POLICIES,
    RESP_QUEUES,
    SCHEDULER_BUFFERS,
    SCHEDULERS,
)
from archgym.envs.dram.device import Device
from archgym.envs.dram.mapping import mapping_names
from archgym.space import Categorical, DesignSpace, Integer, Ordinal, Parameter, param

__all__ = ["BASELINE", "SPACES", "design_space"]

SPACES = {
    "default": "every knob that is modelled",
    "archgym": "exactly the ten knobs of ArchGym (ISCA 2023)",
}

BASELINE = {
    "page_policy": "open",
    "scheduler": "fr_fcfs",
    "scheduler_buffer": "bankwise",
    "request_buffer_size": 8,
    "resp_queue": "fifo",
    "refresh_policy": "all_bank",
    "refresh_max_postponed": 1,
    "refresh_max_pulledin": 1,
    "arbiter": "simple",
    "address_mapping": "rbc",
}
"""The base point of the published comparisons: what DRAMSys's example configurations use."""

MAX_POSTPONED = 8
"""Refreshes that may be postponed or pulled in on DDR3 and DDR4 (JESD79-3F 4.13, JESD79-4 4.26)."""


def design_space(name: str, device: Device) -> DesignSpace:
    """One of :data:`SPACES` for a device; the address mappings depend on its geometry."""
    return DesignSpace(_archgym() if name == "archgym" else _default(device))


def _default(device: Device) -> list[Parameter]:
    sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    return [
        *_front(
            SCHEDULERS,
            Ordinal(
                "request_buffer_size", sizes, doc=_BUFFER_SIZE, unit="requests", group="buffers"
            ),
        ),
        *_refresh(0),
        *_back(),
        Categorical(
            "address_mapping",
            mapping_names(device),
            doc="which address bits choose row, bank and column",
            group="mapping",
        ),
        Categorical(
            "cmd_mux",
            CMD_MUXES,
            doc="'strict' keeps column commands in the order of the requests",
            when=param("scheduler") == "fifo",
            group="scheduling",
        ),
    ]


def _archgym() -> list[Parameter]:
    """ArchGym's action space, spelled out in its ant-colony settings: 1,769,472 combinations."""
    schedulers = ("fifo", "fr_fcfs_grp", "fr_fcfs")
    size = Integer("request_buffer_size", 1, 8, doc=_BUFFER_SIZE, unit="requests", group="buffers")
    return [*_front(schedulers, size), *_refresh(1), *_back()]


_BUFFER_SIZE = "requests that a buffer holds before the input has to wait"


def _front(schedulers: tuple[str, ...], size: Parameter) -> list[Parameter]:
    return [
        Categorical("page_policy", PAGE_POLICIES, doc="when an open row is closed", group="page"),
        Categorical(
            "scheduler", schedulers, doc="which request a bank serves next", group="scheduling"
        ),
        Categorical(
            "scheduler_buffer",
            SCHEDULER_BUFFERS,
            doc="what the buffer size limits: a bank, reads and writes, or all",
            group="buffers",
        ),
        size,
        Categorical(
            "resp_queue",
            RESP_QUEUES,
            doc="data return as bursts end, or in the order of the requests",
            group="front_end",
        ),
    ]


def _refresh(least: int) -> list[Parameter]:
    refreshed = param("refresh_policy") == "all_bank"
    return [
        Categorical(
            "refresh_policy", REFRESH_POLICIES, doc="how rows are refreshed", group="refresh"
        ),
        Integer(
            "refresh_max_postponed",
            least,
            MAX_POSTPONED,
            doc="refreshes that may be owed while requests wait",
            unit="refreshes",
            when=refreshed,
            group="refresh",
        ),
        Integer(
            "refresh_max_pulledin",
            least,
            MAX_POSTPONED,
            doc="refreshes that may be done ahead while the rank is idle",
            unit="refreshes",
            when=refreshed,
            group="refresh",
        ),
    ]


def _back() -> list[Parameter]:
    return [
        Categorical(
            "arbiter",
            ARBITERS,
            doc="front end: one request at a time, or many, answered as they come or in order",
            group="front_end",
        ),
        Ordinal(
            "max_active_transactions",
            [1, 2, 4, 8, 16, 32, 64, 128],
            doc="requests under way before the arbiter takes no more",
            unit="requests",
            when=param("arbiter").isin(["fifo", "reorder"]),
            group="front_end",
        ),
    ]
