"""Edge blocks around the PEs of an array, and their number."""

from __future__ import annotations

from dataclasses import replace

from archgym.envs.tpe.microarchitecture.edge import (
    Barrier,
    OperandEncoder,
    ResultAdder,
    edge_blocks,
    result_width,
)
from archgym.envs.tpe.microarchitecture.pe import Array
from archgym.envs.tpe.space.named import BASELINES, named_array


def counted(array: Array) -> dict[type, int]:
    return {type(block): count for block, count in edge_blocks(array)}


def block(array: Array, kind: type) -> object:
    return next(found for found, _ in edge_blocks(array) if isinstance(found, kind))


def test_a_mac_array_only_adds_up_tiles() -> None:
    # 256 results every 256 cycles: one adder is enough, of the result and the sum so far.
    assert counted(BASELINES["systolic_os"]) == {ResultAdder: 1}
    adder = block(BASELINES["systolic_os"], ResultAdder)
    assert isinstance(adder, ResultAdder)
    assert (adder.operands, adder.result_width, adder.shift_bits) == (2, 32, 0)


def test_result_adders_keep_pace() -> None:
    opt1 = named_array("systolic_os/OPT1")
    assert counted(replace(opt1, accumulation_length=16))[ResultAdder] == 256 // 16
    at_edge = replace(opt1, pe=replace(opt1.pe, final_adder_place="edge"))
    assert counted(at_edge)[ResultAdder] == 16
    # A weight-stationary column finishes a result every cycle.
    assert counted(named_array("systolic_ws/OPT1"))[ResultAdder] == 16


def test_opt2_brings_sum_and_carry_of_four_bit_weights() -> None:
    adder = block(named_array("tree/OPT2"), ResultAdder)
    assert isinstance(adder, ResultAdder)
    assert (adder.accumulators, adder.words, adder.operands) == (4, 2, 9)
    assert adder.shift_bits == 2


def test_encoders_are_shared_along_a_row() -> None:
    opt4e = named_array("OPT4E")
    assert counted(opt4e)[OperandEncoder] == 16 * 4  # rows times lanes
    assert counted(replace(opt4e, columns_per_encoder=8))[OperandEncoder] == 16 * 4 * 4
    encoder = block(opt4e, OperandEncoder)
    assert isinstance(encoder, OperandEncoder)
    assert (encoder.serial, encoder.sparse, encoder.encoding) == (True, True, "ent")
    stored = replace(opt4e, pe=replace(opt4e.pe, encoder_place="memory"))
    # Encoded when they are written, as fast as results leave: all digits at once.
    assert counted(stored)[OperandEncoder] == counted(stored)[ResultAdder]
    assert block(stored, OperandEncoder) == OperandEncoder(8, "ent")
    assert OperandEncoder not in counted(named_array("OPT3"))  # in the PE


def test_only_streams_of_unequal_length_wait() -> None:
    opt4c = named_array("OPT4C")
    barrier = block(opt4c, Barrier)
    # 256 operands of four digits are at most 1024 digits: 11 bits.
    assert barrier == Barrier(streams=16, counter_bits=11)
    assert Barrier not in counted(replace(opt4c, rows=1))
    dense = replace(opt4c, pe=replace(opt4c.pe, bit_weights="temporal_dense"))
    assert Barrier not in counted(dense)


def test_results_are_wider_than_products_by_sixteen_bits() -> None:
    assert result_width(BASELINES["cube"]) == 32
    wide = BASELINES["cube"]
    assert result_width(replace(wide, pe=replace(wide.pe, accumulator_width=48))) == 48


def test_chains_are_short_around_fast_pes() -> None:
    def segment(array: Array) -> int:
        adder = block(array, ResultAdder)
        assert isinstance(adder, ResultAdder)
        return adder.segment

    assert segment(BASELINES["systolic_os"]) == segment(named_array("OPT4E")) == 8
    assert segment(named_array("OPT3")) == segment(named_array("OPT4C")) == 4
    opt4e = named_array("OPT4E")
    assert segment(replace(opt4e, pe=replace(opt4e.pe, pipeline_depth=2))) == 4
