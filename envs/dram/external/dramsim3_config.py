"""Writes configuration files of DRAMsim3, and refuses controllers that it cannot express."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.device.address_mapping import AddressMapping
from archgym.envs.dram.device.memory import Memory
from archgym.errors import NotCoveredError

__all__ = ["COMMAND_QUEUE", "NEVER_CYCLES", "check_covered", "ini_file"]

COMMAND_QUEUE = 8
"""Requests per bank behind ``read_write`` buffers, as in DRAMsim3's examples."""
NEVER_CYCLES = 10**8
"""Refresh interval that stands for no refresh: DRAMsim3 has no other way to say so."""
_COVERED: dict[str, tuple[Any, ...]] = {
    "page_policy": ("open", "closed"),
    "scheduler": ("fr_fcfs",),
    "scheduler_buffer": ("bankwise", "read_write", "shared"),
    "refresh_policy": ("none", "all_bank"),
    "resp_queue": ("fifo",),
    "arbiter": ("simple",),
    "cmd_mux": ("oldest",),
    "power_down_policy": ("none",),
    "write_policy": ("posted",),
}
_FREE = (
    "request_buffer_size",
    "address_mapping",
    "channel_interleave",
    "timing_rules",
    "max_active_transactions",
    "page_timeout_cycles",
    "high_watermark",
    "low_watermark",
    "think_delay_fw_cycles",
    "end_response_delay_cycles",
)
"""Settings that it can express, or that are about mechanisms of other simulators only."""


def check_covered(config: ControllerConfig) -> None:
    """Refuse what DRAMsim3 cannot express.

    Raises:
        NotCoveredError: naming the setting, its value and what is covered.
    """
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name in _COVERED:
            if value not in _COVERED[field.name]:
                covered = ", ".join(map(repr, _COVERED[field.name]))
                raise NotCoveredError(
                    f"DRAMsim3 has no {field.name} {value!r}, only {covered} "
                    f"(fixed={{'{field.name}': ...}} holds it there)"
                )
        elif field.name in ("refresh_max_postponed", "refresh_max_pulledin"):
            if value and config.refresh_policy != "none":
                raise NotCoveredError(
                    f"DRAMsim3 refreshes at once: {field.name} must be 0, not {value} "
                    f"(fixed={{'{field.name}': 0}} holds it there)"
                )
        elif field.name not in _FREE and value != field.default:
            raise NotCoveredError(f"DRAMsim3 has no setting for {field.name} {value!r}")


def ini_file(memory: Memory, mapping: AddressMapping, config: ControllerConfig) -> str:
    """Configuration file without the length of an epoch, which goes to its end."""
    d = memory.device
    volts = d.supplies[0].voltage_v

    def current(name: str) -> float:
        """Current of the first supply; others (VPP of DDR4) are added by their power."""
        power: float = sum(supply.voltage_v * getattr(supply, name) for supply in d.supplies)
        return power / volts

    size = config.request_buffer_size
    split = config.scheduler_buffer == "read_write"
    refreshed = config.refresh_policy == "all_bank"
    sections: dict[str, dict[str, Any]] = {
        "dram_structure": {
            "protocol": d.standard,
            "bankgroups": d.bank_groups,
            "banks_per_group": d.banks_per_group,
            "rows": d.rows,
            "columns": d.columns,
            "device_width": d.device_width_bits,
            "BL": d.burst_length,
        },
        "timing": {
            "tCK": d.t_ck_ps * 1e-3,
            "AL": 0,
            "CL": d.rl_cycles,
            "CWL": d.wl_cycles,
            "tRCD": d.t_rcd_cycles,
            "tRP": d.t_rp_cycles,
            "tRAS": d.t_ras_cycles,
            "tRFC": d.t_rfc_cycles,
            "tREFI": d.t_refi_cycles if refreshed else NEVER_CYCLES,
            "tRPRE": d.t_rpre_cycles,
            "tWPRE": d.t_wpre_cycles,
            "tRRD_S": d.t_rrd_s_cycles,
            "tRRD_L": d.t_rrd_l_cycles,
            "tWTR_S": d.t_wtr_s_cycles,
            "tWTR_L": d.t_wtr_l_cycles,
            "tFAW": d.t_faw_cycles,
            "tWR": d.t_wr_cycles,
            "tRTP": d.t_rtp_cycles,
            "tCCD_S": d.t_ccd_s_cycles,
            "tCCD_L": d.t_ccd_l_cycles,
            "tCKE": d.t_cke_cycles,
            "tCKESR": d.t_ckesr_cycles,
            "tXS": d.t_xs_cycles,
            "tXP": d.t_xp_cycles,
            "tRTRS": d.t_rtrs_cycles,
        },
        "power": {
            "VDD": volts,
            "IDD0": current("idd0_ma"),
            "IDD2P": current("idd2p_ma"),
            "IDD2N": current("idd2n_ma"),
            "IDD3P": current("idd3p_ma"),
            "IDD3N": current("idd3n_ma"),
            "IDD4W": current("idd4w_ma"),
            "IDD4R": current("idd4r_ma"),
            "IDD5AB": current("idd5_ma"),
            "IDD6x": current("idd6_ma"),
        },
        "system": {
            "channel_size": d.capacity_bytes * memory.ranks // 2**20,
            "channels": memory.channels,
            "bus_width": 8 * d.bus_bytes,
            "address_mapping": _address_fields(mapping, d.burst_length.bit_length() - 1),
            "refresh_policy": "RANK_LEVEL_STAGGERED",
            "row_buf_policy": "OPEN_PAGE" if config.page_policy == "open" else "CLOSE_PAGE",
            # With one request before them, the command queues are the only buffers.
            "queue_structure": "PER_RANK" if config.scheduler_buffer == "shared" else "PER_BANK",
            "unified_queue": str(not split).lower(),
            "trans_queue_size": size if split else 1,
            "cmd_queue_size": COMMAND_QUEUE if split else size,
        },
        "other": {"output_level": 1, "output_prefix": "out"},
    }
    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for name, entries in sections.items()
    )


_FIELD_CODES = {
    "channel": "ch",
    "rank": "ra",
    "bank_group": "bg",
    "bank": "ba",
    "row": "ro",
    "column": "co",
}


def _address_fields(mapping: AddressMapping, burst_bits: int) -> str:
    """The twelve characters of a mapping, most significant field first.

    The bits within a burst, the lowest ones, are implied.

    Raises:
        NotCoveredError: if it XORs bits, or cuts a field (other than the bits of a burst) in two.
    """
    places = []
    request_bits = len(mapping.byte) + burst_bits
    within = {entry for field in (mapping.byte, mapping.column[:burst_bits]) for entry in field}
    for name, code in _FIELD_CODES.items():
        entries = getattr(mapping, name)
        bits = [entry[0] for entry in entries][burst_bits if name == "column" else 0 :]
        whole = all(bit == bits[0] + i for i, bit in enumerate(bits))
        plain = all(len(entry) == 1 for entry in entries)
        if not whole or not plain or within != {(bit,) for bit in range(request_bits)}:
            raise NotCoveredError(
                f"DRAMsim3 cannot express address mapping {mapping.name!r}: it takes whole fields "
                "one above the other, without XOR"
            )
        places.append((bits[0] if bits else -1, code))
    return "".join(code for _, code in sorted(places, reverse=True))
