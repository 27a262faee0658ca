"""The parameters of TPE-v0's design space, and when each one applies."""

from __future__ import annotations

from functools import cache

from archgym.envs.tpe.microarchitecture.pe import (
    ACCUMULATORS,
    ARRAY_KINDS,
    COMPRESSORS,
    ENCODINGS,
    FINAL_ADDERS,
    PLACES,
)
from archgym.space import Categorical, Ordinal, Parameter, param

__all__ = ["ACCUMULATOR_WIDTHS", "CLOCKS_MHZ", "OPERAND_WIDTHS", "parameters"]

ACCUMULATOR_WIDTHS = (*range(10, 32, 2), *range(32, 49, 4))
CLOCKS_MHZ = (
    *range(50, 500, 50),
    *range(500, 1000, 100),
    *range(1000, 2000, 200),
    2000,
    2200,
    2500,
)
OPERAND_WIDTHS = (4, 8, 16)

_POWERS = [1, 2, 4, 8, 16, 32, 64]
_COLUMN = param("array") == "bit_serial_column"
_CARRY_SAVE = param("accumulator") == "carry_save"


@cache
def parameters(min_widths: tuple[int, int] = (1, 1)) -> tuple[Parameter, ...]:
    """All parameters, in the order of the space; operands have at least these bits."""
    return (*_array(), *_operands(*min_widths), *_datapath(), *_results(), *_clock())


def _array() -> list[Parameter]:
    array = param("array")
    return [
        Categorical("array", ARRAY_KINDS, doc="how the PEs are connected", group="array"),
        Ordinal(
            "rows",
            _POWERS,
            doc="PEs that differ in the row of A; weight-stationary: steps of a column's sum",
            unit="PEs",
            when=~array.isin(["cube", "tree"]),
            group="array",
        ),
        Ordinal(
            "columns",
            [*_POWERS[2:], 128],
            doc="PEs that differ in the column of B (of a cube: all three dimensions)",
            unit="PEs",
            group="array",
        ),
        Ordinal(
            "depth",
            _POWERS,
            doc="operand pairs that one PE reduces in a cycle",
            unit="pairs",
            when=~array.isin(["cube", "bit_serial_column"]),
            group="array",
        ),
        Ordinal(
            "lanes",
            [1, 2, 4, 8],
            doc="digit streams that share a PE's compressor",
            unit="lanes",
            when=_COLUMN,
            group="array",
        ),
    ]


def _operands(min_a: int, min_b: int) -> list[Parameter]:
    a, b = ([w for w in OPERAND_WIDTHS if w >= minimum] for minimum in (min_a, min_b))
    return [
        Ordinal("width_a", a, doc="the encoded operand", unit="bits", group="operands"),
        Ordinal("width_b", b, doc="the other operand", unit="bits", group="operands"),
        Categorical("encoding", ENCODINGS, doc="how A becomes signed digits", group="operands"),
        Categorical(
            "encoder_place",
            ["pe", "edge", "memory"],
            doc="where A is encoded; 'memory': it is stored encoded",
            when=param("encoding") != "radix2",
            group="operands",
        ),
        Ordinal(
            "columns_per_encoder",
            [4, 8, 16, 32, 64, 128],
            doc="PEs of a row that one encoder drives",
            unit="PEs",
            when=param("encoder_place") == "edge",
            group="operands",
        ),
        Categorical(
            "bit_weights",
            ["temporal_dense", "temporal_sparse"],
            doc="one digit a cycle, or one non-zero digit a cycle",
            when=_COLUMN,
            group="operands",
        ),
    ]


def _datapath() -> list[Parameter]:
    return [
        Categorical(
            "accumulator",
            ACCUMULATORS,
            doc="product adder and accumulate adder, one adder for both, or sum and carry",
            group="datapath",
        ),
        Categorical(
            "shift_place",
            PLACES,
            doc="where digits get their weight; outside the PE, bit weights accumulate apart",
            when=_CARRY_SAVE,
            group="datapath",
        ),
        Categorical("compressor", COMPRESSORS, doc="form of the compressor tree", group="datapath"),
        Ordinal("pipeline_depth", [1, 2, 3], doc="stages of a PE", unit="stages", group="datapath"),
    ]


def _results() -> list[Parameter]:
    return [
        Ordinal(
            "accumulator_width",
            ACCUMULATOR_WIDTHS,
            doc="of the whole sum, or of one bit weight's where the shift is outside",
            unit="bits",
            group="results",
        ),
        Ordinal(
            "accumulation_length",
            [16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
            doc="products that a PE adds up before the result leaves; longer sums are continued "
            "outside, in the result adders",
            unit="products",
            when=param("array") != "systolic_ws",
            group="results",
        ),
        Categorical(
            "final_adder_place",
            ["edge", "simd"],
            doc="where sum and carry become one word",
            when=_CARRY_SAVE,
            group="results",
        ),
        Categorical(
            "final_adder", FINAL_ADDERS, doc="form of the carry-propagate adders", group="results"
        ),
    ]


def _clock() -> list[Parameter]:
    return [
        Categorical(
            "clock",
            ["fastest", "target"],
            doc="the fastest that the slowest block allows, or a target that may be infeasible",
            group="clock",
        ),
        Ordinal(
            "clock_mhz",
            CLOCKS_MHZ,
            doc="clock to run at",
            unit="MHz",
            when=param("clock") == "target",
            group="clock",
        ),
    ]
