"""Chips: totals, shapes of arrays, areas, and what each mode takes from a sub-accelerator."""

from __future__ import annotations

from typing import Any

import pytest

from archgym.envs.nas.hardware.chip import (
    TEMPLATES,
    Chip,
    SubAccelerator,
    area_um2,
    array_shape,
    clock_mhz,
    hardware,
)
from archgym.errors import InvalidValueError, UnknownNameError

PUBLISHED = [
    # dla, shi, area in 1e9 um2: the solutions of NASAIC (Jiang et al., DAC 2020)
    ((2112, 48), (1984, 16), 4.71),
    ((1088, 24), (2368, 40), 3.82),
    ((576, 56), (1792, 8), 2.03),
    ((2368, 56), (1728, 8), 4.83),
    ((2112, 24), (1536, 40), 3.86),
    ((2112, 40), (1184, 24), 3.34),
]


@pytest.mark.parametrize(("dla", "shi", "area"), PUBLISHED)
def test_area_of_published_solutions(
    dla: tuple[int, int], shi: tuple[int, int], area: float
) -> None:
    chip = Chip.of([(TEMPLATES["dla"], *dla), (TEMPLATES["shi"], *shi)])
    assert area_um2(chip, "paper") / 1e9 == pytest.approx(area, rel=0.08)


def test_paper_area_of_one_array_by_hand() -> None:
    # 32 PEs of 4470.9014 + 4505.1889; one cell of 4161.536; a bus of 8 elements,
    # 8 * 101.7938 * (28.895 + 14.662 * 32); an arbiter, 395.473 * (1.2886 * 1024 + 5.5814 * 32
    # - 23.711).
    by_hand = 287234.89 + 4161.536 + 405621.58 + 583089.99
    chip = Chip.of([("eyeriss_rs", 32, 8)])
    assert area_um2(chip, "paper") == pytest.approx(by_hand, rel=1e-4)


def test_paper_arbiter_favours_splitting_an_array() -> None:
    whole = area_um2(Chip.of([("nvdla_ws", 4096, 64)]), "paper")
    halves = area_um2(Chip.of([("nvdla_ws", 2048, 32)] * 2), "paper")
    assert 0.5 < halves / whole < 0.55


@pytest.mark.parametrize("mode", ["own", "paper"])
def test_area_is_a_sum_and_grows_with_pes_and_bandwidth(mode: str) -> None:
    parts = [("nvdla_ws", 512, 16), ("shidiannao_os", 256, 8)]
    areas = [area_um2(Chip.of([part]), mode) for part in parts]
    assert area_um2(Chip.of(parts), mode) == pytest.approx(sum(areas))
    for dataflow in TEMPLATES.values():
        small = area_um2(Chip.of([(dataflow, 512, 16)]), mode)
        assert area_um2(Chip.of([(dataflow, 544, 16)]), mode) > small
        assert area_um2(Chip.of([(dataflow, 512, 24)]), mode) > small


def test_own_area_grows_with_the_buffer_and_leaves_the_memory_interface_out() -> None:
    small, large = (area_um2(Chip.of([("eyeriss_rs", 512, 64, kib)])) for kib in (64, 512))
    assert large > small
    assert large < 1e6  # the interface to 64 GB/s of memory alone would be 37 mm2


@pytest.mark.parametrize("mode", ["own", "paper"])
@pytest.mark.parametrize("dataflow", TEMPLATES.values())
def test_every_pe_of_every_published_number_is_used(dataflow: str, mode: str) -> None:
    for pes in range(32, 4097, 32):
        rows, columns = array_shape(dataflow, pes, mode)
        assert rows * columns == pes
        if (dataflow, mode) == ("nvdla_ws", "paper"):
            assert columns == (64 if pes % 64 == 0 else 32)
        else:
            assert not any(pes % side == 0 for side in range(rows + 1, columns))


def test_shapes_of_published_arrays() -> None:
    assert array_shape("shidiannao_os", 64) == (8, 8)
    assert array_shape("eyeriss_rs", 168) == (12, 14)
    assert array_shape("nvdla_ws", 64) == (8, 8)
    assert array_shape("nvdla_ws", 2048) == (32, 64)


def test_bandwidth_is_in_bytes_of_the_clock() -> None:
    sub = SubAccelerator("nvdla_ws", 64, 24)
    assert hardware(sub, "paper").noc_bytes_per_cycle == 24
    for technology in ("cmos16", "cmos28"):
        design = hardware(sub, technology=technology)
        clock = clock_mhz("own", technology)
        assert design.noc_bytes_per_cycle * clock / 1000 == pytest.approx(24)
        assert design.dram_bytes_per_cycle == design.noc_bytes_per_cycle
    assert clock_mhz("own", "cmos28") == 700
    assert clock_mhz("paper", "cmos28") == 1000


def test_absent_sub_accelerators_are_left_out() -> None:
    chip = Chip.of([("nvdla_ws", 0, 8), ("eyeriss_rs", 96, 16, 64)])
    assert chip.sub_accelerators == (SubAccelerator("eyeriss_rs", 96, 16, 64),)
    assert (chip.pes, chip.bandwidth_gbps) == (96, 16)


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ([], "0 sub-accelerators"),
        ([("nvdla_ws", 0, 8)], "0 sub-accelerators"),
        ([("nvdla_ws", 32, 8)] * 5, "5 sub-accelerators"),
        ([("nvdla_ws", 2080, 8)] * 2, "4160 PEs"),
        ([("nvdla_ws", 32, 40)] * 2, "80 GB/s"),
        ([("nvdla_ws", -32, 8)], "pes is -32"),
        ([("nvdla_ws", 32.0, 8)], "pes is 32.0"),
        ([("nvdla_ws", 4097, 8)], "pes is 4097"),
        ([("nvdla_ws", 32, 0)], "bandwidth_gbps is 0"),
        ([("nvdla_ws", 32, True)], "bandwidth_gbps is True"),
        ([("nvdla_ws", 32, 8, 0)], "buffer_kib is 0"),
    ],
)
def test_chips_outside_the_totals_are_refused(parts: list[Any], match: str) -> None:
    with pytest.raises(InvalidValueError, match=match):
        Chip.of(parts)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="'nvdla_ws'"):
        SubAccelerator("nvdla", 32, 8)
    with pytest.raises(UnknownNameError, match="'paper'"):
        hardware(SubAccelerator("nvdla_ws", 32, 8), "papers")
    with pytest.raises(UnknownNameError, match="'cmos16'"):
        area_um2(Chip.of([("nvdla_ws", 32, 8)]), "own", "cmos_16")
