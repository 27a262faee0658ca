"""The compiled counts of a bit heap equal those of its reduction with names."""

from __future__ import annotations

from collections import Counter

import numpy as np

from archgym.envs.tpe.microarchitecture import datapath
from archgym.envs.tpe.microarchitecture.counting_kernel import count_heap
from archgym.envs.tpe.microarchitecture.heap import TREES
from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.space.design_space import array_of, design_space


def compiled(pe: PE, index: int) -> dict[str, int]:
    rows = datapath.rows_of_a_pair(pe, index)
    heap = datapath.heaps(pe)[index]
    constant = sum(row.constant for row in rows) * pe.operand_pairs % (1 << heap.width)
    found = count_heap(
        np.array([(row.low, row.length, row.negation) for row in rows], dtype=np.int64),
        pe.operand_pairs,
        len(heap.feedback),
        np.array([constant >> column & 1 for column in range(heap.width)], dtype=np.uint8),
        TREES[pe.compressor],
        pe.accumulator == "carry_save",
        datapath.lead(pe),
    )
    names = ("full_adder", "full_adder_one", "half_adder", "half_adder_one", "levels")
    return dict(zip((*names, "sum_bits", "carry_bits"), found[:7].tolist(), strict=True))


def named(pe: PE, index: int) -> dict[str, int]:
    """The same from the cells that the Verilog is written from."""
    heap = datapath.heaps(pe)[index]
    reduction = heap.reduce(pe.compressor)
    cells = Counter(cell.kind for cell in reduction.cells)
    # A constant that is left over is a register where sum and carry are fed back.
    none = ("",) if pe.accumulator == "carry_save" else ("", "1'b1")
    sums = [bit for bit in reduction.sum if bit not in none]
    carries = [bit for bit in reduction.carry if bit not in none]
    kinds = ("full_adder", "full_adder_one", "half_adder", "half_adder_one")
    return {
        **{kind: cells[kind] for kind in kinds},
        "levels": reduction.levels,
        "sum_bits": len(sums),
        "carry_bits": len(carries),
    }


def test_compiled_counts_are_those_of_the_placed_cells() -> None:
    space = design_space((4, 4)).fix({"width_a": 4})
    checked = 0
    for design in space.sample(150, np.random.default_rng(11)):
        pe = array_of(design).pe
        if pe.operand_pairs > 8:
            continue
        for index in range(pe.accumulators):
            assert compiled(pe, index) == named(pe, index), pe
            checked += 1
    assert checked > 80


def test_an_array_multiplier_by_hand() -> None:
    # Two 4-bit operands, Baugh-Wooley: columns of 1, 2, 3, 4, 3, 2, 1 bits and two constant ones
    # (in columns 4 and 7). Dadda reduces to 3, then to 2: the reference has 3 full and 3 half
    # adders of two levels.
    pe = PE(4, 4, 16, encoding="radix2")
    found = compiled(pe, 0)
    assert found["levels"] == 2
    adders = found["full_adder"] + found["full_adder_one"]
    assert adders + found["half_adder"] + found["half_adder_one"] == 6
