"""The forms of tables that hold reference figures for the DRAM environment.

A table is a CSV file with a row for each controller setting and trace, in one of three forms:

- DRAMSys's own knobs (``PagePolicy``, ``Scheduler``, ...) and a column ``standard`` that names the
  device; figures such as ``time_ns`` and ``energy_total_pJ``;
- ArchGym's ten knobs on DDR3-1600, with ``total_time_ns`` and ``energy_pJ``;
- ``page``, ``refresh``, ``mapping``, ``queue`` and ``simulator``, all on one matched device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archgym.envs.dram.device.address_mapping import MAPPING_DOCS

__all__ = ["FOLDER", "FORMS", "NOT_MODELLED", "Form", "Knob"]

FOLDER = Path(__file__).parent / "tables"
"""The tables that ship, their traces, and the device of the matched runs."""
NOT_MODELLED = None
"""Stands for a value that the simulators know and we do not."""


@dataclass(frozen=True)
class Knob:
    """A column that sets a field of the controller: a whole number if it has no choices."""

    field: str
    choices: Mapping[str, str | None] | None = None


@dataclass(frozen=True)
class Form:
    """One form of table.

    Attributes:
        simulator: whose figures they are, where no column says it.
        knobs: columns that set the controller.
        metrics: columns with figures, and the metric that each is.
        ignored: columns that are known and not used, with the reason.
        needed: columns without which a table is not of this form.
        memory: device of the rows, where no column says it.
        fixed: what the form says of the controller without a column.
    """

    simulator: str
    knobs: Mapping[str, Knob]
    metrics: Mapping[str, str]
    needed: tuple[str, ...]
    ignored: Mapping[str, str] = field(default_factory=dict)
    memory: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)


_ARCHGYM_KNOBS = {
    "PagePolicy": Knob(
        "page_policy",
        {
            "Open": "open",
            "OpenAdaptive": "open_adaptive",
            "Closed": "closed",
            "ClosedAdaptive": "closed_adaptive",
        },
    ),
    "Scheduler": Knob(
        "scheduler",
        {
            "Fifo": "fifo",
            "FrFcfs": "fr_fcfs",
            "FrFcfsGrp": "fr_fcfs_grp",
            "GrpFrFcfs": "grp_fr_fcfs",
            "GrpFrFcfsWm": "grp_fr_fcfs_wm",
        },
    ),
    "SchedulerBuffer": Knob(
        "scheduler_buffer",
        {"Bankwise": "bankwise", "ReadWrite": "read_write", "Shared": "shared"},
    ),
    "RequestBufferSize": Knob("request_buffer_size"),
    "RespQueue": Knob("resp_queue", {"Fifo": "fifo", "Reorder": "reorder"}),
    "RefreshPolicy": Knob(
        "refresh_policy",
        {
            "NoRefresh": "none",
            "AllBank": "all_bank",
            "PerBank": "per_bank",
            "SameBank": "same_bank",
            "Per2Bank": NOT_MODELLED,
        },
    ),
    "RefreshMaxPostponed": Knob("refresh_max_postponed"),
    "RefreshMaxPulledin": Knob("refresh_max_pulledin"),
    "Arbiter": Knob("arbiter", {"Simple": "simple", "Fifo": "fifo", "Reorder": "reorder"}),
    "MaxActiveTransactions": Knob("max_active_transactions"),
}
_COUNTED = "a count of commands, which is no metric of the environment"
FORMS = (
    Form(
        simulator="DRAMSys",
        knobs={
            **_ARCHGYM_KNOBS,
            "CmdMux": Knob("cmd_mux", {"Oldest": "oldest", "Strict": "strict"}),
            "PowerDownPolicy": Knob(
                "power_down_policy", {"NoPowerDown": "none", "Staggered": "staggered"}
            ),
            "mapping": Knob("address_mapping", {name: name for name in MAPPING_DOCS}),
        },
        metrics={
            "time_ns": "time_ns",
            "avg_read_latency_from_arrival_ns": "read_latency_mean_ns",
            "p95_read_latency_from_arrival_ns": "read_latency_p95_ns",
            "avg_read_latency_ns": "read_latency_accepted_mean_ns",
            "avg_write_latency_from_arrival_ns": "write_latency_mean_ns",
            "energy_total_pJ": "energy_pj",
            "average_power_mW": "power_mw",
        },
        needed=("standard", "trace", *_ARCHGYM_KNOBS),
        ignored={
            "cycles": "time_ns in clock cycles",
            "bytes_per_request": "follows from the device",
            "reads": "a property of the trace",
            "writes": "a property of the trace",
            "last_read_done_ns": "time_ns, but for traces that end in writes",
            "row_hits": "counts an activate that a refresh undid against a hit; row_hit_rate "
            "does not",
            "row_nonhits": "the rest of row_hits",
            "avg_bandwidth_GBps": "rounded to two digits; follows from time_ns",
            **dict.fromkeys(
                (
                    *("n_act", "n_pre", "n_preab", "n_rd", "n_rda", "n_wr", "n_wra"),
                    *("n_refab", "n_refpb", "n_pd_entry", "n_sref"),
                ),
                _COUNTED,
            ),
        },
    ),
    Form(
        simulator="DRAMSys4.0",
        knobs=_ARCHGYM_KNOBS,
        metrics={
            "total_time_ns": "time_ns",
            "energy_pJ": "energy_pj",
            "avg_power_mW": "power_mw",
        },
        needed=("total_time_ns", "trace", *_ARCHGYM_KNOBS),
        ignored={
            "raw_time_value": "total_time_ns in the unit that the program printed",
            "raw_time_unit": "the unit of raw_time_value",
            "avg_bw_gbps": "follows from total_time_ns",
            "avg_bw_no_idle_gbps": "no metric of the environment",
            "wall_s": "how long the simulator took",
        },
        memory="DDR3-1600",
    ),
    Form(
        simulator="unnamed simulator",
        knobs={
            "page": Knob("page_policy", {"open": "open", "closed": "closed"}),
            "refresh": Knob(
                "refresh_policy", {"allbank": "all_bank", "none": "none", "off": "none"}
            ),
            "mapping": Knob("address_mapping", {"row-bank-col": "rbc", "bank-row-col": "brc"}),
            "queue": Knob("request_buffer_size"),
        },
        metrics={
            "time_ns": "time_ns",
            "avg_read_latency_from_arrival_ns": "read_latency_mean_ns",
            "p95_read_latency_from_arrival_ns": "read_latency_p95_ns",
            "avg_read_latency_ns": "read_latency_accepted_mean_ns",
            "energy_total_pJ": "energy_pj",
            "average_power_mW": "power_mw",
        },
        needed=("page", "refresh", "mapping", "queue", "trace"),
        ignored={
            "row_hits": "each simulator counts them in its own way",
            **dict.fromkeys(("n_act", "n_rd", "n_wr"), _COUNTED),
        },
        memory=str(FOLDER / "matched_device.json"),
        fixed={"scheduler_buffer": "read_write"},
    ),
)
