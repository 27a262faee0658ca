"""Address mappings: the published bit lists, bijectivity, folding, what interleaves what."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archgym.envs.dram.device import Device, device_names, load_device
from archgym.envs.dram.mapping import (
    MAPPING_DOCS,
    AddressMapping,
    address_mapping,
    mapping_names,
)
from archgym.errors import InvalidValueError, UnknownNameError

DDR3 = load_device("DDR3-1600")
DDR4 = load_device("DDR4-2400")
TINY = dataclasses.replace(DDR4, name="tiny", rows=16, columns=16, banks=4, bank_groups=2)
CASES = [
    (load_device(device), name)
    for device in device_names()
    for name in mapping_names(load_device(device))
]


def bits(first: int, last: int) -> tuple[tuple[int, ...], ...]:
    return tuple((bit,) for bit in range(first, last + 1))


# As in DRAMSys 5.1's address mapping files for these two memories, lowest bit first.
PUBLISHED = [
    (DDR3, "rbc", bits(3, 12), (), bits(13, 15), bits(16, 29)),
    (DDR3, "brc", bits(3, 12), (), bits(27, 29), bits(13, 26)),
    (DDR3, "rbc_xor", bits(3, 12), (), ((13, 16), (14, 17), (15, 18)), bits(16, 29)),
    (DDR4, "rbc", bits(3, 12), bits(13, 14), bits(15, 16), bits(17, 31)),
    (DDR4, "brc", bits(3, 12), bits(28, 29), bits(30, 31), bits(13, 27)),
    (DDR4, "bgi", bits(3, 5) + bits(8, 14), bits(6, 7), bits(15, 16), bits(17, 31)),
    (DDR4, "rbc_xor", bits(3, 12), ((13, 17), (14, 18)), ((15, 19), (16, 20)), bits(17, 31)),
]


@pytest.mark.parametrize(
    ("device", "name", "column", "group", "bank", "row"),
    PUBLISHED,
    ids=lambda value: value if isinstance(value, str) else getattr(value, "name", ""),
)
def test_published_bit_lists(
    device: Device, name: str, column: object, group: object, bank: object, row: object
) -> None:
    mapping = address_mapping(name, device)
    assert mapping.byte == bits(0, 2)
    assert (mapping.column, mapping.bank_group) == (column, group)
    assert (mapping.bank, mapping.row) == (bank, row)


def place(device: Device, name: str, address: np.ndarray) -> np.ndarray:
    """Bank, row and column in one integer."""
    bank, row, column = address_mapping(name, device).decode(address)
    assert bank.min() >= 0
    assert bank.max() < device.banks
    assert row.max() < device.rows
    assert column.max() < device.columns
    joined: np.ndarray = (bank * device.rows + row) * device.columns + column
    return joined


@pytest.mark.parametrize("name", mapping_names(TINY))
def test_every_place_of_a_small_memory_has_one_address(name: str) -> None:
    address = np.arange(TINY.capacity_bytes, dtype=np.int64)
    count = np.bincount(place(TINY, name, address), minlength=TINY.banks * 256)
    assert (count == TINY.bus_bytes).all()


@pytest.mark.parametrize(("device", "name"), CASES, ids=str)
def test_bijective_over_the_capacity(device: Device, name: str) -> None:
    # Decoding is linear over GF(2): it is one-to-one if the images of the single address bits
    # above the bytes of a beat are linearly independent.
    low = device.bus_bytes.bit_length() - 1
    address = 1 << np.arange(low, device.address_bits, dtype=np.int64)
    basis: list[int] = []
    for image in place(device, name, address).tolist():
        for vector in basis:
            image = min(image, image ^ vector)
        assert image
        basis.append(image)
        basis.sort(reverse=True)


@given(case=st.sampled_from(CASES), one=st.integers(0, 2**36), other=st.integers(0, 2**36))
def test_linear_and_folding(case: tuple[Device, str], one: int, other: int) -> None:
    device, name = case
    a, b, both, folded = place(
        device, name, np.array([one, other, one ^ other, one % device.capacity_bytes])
    )
    assert a ^ b == both
    assert a == folded


@pytest.mark.parametrize(("device", "name"), CASES, ids=str)
def test_one_request_stays_in_one_row(device: Device, name: str) -> None:
    size = device.bytes_per_request
    start = np.arange(0, 2**30, 2**30 // 512 + size, dtype=np.int64) // size * size
    bank, row, _ = address_mapping(name, device).decode(start)
    last_bank, last_row, _ = address_mapping(name, device).decode(start + size - 1)
    assert (bank == last_bank).all()
    assert (row == last_row).all()


def test_what_consecutive_requests_share() -> None:
    address = np.arange(16, dtype=np.int64) * 64

    def banks(name: str) -> list[int]:
        found: list[int] = address_mapping(name, DDR4).decode(address)[0].tolist()
        return found

    assert banks("rbc") == [0] * 16
    # Groups 0 to 3, always bank 0 of them.
    assert banks("bgi") == [0, 4, 8, 12] * 4
    # All banks in turn, groups first.
    assert banks("rcb") == [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]


def test_xor_spreads_a_stride_of_rows_over_the_banks() -> None:
    address = np.arange(16, dtype=np.int64) << 17
    assert set(address_mapping("rbc", DDR4).decode(address)[0]) == {0}
    assert set(address_mapping("rbc_xor", DDR4).decode(address)[0]) == set(range(16))


def test_bank_group_mappings_need_bank_groups() -> None:
    assert "bgi" not in mapping_names(DDR3)
    assert "bgi" in mapping_names(DDR4)
    with pytest.raises(UnknownNameError, match="bgi"):
        address_mapping("bgi", DDR3)


def test_every_mapping_is_described() -> None:
    assert set(mapping_names(DDR4)) == set(MAPPING_DOCS)


def test_a_mapping_must_use_every_bit_once() -> None:
    with pytest.raises(InvalidValueError, match="exactly one"):
        AddressMapping("wrong", bits(0, 2), bits(3, 5), bits(5, 6), (), bits(7, 8))
