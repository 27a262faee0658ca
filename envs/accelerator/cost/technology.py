"""Technologies: what a multiply-accumulate, a memory access, a wire and a latch cost.

Figures of the generic tables are for 45 nm at 0.9 V and scale with node and supply, energy with
node x V^2 and area with node^2 (constant-field scaling, Dennard et al., JSSC 1974). They rank
designs; none is a sign-off figure. ``maestro28`` is the cost table compiled into MAESTRO (Kwon et
al., MICRO 2019; version 4eb08d1), which knows no energy of the memory outside the chip.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from archgym.errors import UnknownNameError

__all__ = ["SOURCES", "TECHNOLOGIES", "Technology", "technology"]


@dataclass(frozen=True, slots=True)
class Technology:
    """One table of costs; energies in pJ, areas in um2."""

    name: str
    node_nm: float
    supply_v: float
    clock_mhz: float
    """Clock of a design that does not say its own."""
    multiply_pj: float
    """One 8 x 8 bit product."""
    add_pj: float
    """One 32-bit sum."""
    multiply_um2: float
    add_um2: float
    latch_base_pj: float
    """A bit read from or written to a register file, whatever its depth."""
    latch_depth_pj: float
    """The same, for each word that the file is deep."""
    latch_um2: float
    """A bit of a register file."""
    sram_pj: float
    """64 bits read from or written to 8 KiB; grows with the square root of the size."""
    sram_um2: float
    """A bit of SRAM, periphery included."""
    bank_um2: float
    """What every bank takes besides its bits."""
    flip_flop_um2: float
    """A bit of a pipeline register in the network on chip."""
    wire_pj: float
    """A bit moved over 1 mm."""
    dram_pj: float
    """A bit moved to or from memory."""
    interface_um2: float
    """Memory interface without its pads, for each GB/s."""


def _generic(node_nm: float, supply_v: float, clock_mhz: float) -> Technology:
    """Return the 45 nm figures, scaled; :data:`SOURCES` says where they come from."""
    energy = node_nm / 45 * (supply_v / 0.9) ** 2
    area = (node_nm / 45) ** 2
    return Technology(
        name=f"cmos{node_nm:g}",
        node_nm=node_nm,
        supply_v=supply_v,
        clock_mhz=clock_mhz,
        multiply_pj=0.2 * energy,
        add_pj=0.1 * energy,
        multiply_um2=282 * area,
        add_um2=137 * area,
        latch_base_pj=0.0029 * energy,
        latch_depth_pj=0.000346 * energy,
        latch_um2=2.66 * area,
        sram_pj=10.0 * energy,
        sram_um2=0.346 / 0.6 * area,
        bank_um2=512 * 8 * 0.346 / 0.6 * area,
        flip_flop_um2=4.522 * area,
        wire_pj=310 / 2560 * energy,
        dram_pj=8.0,
        interface_um2=0.2 * 1.3e6 / (16 * 2.133 / 8) * (node_nm / 40) ** 2,
    )


SOURCES: Final = {
    "arithmetic and SRAM energy": "Horowitz, ISSCC 2014, 45 nm, 0.9 V: 10 pJ at 8 KiB, 20 at 32, "
    "100 at 1 MiB for 64 bits, a square root",
    "register files": "the scratch pads of the Accelergy Eyeriss example (0.202, 0.251 and "
    "1.98 pJ for 16 bits of 12, 16 and 192 words at 65 nm, a straight line), scaled",
    "latch and flip-flop": "DLH_X1 and DFF_X1 of Nangate's open 45 nm library",
    "SRAM area": "a cell of 0.346 um2, Mistry et al., IEDM 2007, at 60 % array efficiency; a bank "
    "takes as much besides as 512 bytes (our assumption)",
    "wire": "310 pJ for 256 bits over 10 mm at 40 nm, Keckler et al., IEEE Micro 2011",
    "memory": "LPDDR4 as in the Accelergy examples, 8 pJ a bit, whatever the node",
    "memory interface": "as in McPAT (Li et al., MICRO 2009) for embedded chips: a 16-bit DDR3 "
    "PHY of 2133 Mb/s takes 1.3 mm2 at 40 nm, of which a fifth is not pads and shrinks with the "
    "node; pads, which do not, are no part of the area, as in the core areas that papers give",
    "other nodes": "constant-field scaling, Dennard et al., JSSC 1974: energy with node x V^2, "
    "area with node^2",
    "clocks": "Eyeriss at 65 nm (JSSC 2017), the first TPU at 28 nm (ISCA 2017), NVDLA at 16 nm "
    "(its documentation), TPU v4 at 7 nm (ISCA 2023), and between them at 45 nm",
    "maestro28": "the cost table compiled into MAESTRO (Kwon et al., MICRO 2019; version 4eb08d1)",
}
"""Sources of the constants, by the part that they describe."""

TECHNOLOGIES: Final = ("cmos65", "cmos45", "cmos28", "cmos16", "cmos7", "maestro28")
"""Names that `technology` knows."""

# Supply: nominal core voltage of the foundries' standard processes.
_NODES = {
    "cmos65": (65.0, 1.0, 200.0),
    "cmos45": (45.0, 0.9, 500.0),
    "cmos28": (28.0, 0.9, 700.0),
    "cmos16": (16.0, 0.8, 1000.0),
    "cmos7": (7.0, 0.75, 1050.0),
}

MAESTRO_UNIT_PJ: Final = 0.23
"""MAESTRO's unit of energy; a PE buffer access is 1.68 of them, a global buffer access 18.61."""


@cache
def technology(name: str) -> Technology:
    """Return a technology by name.

    Raises:
        UnknownNameError: if there is none of that name.
    """
    if name in _NODES:
        return _generic(*_NODES[name])
    if name == "maestro28":
        return Technology(
            name=name,
            node_nm=28.0,
            supply_v=0.9,
            clock_mhz=1000.0,
            multiply_pj=MAESTRO_UNIT_PJ,
            add_pj=0.0,
            multiply_um2=283.0,
            add_um2=0.0,
            latch_base_pj=1.68 * MAESTRO_UNIT_PJ / 8,
            latch_depth_pj=0.0,
            latch_um2=0.104 / 8,
            sram_pj=18.61 * MAESTRO_UNIT_PJ * 8,
            sram_um2=0.104 / 8,
            bank_um2=0.0,
            flip_flop_um2=0.0,
            wire_pj=0.0,
            dram_pj=0.0,
            interface_um2=0.0,
        )
    raise UnknownNameError("technology", name, TECHNOLOGIES)
