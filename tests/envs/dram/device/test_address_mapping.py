"""Address mappings: the published bit lists, bijectivity, folding, what interleaves what."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archgym.envs.dram.controller.prepared_trace import check_capacity, prepare
from archgym.envs.dram.device.address_mapping import (
    INTERLEAVES,
    MAPPING_DOCS,
    AddressMapping,
    Place,
    address_mapping,
    mapping_from_bits,
    mapping_names,
    read_mapping,
)
from archgym.envs.dram.device.data_sheets import device_names
from archgym.envs.dram.device.memory import Memory, load_memory
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError, UnknownNameError

DDR3 = load_memory("DDR3-1600")
DDR4 = load_memory("DDR4-2400")
TINY = Memory(
    dataclasses.replace(DDR4.device, name="tiny", rows=16, columns=16, banks=4, bank_groups=2),
    channels=2,
    ranks=2,
)
MEMORIES = [
    *(load_memory(name) for name in device_names()),
    load_memory({"device": "DDR4-2400", "channels": 4, "ranks": 2}),
    load_memory({"device": "HBM2-2000", "channels": 8}),
]
CASES = [(memory, name) for memory in MEMORIES for name in mapping_names(memory)]


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
    ("memory", "name", "column", "group", "bank", "row"),
    PUBLISHED,
    ids=lambda value: value if isinstance(value, str) else getattr(value, "name", ""),
)
def test_published_bit_lists(
    memory: Memory, name: str, column: object, group: object, bank: object, row: object
) -> None:
    mapping = address_mapping(name, memory)
    assert mapping.byte == bits(0, 2)
    assert (mapping.column, mapping.bank_group) == (column, group)
    assert (mapping.bank, mapping.row) == (bank, row)


def joined(memory: Memory, at: Place) -> np.ndarray:
    """A place in one integer."""
    device = memory.device
    sizes = (memory.channels, memory.ranks, device.banks, device.rows, device.columns)
    whole = np.zeros_like(at.channel)
    for part, size in zip((at.channel, at.rank, at.bank, at.row, at.column), sizes, strict=True):
        assert part.min() >= 0
        assert part.max() < size
        whole = whole * size + part
    return whole


def place(
    memory: Memory, name: str, address: np.ndarray, interleave: str = "request"
) -> np.ndarray:
    return joined(memory, address_mapping(name, memory, interleave).decode(address))


@pytest.mark.parametrize("interleave", INTERLEAVES)
@pytest.mark.parametrize("name", mapping_names(TINY))
def test_every_place_of_a_small_memory_has_one_address(name: str, interleave: str) -> None:
    address = np.arange(TINY.capacity_bytes, dtype=np.int64)
    places = TINY.capacity_bytes // TINY.device.bus_bytes
    count = np.bincount(place(TINY, name, address, interleave), minlength=places)
    assert (count == TINY.device.bus_bytes).all()


@pytest.mark.parametrize(("memory", "name"), CASES, ids=lambda value: getattr(value, "name", value))
def test_bijective_over_the_capacity(memory: Memory, name: str) -> None:
    # Decoding is linear over GF(2): it is one-to-one if the images of the single address bits
    # above the bytes of a beat are linearly independent.
    low = memory.device.bus_bytes.bit_length() - 1
    address = 1 << np.arange(low, memory.address_bits, dtype=np.int64)
    basis: list[int] = []
    for image in place(memory, name, address).tolist():
        for vector in basis:
            image = min(image, image ^ vector)
        assert image
        basis.append(image)
        basis.sort(reverse=True)


@given(case=st.sampled_from(CASES), one=st.integers(0, 2**40), other=st.integers(0, 2**40))
def test_linear_and_folding(case: tuple[Memory, str], one: int, other: int) -> None:
    memory, name = case
    a, b, both, folded = place(
        memory, name, np.array([one, other, one ^ other, one % memory.capacity_bytes])
    )
    assert a ^ b == both
    assert a == folded


@pytest.mark.parametrize(("memory", "name"), CASES, ids=lambda value: getattr(value, "name", value))
def test_one_request_stays_in_one_row(memory: Memory, name: str) -> None:
    size = memory.device.bytes_per_request
    start = np.arange(0, 2**30, 2**30 // 512 + size, dtype=np.int64) // size * size
    mapping = address_mapping(name, memory)
    first, last = mapping.decode(start), mapping.decode(start + size - 1)
    for field in ("channel", "rank", "bank", "row"):
        assert (getattr(first, field) == getattr(last, field)).all()


def test_what_consecutive_requests_share() -> None:
    address = np.arange(16, dtype=np.int64) * 64

    def banks(name: str) -> list[int]:
        found: list[int] = address_mapping(name, DDR4).decode(address).bank.tolist()
        return found

    assert banks("rbc") == [0] * 16
    # Groups 0 to 3, always bank 0 of them.
    assert banks("bgi") == [0, 4, 8, 12] * 4
    # All banks in turn, groups first.
    assert banks("rcb") == [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]


def test_xor_spreads_a_stride_of_rows_over_the_banks() -> None:
    address = np.arange(16, dtype=np.int64) << 17
    assert set(address_mapping("rbc", DDR4).decode(address).bank) == {0}
    assert set(address_mapping("rbc_xor", DDR4).decode(address).bank) == set(range(16))


def test_bank_group_mappings_need_bank_groups() -> None:
    assert "bgi" not in mapping_names(DDR3)
    assert "bgi" in mapping_names(DDR4)
    with pytest.raises(UnknownNameError, match="bgi"):
        address_mapping("bgi", DDR3)


def test_every_mapping_is_described() -> None:
    assert set(mapping_names(DDR4)) == set(MAPPING_DOCS)


def test_channels_and_ranks() -> None:
    memory = load_memory({"device": "DDR3-1600", "channels": 2, "ranks": 4})
    rbc = address_mapping("rbc", memory)
    # Byte 0 to 2, column 3 to 5, channel 6, column 7 to 13, bank 14 to 16, rank 17 and 18.
    assert (rbc.channel, rbc.bank, rbc.rank) == (bits(6, 6), bits(14, 16), bits(17, 18))
    by_row = address_mapping("rbc", memory, "row")
    assert (by_row.channel, by_row.column, by_row.bank) == (bits(13, 13), bits(3, 12), bits(14, 16))
    apart = address_mapping("rbc", memory, "none")
    assert apart.channel == bits(32, 32)
    at = rbc.decode(np.array([1 << 6 | 5 << 14 | 3 << 17 | 9 << 19]))
    assert [int(x[0]) for x in (at.channel, at.rank, at.bank, at.row)] == [1, 3, 5, 9]


def test_unknown_interleaving() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'request'"):
        address_mapping("rbc", DDR3, "requests")


OWN = {
    "byte": [0, 1, 2],
    "column": [3, 4, 5, 9, 10, 11, 12, 13, 14, 15],
    "bank": [[6, 16], [7, 17], 8],
    "row": list(range(16, 30)),
}


class TestOnesOwn:
    def test_bits_and_xor(self) -> None:
        mapping = mapping_from_bits("mine", OWN)
        at = mapping.decode(np.array([1 << 6, 1 << 16, 1 << 16 | 1 << 6, 1 << 8]))
        assert at.bank.tolist() == [1, 1, 0, 4]
        assert at.row.tolist() == [0, 1, 1, 0]
        assert mapping_from_bits("mine", mapping.bits()) == mapping

    def test_names_of_dramsys(self) -> None:
        theirs = {
            "BYTE_BIT": OWN["byte"],
            "COLUMN_BIT": OWN["column"],
            "BANK_BIT": OWN["bank"],
            "ROW_BIT": OWN["row"],
        }
        assert mapping_from_bits("mine", theirs) == mapping_from_bits("mine", OWN)

    def test_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.json"
        path.write_text(json.dumps({"CONGEN": OWN}))
        assert read_mapping("mine", path, DDR3) == mapping_from_bits("mine", OWN)

    @pytest.mark.parametrize(
        ("change", "what"),
        [
            ({"row": list(range(16, 29))}, "not a bijection.*bit|go beyond|needs 14"),
            ({"row": [15, *range(17, 30)]}, "not a bijection.*bit 1[56] does not"),
            ({"bank": [[6, 16], [7, 17], [6, 16]]}, "not a bijection"),
            ({"bank": [[6, 7], [7, 6], 8]}, "XORs map two addresses to the same place"),
            ({"bank": [[6, 99], 7, 8]}, "beyond the 30 bits"),
            ({"bank": [6, 7, -8]}, r"bank holds \[-8\]"),
            ({"bank": [6, 7, "8"]}, r"bank holds \['8'\]"),
            ({"bank": [6, 7, True]}, r"bank holds \[True\]"),
            ({"bank": [6, 7, []]}, r"bank holds \[\]"),
            ({"bank": 6}, "bank is 6, it must be a list"),
        ],
    )
    def test_not_a_mapping(self, tmp_path: Path, change: dict[str, object], what: str) -> None:
        path = tmp_path / "mine.json"
        path.write_text(json.dumps({**OWN, **change}))
        with pytest.raises(InvalidValueError, match=rf"mine\.json: .*({what})"):
            read_mapping("mine", path, DDR3)

    def test_an_unknown_field(self) -> None:
        with pytest.raises(UnknownNameError, match="Did you mean 'bank'"):
            mapping_from_bits("mine", {**OWN, "bnak": [1]})

    def test_another_geometry(self) -> None:
        with pytest.raises(InvalidValueError, match="bank has 3 bits; DDR4-2400 needs 2"):
            mapping_from_bits("mine", OWN).check_fits(DDR4)

    def test_a_file_that_is_not_json(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.json"
        path.write_text("[")
        with pytest.raises(InvalidValueError, match=r"mine\.json.*JSON"):
            read_mapping("mine", path, DDR3)

    def test_a_name_that_is_taken(self) -> None:
        with pytest.raises(InvalidValueError, match="'rbc'"):
            read_mapping("rbc", OWN, DDR3)


def test_a_mapping_must_use_every_bit_once() -> None:
    with pytest.raises(InvalidValueError, match=r"not a bijection.*bit 5 does not"):
        AddressMapping("wrong", bits(0, 2), bits(3, 5), bits(5, 6), (), bits(7, 8))


def test_an_address_beyond_the_memory() -> None:
    trace = Trace("far", np.array([0, 0]), np.array([0, 2**30]), np.array([0, 0]))
    check_capacity(trace, DDR4)
    with pytest.raises(InvalidValueError, match=r"request 1 is at address 0x40000000.*1 GiB"):
        check_capacity(trace, DDR3)


def test_requests_go_to_their_channels() -> None:
    memory = load_memory({"device": "DDR3-1600", "channels": 2})
    trace = Trace("three", np.array([0, 1, 2]), np.array([64, 0, 192]), np.array([0, 1, 0]))
    channels = prepare(trace, memory).channels
    assert [channel.address.tolist() for channel in channels] == [[0], [64, 192]]
    assert [channel.is_write.tolist() for channel in channels] == [[1], [0, 0]]
