"""Paths between registers: what is on the way."""

from __future__ import annotations

from operator import mul

__all__ = ["NO_PATH", "PATH_PARTS", "Path", "longer", "longest", "summed"]

Path = tuple[float, float, float, float, float, float, float, float, float]
PATH_PARTS = (
    "memories",
    "luts",
    "chains",
    "chain_bits",
    "dsps",
    "fan_out",
    "selects",
    "short_sums",
    "inversions",
)
"""Parts of a path: reads of block RAM, LUTs, carry chains, bits of them, DSPs, doublings of the
fan-out on the way, selections between two LUTs by an address bit,
sums of few bits, which an ECP5 makes of LUTs rather than a carry chain, and inversions of what is
subtracted, which take LUTs before the chains of an iCE40."""
_SHORT_BITS = 4
"""Bits up to which a sum is one of few bits."""
_NOMINAL: Path = (1.5, 1.2, 1.2, 0.13, 4.5, 0.25, 0.4, 1.3, 0.7)
"""Delays in ns that say which of two paths is longer while a circuit is built."""
NO_PATH: Path = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Of a value that is in a register."""


def longer(
    path: Path,
    *,
    memories: float = 0,
    luts: float = 0,
    chains: float = 0,
    chain_bits: float = 0,
    dsps: float = 0,
    fan_out: float = 0,
    selects: float = 0,
    short_sums: float = 0,
    inversions: float = 0,
) -> Path:
    """A path with more on its way."""
    m, lut, c, b, d, f, s, short, inverted = path
    after = (s + selects, short + short_sums, inverted + inversions)
    return (m + memories, lut + luts, c + chains, b + chain_bits, d + dsps, f + fan_out, *after)


def summed(path: Path, width: int) -> Path:
    """A path that goes on through a sum of some bits."""
    if not width:
        return path
    if width <= _SHORT_BITS:
        return longer(path, short_sums=1)
    return longer(path, chains=1, chain_bits=width)


def longest(one: Path, other: Path) -> Path:
    """The path that takes longer with nominal delays."""
    return one if one is other or _nominal(one) >= _nominal(other) else other


def _nominal(path: Path) -> float:
    return float(sum(map(mul, _NOMINAL, path)))
