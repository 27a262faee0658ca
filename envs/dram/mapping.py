"""Address mappings: which address bits choose the bank, the row and the column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.device import Device
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["MAPPING_DOCS", "AddressMapping", "address_mapping", "mapping_names"]

Bits = tuple[tuple[int, ...], ...]

MAPPING_DOCS = {
    "rbc": "row | bank | column: a row's bytes lie together, the next row's in the next bank",
    "brc": "bank | row | column: each bank holds one contiguous share of the memory",
    "rbc_xor": "rbc with every bank bit XORed with a row bit, which spreads strides over the banks",
    "rcb": "row | column | bank: consecutive requests go to consecutive banks (groups first)",
    "rcb_xor": "rcb with every bank bit XORed with a row bit",
    "bgi": "rbc with the bank-group bits just above the burst: consecutive requests change group",
    "bgi_xor": "bgi with every bank and bank-group bit XORed with a row bit",
}


@dataclass(frozen=True)
class AddressMapping:
    """Bit lists of one mapping, least significant first.

    Each entry is a tuple of address bits; the decoded bit is their XOR, and the first one is the
    bit's own place in the address. Address bits that no entry names are ignored, so an address
    beyond the capacity folds into it.

    Attributes:
        name: what the mapping is called in designs.
        byte: bits within one data beat.
        column: column bits.
        bank: bank bits within a bank group.
        bank_group: bank-group bits, empty for a device without groups.
        row: row bits.

    Example:
        >>> from archgym.envs.dram.device import load_device
        >>> address_mapping("rbc", load_device("DDR3-1600")).bank
        ((13,), (14,), (15,))
    """

    name: str
    byte: Bits
    column: Bits
    bank: Bits
    bank_group: Bits
    row: Bits

    def __post_init__(self) -> None:
        own = [bits[0] for field in self._fields() for bits in field]
        if sorted(own) != list(range(len(own))):
            raise InvalidValueError(
                f"mapping {self.name!r}: every address bit from 0 to {len(own) - 1} must stand "
                "first in exactly one entry"
            )

    def _fields(self) -> tuple[Bits, ...]:
        return (self.byte, self.column, self.bank, self.bank_group, self.row)

    def decode(
        self, address: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Split byte addresses into places in the memory.

        Args:
            address: byte addresses, shape (n,).

        Returns:
            Bank (over all groups: ``group * banks_per_group + bank``), row and column of each
            address, shape (n,) each.
        """
        address = np.asarray(address, np.int64)
        bank = _gather(address, self.bank)
        bank |= _gather(address, self.bank_group) << len(self.bank)
        return bank, _gather(address, self.row), _gather(address, self.column)


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


@dataclass(frozen=True)
class _Widths:
    byte: int
    burst: int
    column: int
    bank: int
    group: int
    row: int


def _widths(device: Device) -> _Widths:
    return _Widths(
        byte=device.bus_bytes.bit_length() - 1,
        burst=device.burst_length.bit_length() - 1,
        column=device.columns.bit_length() - 1,
        bank=device.banks_per_group.bit_length() - 1,
        group=device.bank_groups.bit_length() - 1,
        row=device.rows.bit_length() - 1,
    )


def _stack(name: str, layout: Sequence[tuple[str, int]]) -> AddressMapping:
    """Give out address bits from 0 upwards to (field, width) pieces, lowest piece first."""
    fields: dict[str, list[tuple[int, ...]]] = {
        key: [] for key in ("byte", "column", "bank", "bank_group", "row")
    }
    place = 0
    for field, width in layout:
        fields[field] += [(bit,) for bit in range(place, place + width)]
        place += width
    return AddressMapping(name, **{key: tuple(bits) for key, bits in fields.items()})


def _with_xor(mapping: AddressMapping, name: str) -> AddressMapping:
    """XOR the i-th lowest bank or bank-group bit with the i-th lowest row bit."""
    places = sorted(bits[0] for bits in mapping.bank + mapping.bank_group)
    partner = {place: mapping.row[i][0] for i, place in enumerate(places) if i < len(mapping.row)}

    def mixed(field: Bits) -> Bits:
        return tuple((bit, partner[bit]) if bit in partner else (bit,) for bit, *_ in field)

    return AddressMapping(
        name,
        mapping.byte,
        mapping.column,
        mixed(mapping.bank),
        mixed(mapping.bank_group),
        mapping.row,
    )


def _rbc(w: _Widths) -> AddressMapping:
    return _stack(
        "rbc",
        [
            ("byte", w.byte),
            ("column", w.column),
            ("bank_group", w.group),
            ("bank", w.bank),
            ("row", w.row),
        ],
    )


def _brc(w: _Widths) -> AddressMapping:
    return _stack(
        "brc",
        [
            ("byte", w.byte),
            ("column", w.column),
            ("row", w.row),
            ("bank_group", w.group),
            ("bank", w.bank),
        ],
    )


def _rcb(w: _Widths) -> AddressMapping:
    return _stack(
        "rcb",
        [
            ("byte", w.byte),
            ("column", w.burst),
            ("bank_group", w.group),
            ("bank", w.bank),
            ("column", w.column - w.burst),
            ("row", w.row),
        ],
    )


def _bgi(w: _Widths) -> AddressMapping:
    return _stack(
        "bgi",
        [
            ("byte", w.byte),
            ("column", w.burst),
            ("bank_group", w.group),
            ("column", w.column - w.burst),
            ("bank", w.bank),
            ("row", w.row),
        ],
    )


_BUILDERS: dict[str, Callable[[_Widths], AddressMapping]] = {
    "rbc": _rbc,
    "brc": _brc,
    "rbc_xor": lambda w: _with_xor(_rbc(w), "rbc_xor"),
    "rcb": _rcb,
    "rcb_xor": lambda w: _with_xor(_rcb(w), "rcb_xor"),
    "bgi": _bgi,
    "bgi_xor": lambda w: _with_xor(_bgi(w), "bgi_xor"),
}
_NEED_GROUPS = ("bgi", "bgi_xor")


def mapping_names(device: Device) -> tuple[str, ...]:
    """Names of the mappings that a device can have; bank-group ones need bank groups."""
    return tuple(name for name in _BUILDERS if device.bank_groups > 1 or name not in _NEED_GROUPS)


def address_mapping(name: str, device: Device) -> AddressMapping:
    """The mapping of that name for a device's geometry.

    Args:
        name: one of :func:`mapping_names`; :data:`MAPPING_DOCS` says what each does.
        device: gives the number of bits of each field.

    Raises:
        UnknownNameError: if the device has no such mapping.
    """
    if name not in mapping_names(device):
        raise UnknownNameError("address mapping", name, mapping_names(device), device.name)
    return _BUILDERS[name](_widths(device))
