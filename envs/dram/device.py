"""DRAM devices: geometry, timings and currents of one rank, read from JSON data sheets."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["Device", "device_names", "load_device"]

_FOLDER = Path(__file__).parent / "devices"
_STANDARDS = ("DDR3", "DDR4")
_POWERS_OF_TWO = (
    "devices_per_rank",
    "device_width_bits",
    "burst_length",
    "bank_groups",
    "banks",
    "rows",
    "columns",
)
_MAY_BE_ZERO = ("vpp_v", "ipp0_ma", "t_wpre_cycles")


@dataclass(frozen=True)
class Device:
    """One rank of identical DRAM chips on one channel.

    Timings are in cycles of the memory clock, currents in mA per chip, voltages in V.

    Attributes:
        name: what the device is called in designs and tables.
        standard: ``"DDR3"`` or ``"DDR4"``; decides the read-to-write turnaround.
        part: the part that the figures belong to.
        devices_per_rank: chips that work in lockstep.
        device_width_bits: data pins of one chip.
        burst_length: data beats of one column command.
        bank_groups: bank groups of one chip, 1 where the standard has none.
        banks: banks of one chip, all groups together; bank ``b`` is in group
            ``b // (banks // bank_groups)``.
        rows: rows of one bank.
        columns: columns of one row, one column per data beat.
        t_ck_ps: clock period, ps.
        rl_cycles: read command to first data.
        wl_cycles: write command to first data.
        t_rcd_cycles: activate to read or write.
        t_rp_cycles: precharge to activate.
        t_ras_cycles: activate to precharge.
        t_rc_cycles: activate to activate, same bank.
        t_ccd_s_cycles: column command to column command, other bank group.
        t_ccd_l_cycles: column command to column command, same bank group.
        t_rrd_s_cycles: activate to activate, other bank group.
        t_rrd_l_cycles: activate to activate, same bank group.
        t_faw_cycles: window in which at most four activates fall.
        t_wtr_s_cycles: end of write data to read command, other bank group.
        t_wtr_l_cycles: end of write data to read command, same bank group.
        t_rtp_cycles: read to precharge.
        t_wr_cycles: end of write data to precharge.
        t_wpre_cycles: write preamble (DDR4; part of its read-to-write turnaround).
        t_refi_cycles: average interval of refresh commands.
        t_rfc_cycles: refresh to activate.
        vdd_v: core supply.
        idd0_ma: one bank activated and precharged each tRC.
        idd2n_ma: all banks precharged, standby.
        idd3n_ma: a bank open, standby.
        idd4r_ma: read bursts back to back.
        idd4w_ma: write bursts back to back.
        idd5_ma: refresh back to back.
        vpp_v: activation supply (DDR4), 0 where there is none.
        ipp0_ma: its current while one bank is activated and precharged each tRC.

    Example:
        >>> ddr4 = load_device("DDR4-2400")
        >>> ddr4.banks, ddr4.bytes_per_request, ddr4.burst_cycles
        (16, 64, 4)
    """

    name: str
    standard: str
    part: str
    devices_per_rank: int
    device_width_bits: int
    burst_length: int
    bank_groups: int
    banks: int
    rows: int
    columns: int
    t_ck_ps: int
    rl_cycles: int
    wl_cycles: int
    t_rcd_cycles: int
    t_rp_cycles: int
    t_ras_cycles: int
    t_rc_cycles: int
    t_ccd_s_cycles: int
    t_ccd_l_cycles: int
    t_rrd_s_cycles: int
    t_rrd_l_cycles: int
    t_faw_cycles: int
    t_wtr_s_cycles: int
    t_wtr_l_cycles: int
    t_rtp_cycles: int
    t_wr_cycles: int
    t_wpre_cycles: int
    t_refi_cycles: int
    t_rfc_cycles: int
    vdd_v: float
    idd0_ma: float
    idd2n_ma: float
    idd3n_ma: float
    idd4r_ma: float
    idd4w_ma: float
    idd5_ma: float
    vpp_v: float = 0.0
    ipp0_ma: float = 0.0

    def __post_init__(self) -> None:
        if self.standard not in _STANDARDS:
            raise UnknownNameError("DRAM standard", self.standard, _STANDARDS, f"{self.name}")
        for field in fields(self)[3:]:
            self._check(field.name, whole=str(field.type) == "int")
        if self.banks % self.bank_groups:
            raise InvalidValueError(
                f"device {self.name!r}: banks is {self.banks}, which {self.bank_groups} bank "
                "groups do not divide"
            )
        if self.t_ccd_s_cycles < self.burst_cycles:
            raise InvalidValueError(
                f"device {self.name!r}: t_ccd_s_cycles is {self.t_ccd_s_cycles}, but a burst "
                f"holds the data bus for {self.burst_cycles} cycles"
            )
        if self.t_refi_cycles <= self.t_rfc_cycles + self.t_rc_cycles:
            raise InvalidValueError(
                f"device {self.name!r}: t_refi_cycles is {self.t_refi_cycles}; it must exceed "
                f"t_rfc_cycles + t_rc_cycles = {self.t_rfc_cycles + self.t_rc_cycles}"
            )
        for short, long in (("t_ccd_s", "t_ccd_l"), ("t_rrd_s", "t_rrd_l"), ("t_wtr_s", "t_wtr_l")):
            if getattr(self, f"{short}_cycles") > getattr(self, f"{long}_cycles"):
                raise InvalidValueError(
                    f"device {self.name!r}: {short}_cycles must not exceed {long}_cycles"
                )

    def _check(self, name: str, whole: bool) -> None:
        value = getattr(self, name)
        kind = "a whole number" if whole else "a number"
        good = isinstance(value, int) if whole else isinstance(value, int | float)
        least_open = name not in _MAY_BE_ZERO
        if isinstance(value, bool) or not good or not (value > 0 if least_open else value >= 0):
            bound = "above 0" if least_open else "of at least 0"
            raise InvalidValueError(
                f"device {self.name!r}: {name} is {value!r}, it must be {kind} {bound}"
            )
        if name in _POWERS_OF_TWO and value & (value - 1):
            raise InvalidValueError(
                f"device {self.name!r}: {name} is {value}, it must be a power of two"
            )

    @property
    def burst_cycles(self) -> int:
        """Clock cycles for which one burst holds the data bus (two beats a cycle)."""
        return self.burst_length // 2

    @property
    def bus_bytes(self) -> int:
        """Bytes that one data beat moves over all chips of the rank."""
        return self.devices_per_rank * self.device_width_bits // 8

    @property
    def bytes_per_request(self) -> int:
        """Bytes that one column command moves: the size of a request."""
        return self.bus_bytes * self.burst_length

    @property
    def capacity_bytes(self) -> int:
        """Bytes of the whole rank."""
        return self.bus_bytes * self.columns * self.rows * self.banks

    @property
    def address_bits(self) -> int:
        """Bits of a byte address within the rank."""
        return self.capacity_bytes.bit_length() - 1

    @property
    def banks_per_group(self) -> int:
        """Banks of one bank group."""
        return self.banks // self.bank_groups

    @property
    def read_to_write_cycles(self) -> int:
        """Read command to write command, any banks: the turnaround of the data bus."""
        turn = 2 if self.standard == "DDR3" else 1 + self.t_wpre_cycles
        return self.rl_cycles + self.burst_cycles + turn - self.wl_cycles

    @property
    def peak_bandwidth_gb_per_s(self) -> float:
        """Bandwidth of the data bus, GB/s (10^9 bytes)."""
        return 2e3 * self.bus_bytes / self.t_ck_ps


def device_names() -> tuple[str, ...]:
    """Names of the devices that ship with the package, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


def load_device(name_or_path: str | os.PathLike[str]) -> Device:
    """Read a device by name, or from a JSON file of one's own.

    The file has the form of the shipped ones (``organisation``, ``timing`` and ``power``, each
    figure a number or ``{"value": ..., "source": ...}``).

    Args:
        name_or_path: a name from :func:`device_names`, or the path of a ``.json`` file.

    Returns:
        The device; the same object for the same name.

    Raises:
        UnknownNameError: if it is neither a shipped name nor an existing file.
        InvalidValueError: if the file is not JSON, or a figure is missing, unknown or senseless.

    Example:
        >>> load_device("DDR3-1600").t_ck_ps
        1250
    """
    text = os.fspath(name_or_path)
    if text in device_names():
        return _shipped(text)
    path = Path(name_or_path)
    if path.suffix != ".json" or not path.is_file():
        raise UnknownNameError("DRAM device", text, device_names())
    return _read(path)


@cache
def _shipped(name: str) -> Device:
    return _read(_FOLDER / f"{name}.json")


def _read(path: Path) -> Device:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidValueError(f"device file {path}: cannot be read as JSON ({error})") from error
    if not isinstance(document, dict):
        raise InvalidValueError(f"device file {path}: must hold a JSON object")
    values: dict[str, Any] = {
        key: document[key] for key in ("name", "standard", "part") if key in document
    }
    for section in ("organisation", "timing", "power"):
        values.update(_figures(path, section, document.get(section)))
    known = {field.name: field for field in fields(Device)}
    for key in values:
        if key not in known:
            raise UnknownNameError("figure", key, known, where=f"device file {path}")
    missing = [k for k in known if k not in values and k not in ("vpp_v", "ipp0_ma")]
    if missing:
        raise InvalidValueError(f"device file {path}: {', '.join(missing)} missing")
    for key in ("name", "standard", "part"):
        if not isinstance(values[key], str):
            raise InvalidValueError(f"device file {path}: {key} must be a string")
    return Device(**values)


def _figures(path: Path, section: str, entries: Any) -> dict[str, Any]:
    if not isinstance(entries, Mapping):
        raise InvalidValueError(f"device file {path}: {section} must be an object of figures")
    return {
        key: entry.get("value") if isinstance(entry, Mapping) else entry
        for key, entry in entries.items()
    }
