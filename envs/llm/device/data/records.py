"""Memories, technologies and software as records, read from the data files or from mappings."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final, TypeVar

from archgym.envs.dram.device.data_sheets import load_device
from archgym.envs.llm.device.data.timing import (
    ChannelTiming,
    StreamEnergy,
    stream_energy,
    timing_of,
)
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.reading import plain_yaml

__all__ = [
    "Memory",
    "Software",
    "Technology",
    "load_memory",
    "load_software",
    "load_technology",
    "memory_names",
    "software_names",
]

_TECHNOLOGY: Final = "seven_nm"
Record = TypeVar("Record", bound="_Described")


@dataclass(frozen=True, kw_only=True)
class _Described:
    """The base: a line on the record, and where its figures come from."""

    doc: str = ""
    source: str = "the user"


@dataclass(frozen=True, kw_only=True)
class Software(_Described):
    """What software leaves of the hardware.

    Attributes:
        matrix_share: share of the peak rate that products reach.
        memory_share: share of the stream bandwidth that products with weights reach.
        operator_us: time of each operator that nothing hides, us.
        operators_layer: operators of a layer that follow one another.
        widened_bits: bits to which weights are widened before products; 0 if they are not.
    """

    matrix_share: float
    memory_share: float
    operator_us: float
    operators_layer: float = 9
    widened_bits: float = 0


@dataclass(frozen=True, kw_only=True)
class Technology(_Described):
    """Energies, areas and prices of a process.

    Attributes:
        mac8_pj: a multiplication of 8 bits and its addition, pJ.
        mac16_pj: the same in 16 bits, pJ.
        vector_pj: one operation of the vector unit, pJ.
        sram_pj_per_bit: a bit read or written in SRAM, pJ.
        sram_leakage_mw_per_mib: of SRAM, mW.
        logic_leakage_mw_per_mm2: of everything else on the die, mW.
        mac_um2: area of a multiplier of 8 bits with its adder and registers, um2.
        sram_mm2_per_mib: area of SRAM, mm2.
        fixed_mm2: processor, interconnect and everything that does not scale, mm2.
        wafer_usd: price of a wafer.
        wafer_mm: its diameter, mm.
        defects_per_cm2: density of defects.
        package_usd: package and test.
        interposer_usd: of memory beside the processor (HBM).
        flash_pj_per_bit: a bit read from flash, pJ.
        flash_usd_per_gib: price of flash.
        flash_gib: capacity of flash for weights, GiB.
        pim_column_share: share of a column's energy that is spent at the bank, not on the way out.
        pim_mac_pj: a multiplication and addition of 16 bits in a DRAM process, pJ.
        pim_die_share: what units of 16 lanes at each bank add to the price of a DRAM die, a share.
        table_area_share: what lookups in tables add to the area of SRAM, a share.
    """

    mac8_pj: float
    mac16_pj: float
    vector_pj: float
    sram_pj_per_bit: float
    sram_leakage_mw_per_mib: float
    logic_leakage_mw_per_mm2: float
    mac_um2: float
    sram_mm2_per_mib: float
    fixed_mm2: float
    wafer_usd: float
    wafer_mm: float
    defects_per_cm2: float
    package_usd: float
    interposer_usd: float
    flash_pj_per_bit: float
    flash_usd_per_gib: float
    flash_gib: float
    pim_column_share: float
    pim_mac_pj: float
    pim_die_share: float
    table_area_share: float


@dataclass(frozen=True)
class Memory:
    """A channel of a memory with one rank.

    Attributes:
        name: in designs.
        timing: of the channel.
        energy: of the DRAM core.
        io_pj_per_bit: of the interface, pJ.
        phy_mm2: of controller and PHY on the processor, mm2.
        usd_per_gib: price.
        source: where the figures come from.
    """

    name: str
    timing: ChannelTiming
    energy: StreamEnergy
    io_pj_per_bit: float
    phy_mm2: float
    usd_per_gib: float
    source: str

    @property
    def gib(self) -> float:
        """Capacity of the rank, GiB."""
        return self.timing.capacity_mib / 1024


def load_software(spec: str | Mapping[str, Any]) -> Software:
    """Software by name, or a mapping whose ``base`` names what it changes.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    return _read(Software, spec, "software.yaml", "software")


def load_technology(changes: Mapping[str, Any] | None = None) -> Technology:
    """The process of 7 nm, with changes.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    return _read(Technology, {"base": _TECHNOLOGY, **(changes or {})}, "technology.yaml", "prices")


@functools.lru_cache(maxsize=32)
def load_memory(name: str) -> Memory:
    """A memory by name.

    Raises:
        UnknownNameError: if there is none of that name.
    """
    known = _entries("memories.yaml")
    if name not in known:
        raise UnknownNameError("memory", name, known)
    entry = known[name]
    if entry["device"]:
        timing = timing_of(entry["device"])
        device = load_device(entry["device"])
    else:
        timing = ChannelTiming(**entry["timing"])
        device = None
    if device is not None and device.supplies:
        cost = stream_energy(device)
    else:
        core, standby = float(entry["core_pj_per_bit"]), float(entry["standby_mw"])
        cost = StreamEnergy(_COLUMN_SHARE * core, (1 - _COLUMN_SHARE) * core, standby, standby / 2)
    return Memory(
        name,
        timing,
        cost,
        float(entry["io_pj_per_bit"]),
        float(entry["phy_mm2"]),
        float(entry["usd_per_gib"]),
        str(entry["source"]),
    )


_COLUMN_SHARE: Final = 0.7
"""Of the core's energy by bit where no currents are known: columns; the rest opens rows. DRAM-v0's
DDR4-3200 has 0.93, its LPDDR4 0.94; HBM has short rows. An assumption."""


def memory_names() -> dict[str, str]:
    """The memories, with a line on each."""
    return {name: str(entry["doc"]) for name, entry in _entries("memories.yaml").items()}


def software_names() -> dict[str, str]:
    """The software, with a line on each."""
    return {name: str(entry["doc"]) for name, entry in _entries("software.yaml").items()}


@functools.cache
def _entries(file: str) -> dict[str, dict[str, Any]]:
    text = resources.files("archgym.envs.llm.device.data").joinpath(file).read_text("utf-8")
    found: dict[str, dict[str, Any]] = plain_yaml.parse(text)
    return found


def _read(cls: type[Record], spec: Any, file: str, kind: str) -> Record:
    known = _entries(file)
    if isinstance(spec, str):
        spec = {"base": spec}
    if not isinstance(spec, Mapping):
        raise InvalidValueError(
            f"{kind} is {spec!r:.80}; it must be a name ({', '.join(known)}) or a mapping"
        )
    values = dict(spec)
    base = values.pop("base", None)
    if base is not None and base not in known:
        raise UnknownNameError(kind, str(base), known)
    fields = [one.name for one in dataclasses.fields(cls)]
    for key, value in values.items():
        if key not in fields:
            raise UnknownNameError("field", str(key), fields, kind)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if key not in ("doc", "source") and (not number or not 0 <= value < 1e9):
            raise InvalidValueError(
                f"{kind}: {key} is {value!r:.80}; it must be a number from 0 to 1e9"
            )
        if key.endswith("_share") and not 0 < value <= 1 and key != "table_area_share":
            raise InvalidValueError(
                f"{kind}: {key} is {value!r}; it must be a number above 0 and at most 1"
            )
    merged = {**(known[base] if base is not None else {}), **values}
    missing = [
        one.name
        for one in dataclasses.fields(cls)
        if one.default is dataclasses.MISSING and one.name not in merged
    ]
    if missing:
        raise InvalidValueError(f"{kind}: {', '.join(missing)} missing; base names an entry")
    return cls(**merged)
