"""Address mappings: which address bits choose the bank, the row and the column."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.device.memory import Memory
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.reading.files import read_json

__all__ = [
    "INTERLEAVES",
    "MAPPING_DOCS",
    "AddressMapping",
    "Place",
    "address_mapping",
    "mapping_from_bits",
    "mapping_names",
    "read_mapping",
]

Bits = tuple[tuple[int, ...], ...]
_FIELDS = ("byte", "column", "bank", "bank_group", "row", "rank", "channel")
DRAMSYS_FIELDS = {
    "BYTE_BIT": "byte",
    "COLUMN_BIT": "column",
    "BANK_BIT": "bank",
    "BANKGROUP_BIT": "bank_group",
    "ROW_BIT": "row",
    "RANK_BIT": "rank",
    "CHANNEL_BIT": "channel",
}

MAPPING_DOCS = {
    "rbc": "row | bank | column: a row's bytes lie together, the next row's in the next bank",
    "brc": "bank | row | column: each bank holds one contiguous share of the memory",
    "rbc_xor": "rbc with every bank bit XORed with a row bit, which spreads strides over the banks",
    "brc_xor": "brc with every bank bit XORed with a row bit",
    "rcb": "row | column | bank: consecutive requests go to consecutive banks (groups first)",
    "rcb_xor": "rcb with every bank bit XORed with a row bit",
    "bgi": "rbc with the bank-group bits just above the burst: consecutive requests change group",
    "bgi_xor": "bgi with every bank and bank-group bit XORed with a row bit",
}


@dataclass(frozen=True)
class Place:
    """Places in a memory, an array each, shape (n,).

    Attributes:
        channel: channel.
        rank: rank within the channel.
        bank: bank within the rank (over all groups: ``group * banks_per_group + bank``).
        row: row.
        column: column.
    """

    channel: NDArray[np.int64]
    rank: NDArray[np.int64]
    bank: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]


@dataclass(frozen=True)
class AddressMapping:
    """Bit lists of one mapping, least significant first.

    Each entry is a tuple of address bits; the decoded bit is their XOR, and the first one is the
    bit's own place in the address.

    Attributes:
        name: what the mapping is called in designs.
        byte: bits within one data beat.
        column: column bits.
        bank: bank bits within a bank group.
        bank_group: bank-group bits, empty for a device without groups.
        row: row bits.
        rank: rank bits, empty for one rank.
        channel: channel bits, empty for one channel.

    Raises:
        InvalidValueError: if it is not one to one: an address bit missing or in two places, or
            bits whose XOR is already determined by another place.

    Example:
        >>> from archgym.envs.dram.device.memory import load_memory
        >>> address_mapping("rbc", load_memory("DDR3-1600")).bank
        ((13,), (14,), (15,))
    """

    name: str
    byte: Bits
    column: Bits
    bank: Bits
    bank_group: Bits
    row: Bits
    rank: Bits = ()
    channel: Bits = ()

    def __post_init__(self) -> None:
        entries = [bits for name in _FIELDS for bits in getattr(self, name)]
        own = sorted(bits[0] for bits in entries if bits)
        if own != list(range(len(entries))):
            wrong = next(i for i in range(len(entries)) if i >= len(own) or own[i] != i)
            raise InvalidValueError(
                f"mapping {self.name!r} is not a bijection: every address bit from 0 to "
                f"{len(entries) - 1} must stand first in exactly one entry, and bit "
                f"{min(wrong, own[wrong] if wrong < len(own) else wrong)} does not"
            )
        for bits in entries:
            if not all(0 <= bit < len(entries) for bit in bits):
                raise InvalidValueError(
                    f"mapping {self.name!r}: bits {list(bits)} go beyond the {len(entries)} bits "
                    "of an address"
                )
        if not _independent(entries):
            raise InvalidValueError(
                f"mapping {self.name!r} is not a bijection: its XORs map two addresses to the "
                "same place"
            )

    def check_fits(self, memory: Memory) -> None:
        """Refuse a memory of another geometry.

        Raises:
            InvalidValueError: naming the field, its bits and the bits that the memory has.
        """
        for name, width in _widths(memory).items():
            if len(getattr(self, name)) != width:
                raise InvalidValueError(
                    f"mapping {self.name!r}: {name} has {len(getattr(self, name))} bits; "
                    f"{memory.name} needs {width}"
                )

    def bits(self) -> dict[str, list[list[int]]]:
        """The bits of each field, as :func:`mapping_from_bits` takes them."""
        return {name: [list(bits) for bits in getattr(self, name)] for name in _FIELDS}

    def decode(self, address: NDArray[np.int64]) -> Place:
        """Split byte addresses into places in the memory.

        Args:
            address: byte addresses, shape (n,). Bits that no entry names are ignored.
        """
        address = np.asarray(address, np.int64)
        bank = _gather(address, self.bank)
        bank |= _gather(address, self.bank_group) << len(self.bank)
        return Place(
            _gather(address, self.channel),
            _gather(address, self.rank),
            bank,
            _gather(address, self.row),
            _gather(address, self.column),
        )


def _independent(entries: Sequence[Sequence[int]]) -> bool:
    """Whether bit combinations are linearly independent over GF(2), so that none is redundant."""
    basis: list[int] = []
    for bits in entries:
        vector = 0
        for bit in bits:
            vector ^= 1 << bit
        for known in basis:
            vector = min(vector, vector ^ known)
        if vector == 0:
            return False
        basis.append(vector)
        basis.sort(reverse=True)
    return True


def _gather(address: NDArray[np.int64], field: Bits) -> NDArray[np.int64]:
    """Bits of one field, put together; a run of plain consecutive bits is one shift."""
    out = np.zeros_like(address)
    place = 0
    while place < len(field):
        bits = field[place]
        run = 1
        if len(bits) == 1:
            while place + run < len(field) and field[place + run] == (bits[0] + run,):
                run += 1
            out |= ((address >> bits[0]) & ((1 << run) - 1)) << place
        else:
            value = np.zeros_like(address)
            for bit in bits:
                value ^= address >> bit
            out |= (value & 1) << place
        place += run
    return out


def _widths(memory: Memory) -> dict[str, int]:
    """Bits of each field."""
    device = memory.device
    sizes = {
        "byte": device.bus_bytes,
        "column": device.columns,
        "bank": device.banks_per_group,
        "bank_group": device.bank_groups,
        "row": device.rows,
        "rank": memory.ranks,
        "channel": memory.channels,
    }
    return {name: size.bit_length() - 1 for name, size in sizes.items()}


_LAYOUTS = {
    "rbc": ("low column", "high column", "bank_group", "bank", "rank", "row"),
    "brc": ("low column", "high column", "row", "bank_group", "bank", "rank"),
    "rcb": ("low column", "bank_group", "bank", "rank", "high column", "row"),
    "bgi": ("low column", "bank_group", "high column", "bank", "rank", "row"),
}
"""Fields from the lowest address bits up; ``low column`` are the bits within one burst."""
_NEED_GROUPS = ("bgi", "bgi_xor")
INTERLEAVES = ("request", "row", "none")
"""What consecutive channels take turns in: requests, rows of the device, or nothing."""


def mapping_names(memory: Memory) -> tuple[str, ...]:
    """Names of the mappings that a memory can have; bank-group ones need bank groups."""
    groups = memory.device.bank_groups > 1
    return tuple(name for name in MAPPING_DOCS if groups or name not in _NEED_GROUPS)


def address_mapping(
    name: str, memory: Memory, channel_interleave: str = "request"
) -> AddressMapping:
    """The mapping of that name for a memory's geometry.

    Args:
        name: one of :func:`mapping_names`; :data:`MAPPING_DOCS` says what each does.
        memory: gives the number of bits of each field.
        channel_interleave: one of :data:`INTERLEAVES`; where the channel bits lie.

    Raises:
        UnknownNameError: if the memory has no such mapping, or there is no such interleaving.
    """
    if name not in mapping_names(memory):
        raise UnknownNameError("address mapping", name, mapping_names(memory), memory.name)
    if channel_interleave not in INTERLEAVES:
        raise UnknownNameError("channel_interleave", channel_interleave, INTERLEAVES)
    base = name.removesuffix("_xor")
    layout = list(_LAYOUTS[base])
    after = {"request": 1, "row": layout.index("high column") + 1, "none": len(layout)}
    layout.insert(after[channel_interleave], "channel")
    widths = _widths(memory)
    burst = memory.device.burst_length.bit_length() - 1
    pieces = {**widths, "low column": burst, "high column": widths["column"] - burst}
    fields: dict[str, list[tuple[int, ...]]] = {key: [] for key in _FIELDS}
    place = 0
    for piece in ("byte", *layout):
        field = piece.split()[-1]
        fields[field] += [(bit,) for bit in range(place, place + pieces[piece])]
        place += pieces[piece]
    if name != base:
        _hash_banks(fields)
    return AddressMapping(name, **{key: tuple(bits) for key, bits in fields.items()})


def _hash_banks(fields: dict[str, list[tuple[int, ...]]]) -> None:
    """XOR the i-th lowest bank or bank-group bit with the i-th lowest row bit."""
    places = sorted(bits[0] for key in ("bank", "bank_group") for bits in fields[key])
    row = [bits[0] for bits in fields["row"]]
    partner = dict(zip(places, row, strict=False))
    for key in ("bank", "bank_group"):
        fields[key] = [(bit, partner[bit]) if bit in partner else (bit,) for bit, *_ in fields[key]]


def mapping_from_bits(name: str, bits: Mapping[str, Any]) -> AddressMapping:
    """A user-defined mapping, for example from a JSON file.

    Args:
        name: what to call it.
        bits: for each of ``byte``, ``column``, ``bank``, ``bank_group``, ``row``, ``rank`` and
            ``channel``, its address bits from the least significant up, each a number or a list
            of numbers to XOR, its own place first. The names of DRAMSys's address mapping files
            (``BYTE_BIT``, ``BANKGROUP_BIT`` ...) do as well.

    Raises:
        UnknownNameError: for an unknown field.
        InvalidValueError: if an entry is no bit, or the mapping is not a bijection.
    """
    fields: dict[str, tuple[tuple[int, ...], ...]] = dict.fromkeys(_FIELDS, ())
    for key, entries in bits.items():
        field = DRAMSYS_FIELDS.get(key, key)
        if field not in _FIELDS:
            raise UnknownNameError("address field", key, (*_FIELDS, *DRAMSYS_FIELDS))
        if not isinstance(entries, list | tuple):
            raise InvalidValueError(f"{key} is {entries!r}, it must be a list of bits")
        fields[field] = tuple(
            tuple(entry) if isinstance(entry, list | tuple) else (entry,) for entry in entries
        )
        for entry in fields[field]:
            if not entry or not all(type(bit) is int and bit >= 0 for bit in entry):
                raise InvalidValueError(
                    f"{key} holds {list(entry)!r}; an entry is an address bit, or a list of "
                    "address bits to XOR"
                )
    return AddressMapping(name, **fields)


def read_mapping(
    name: str, bits: Mapping[str, Any] | str | os.PathLike[str], memory: Memory
) -> AddressMapping:
    """A user-defined mapping for a memory: its bits, or the path of a JSON file with them.

    The file may be an address mapping of DRAMSys, with its bits under ``CONGEN`` or
    ``addressmapping``.

    Raises:
        UnknownNameError: for an unknown field.
        InvalidValueError: if the file cannot be read, an entry is no bit, or the mapping is not a
            bijection or does not fit the memory.
    """
    where = ""
    fields: Any = bits
    if not isinstance(bits, Mapping):
        where = f"address mapping file {os.fspath(bits)}"
        try:
            fields = read_json(Path(bits))
        except (OSError, ValueError) as error:
            raise InvalidValueError(f"{where}: cannot be read as JSON ({error})") from error
        if not isinstance(fields, Mapping):
            raise InvalidValueError(f"{where}: must hold a JSON object")
        for wrapper in ("addressmapping", "CONGEN"):
            fields = fields.get(wrapper, fields)
    if name in MAPPING_DOCS:
        raise InvalidValueError(f"address mapping {name!r}: there is one of that name already")
    try:
        mapping = mapping_from_bits(name, fields)
        mapping.check_fits(memory)
    except (InvalidValueError, UnknownNameError) as error:
        if where:
            error.args = (f"{where}: {error}",)
        raise
    return mapping
