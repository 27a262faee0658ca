"""Area, energy and access time of caches, from a table that CACTI 7 made.

The table (``sram.csv``) holds caches with lines of 64 bytes in 22 nm (ITRS high-performance cells,
one read and write port, 360 K), as CACTI's example configuration asks for; figures between its
sizes are interpolated on logarithmic scales, and those beyond it are taken at its border. CACTI:
Balasubramonian, Kahng, Muralimanohar, Shafiee, Srinivas, "CACTI 7", ACM Trans. Archit. Code Optim.
14 (2017).

- ``first``: tags and data are read together, 64 bits leave the cache: a first level.
- ``lower``: tags first, then one line of data, 512 bits: the levels below.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.hierarchy.config import CacheLevel

__all__ = ["SOURCE", "CacheCost", "cache_cost", "storage_bits"]

SOURCE: Final = "CACTI 7 (HewlettPackard/cacti, commit 1ffd8df), 22 nm, its example configuration"
_ADDRESS_BITS: Final = 48
_POLICY_BITS: Final = {"srrip": 2, "drrip": 2, "random": 0, "ship": 17}
"""State of a line beyond its tag, in bits: prediction value, and SHiP's signature and outcome."""
_FIGURES: Final = ("access_ns", "read_pj", "write_pj", "leakage_mw", "area_um2")


@dataclass(frozen=True)
class CacheCost:
    """Figures of one cache.

    Attributes:
        access_ns: time of an access, ns.
        read_pj: energy of a read, pJ.
        write_pj: energy of a write, pJ.
        leakage_mw: power at rest, mW.
        area_um2: area, um2.
    """

    access_ns: float
    read_pj: float
    write_pj: float
    leakage_mw: float
    area_um2: float


@lru_cache(maxsize=4096)
def cache_cost(level: CacheLevel, *, first: bool) -> CacheCost:
    """The figures of a cache of that size and associativity."""
    sizes, ways, tables = _tables("first" if first else "lower")
    x = float(np.clip(np.log2(level.size_bytes), sizes[0], sizes[-1]))
    y = float(np.clip(np.log2(level.ways), ways[0], ways[-1]))
    columns = [np.array([np.interp(x, sizes, row) for row in table]) for table in tables]
    values = [float(np.exp(np.interp(y, ways, column))) for column in columns]
    return CacheCost(*values)


def storage_bits(level: CacheLevel) -> int:
    """Bits that a cache stores: data, tags of 48-bit addresses, valid, dirty, replacement."""
    lines = level.size_bytes // level.line_bytes
    offset = level.line_bytes.bit_length() - 1
    tag = _ADDRESS_BITS - offset - (level.sets.bit_length() - 1)
    if level.replacement == "lru":
        state = max(0, (level.ways - 1).bit_length())
    else:
        state = _POLICY_BITS[level.replacement]
    shared = 3 * (1 << 14) if level.replacement == "ship" else 0
    return lines * (8 * level.line_bytes + tag + 2 + state) + shared


@cache
def _tables(
    kind: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[list[NDArray[np.float64]]]]:
    """Logarithms of sizes, of ways, and of each figure by ways and size, gaps filled."""
    text = resources.files("archgym.envs.cpu.cost").joinpath("sram.csv").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["level"] == kind]
    sizes = np.array(sorted({int(row["size_bytes"]) for row in rows}), np.float64)
    ways = np.array(sorted({int(row["ways"]) for row in rows}), np.float64)
    tables = []
    for figure in _FIGURES:
        found = {
            (int(row["ways"]), int(row["size_bytes"])): np.log(float(row[figure])) for row in rows
        }
        table = []
        for way in ways:
            known = [size for size in sizes if (int(way), int(size)) in found]
            values = [found[int(way), int(size)] for size in known]
            table.append(np.interp(np.log2(sizes), np.log2(known), values))
        tables.append(table)
    return np.log2(sizes), np.log2(ways), tables
