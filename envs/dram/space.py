"""The design spaces of the DRAM environment.

The knobs and their meanings are those of DRAMSys 5 (its ``mcconfig`` files), in our spelling;
see :class:`archgym.envs.dram.controller.config.ControllerConfig` for what each value does.
"""

from __future__ import annotations

from archgym.envs.dram.controller.config import (
    ARBITERS,
    CMD_MUXES,
    PAGE_POLICIES,
    POWER_DOWN_POLICIES,
    RESP_QUEUES,
    SCHEDULER_BUFFERS,
    SCHEDULERS,
    WRITE_POLICIES,
)
from archgym.envs.dram.device.address_mapping import INTERLEAVES, mapping_names
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.device.timing_constraints import refresh_policies
from archgym.space import Categorical, DesignSpace, Integer, Ordinal, Parameter, Rule, param

__all__ = ["BASELINE", "SPACES", "design_space"]

SPACES = {
    "default": "every knob that is modelled, and no memory that forgets",
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
    "write_policy": "completed",
    "power_down_policy": "none",
}
"""The base point of the published comparisons: what DRAMSys's example configurations use."""

EXCLUDED = {"refresh_policy": ["none"]}
"""Values that only ``include`` offers: without refresh a memory loses its data."""

_ARCHGYM_MAX_POSTPONED = 8

_BUFFER_SIZE = "requests that a buffer holds before the input has to wait"
_WATERMARKS = param("scheduler") == "grp_fr_fcfs_wm"
_RULES = [
    Rule(
        "watermarks_in_order",
        param("low_watermark") < param("high_watermark"),
        doc="writes are served from the high watermark down to the low one",
    ),
]


def design_space(name: str, memory: Memory, own_mappings: tuple[str, ...] = ()) -> DesignSpace:
    """One of :data:`SPACES` for a memory, whose geometry and refresh decide what there is.

    Args:
        name: which.
        memory: the memory.
        own_mappings: names of address mappings beside those that the memory has anyway.
    """
    if name == "archgym":
        return DesignSpace(_archgym())
    return DesignSpace(_default(memory, own_mappings), rules=_RULES, excluded=EXCLUDED)


def _default(memory: Memory, own_mappings: tuple[str, ...]) -> list[Parameter]:
    sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    device = memory.device
    parameters = [
        *_front(
            PAGE_POLICIES,
            SCHEDULERS,
            Ordinal(
                "request_buffer_size", sizes, doc=_BUFFER_SIZE, unit="requests", group="buffers"
            ),
        ),
        *_refresh(refresh_policies(device), 0, device.traits.max_postponed),
        *_back(),
        Categorical(
            "address_mapping",
            (*mapping_names(memory), *own_mappings),
            doc="which address bits choose row, bank and column",
            group="mapping",
        ),
        Categorical(
            "write_policy",
            WRITE_POLICIES,
            doc="writes are answered after their burst, or when they are buffered",
            group="buffers",
        ),
        Categorical(
            "cmd_mux",
            CMD_MUXES,
            doc="'strict' keeps column commands in the order of the requests",
            when=(param("scheduler") == "fifo") & (param("write_policy") == "completed"),
            group="scheduling",
        ),
        Ordinal(
            "page_timeout_cycles",
            [16, 32, 64, 128, 256, 512, 1024],
            doc="idle time after which a row is closed",
            unit="cycles",
            when=param("page_policy") == "timeout",
            group="page",
        ),
        Ordinal(
            "high_watermark",
            [2, 4, 8, 12, 16, 24, 32, 48],
            doc="queued writes above which writes are served",
            unit="requests",
            when=_WATERMARKS,
            group="scheduling",
        ),
        Ordinal(
            "low_watermark",
            [1, 2, 4, 8, 16, 32],
            doc="queued writes at which reads are served again",
            unit="requests",
            when=_WATERMARKS,
            group="scheduling",
        ),
    ]
    if device.t_xp_cycles:
        parameters.append(
            Categorical(
                "power_down_policy",
                POWER_DOWN_POLICIES,
                doc="whether idle ranks go into power-down and self-refresh",
                group="refresh",
            )
        )
    if memory.channels > 1:
        parameters.append(
            Categorical(
                "channel_interleave",
                INTERLEAVES,
                doc="what consecutive channels take turns in",
                group="mapping",
            )
        )
    return parameters


def _archgym() -> list[Parameter]:
    """ArchGym's action space, spelled out in its ant-colony settings: 1,769,472 combinations."""
    pages = ("open", "open_adaptive", "closed", "closed_adaptive")
    schedulers = ("fifo", "fr_fcfs_grp", "fr_fcfs")
    size = Integer("request_buffer_size", 1, 8, doc=_BUFFER_SIZE, unit="requests", group="buffers")
    refresh = _refresh(("none", "all_bank"), 1, _ARCHGYM_MAX_POSTPONED)
    return [*_front(pages, schedulers, size), *refresh, *_back()]


def _front(pages: tuple[str, ...], schedulers: tuple[str, ...], size: Parameter) -> list[Parameter]:
    return [
        Categorical("page_policy", pages, doc="when an open row is closed", group="page"),
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


def _refresh(policies: tuple[str, ...], minimum: int, maximum: int) -> list[Parameter]:
    refreshed = param("refresh_policy") != "none"
    return [
        Categorical("refresh_policy", policies, doc="how rows are refreshed", group="refresh"),
        Integer(
            "refresh_max_postponed",
            minimum,
            maximum,
            doc="refreshes that may be owed while requests wait",
            unit="refreshes",
            when=refreshed,
            group="refresh",
        ),
        Integer(
            "refresh_max_pulledin",
            minimum,
            maximum,
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
