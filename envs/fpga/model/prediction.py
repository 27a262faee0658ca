"""What synthesis, placement and routing give, from the structure of a circuit.

Flip-flops, DSPs and block RAMs are counted. LUTs are a sum over the parts that take them, each
part with a weight near one. The clock follows from the longest path between registers: a delay for
each LUT, carry chain, DSP and block RAM on it with the wire to it, for each bit of a chain, and
for each doubling of the fan-out and of the circuit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.fpga.hardware.device import Device
from archgym.envs.fpga.hardware.path import PATH_PARTS
from archgym.envs.fpga.hardware.top import Built

__all__ = [
    "DELAY_PARTS",
    "LUT_PARTS",
    "Coefficients",
    "Prediction",
    "lut_parts",
    "path_parts",
    "predicted",
    "ram_blocks",
    "shipped_coefficients",
    "speed_grade",
]

Floats = NDArray[np.float64]
LUT_PARTS: Final = (
    "adder_bits",
    "constant_bits",
    "short_bits",
    "tiny_bits",
    "wide_luts",
    "chosen_luts",
    "odd_chains",
    "inverted_bits",
    "and_bits",
    "mux_bits",
    "rom_luts",
    "rom_selects",
    "saturated_bits",
    "luts",
    "counter_bits",
    "compare_bits",
)
"""Parts of a circuit that take LUTs: bits of carry chains and of sums of few bits, what functions
of more than four inputs take more than one, small memories that such a function replaces, chains
with an odd bit, bits inverted for a subtraction, bits of products and multiplexers, and so on."""
DELAY_PARTS: Final = ("start", "doublings", *PATH_PARTS)
"""Parts of the delay of a path: its two registers, doublings of the number of LUTs and
flip-flops, and the path itself."""
_RAM_WIDTH: Final = {"ice40": 16, "ecp5": 36}
"""Widest word of a block RAM; it has 256 (iCE40) or 512 (ECP5) of them."""
_RAM_WORDS: Final = {"ice40": 256, "ecp5": 512}


@dataclass(frozen=True)
class Prediction:
    """What a circuit takes and how fast it is.

    Attributes:
        luts, ffs, dsps, block_rams: how many of each.
        clock_mhz: fastest clock.
        spread: standard deviation of the clock over placement seeds, by the clock.
    """

    luts: float
    ffs: int
    dsps: int
    block_rams: int
    clock_mhz: float
    spread: float


@dataclass(frozen=True, eq=False)
class Coefficients:
    """What was fitted.

    Attributes:
        luts: by family, LUTs for one of each of :data:`LUT_PARTS`.
        delays: by :func:`speed_grade`, ns for one of each of :data:`DELAY_PARTS`.
        spreads: by :func:`speed_grade`.
    """

    luts: Mapping[str, Floats]
    delays: Mapping[str, Floats]
    spreads: Mapping[str, float]


def speed_grade(device: Device) -> str:
    """What has the same delays as the device."""
    return device.name if device.family == "ice40" else device.family


def lut_parts(made: Built) -> Floats:
    """How many there are of each of :data:`LUT_PARTS`."""
    return np.array([float(made.circuit.parts[name]) for name in LUT_PARTS])


def path_parts(made: Built, luts: float) -> Floats:
    """Parts of the delay of each distinct path, shape (paths, parts)."""
    size = np.log2(max(2.0, luts + made.circuit.parts["ff"]))
    return np.array([(1.0, size, *path) for path in sorted(made.circuit.paths)])


def ram_blocks(made: Built, device: Device) -> int:
    """Block RAMs of the circuit's memories."""
    width, depth = _RAM_WIDTH[device.family], _RAM_WORDS[device.family]
    return sum(-(-bits // width) * -(-words // depth) for words, bits in made.circuit.roms)


def predicted(made: Built, device: Device, coefficients: Coefficients) -> Prediction:
    """The prediction for a circuit on a device."""
    luts = float(lut_parts(made) @ coefficients.luts[device.family])
    grade = speed_grade(device)
    period = float((path_parts(made, luts) @ coefficients.delays[grade]).max())
    parts = made.circuit.parts
    return Prediction(
        luts=luts,
        ffs=parts["ff"],
        dsps=parts["dsp"],
        block_rams=ram_blocks(made, device),
        clock_mhz=1e3 / period,
        spread=coefficients.spreads[grade],
    )


@cache
def shipped_coefficients() -> Coefficients:
    """Those that were fitted to the shipped table as it was before number 2319."""
    text = resources.files("archgym.envs.fpga.model").joinpath("fitted.json").read_text("utf-8")
    found = json.loads(text)
    return Coefficients(
        luts={k: np.array(list(v.values())) for k, v in found["luts"].items()},
        delays={k: np.array(list(v.values())) for k, v in found["delays_ns"].items()},
        spreads=found["spreads"],
    )
