"""Bit heaps keep their sum, whatever tree reduces them, and have the counts worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archgym.envs.tpe.microarchitecture.compressors import ONE, Reduction
from archgym.envs.tpe.microarchitecture.heap import Heap, Segment
from archgym.envs.tpe.microarchitecture.pe import COMPRESSORS, Compressor


def random_heap(rng: np.random.Generator) -> Heap:
    width = int(rng.integers(3, 24))

    def word(name: str) -> Segment:
        low = int(rng.integers(0, width))
        return Segment(name, low, int(rng.integers(1, width - low + 1)))

    return Heap(
        width,
        tuple(word(f"p{i}") for i in range(rng.integers(1, 9))),
        tuple(Segment(f"n{i}", int(rng.integers(0, width)), 1) for i in range(rng.integers(0, 5))),
        tuple(Segment(f"f{i}", 0, width) for i in range(rng.integers(0, 3))),
        int(rng.integers(-(1 << width), 1 << width)),
    )


def value_in(heap: Heap, bits: dict[str, int]) -> int:
    words = (*heap.partial_products, *heap.negations, *heap.feedback)
    total = heap.constant
    for word in words:
        for i in range(min(word.length, heap.width - word.low)):
            if word.present >> i & 1:
                total += bits.setdefault(f"{word.name}[{i}]", 0) << (word.low + i)
    return total % (1 << heap.width)


def value_out(heap: Heap, reduction: Reduction, bits: dict[str, int]) -> int:
    known = {**bits, ONE: 1, "": 0}
    for cell in reduction.cells:
        total = sum(known[bit] for bit in cell.inputs) + cell.one
        known[cell.sum], known[cell.carry or "dropped"] = total & 1, total >> 1
    return sum(
        (known[s] + known[c]) << i
        for i, (s, c) in enumerate(zip(reduction.sum, reduction.carry, strict=True))
    ) % (1 << heap.width)


@pytest.mark.parametrize("tree", COMPRESSORS)
def test_reduction_keeps_the_sum(tree: Compressor) -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        heap = random_heap(rng)
        reduction = heap.reduce(tree)
        for _ in range(4):
            bits: dict[str, int] = {}
            value_in(heap, bits)
            bits = {name: int(rng.integers(2)) for name in bits}
            assert value_out(heap, reduction, bits) == value_in(heap, bits)


@pytest.mark.parametrize("tree", COMPRESSORS)
def test_every_bit_is_used_once(tree: Compressor) -> None:
    rng = np.random.default_rng(4)
    for _ in range(30):
        heap = random_heap(rng)
        reduction = heap.reduce(tree)
        made = {bit for cell in reduction.cells for bit in (cell.sum, cell.carry) if bit}
        used = [bit for cell in reduction.cells for bit in cell.inputs]
        used += [
            bit for row in (reduction.sum, reduction.carry) for bit in row if bit not in ("", ONE)
        ]
        assert len(used) == len(set(used))
        assert made <= set(used) | {cell.sum for cell in reduction.cells}
        assert len(used) == len(made) + sum(heap.heights) - bin(
            heap.constant % (1 << heap.width)
        ).count("1")


@pytest.mark.parametrize("tree", COMPRESSORS)
def test_no_compressor_reads_its_own_level(tree: Compressor) -> None:
    heap = Heap(16, tuple(Segment(f"p{i}", i, 9) for i in range(7)))
    made_at: dict[str, int] = {}
    for cell in heap.reduce(tree).cells:
        assert all(made_at.get(bit, -1) < cell.level for bit in cell.inputs)
        made_at |= dict.fromkeys((cell.sum, cell.carry), cell.level)


def test_array_multiplier_of_four_bits() -> None:
    # Columns of 1 2 3 4 3 2 1 AND bits and constant ones in columns 4 and 7. To heights of 3, then
    # of 2: half adders in columns 3 and 2; full adders in 4 (with the constant), then in 3, 4, 5.
    rows = tuple(Segment(f"r{i}", i, 4) for i in range(4))
    counted = Heap(8, rows, constant=(1 << 7) + (1 << 4)).count("dadda")
    assert (counted.full_adders, counted.full_adders_one, counted.half_adders) == (3, 1, 2)
    assert counted.levels == 2
    # What is left: one bit in column 0, two in columns 1 to 6, a constant one in column 7. Their
    # sum takes no gate, a half adder of three, five full adders of seven, and no gate.
    assert counted.chain_gates == 3 + 5 * 7


class Gates:
    """An and-inverter graph: literals are twice a node, plus one if inverted; 0 and 1 constants."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[int, int], int] = {}
        self._count = 0

    def variable(self) -> int:
        self._count += 1
        return 2 * self._count

    def both(self, a: int, b: int) -> int:
        a, b = min(a, b), max(a, b)
        if a == 0 or a ^ 1 == b:
            return 0
        if a == 1 or a == b:
            return b
        if (a, b) not in self._nodes:
            self._nodes[a, b] = self.variable()
        return self._nodes[a, b]

    def either(self, a: int, b: int) -> int:
        return self.both(a ^ 1, b ^ 1) ^ 1

    def differ(self, a: int, b: int) -> int:
        return self.both(self.both(a, b) ^ 1, self.both(a ^ 1, b ^ 1) ^ 1)

    def __len__(self) -> int:
        return len(self._nodes)


def gates_of_the_sum(reduction: Reduction) -> int:
    """Gates of a ripple-carry adder of what is left of a heap, built bit by bit."""
    graph, carry = Gates(), 0
    for row_a, row_b in zip(reduction.sum, reduction.carry, strict=True):
        a, b = ({"": 0, ONE: 1}.get(bit) for bit in (row_a, row_b))
        a = graph.variable() if a is None else a
        b = graph.variable() if b is None else b
        # A constant is taken last; beside a constant one the carry is an OR.
        a, b, last = sorted((a, b, carry), key=lambda bit: bit + 1 if bit < 2 else 0)
        half = graph.differ(a, b)
        graph.differ(half, last)
        if last == 1:
            carry = graph.either(a, b)
        else:
            carry = graph.either(graph.both(a, b), graph.both(half, last))
    return len(graph)


@pytest.mark.parametrize("tree", COMPRESSORS)
def test_a_carry_chain_has_no_gates_where_constants_leave_none(tree: Compressor) -> None:
    rng = np.random.default_rng(6)
    found = []
    for _ in range(60):
        heap = random_heap(rng)
        found.append(heap.count(tree).chain_gates)
        assert found[-1] == gates_of_the_sum(heap.reduce(tree))
    assert min(found) < 7 < max(found)


def test_dadda_levels_follow_his_sequence() -> None:
    # 2, 3, 4, 6, 9, 13, 19: heaps of that many rows take 0 to 6 levels.
    for levels, rows in enumerate((2, 3, 4, 6, 9, 13, 19)):
        heap = Heap(12, tuple(Segment(f"r{i}", 0, 12) for i in range(rows)))
        assert heap.count("dadda").levels == levels


def test_a_linear_tree_adds_row_after_row() -> None:
    heap = Heap(12, tuple(Segment(f"r{i}", 0, 12) for i in range(7)))
    counted = heap.count("linear")
    assert counted.levels == 5
    # A column has at most one compressor a row, and the lowest ones run out of carries.
    assert 5 * 12 - 10 <= counted.full_adders + counted.half_adders <= 5 * 12


def test_two_rows_need_nothing() -> None:
    heap = Heap(8, (Segment("x", 0, 8),), feedback=(Segment("sum", 0, 8),))
    for tree in COMPRESSORS:
        assert heap.reduce(tree).cells == ()
        assert heap.count(tree).depth == 0


@pytest.mark.parametrize("tree", COMPRESSORS)
def test_settled_feedback_has_a_register_wherever_a_bit_is_left(tree: Compressor) -> None:
    heap = Heap(
        20,
        tuple(Segment(f"p{i}", 2 * i, 9) for i in range(4)),
        tuple(Segment(f"n{i}", 2 * i, 1) for i in range(4)),
        (Segment("sum", 0, 20), Segment("carry", 0, 20)),
        -(2**8 + 2**10 + 2**12 + 2**14),
    )
    settled = heap.settled(tree)
    reduction = settled.reduce(tree)
    for word, row in zip(settled.feedback, (reduction.sum, reduction.carry), strict=True):
        left = sum(1 << i for i, bit in enumerate(row) if bit)
        assert left & ~(word.present % (1 << 20)) == 0


def test_depth_is_later_for_more_rows_and_earlier_for_half_adders() -> None:
    rows = tuple(Segment(f"r{i}", 0, 12) for i in range(9))
    depths = [Heap(12, rows[:n]).count("dadda").depth for n in range(2, 10)]
    assert depths == sorted(depths)
    assert Heap(4, rows[:3]).count("dadda").depth <= Heap(4, rows[:3]).count("dadda").levels


def test_depth_by_hand() -> None:
    # Three rows: the first two bits pass both exclusive ors. The fourth row waits for the sum of
    # the first adder, which passes both again: the order of the inputs is kept.
    rows = tuple(Segment(f"r{i}", 0, 8) for i in range(4))
    assert Heap(8, rows[:3]).count("linear").depth == 1.0
    assert Heap(8, rows).count("linear").depth == 2.0


@pytest.mark.parametrize("tree", COMPRESSORS)
def test_what_registers_feed_back_early_is_waited_for_less(tree: Compressor) -> None:
    fed_back = (Segment("sum", 0, 12), Segment("carry", 0, 12))
    heap = Heap(12, (Segment("x", 0, 8),), (Segment("n", 0, 1),), fed_back, -(2**7))
    depths = [heap.count(tree, lead).depth for lead in (0.0, 1.0, 2.0, 9.0)]
    assert depths == sorted(depths, reverse=True)
    assert depths[2] == depths[3]  # then only the new bits count
    if tree == "linear":  # whose first inputs are what is fed back
        assert depths[0] > depths[2]


def test_a_narrower_heap_drops_carries_out_of_its_top() -> None:
    heap = Heap(4, (Segment("x", 0, 4), Segment("y", 0, 4), Segment("z", 0, 4)))
    assert [cell for cell in heap.reduce("dadda").cells if cell.column == 3 and cell.carry] == []
    wider = replace(heap, width=6)
    assert any(cell.column == 3 and cell.carry for cell in wider.reduce("dadda").cells)
