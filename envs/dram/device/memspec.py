"""Device files in the form of DRAMSys: its memory specifications ("memspecs").

A memspec has ``memarchitecturespec``, ``memtimingspec`` and ``mempowerspec`` with the names of
DRAMSys 4 and 5. The file may hold it as it is, under the key ``memspec``, or under one name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archgym.envs.dram.device.device import Supply
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["figures_of_memspec", "find_memspec"]

GEOMETRY = {
    "device_width_bits": "width",
    "burst_length": "burstLength",
    "banks": "nbrOfBanks",
    "rows": "nbrOfRows",
    "columns": "nbrOfColumns",
}
_COMMON = {
    "rl_cycles": "RL",
    "wl_cycles": "WL",
    "t_ras_cycles": "RAS",
    "t_faw_cycles": "FAW",
    "t_rtp_cycles": "RTP",
    "t_wr_cycles": "WR",
    "t_refi_cycles": "REFI",
    "t_xp_cycles": "XP",
    "t_cke_cycles": "CKE",
}
_NO_GROUPS = {
    "t_ccd_s_cycles": "CCD",
    "t_ccd_l_cycles": "CCD",
    "t_rrd_s_cycles": "RRD",
    "t_rrd_l_cycles": "RRD",
    "t_wtr_s_cycles": "WTR",
    "t_wtr_l_cycles": "WTR",
}
_DDR = {
    "t_rcd_cycles": "RCD",
    "t_rp_cycles": "RP",
    "t_rc_cycles": "RC",
    "t_rfc_cycles": "RFC",
    "t_rtrs_cycles": "RTRS",
    "t_ckesr_cycles": "CKESR",
    "t_xs_cycles": "XS",
    "t_xsdll_cycles": "XSDLL",
    "t_actpden_cycles": "ACTPDEN",
    "t_prpden_cycles": "PRPDEN",
    "t_refpden_cycles": "REFPDEN",
}
TIMINGS = {
    "DDR3": _COMMON | _NO_GROUPS | _DDR,
    "DDR4": _COMMON
    | _DDR
    | {
        "t_ccd_s_cycles": "CCD_S",
        "t_ccd_l_cycles": "CCD_L",
        "t_rrd_s_cycles": "RRD_S",
        "t_rrd_l_cycles": "RRD_L",
        "t_wtr_s_cycles": "WTR_S",
        "t_wtr_l_cycles": "WTR_L",
        "t_rpre_cycles": "RPRE",
        "t_wpre_cycles": "WPRE",
    },
    "LPDDR4": _COMMON
    | _NO_GROUPS
    | {
        "t_rcd_cycles": "RCD",
        "t_rp_cycles": "RPPB",
        "t_rp_ab_cycles": "RPAB",
        "t_rc_cycles": "RCPB",
        "t_rfc_cycles": "RFCAB",
        "t_refi_pb_cycles": "REFIPB",
        "t_rfc_pb_cycles": "RFCPB",
        "t_ppd_cycles": "PPD",
        "t_dqsck_cycles": "DQSCK",
        "t_dqss_cycles": "DQSS",
        "t_dqs2dq_cycles": "DQS2DQ",
        "t_wpre_cycles": "WPRE",
        "t_rpst_cycles": "RPST",
        "t_rtrs_cycles": "RTRS",
        "t_ckesr_cycles": "SR",
        "t_xs_cycles": "XSR",
        "t_xsdll_cycles": "XSR",
        "t_actpden_cycles": "CMDCKE",
        "t_prpden_cycles": "CMDCKE",
        "t_refpden_cycles": "CMDCKE",
    },
    "HBM2": _COMMON
    | {
        "t_rcd_cycles": "RCDRD",
        "t_rcd_wr_cycles": "RCDWR",
        "t_rp_cycles": "RP",
        "t_rc_cycles": "RC",
        "t_ccd_s_cycles": "CCDS",
        "t_ccd_l_cycles": "CCDL",
        "t_rrd_s_cycles": "RRDS",
        "t_rrd_l_cycles": "RRDL",
        "t_wtr_s_cycles": "WTRS",
        "t_wtr_l_cycles": "WTRL",
        "t_rtw_cycles": "RTW",
        "t_dqsck_cycles": "DQSCK",
        "t_rfc_cycles": "RFC",
        "t_refi_pb_cycles": "REFISB",
        "t_rfc_pb_cycles": "RFCSB",
        "t_ref_ref_cycles": "RREFD",
        "t_ref_act_cycles": "RREFD",
        "t_ckesr_cycles": "CKE",
        "t_xs_cycles": "XS",
        "t_xsdll_cycles": "XS",
    },
}
"""For each standard, the name in a memspec of each of our timings."""
# Supplies of DRAMSys 5.1's DRAMPower interface: for DDR4's second one it passes only idd02, idd62.
SUPPLIES = {
    "DDR3": {"VDD": ("vdd", "")},
    "DDR4": {"VDD": ("vdd", ""), "VPP": ("vdd2", "2")},
}
CURRENTS = {
    "idd0_ma": "idd0",
    "idd2n_ma": "idd2n",
    "idd3n_ma": "idd3n",
    "idd4r_ma": "idd4r",
    "idd4w_ma": "idd4w",
    "idd5_ma": "idd5",
    "idd2p_ma": "idd2p1",
    "idd3p_ma": "idd3p1",
    "idd6_ma": "idd6",
}


def find_memspec(document: Mapping[str, Any], where: str) -> Mapping[str, Any] | None:
    """The memspec in a JSON document, None if there is none.

    Args:
        document: the file's content.
        where: the file, for messages.

    Raises:
        InvalidValueError: if it holds more than one.
    """
    if "memarchitecturespec" in document:
        return document
    inner = {
        key: value
        for key, value in document.items()
        if isinstance(value, Mapping) and "memarchitecturespec" in value
    }
    if len(inner) > 1:
        raise InvalidValueError(f"{where}: must hold one memspec, but holds {', '.join(inner)}")
    return next(iter(inner.values()), None)


def figures_of_memspec(memspec: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Arguments of :class:`~archgym.envs.dram.device.device.Device` from a memspec.

    Args:
        memspec: what :func:`find_memspec` found.
        where: the file, for messages.

    Raises:
        UnknownNameError: for a memory type that we do not model.
        InvalidValueError: for a missing section or figure; a figure of the wrong kind is left
            for ``Device`` to refuse.
    """
    standard = memspec.get("memoryType")
    if not isinstance(standard, str) or standard not in TIMINGS:
        raise UnknownNameError("memoryType", standard, TIMINGS, where)
    timings = _part(memspec, "memtimingspec", where)
    geometry = _part(memspec, "memarchitecturespec", where)
    name = memspec.get("memoryId") or memspec.get("memspec") or standard
    groups = geometry.get("nbrOfBankGroups", 1) if standard in ("DDR4", "HBM2") else 1
    chips = geometry.get("nbrOfDevices", geometry.get("nbrOfDevicesOnDIMM", 1))
    values = {
        "name": name,
        "standard": standard,
        "part": name,
        "validation": "from a DRAMSys memspec",
        "devices_per_rank": chips,
        "bank_groups": groups,
        "t_ck_ps": _clock_ps(timings, where),
        "supplies": _supplies(standard, memspec, where),
    }
    for ours, theirs in GEOMETRY.items():
        values[ours] = _figure(geometry, theirs, "memarchitecturespec", where)
    for ours, theirs in TIMINGS[standard].items():
        values[ours] = _figure(timings, theirs, "memtimingspec", where)
    return values


def _clock_ps(timings: Mapping[str, Any], where: str) -> int:
    """Clock period: DRAMSys 4 gives MHz, 5.1 ps, later ones seconds."""
    if "clkMhz" in timings:
        frequency = float(_figure(timings, "clkMhz", "memtimingspec", where))
        if not frequency > 0:
            raise InvalidValueError(f"{where}: clkMhz is {frequency:g}, it must be above 0")
        return round(1e6 / frequency)
    period = float(_figure(timings, "tCK", "memtimingspec", where))
    return round(period * 1e12) if 0 < period < 1e-3 else round(period)


def _supplies(standard: str, memspec: Mapping[str, Any], where: str) -> tuple[Supply, ...]:
    if standard not in SUPPLIES or "mempowerspec" not in memspec:
        return ()
    power = _part(memspec, "mempowerspec", where)
    supplies = []
    for name, (voltage, suffix) in SUPPLIES[standard].items():
        currents = {
            ours: _figure(power, theirs, "mempowerspec", where)
            for ours, theirs in CURRENTS.items()
            if not suffix
        }
        if suffix:
            currents = {
                ours: power.get(f"{theirs}{suffix}", 0.0)
                for ours, theirs in (("idd0_ma", "idd0"), ("idd6_ma", "idd6"))
            }
        supplies.append(Supply(name, _figure(power, voltage, "mempowerspec", where), **currents))
    return tuple(supplies)


def _part(memspec: Mapping[str, Any], section: str, where: str) -> Mapping[str, Any]:
    part = memspec.get(section)
    if not isinstance(part, Mapping):
        raise InvalidValueError(f"{where}: {section} must be an object of figures")
    return part


def _figure(part: Mapping[str, Any], name: str, section: str, where: str) -> Any:
    if name not in part:
        raise InvalidValueError(f"{where}: {name} missing in {section}")
    value = part[name]
    if isinstance(value, float) and value.is_integer() and section != "mempowerspec":
        value = int(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidValueError(f"{where}: {name} in {section} is {value!r}, not a number")
    return value
