"""Systolic arrays: folds worked out by hand, and laws of the memory traffic."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.envs.accelerator.cost.hardware import SYSTOLIC_DATAFLOWS, Hardware
from archgym.envs.accelerator.cost.model import evaluate
from archgym.envs.accelerator.workload.layer import Layer
from tests.envs.accelerator.random_designs import random_hardware, random_layer, table

GEMM = Layer.from_gemm("g", M=20, N=10, K=30)
FAST = {"noc_bytes_per_cycle": 1e9, "dram_bytes_per_cycle": 1e9, "banks": 1 << 20}


@pytest.mark.parametrize(
    ("dataflow", "cycles", "inputs", "weights", "outputs"),
    [
        # 8 x 4 array. os: 3 x 3 folds of 30 + 8 + 4 - 2 cycles, the last one starts at 0.
        ("systolic_os", 9 * 40 - 1, 20 * 30 * 3, 10 * 30 * 3, 20 * 10),
        # ws: K over rows, N over columns: 4 x 3 folds of 20 + 2 x 8 + 4 - 2.
        ("systolic_ws", 12 * 38 - 1, 20 * 30 * 3, 10 * 30, 20 * 10 * 4),
        # is: K over rows, M over columns: 4 x 5 folds of 10 + 2 x 8 + 4 - 2.
        ("systolic_is", 20 * 28 - 1, 20 * 30, 10 * 30 * 5, 20 * 10 * 4),
    ],
)
def test_folds_and_accesses(
    dataflow: str, cycles: int, inputs: int, weights: int, outputs: int
) -> None:
    found = evaluate(table(GEMM), [Hardware(dataflow, 8, 4, **FAST)], mapper="off").layer(0, 0)  # type: ignore[arg-type]
    assert found["compute_cycles"] == found["cycles"] == cycles
    assert found["buffer_input_words"] == inputs
    assert found["buffer_weight_words"] == weights
    assert found["buffer_output_words"] == outputs


def test_a_convolution_folds_as_its_matrix_product() -> None:
    conv = Layer("c", "conv", K=24, C=8, R=3, S=3, P=10, Q=10)
    product = Layer.from_gemm("g", *conv.gemm)
    for dataflow in SYSTOLIC_DATAFLOWS:
        found = evaluate(table(conv, product), [Hardware(dataflow, 16, 8)], mapper="off")
        assert found["compute_cycles"][0, 0] == found["compute_cycles"][0, 1]
        assert found["buffer_input_words"][0, 0] == found["buffer_input_words"][0, 1]
        # Pixels that windows share are one word in memory.
        assert found["dram_input_words"][0, 0] < found["dram_input_words"][0, 1]


def test_what_fits_the_buffer_is_read_once() -> None:
    for dataflow in SYSTOLIC_DATAFLOWS:
        large = Hardware(dataflow, 8, 4, buffer_bytes=1 << 20)
        found = evaluate(table(GEMM), [large]).layer(0, 0)
        assert found["dram_input_words"] == GEMM.input_footprint
        assert found["dram_weight_words"] == GEMM.weight_footprint
        assert found["dram_sum_words"] == 0


def test_choosing_folds_is_never_slower() -> None:
    rng = np.random.default_rng(31)
    for dataflow in SYSTOLIC_DATAFLOWS:
        for _ in range(60):
            layer, hardware = random_layer(rng), random_hardware(rng, dataflow)
            fixed = evaluate(table(layer), [hardware], mapper="off")
            chosen = evaluate(table(layer), [hardware], mapper="latency")
            frugal = evaluate(table(layer), [hardware], mapper="energy")
            assert chosen["cycles"][0, 0] <= fixed["cycles"][0, 0]
            assert frugal["energy_pj"][0, 0] <= fixed["energy_pj"][0, 0] * (1 + 1e-12)


def test_smaller_folds_are_chosen_where_they_stay_in_the_buffer() -> None:
    # Outputs of a fold of 64 columns are 64 x 1000 sums of 3 bytes, of 16 columns a quarter: only
    # those fit the half of the buffer, beside the inputs that all folds share.
    layer = Layer.from_gemm("g", M=1000, N=64, K=64)
    hardware = Hardware(
        "systolic_ws", 32, 64, buffer_bytes=2 * 140_000, noc_bytes_per_cycle=1e9, banks=1 << 20
    )
    fixed = evaluate(table(layer), [hardware], mapper="off").layer(0, 0)
    chosen = evaluate(table(layer), [hardware], mapper="latency").layer(0, 0)
    assert fixed["dram_sum_words"] > 0
    assert chosen["dram_sum_words"] == 0
    assert chosen["compute_cycles"] > fixed["compute_cycles"]
    assert chosen["cycles"] < fixed["cycles"]


@pytest.mark.parametrize("dataflow", ["systolic_ws", "systolic_is"])
def test_a_stream_is_cut_into_pieces_whose_sums_stay_in_the_buffer(dataflow: str) -> None:
    # The sums of a column of folds are 100,000 x 16 x 3 bytes, of a few pixels they fit.
    m, n = (100_000, 16) if dataflow == "systolic_ws" else (16, 100_000)
    layer = Layer.from_gemm("g", M=m, N=n, K=256)
    hardware = Hardware(dataflow, 16, 16, buffer_bytes=65536, banks=1 << 20)
    fixed = evaluate(table(layer), [hardware], mapper="off").layer(0, 0)
    for mapper in ("latency", "energy", "edp"):
        chosen = evaluate(table(layer), [hardware], mapper=mapper).layer(0, 0)
        assert fixed["dram_sum_words"] == 15 * layer.output_footprint
        assert chosen["dram_sum_words"] == 0
        assert chosen["dram_input_words"] == layer.input_footprint
        assert chosen["dram_weight_words"] == layer.weight_footprint
        assert chosen["compute_cycles"] > fixed["compute_cycles"]  # each piece skews anew
        assert chosen["cycles"] < fixed["cycles"]
        assert chosen["energy_pj"] < fixed["energy_pj"] / 2
        # The tensor that is stationary enters the array again for every piece.
        stationary = "weight" if dataflow == "systolic_ws" else "input"
        assert chosen[f"buffer_{stationary}_words"] > fixed[f"buffer_{stationary}_words"]


def test_pieces_of_a_convolution_read_again_what_their_windows_share() -> None:
    layer = Layer("c", "conv", K=16, C=64, R=3, S=3, P=128, Q=128)
    hardware = Hardware("systolic_ws", 16, 16, buffer_bytes=32768, banks=1 << 20)
    chosen = evaluate(table(layer), [hardware], mapper="energy").layer(0, 0)
    assert chosen["dram_sum_words"] == 0
    assert layer.input_footprint < chosen["dram_input_words"] < 3 * layer.input_footprint


@pytest.mark.parametrize("dataflow", SYSTOLIC_DATAFLOWS)
def test_a_single_processing_element_is_no_faster_than_its_multiplier(dataflow: str) -> None:
    for mapper in ("off", "latency"):
        found = evaluate(table(GEMM), [Hardware(dataflow, 1, 1, **FAST)], mapper=mapper)  # type: ignore[arg-type]
        assert found["cycles"][0, 0] >= GEMM.macs
        assert found.metrics()["utilisation_rate"][0] <= 1


def test_the_slowest_link_sets_the_time_of_separate_links() -> None:
    split = (4096, 4096, 4096)
    hardware = Hardware(
        "systolic_ws",
        8,
        4,
        buffer_bytes=sum(split),
        buffer_split_bytes=split,
        dram_links="separate",
        dram_bytes_per_cycle=0.5,
        noc_bytes_per_cycle=1e9,
        banks=1 << 20,
        accumulator_bits=8,
    )
    found = evaluate(table(GEMM), [hardware], mapper="off").layer(0, 0)
    assert found["dram_cycles"] == GEMM.input_footprint / 0.5
    assert found["cycles"] == max(found["compute_cycles"], found["dram_cycles"])


def test_scalesims_prefetcher_reads_a_streamed_operand_once_for_each_turn() -> None:
    """Inputs are gone through once for each fold of columns; here there are three."""
    split = (512, 65536, 65536)
    hardware = Hardware(
        "systolic_ws",
        8,
        4,
        buffer_bytes=sum(split),
        buffer_split_bytes=split,
        dram_links="separate",
        dram_bytes_per_cycle=8.0,
        prefetch="storage_order",
        accumulator_bits=8,
    )
    small = evaluate(table(GEMM), [hardware], mapper="off").layer(0, 0)
    # Half of the buffer at a time.
    assert small["dram_input_words"] % 256 == 0
    assert small["dram_input_words"] >= 3 * 600
    assert small["cycles"] > small["compute_cycles"]
    # All weights fit: they come once, in whole lines of the link.
    # Folds that the array does not fill are fetched as if they were full: 3 folds of 4 columns.
    assert small["dram_weight_words"] == 3 * 4 * 30
    large = evaluate(
        table(GEMM),
        [hardware.replace(buffer_bytes=196608, buffer_split_bytes=(65536, 65536, 65536))],
        mapper="off",
    ).layer(0, 0)
    assert large["cycles"] == large["compute_cycles"]


@pytest.mark.parametrize("dataflow", SYSTOLIC_DATAFLOWS)
def test_scalesims_array_waits_for_nothing_where_all_operands_fit(dataflow: str) -> None:
    rng = np.random.default_rng(32)
    for _ in range(20):
        layer = random_layer(rng, 12)
        size = 2 * max(layer.gemm.M * layer.gemm.K, layer.gemm.N * layer.gemm.K) + 256
        outputs = 4 * layer.gemm.M * layer.gemm.N * layer.gemm.K
        hardware = Hardware(
            dataflow,
            int(rng.integers(1, 17)),
            int(rng.integers(1, 17)),
            buffer_bytes=2 * size + outputs,
            buffer_split_bytes=(size, size, outputs),
            dram_links="separate",
            dram_bytes_per_cycle=float(rng.integers(1, 9)),
            noc_bytes_per_cycle=1e9,
            accumulator_bits=8,
            prefetch="storage_order",
        )
        found = evaluate(table(layer), [hardware], mapper="off").layer(0, 0)
        assert found["cycles"] == found["compute_cycles"]


def test_scalesims_array_waits_with_weights_as_with_inputs() -> None:
    """Output stationary, on a square array: the two operands change places, the time stays."""
    for sizes in ((24, 24, 60), (40, 8, 33), (9, 50, 17)):
        m, n, k = sizes
        cycles = []
        for layer, split in (
            (Layer.from_gemm("a", M=m, N=8, K=k), (256, 4096, 512)),
            (Layer.from_gemm("b", M=8, N=m, K=k), (4096, 256, 512)),
        ):
            hardware = Hardware(
                "systolic_os",
                8,
                8,
                buffer_bytes=sum(split),
                buffer_split_bytes=split,
                dram_links="separate",
                dram_bytes_per_cycle=4.0,
                noc_bytes_per_cycle=1e9,
                accumulator_bits=8,
                prefetch="storage_order",
            )
            cycles.append(evaluate(table(layer), [hardware], mapper="off")["cycles"][0, 0])
        assert cycles[0] == cycles[1], n
