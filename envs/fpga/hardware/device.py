"""The FPGAs, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

__all__ = ["DEVICES", "Device"]


@dataclass(frozen=True)
class Device:
    """An FPGA.

    Attributes:
        name: as a value of the parameter ``device``.
        family: ``ice40`` or ``ecp5``.
        option: of nextpnr, that chooses it.
        package: of nextpnr.
        luts: with four inputs.
        ffs: flip-flops.
        dsps: multipliers.
        block_rams: of 4 kbit (iCE40) or 18 kbit (ECP5).
        pins: of the package.
        dsp_bits: fewest bits of a product that synthesis gives to a multiplier; 0 without any.
        dsp_clocked: whether nextpnr takes the multiplier's pins for those of registers, also where
            it has no register.
    """

    name: str
    family: str
    option: str
    package: str
    luts: int
    ffs: int
    dsps: int
    block_rams: int
    pins: int
    dsp_bits: int
    dsp_clocked: bool = False


DEVICES: Final[Mapping[str, Device]] = MappingProxyType(
    {
        device.name: device
        for device in (
            Device("ice40_hx8k", "ice40", "hx8k", "ct256", 7680, 7680, 0, 32, 206, 0),
            Device("ice40_up5k", "ice40", "up5k", "sg48", 5280, 5280, 8, 30, 39, 11, True),
            Device("ecp5_25k", "ecp5", "25k", "CABGA381", 24288, 24288, 28, 56, 197, 9),
            Device("ecp5_45k", "ecp5", "45k", "CABGA381", 43848, 43848, 72, 108, 203, 9),
            Device("ecp5_85k", "ecp5", "85k", "CABGA381", 83640, 83640, 156, 208, 205, 9),
        )
    }
)
"""By name: counts as nextpnr 0.11 reports them; fewest bits of a product: ``synth_ice40`` and
``synth_ecp5`` of yosys 0.70 (``DSP_Y_MINWIDTH``)."""
