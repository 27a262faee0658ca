"""ZigZag's mappings and its count of stalls: answers by hand, and figures of ZigZag itself."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.model import evaluate
from archgym.envs.accelerator.environment import AcceleratorEnvironment
from archgym.envs.accelerator.validation.reference import read_reference
from archgym.envs.accelerator.workload.layer import SIZES, Layer
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.validation.validate import validate
from tests.envs.accelerator.random_designs import table

RECORDED = Path(__file__).parents[1] / "validation" / "recorded"
SMALL = Hardware(
    "nvdla_ws",
    4,
    4,
    input_rf_bytes=0,
    weight_rf_bytes=16,
    output_rf_bytes=2,
    buffer_bytes=65536,
    noc_bytes_per_cycle=32.0,
    dram_bytes_per_cycle=1.0,
    accumulator_bits=16,
    weights_bypass_buffer=True,
    tiles="loop_orders",
)
WHOLE = (
    *("rows", "columns", "input_rf_bytes", "weight_rf_bytes", "output_rf_bytes"),
    "buffer_bytes",
)
LAYER = Layer("l", "conv", K=4, C=4, P=1, Q=64)


def cycles(hardware: Hardware, layer: Layer = LAYER) -> float:
    return float(evaluate(table(layer), [hardware])["cycles"][0, 0])


def test_what_comes_once_is_spread_over_the_computation() -> None:
    """The array takes 64 cycles, a pixel each, and the memory's only port moves a byte a cycle.

    All 256 inputs come first, the 16 weights beside them. Of the 256 outputs 64 leave while the
    array computes; 192 leave after it, and before them the last one leaves its register.
    """
    assert cycles(SMALL) == 64 + 256 + 1 + 192
    # With 4 bytes a cycle inputs take 64 cycles, and outputs leave while the array computes but
    # for the last word of the buffer.
    assert cycles(SMALL.replace(dram_bytes_per_cycle=4.0)) == 64 + 64 + 1 + 1


def test_the_last_results_pass_the_rows_and_columns_in_use() -> None:
    assert cycles(SMALL.replace(drains=True)) == cycles(SMALL) + 3 + 3
    narrow = Layer("l", "conv", K=2, C=4, P=1, Q=64)
    assert cycles(SMALL.replace(drains=True), narrow) == cycles(SMALL, narrow) + 1 + 3


def test_a_port_of_the_buffer_that_is_too_narrow_makes_the_array_wait() -> None:
    """Each pixel has 16 inputs of 8 bits; the narrowest port, 64 bits, takes 2 cycles for them."""
    layer = Layer("l", "conv", K=4, C=16, P=1, Q=64)
    fast = SMALL.replace(columns=16, dram_bytes_per_cycle=1e6)
    wide = cycles(fast, layer)
    assert cycles(fast.replace(noc_bytes_per_cycle=1.0), layer) >= wide + 63
    assert cycles(fast.replace(noc_bytes_per_cycle=8.0), layer) == (
        cycles(fast.replace(noc_bytes_per_cycle=1.0), layer)
    )


def test_a_loop_that_does_not_divide_takes_equal_turns() -> None:
    """5 channels on 4 rows take 2 turns of 2.5; the words that move are those of the layer."""
    layer = Layer("l", "conv", K=5, C=4, P=1, Q=64)
    costs = evaluate(table(layer), [SMALL])
    assert costs["compute_cycles"][0, 0] == 2 * 64
    assert costs["dram_weight_words"][0, 0] == 5 * 4
    assert costs["dram_output_words"][0, 0] == 5 * 64


@pytest.mark.parametrize(
    "other", [{"lanes": 2}, {"double_buffered": False}, {"dram_links": "duplex"}]
)
def test_designs_that_it_does_not_cover_keep_their_own_mappings(other: dict[str, object]) -> None:
    design = SMALL.replace(**other)
    assert cycles(design) == cycles(design.replace(tiles="any"))


def test_bad_fields_are_named() -> None:
    with pytest.raises(InvalidValueError, match="loop_factors is 9; it must be at most 8"):
        SMALL.replace(loop_factors=9)
    with pytest.raises(InvalidValueError, match="loop_factors is 0"):
        SMALL.replace(loop_factors=0)
    with pytest.raises(InvalidValueError, match="drains is 'yes'"):
        SMALL.replace(drains="yes")
    with pytest.raises(UnknownNameError, match="loop_orders"):
        SMALL.replace(tiles="loop_order")


def test_rows_of_zigzag_are_equal() -> None:
    """106 random layers and designs of its ``tpu_like``; it counts parts of a cycle, we whole."""
    for reference in read_reference(RECORDED / "zigzag.csv"):
        for one in validate(reference, AcceleratorEnvironment).agreements:
            assert one.max_error < 1e-4


def test_designs_of_other_kinds_are_equal() -> None:
    """Groups, batches, four dataflows, registers for inputs, divided buffers, through its adapter.

    ``zigzag_designs.csv`` has what ZigZag 3.9.1 gave.
    """
    with (RECORDED / "zigzag_designs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 20
    for row in rows:
        sizes = {n: int(row[n]) for n in SIZES}
        layer = Layer("l", row["kind"], **sizes)  # type: ignore[arg-type]
        fields: dict[str, Any] = {
            **{n: int(row[n]) for n in WHOLE},
            **{n: float(row[n]) for n in ("noc_bytes_per_cycle", "dram_bytes_per_cycle")},
        }
        split = tuple(int(size) for size in row["buffer_split_bytes"].split()) or None
        hardware = Hardware(
            row["dataflow"],
            **fields,
            buffer_split_bytes=split,  # type: ignore[arg-type]
            weights_bypass_buffer=row["weights_bypass_buffer"] == "1",
            drains=row["drains"] == "1",
            tiles="loop_orders",
        )
        assert cycles(hardware, layer) == float(row["cycles"]), row
