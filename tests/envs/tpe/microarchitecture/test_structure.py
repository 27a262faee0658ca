"""Counts of cells: by hand, of another generator, and of the netlist that yosys elaborates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archgym.envs.tpe.eda.verilog import Verilog, edge_verilog, pe_verilog
from archgym.envs.tpe.microarchitecture.edge import Barrier, EdgeBlock, OperandEncoder, ResultAdder
from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.microarchitecture.structure import counts, edge_counts
from archgym.simulators.yosys import run_yosys
from tests.envs.tpe.legal_pes import legal_pes
from tests.envs.tpe.microarchitecture.elaborated import elaborated_cells

needs_yosys = pytest.mark.usefixtures("yosys")

KEPT: dict[str, Any] = {"accumulator": "carry_save", "final_adder_place": "simd"}
DIGIT: dict[str, Any] = {
    **KEPT,
    "encoder_place": "edge",
    "bit_weights": "temporal_sparse",
    "shift_place": "simd",
}
EDGE: dict[str, Any] = {**KEPT, "encoder_place": "edge"}
NARROW: dict[str, Any] = {**EDGE, "shift_place": "simd"}

#: Structural columns of an independent generator (research notes of this project, 2025): levels,
#: full adders, half adders and full adders with a constant, selector or AND bits, registers.
INDEPENDENT = [
    (PE(4, 4, 16, encoding="radix2"), (2, 3, 3, 16, 24)),
    (PE(8, 8, 32, encoding="radix2"), (4, 35, 7, 64, 48)),
    (PE(16, 16, 40, encoding="radix2"), (6, 195, 15, 256, 72)),
    (PE(8, 8, 32, encoding="radix2", accumulator="merged"), (4, 48, 25, 64, 48)),
    (PE(4, 4, 16), (1, 0, 4, 10, 24)),
    (PE(8, 8, 32), (3, 12, 12, 36, 48)),
    (PE(16, 16, 48), (4, 86, 26, 136, 80)),
    (PE(8, 8, 32, accumulator="merged"), (3, 25, 31, 36, 48)),
    (PE(4, 8, 24, **KEPT), (3, 18, 38, 18, 60)),
    (PE(8, 8, 32, **EDGE), (4, 39, 49, 36, 84)),
    (PE(16, 16, 40, **EDGE), (5, 144, 48, 136, 120)),
    (PE(8, 8, 26, **DIGIT), (2, 8, 44, 9, 63)),
    (PE(8, 8, 26, lanes=4, **DIGIT), (5, 38, 44, 36, 96)),
    (PE(8, 8, 26, lanes=8, **DIGIT), (6, 78, 43, 72, 140)),
    (PE(8, 8, 14, reduction=4, **NARROW), (5, 152, 80, 144, 192)),
    (PE(8, 8, 18, reduction=16, **NARROW), (8, 632, 120, 576, 464)),
]

EDGES: list[EdgeBlock] = [
    OperandEncoder(8, "booth"),
    OperandEncoder(8, "ent"),
    OperandEncoder(8, "csd", serial=True),
    OperandEncoder(8, "booth", serial=True, sparse=True),
    OperandEncoder(8, "serial_twos", serial=True, sparse=True),
    OperandEncoder(4, "serial_sign_magnitude", serial=True),
    ResultAdder(1, 1, 32, 0, 32, "auto"),
    ResultAdder(1, 2, 32, 0, 32, "kogge_stone"),
    ResultAdder(1, 2, 26, 2, 32, "brent_kung", 4),
    ResultAdder(4, 2, 14, 2, 32, "ripple"),
    ResultAdder(8, 2, 20, 1, 32, "sklansky"),
    Barrier(16, 11),
]


@pytest.mark.parametrize(("pe", "expected"), INDEPENDENT)
def test_counts_of_an_independent_generator(pe: PE, expected: tuple[int, ...]) -> None:
    c = counts(pe)
    small = c["half_adder"] + c["half_adder_one"] + c["full_adder_one"]
    found = (c.levels, c["full_adder"], small, c["select_bit"] + c["and_bit"], c.register_bits)
    assert found == expected


def test_product_registers_of_a_cut_tree_leave_out_what_is_constant() -> None:
    # Two stages: the two rows of an 8-bit product minus two bits that are none or constant.
    whole, cut = counts(PE(4, 4, 16)), counts(PE(4, 4, 16, pipeline_depth=2))
    assert cut.register_bits - whole.register_bits == 2 * 8 - 3


def test_a_place_outside_costs_the_pe_nothing() -> None:
    inside = PE(8, 8, 26, **DIGIT)
    assert counts(inside) is counts(inside.hardware())


def test_what_constants_leave_out_by_hand() -> None:
    mac = counts(PE(8, 8, 32))
    # Four partial products: each is spared an AND and an OR of six gates at its low end and an AND
    # at its high end. The lowest of the four encoders reads a zero: four of seven gates are left.
    assert mac.left("select_bit") == 36 - 4 * 0.5
    assert mac.left("booth_encoder") == pytest.approx(4 - 3 / 7)
    # Digits of another operand at each place have no window that begins with a zero.
    finder = PE(8, 8, 26, **DIGIT | {"encoder_place": "pe"})
    assert counts(finder).left("stored_encoder") == counts(finder)["stored_encoder"] == 4
    # Among four digits, the first is preceded by none: its place in the chain has no gate, and
    # each of the three lines that pick a digit is spared one OR.
    assert counts(finder).left("pending_digit") == 4 - 1
    assert counts(finder).left("pick_bit") == 3 * 4 - 3 * 0.5
    # AND arrays have neither; their product has one bit in column 0, and a constant one on top.
    array = counts(PE(4, 4, 16, encoding="radix2"))
    assert array.left("and_bit") == 16
    assert array["add_bit"] - array.left("add_bit") == pytest.approx((8 - 38 / 7) + 4 / 7)


def test_edges_have_no_gates_for_carries_between_segments() -> None:
    # 32 bits in segments of 8, with six bits to take and give carries; no carry into the lowest.
    adder = edge_counts(ResultAdder(1, 1, 32, 0, 32, "auto"))
    assert adder["add_bit"] == 32 + 6
    assert adder.left("add_bit") == pytest.approx(32 - 4 / 7)
    # An increment is a chain of half adders.
    assert edge_counts(OperandEncoder(8, "ent")).left("add_bit") == pytest.approx(8 * 3 / 7)


def test_edge_registers_by_hand() -> None:
    # Operand in, four digits of three lines out.
    assert edge_counts(OperandEncoder(8, "booth")).register_bits == 8 + 4 * 3
    # Word and partial sum; segments of 8: 8 + carry + 2 x 24, 16 + carry + 2 x 16, 24 + carry +
    # 2 x 8, 32.
    adder = edge_counts(ResultAdder(1, 1, 32, 0, 32, "auto"))
    assert adder.register_bits == 2 * 32 + 57 + 49 + 41 + 32


def elaborated(blocks: list[Verilog], folder: Path) -> list[dict[str, int]]:
    """Cells of each block as yosys elaborates it, hierarchy kept."""
    script = []
    for i, block in enumerate(blocks):
        (folder / f"b{i}.v").write_text(block.text)
        script += [
            f"read_verilog /design/b{i}.v",
            f"hierarchy -check -top {block.top}",
            "proc",
            f"write_json /design/n{i}.json",
            "design -reset",
        ]
    run_yosys(script, folder, time_limit_s=600)
    return [
        dict(elaborated_cells((folder / f"n{i}.json").read_text(), block.top))
        for i, block in enumerate(blocks)
    ]


def assert_elaborated(pes: list[PE], folder: Path) -> None:
    for at in range(0, len(pes), 25):
        part = pes[at : at + 25]
        found = elaborated([pe_verilog(pe) for pe in part], folder)
        for pe, cells in zip(part, found, strict=True):
            assert cells == dict(counts(pe).cells), pe


@needs_yosys
def test_counts_are_those_of_the_elaborated_netlist(tmp_path: Path) -> None:
    assert_elaborated(legal_pes(8, seed=5, widths=(4, 8)), tmp_path)


@needs_yosys
@pytest.mark.nightly
def test_counts_of_two_hundred_designs_are_those_of_the_elaborated_netlist(tmp_path: Path) -> None:
    assert_elaborated(legal_pes(225, seed=42), tmp_path)


@needs_yosys
def test_edge_counts_are_those_of_the_elaborated_netlist(tmp_path: Path) -> None:
    found = elaborated([edge_verilog(block) for block in EDGES], tmp_path)
    for block, cells in zip(EDGES, found, strict=True):
        assert cells == dict(edge_counts(block).cells), block
