"""Cycles of arrays: by hand, against a simulation of the waiting, and as laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archgym.envs.tpe.cost.cycles import Schedules, layer_cycles, workload_cycles
from archgym.envs.tpe.cost.synchronisation import busy_ratio, tile_cycles
from archgym.envs.tpe.microarchitecture.edge import ResultAdder, edge_blocks
from archgym.envs.tpe.microarchitecture.pe import PE, Array, Encoding
from archgym.envs.tpe.space.design_space import array_of, design_space
from archgym.envs.tpe.space.named import named_array
from archgym.envs.tpe.workload.digit_statistics import digit_table, mean_digits
from archgym.envs.tpe.workload.operands import OperandDistribution
from archgym.envs.tpe.workload.workload import load_workload
from archgym.errors import InvalidValueError

NORMAL = OperandDistribution.normal(8, 25.0)
SPARSE = PE(
    8,
    8,
    26,
    encoding="ent",
    encoder_place="edge",
    bit_weights="temporal_sparse",
    shift_place="simd",
    accumulator="carry_save",
    final_adder_place="edge",
)


def cycles(array: Array, m: int, k: int, n: int, count: int = 1) -> float:
    (layer,) = load_workload({"gemm": [m, k, n], "count": count}).layers
    return float(layer_cycles(Schedules.of([array]), layer)[0])


def simulated(
    encoding: Encoding, length: int, streams: int, lanes: int, runs: int = 400
) -> tuple[float, float]:
    """Mean cycles of a tile and its standard error, by drawing operands."""
    rng = np.random.default_rng(5)
    nonzero = digit_table(8, encoding) != 0
    drawn = rng.choice(256, size=(runs, streams, length), p=NORMAL.probability)
    work = nonzero[drawn]
    if lanes == 1:
        each = work.sum(axis=(2, 3))
    else:
        of_lane = [work[:, :, lane::lanes].sum(axis=2) for lane in range(lanes)]
        each = np.max(of_lane, axis=0).sum(axis=2)
    slowest = each.max(axis=1)
    return float(slowest.mean()), float(slowest.std() / np.sqrt(runs))


@pytest.mark.parametrize(
    ("length", "busy"),
    [(9, 0.80), (32, 0.885), (64, 0.91), (256, 0.95), (1024, 0.975), (4096, 0.988)],
)
def test_busy_share_of_32_columns(length: int, busy: float) -> None:
    # Known from a simulation of 32 columns of EN-T digits of N(0, 25) operands, to two digits.
    assert busy_ratio(NORMAL, "ent", length, 32) == pytest.approx(busy, abs=0.006)


@pytest.mark.parametrize("encoding", ["booth", "ent", "csd", "serial_sign_magnitude"])
@pytest.mark.parametrize(
    ("length", "streams", "lanes"), [(9, 32, 1), (64, 8, 1), (64, 16, 4), (100, 1, 8), (200, 4, 2)]
)
def test_waiting_is_as_simulated(encoding: Encoding, length: int, streams: int, lanes: int) -> None:
    mean, error = simulated(encoding, length, streams, lanes)
    model = tile_cycles(NORMAL, encoding, length, streams, lanes)
    assert abs(model - mean) < 4 * error + 0.003 * mean


def test_one_stream_takes_as_many_cycles_as_it_has_digits() -> None:
    assert tile_cycles(NORMAL, "ent", 100, 1) == pytest.approx(100 * mean_digits(NORMAL, "ent"))
    same = OperandDistribution.constant(8, 85)  # 1 1 1 1 in radix 4
    assert tile_cycles(same, "booth", 10, 64) == pytest.approx(40)
    assert tile_cycles(OperandDistribution.constant(8, 0), "booth", 10, 64) == 0.0
    assert busy_ratio(same, "booth", 10, 64) == pytest.approx(1)


def test_waiting_grows_with_streams_and_lanes() -> None:
    by_streams = [tile_cycles(NORMAL, "booth", 64, streams) for streams in (1, 2, 8, 64)]
    assert by_streams == sorted(by_streams)
    assert by_streams[-1] < 64 * 4
    busy = [busy_ratio(NORMAL, "booth", 64, 4, lanes) for lanes in (1, 2, 4, 8)]
    assert busy == sorted(busy, reverse=True)
    with pytest.raises(InvalidValueError, match="streams"):
        tile_cycles(NORMAL, "booth", 64, 0)


def test_a_systolic_array_by_hand() -> None:
    # 3 x 2 tiles of 4 x 4 results, each 20 steps; the last PE starts 4 + 4 - 2 cycles late; a
    # register in the PE and one behind the result adder.
    array = Array("systolic_os", 4, 4, PE(8, 8, 32), accumulation_length=16)
    assert cycles(array, 12, 20, 8) == 3 * 2 * (16 + 16) + 6 + 2  # results of 16 need 16 cycles
    quick = replace(array, pe=replace(array.pe, accumulator="carry_save", final_adder_place="edge"))
    assert cycles(quick, 12, 20, 8) == 3 * 2 * (16 + 4) + 6 + 2  # 4 adders: 16 results in 4


def test_a_stationary_array_by_hand() -> None:
    # K of 10 takes 3 tiles of 4 rows, N of 8 two of 4 columns: 50 rows of A pass each, and the
    # exchange of the weights takes 4 cycles.
    array = Array("systolic_ws", 4, 4, PE(8, 8, 24), accumulation_length=4)
    assert cycles(array, 50, 10, 8) == 3 * 2 * (50 + 4) + 6 + 2
    assert cycles(array, 50, 10, 8, count=5) == 5 * 3 * 2 * (50 + 4) + 6 + 2


def test_a_cube_by_hand() -> None:
    # 2 x 2 tiles of 8 x 8 results, K of 64 in steps of 8; a partial tile takes as many steps.
    pe = PE(8, 8, 32, accumulator="carry_save", final_adder_place="edge", reduction=8)
    cube = Array("cube", 8, 8, pe, accumulation_length=64)
    assert cycles(cube, 16, 64, 16) == 2 * 2 * 8 + 2
    assert cycles(cube, 9, 64, 16) == 2 * 2 * 8 + 2
    assert cycles(cube, 16, 57, 16) == 2 * 2 * 8 + 2


def test_serial_digits_take_their_cycles() -> None:
    column = Array("bit_serial_column", 16, 8, SPARSE, accumulation_length=256)
    sparse = cycles(column, 16, 256, 8)
    assert sparse == pytest.approx(tile_cycles(NORMAL, "ent", 256, 16) + 3)
    dense = replace(column, pe=replace(SPARSE, bit_weights="temporal_dense"))
    assert cycles(dense, 16, 256, 8) == 4 * 256 + 3
    lanes = replace(column, pe=replace(SPARSE, lanes=4))
    assert cycles(lanes, 16, 256, 8) == pytest.approx(
        tile_cycles(NORMAL, "ent", 256, 16, lanes=4) + 3
    )


def test_bit_weights_that_accumulate_apart_leave_one_by_one() -> None:
    # 16 x 8 PEs, an adder a column, enough for full tiles of 256 products: after one of only 16,
    # 4 x 128 results take 64 cycles, more than its digits.
    column = Array("bit_serial_column", 16, 8, SPARSE, accumulation_length=256)
    assert cycles(column, 16, 16, 8) == 64 + 3
    whole = replace(column, pe=replace(SPARSE, shift_place="pe", accumulator_width=32))
    assert cycles(whole, 16, 16, 8) == pytest.approx(tile_cycles(NORMAL, "ent", 16, 16) + 3)
    # Made for tiles of 16 products, it has the adders for them.
    short = replace(column, accumulation_length=16)
    assert cycles(short, 16, 16, 8) == pytest.approx(tile_cycles(NORMAL, "ent", 16, 16) + 3)


def test_many_arrays_at_once_and_one_by_one_agree() -> None:
    arrays = [array_of(d) for d in design_space().sample(120, np.random.default_rng(2))]
    workload = load_workload("digits_cnn")
    together = workload_cycles(Schedules.of(arrays), workload)
    assert together.shape == (120, 4)
    for i in (0, 17, 63, 119):
        np.testing.assert_array_equal(
            together[i], workload_cycles(Schedules.of([arrays[i]]), workload)[0]
        )


def test_no_array_works_off_more_than_its_lanes_can() -> None:
    arrays = [array_of(d) for d in design_space().sample(400, np.random.default_rng(3))]
    workload = load_workload({"gemm": [100, 300, 50]})
    taken = workload_cycles(Schedules.of(arrays), workload).sum(axis=1)
    a = workload.layers[0].a
    for array, found in zip(arrays, taken, strict=True):
        pe = array.pe
        digits = {
            "spatial": 1.0,
            "temporal_dense": float(pe.digits),
            "temporal_sparse": mean_digits(a.extended(pe.width_a), pe.encoding),
        }[pe.bit_weights]
        assert found * array.multipliers >= workload.macs * digits


def test_result_adders_are_those_of_the_edge() -> None:
    for name in ("systolic_os/OPT1", "systolic_ws", "cube/OPT2", "OPT4E"):
        array = named_array(name)
        adders = [n for block, n in edge_blocks(array) if isinstance(block, ResultAdder)]
        assert Schedules.of([array]).adders.tolist() == adders
