"""The settings of the embedded DRAM memory controller."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.device.address_mapping import INTERLEAVES
from archgym.envs.dram.kernel import layout as kernel
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["CHOICES", "ControllerConfig"]

_CODES = {
    "page_policy": {
        "open": kernel.OPEN,
        "open_adaptive": kernel.OPEN_ADAPTIVE,
        "closed": kernel.CLOSED,
        "closed_adaptive": kernel.CLOSED_ADAPTIVE,
        "timeout": kernel.TIMEOUT,
    },
    "scheduler": {
        "fifo": kernel.FIFO,
        "fr_fcfs": kernel.FR_FCFS,
        "fr_fcfs_grp": kernel.FR_FCFS_GRP,
        "grp_fr_fcfs": kernel.GRP_FR_FCFS,
        "grp_fr_fcfs_wm": kernel.GRP_FR_FCFS_WM,
    },
    "scheduler_buffer": {
        "bankwise": kernel.BANKWISE,
        "read_write": kernel.READ_WRITE,
        "shared": kernel.SHARED,
    },
    "resp_queue": {"fifo": kernel.IN_ORDER_OF_DATA, "reorder": kernel.IN_ORDER_OF_ARRIVAL},
    "refresh_policy": {
        "none": kernel.NO_REFRESH,
        "all_bank": kernel.ALL_BANK,
        "per_bank": kernel.PER_BANK,
        "same_bank": kernel.SAME_BANK,
    },
    "arbiter": {
        "simple": kernel.ARB_SIMPLE,
        "fifo": kernel.ARB_FIFO,
        "reorder": kernel.ARB_REORDER,
    },
}
"""What the kernel calls each value of a choice."""
PAGE_POLICIES = tuple(_CODES["page_policy"])
SCHEDULERS = tuple(_CODES["scheduler"])
SCHEDULER_BUFFERS = tuple(_CODES["scheduler_buffer"])
RESP_QUEUES = tuple(_CODES["resp_queue"])
REFRESH_POLICIES = tuple(_CODES["refresh_policy"])
ARBITERS = tuple(_CODES["arbiter"])
CMD_MUXES = ("oldest", "strict")
POWER_DOWN_POLICIES = ("none", "staggered")
WRITE_POLICIES = ("completed", "posted")
TIMING_RULES = ("jedec", "dramsys51")

CHOICES = {
    "page_policy": PAGE_POLICIES,
    "scheduler": SCHEDULERS,
    "scheduler_buffer": SCHEDULER_BUFFERS,
    "resp_queue": RESP_QUEUES,
    "refresh_policy": REFRESH_POLICIES,
    "arbiter": ARBITERS,
    "cmd_mux": CMD_MUXES,
    "channel_interleave": INTERLEAVES,
    "power_down_policy": POWER_DOWN_POLICIES,
    "write_policy": WRITE_POLICIES,
    "timing_rules": TIMING_RULES,
}
"""Allowed values of each field of :class:`ControllerConfig` that is a choice."""
_MINIMA = {
    "request_buffer_size": 1,
    "refresh_max_postponed": 0,
    "refresh_max_pulledin": 0,
    "max_active_transactions": 1,
    "page_timeout_cycles": 1,
    "high_watermark": 1,
    "low_watermark": 1,
    "think_delay_fw_cycles": 0,
    "think_delay_bw_cycles": 0,
    "phy_delay_fw_cycles": 0,
    "phy_delay_bw_cycles": 0,
    "arbitration_delay_fw_cycles": 0,
    "arbitration_delay_bw_cycles": 0,
    "end_response_delay_cycles": 0,
}


@dataclass(frozen=True)
class ControllerConfig:
    """Settings of the memory controller; names and meanings follow DRAMSys.

    Attributes:
        page_policy: ``open`` closes no row without need, ``closed`` closes it after each access;
            ``open_adaptive`` closes it when other requests wait for the bank and none of them
            hits, ``closed_adaptive`` unless another queued request hits; ``timeout`` when the
            bank had no request for ``page_timeout_cycles``.
        scheduler: which queued request a bank serves next. ``fifo`` the oldest; ``fr_fcfs`` the
            oldest row hit; ``fr_fcfs_grp`` a row hit in the direction of the last column command;
            ``grp_fr_fcfs`` that direction first, then row hits; ``grp_fr_fcfs_wm`` reads until
            the writes exceed the high watermark, then writes down to the low one. The last two
            do not keep a read behind an earlier write to its address.
        scheduler_buffer: what ``request_buffer_size`` limits: the requests of one bank
            (``bankwise``), the reads and the writes (``read_write``) or all (``shared``). The
            bankwise buffer refuses every request while the bank that got the last one is full.
        request_buffer_size: entries of the request buffer.
        resp_queue: whether the controller returns data in the order of the bursts (``fifo``) or
            of the requests (``reorder``).
        refresh_policy: ``none``; ``all_bank``; on devices that have it ``per_bank`` (one bank at
            a time, idle ones first) or ``same_bank`` (the same bank of every group).
        refresh_max_postponed: refreshes that may be owed while requests wait; of one bank each,
            times the banks (or banks of a group), with ``per_bank`` and ``same_bank``.
        refresh_max_pulledin: refreshes that may be done ahead while the rank is idle, likewise.
        arbiter: front end. ``simple`` hands over one request at a time; ``fifo`` and ``reorder``
            take requests while fewer than ``max_active_transactions`` are under way, and return
            data as they come or in the order of the requests.
        max_active_transactions: see ``arbiter``; ``simple`` does not read it.
        address_mapping: see :func:`archgym.envs.dram.device.address_mapping.mapping_names`.
        cmd_mux: ``oldest`` issues the command of the oldest request that has one ready;
            ``strict`` (only with ``fifo``) keeps column commands in the order of the requests.
        channel_interleave: what consecutive channels take turns in; see
            :data:`archgym.envs.dram.device.address_mapping.INTERLEAVES`.
        page_timeout_cycles: see ``page_policy``; counts from the bank's last access.
        power_down_policy: ``none``; ``staggered`` enters power-down as soon as a rank has no
            request, and self-refresh if it still has none at the second refresh from there.
        write_policy: ``completed`` answers a write after its burst; ``posted`` when it is
            buffered, answers reads of buffered lines from the buffer and merges writes to them.
        high_watermark: queued writes above which ``grp_fr_fcfs_wm`` serves writes.
        low_watermark: queued writes at which it returns to reads.
        think_delay_fw_cycles: request from front end to controller; with 0 it comes in the clock in
            which it is sent, after what the controller does in that clock anyway.
        think_delay_bw_cycles: response from controller to front end.
        phy_delay_fw_cycles: command through the PHY; it delays the data, not the command.
        phy_delay_bw_cycles: data through the PHY.
        arbitration_delay_fw_cycles: request through the arbiter.
        arbitration_delay_bw_cycles: response through the arbiter.
        end_response_delay_cycles: for how long the initiator is busy with a response; until then
            the transaction counts as active.
        timing_rules: ``jedec``, or ``dramsys51`` to repeat the slips of DRAMSys 5.1's checkers
            when comparing with it: on DDR4 a read with auto-precharge may be followed by an
            activate tRTP + tRP later although tRC has not passed, on DDR3 a precharge of all
            banks does not wait for the write recovery, and on LPDDR4 a precharge follows a read
            after tRRD + 2 clocks instead of tRTP, and a write to another rank a read too early. The
            window of four activates counts from the end of a command, less the length of the last.
            On DDR3 and DDR4 the energy with power-down is then counted as DRAMPower 4 does.

    Raises:
        UnknownNameError: for a name that does not exist.
        InvalidValueError: for a number out of range or settings that exclude each other.

    Example:
        >>> ControllerConfig(page_policy="closed", request_buffer_size=4).scheduler
        'fr_fcfs'
    """

    page_policy: str = "open"
    scheduler: str = "fr_fcfs"
    scheduler_buffer: str = "bankwise"
    request_buffer_size: int = 8
    resp_queue: str = "fifo"
    refresh_policy: str = "all_bank"
    refresh_max_postponed: int = 0
    refresh_max_pulledin: int = 0
    arbiter: str = "simple"
    max_active_transactions: int = 64
    address_mapping: str = "rbc"
    cmd_mux: str = "oldest"
    channel_interleave: str = "request"
    page_timeout_cycles: int = 64
    power_down_policy: str = "none"
    write_policy: str = "completed"
    high_watermark: int = 12
    low_watermark: int = 4
    think_delay_fw_cycles: int = 1
    think_delay_bw_cycles: int = 0
    phy_delay_fw_cycles: int = 0
    phy_delay_bw_cycles: int = 0
    arbitration_delay_fw_cycles: int = 0
    arbitration_delay_bw_cycles: int = 0
    end_response_delay_cycles: int = 1
    timing_rules: str = "jedec"

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise UnknownNameError(name, getattr(self, name), allowed)
        for name, minimum in _MINIMA.items():
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or not minimum <= value < 2**31:
                raise InvalidValueError(
                    f"{name} is {value!r}, it must be a whole number of at least {minimum}"
                )
        if self.cmd_mux == "strict" and self.scheduler != "fifo":
            raise InvalidValueError(
                f"cmd_mux 'strict' needs scheduler 'fifo', not {self.scheduler!r}"
            )
        if self.cmd_mux == "strict" and self.write_policy == "posted":
            raise InvalidValueError("cmd_mux 'strict' needs write_policy 'completed'")
        if self.low_watermark >= self.high_watermark:
            raise InvalidValueError(
                f"low_watermark ({self.low_watermark}) must be below high_watermark "
                f"({self.high_watermark})"
            )

    def settings(self) -> NDArray[np.int64]:
        """Settings vector of the kernel."""
        c = np.zeros(kernel.N_SETTINGS, np.int64)
        c[kernel.C_PAGE] = _CODES["page_policy"][self.page_policy]
        c[kernel.C_SCHEDULER] = _CODES["scheduler"][self.scheduler]
        c[kernel.C_BUFFER] = _CODES["scheduler_buffer"][self.scheduler_buffer]
        c[kernel.C_BUFFER_SIZE] = self.request_buffer_size
        c[kernel.C_RESPONSE] = _CODES["resp_queue"][self.resp_queue]
        c[kernel.C_REFRESH] = _CODES["refresh_policy"][self.refresh_policy]
        c[kernel.C_POSTPONED] = self.refresh_max_postponed
        c[kernel.C_PULLED_IN] = self.refresh_max_pulledin
        c[kernel.C_ARBITER] = _CODES["arbiter"][self.arbiter]
        c[kernel.C_MAX_ACTIVE] = self.max_active_transactions
        c[kernel.C_STRICT] = self.cmd_mux == "strict"
        c[kernel.C_TIMEOUT] = self.page_timeout_cycles
        c[kernel.C_POWER_DOWN] = POWER_DOWN_POLICIES.index(self.power_down_policy)
        c[kernel.C_POSTED] = WRITE_POLICIES.index(self.write_policy)
        c[kernel.C_HIGH] = self.high_watermark
        c[kernel.C_LOW] = self.low_watermark
        c[kernel.C_THINK_FW] = self.think_delay_fw_cycles
        c[kernel.C_RETURN] = (
            self.phy_delay_fw_cycles + self.phy_delay_bw_cycles + self.think_delay_bw_cycles
        )
        c[kernel.C_ARB_FW] = self.arbitration_delay_fw_cycles
        c[kernel.C_ARB_BW] = self.arbitration_delay_bw_cycles
        c[kernel.C_END_RESPONSE] = self.end_response_delay_cycles
        c[kernel.C_DRAMSYS_RULES] = self.timing_rules == "dramsys51"
        return c
