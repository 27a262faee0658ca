"""DRAM devices: geometry, timings and currents of one rank of chips."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields

from archgym.envs.dram.device.standards import STANDARDS, Standard
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["MAX_BANKS", "Device", "Supply"]

_LARGEST = 1 << 31
"""Largest figure of a device."""
_POWERS_OF_TWO = (
    "devices_per_rank",
    "device_width_bits",
    "burst_length",
    "bank_groups",
    "banks",
    "rows",
    "columns",
)
MAX_BANKS = 64
"""Banks of one rank that the simulator's tables hold."""


@dataclass(frozen=True)
class Supply:
    """Currents that a chip draws from one of its supplies, mA, and the voltage, V.

    A current that a data sheet does not give for a supply, such as the standby current of DDR4's
    activation supply, is 0.

    Attributes:
        name: ``VDD``, ``VPP``, ``VDD2`` ...
        voltage_v: the voltage.
        idd0_ma: one bank activated and precharged each tRC.
        idd2n_ma: all banks precharged, standby.
        idd3n_ma: a bank open, standby.
        idd4r_ma: read bursts back to back.
        idd4w_ma: write bursts back to back.
        idd5_ma: all-bank refresh back to back.
        idd5pb_ma: per-bank or same-bank refresh back to back, 0 where it is not known.
        idd2p_ma: power-down, all banks precharged.
        idd3p_ma: power-down, a bank open.
        idd6_ma: self-refresh.
    """

    name: str
    voltage_v: float
    idd0_ma: float = 0.0
    idd2n_ma: float = 0.0
    idd3n_ma: float = 0.0
    idd4r_ma: float = 0.0
    idd4w_ma: float = 0.0
    idd5_ma: float = 0.0
    idd5pb_ma: float = 0.0
    idd2p_ma: float = 0.0
    idd3p_ma: float = 0.0
    idd6_ma: float = 0.0


@dataclass(frozen=True)
class Device:
    """One rank of identical DRAM chips on one channel.

    Timings are in cycles of the command clock and count between the edges that the standard
    counts between. Those with a default are not of every standard; 0 means that there is none.

    Attributes:
        name: what the device is called in designs and tables.
        standard: a name of :data:`archgym.envs.dram.device.standards.STANDARDS`.
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
        t_rp_cycles: precharge of a bank to activate.
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
        t_refi_cycles: average interval of all-bank refresh commands.
        t_rfc_cycles: all-bank refresh to activate.
        supplies: currents by supply; empty where there is no power model.
        validation: what the figures and the model of this device were checked against;
            ``"unvalidated"`` where nothing independent has confirmed them.
        t_rcd_wr_cycles: activate to write where it differs from a read (HBM2).
        t_rp_ab_cycles: precharge of all banks to activate where it differs (LPDDR4, LPDDR5).
        t_ppd_cycles: precharge to precharge, any banks (DDR5, LPDDR4, LPDDR5).
        t_ccd_l_wr_cycles: write to write, same bank group, where it differs (DDR5).
        t_dqsck_cycles: clock to data strobe on reads (LPDDR4).
        t_dqss_cycles: clock to data strobe on writes (LPDDR4); delays the data only.
        t_dqs2dq_cycles: strobe to data on writes (LPDDR4); delays the data only.
        t_rpre_cycles: read preamble; part of the turnaround between ranks.
        t_wpre_cycles: write preamble; part of the read-to-write turnaround.
        t_rpst_cycles: read postamble; part of the read-to-write turnaround.
        t_rtw_cycles: read to write where a data sheet gives it as such (HBM2).
        t_rtrs_cycles: gap on the data bus when the rank changes.
        t_refi_pb_cycles: interval of per-bank refreshes; 0 where there are none.
        t_rfc_pb_cycles: per-bank refresh to activate of that bank.
        t_refi_sb_cycles: interval of same-bank refreshes (DDR5), which take the same bank of
            every group; 0 where there are none.
        t_rfc_sb_cycles: same-bank refresh to activate of those banks.
        t_ref_ref_cycles: per-bank (same-bank) refresh to the next, other bank; 0 if as long as
            the refresh itself.
        t_ref_act_cycles: per-bank (same-bank) refresh to activate of another bank; 0 if as
            between two activates.
        t_xp_cycles: power-down exit to any command; 0 where power-down is not described.
        t_cke_cycles: shortest power-down, and shortest time between two.
        t_ckesr_cycles: shortest self-refresh.
        t_xs_cycles: self-refresh exit to activate.
        t_xsdll_cycles: self-refresh exit to column commands.
        t_actpden_cycles: activate to power-down entry.
        t_prpden_cycles: precharge to power-down entry.
        t_refpden_cycles: refresh to power-down entry.

    Example:
        >>> from archgym.envs.dram.device.data_sheets import load_device
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
    t_refi_cycles: int
    t_rfc_cycles: int
    supplies: tuple[Supply, ...] = ()
    validation: str = "unvalidated"
    t_rcd_wr_cycles: int = 0
    t_rp_ab_cycles: int = 0
    t_ppd_cycles: int = 0
    t_ccd_l_wr_cycles: int = 0
    t_dqsck_cycles: int = 0
    t_dqss_cycles: int = 0
    t_dqs2dq_cycles: int = 0
    t_rpre_cycles: int = 0
    t_wpre_cycles: int = 0
    t_rpst_cycles: int = 0
    t_rtw_cycles: int = 0
    t_rtrs_cycles: int = 1
    t_refi_pb_cycles: int = 0
    t_rfc_pb_cycles: int = 0
    t_refi_sb_cycles: int = 0
    t_rfc_sb_cycles: int = 0
    t_ref_ref_cycles: int = 0
    t_ref_act_cycles: int = 0
    t_xp_cycles: int = 0
    t_cke_cycles: int = 1
    t_ckesr_cycles: int = 1
    t_xs_cycles: int = 0
    t_xsdll_cycles: int = 0
    t_actpden_cycles: int = 1
    t_prpden_cycles: int = 1
    t_refpden_cycles: int = 1

    def __post_init__(self) -> None:
        if self.standard not in STANDARDS:
            raise UnknownNameError("DRAM standard", self.standard, STANDARDS, f"{self.name}")
        for field in fields(self):
            if str(field.type) == "int":
                self._check(field.name, getattr(self, field.name), field.default is MISSING)
        for supply in self.supplies:
            for entry in fields(Supply)[1:]:
                value = getattr(supply, entry.name)
                self._check_number(f"{supply.name} {entry.name}", value)
        self._check_consistency()

    def _check_consistency(self) -> None:
        if self.banks % self.bank_groups:
            raise InvalidValueError(
                f"device {self.name!r}: banks is {self.banks}, which {self.bank_groups} bank "
                "groups do not divide"
            )
        if self.banks > MAX_BANKS:
            raise InvalidValueError(
                f"device {self.name!r}: banks is {self.banks}, at most {MAX_BANKS} are possible"
            )
        if self.t_ccd_s_cycles < self.burst_cycles:
            raise InvalidValueError(
                f"device {self.name!r}: t_ccd_s_cycles is {self.t_ccd_s_cycles}, but a burst "
                f"holds the data bus for {self.burst_cycles} cycles"
            )
        if self.t_rc_cycles < self.t_ras_cycles:
            raise InvalidValueError(
                f"device {self.name!r}: t_rc_cycles is {self.t_rc_cycles}; a row is open for "
                f"t_ras_cycles = {self.t_ras_cycles} of them at least"
            )
        for kind, interval, refresh in (
            ("", self.t_refi_cycles, self.t_rfc_cycles),
            ("_pb", self.t_refi_pb_cycles, self.t_rfc_pb_cycles),
            ("_sb", self.t_refi_sb_cycles, self.t_rfc_sb_cycles),
        ):
            busy = refresh + self.t_rc_cycles
            if (interval > 0) != (refresh > 0) or 0 < interval <= busy:
                raise InvalidValueError(
                    f"device {self.name!r}: t_refi{kind}_cycles is {interval}; it must exceed "
                    f"t_rfc{kind}_cycles + t_rc_cycles = {busy}"
                )
        for short, long in (("t_ccd_s", "t_ccd_l"), ("t_rrd_s", "t_rrd_l"), ("t_wtr_s", "t_wtr_l")):
            if getattr(self, f"{short}_cycles") > getattr(self, f"{long}_cycles"):
                raise InvalidValueError(
                    f"device {self.name!r}: {short}_cycles must not exceed {long}_cycles"
                )

    def _check(self, name: str, value: object, positive: bool) -> None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        least = 1 if positive else 0
        if not whole or not least <= value <= _LARGEST:  # type: ignore[operator]
            bound = f"from {least} to {_LARGEST:,}"
            raise InvalidValueError(
                f"device {self.name!r}: {name} is {value!r}, it must be a whole number {bound}"
            )
        if name in _POWERS_OF_TWO and int(value) & (int(value) - 1):  # type: ignore[call-overload]
            raise InvalidValueError(
                f"device {self.name!r}: {name} is {value}, it must be a power of two"
            )

    def _check_number(self, name: str, value: object) -> None:
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not 0 <= value <= _LARGEST:  # type: ignore[operator]
            raise InvalidValueError(
                f"device {self.name!r}: {name} is {value!r}, it must be a number from 0 to "
                f"{_LARGEST:,}"
            )

    @property
    def traits(self) -> Standard:
        """Traits of the device's standard."""
        return STANDARDS[self.standard]

    @property
    def burst_cycles(self) -> int:
        """Clock cycles for which one burst holds the data bus."""
        return max(1, self.burst_length // self.traits.beats_per_cycle)

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
    def peak_bandwidth_gb_per_s(self) -> float:
        """Bandwidth of the data bus, GB/s (10^9 bytes)."""
        return 1e3 * self.traits.beats_per_cycle * self.bus_bytes / self.t_ck_ps
