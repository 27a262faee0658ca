"""The legality rules of a multiply-accumulate fabric, as named laws over the design parameters.

| rule | why |
|---|---|
| carry-save accumulators | the carry chain is outside the loop and fast enough to keep pace |
| hoisted shift | bit weights accumulate apart, and are shifted before they are added |
| temporal digits | one stream of equal bit weights, whatever the lanes |
| encoders | a carry chain over the operand is paid once, at the edge or in memory |
| accumulator width | a sum that could overflow is refused, never saturated |
| bandwidth | what the PEs consume in a cycle must come through the operand port |

A rule holds wherever a parameter in it does not apply.
"""

from __future__ import annotations

from functools import cache

from archgym.space import Rule, param
from archgym.space.expression import Expression

__all__ = ["LARGEST_CUBE", "PORT_BITS", "legality_rules"]

#: Operand bits that can enter an array in a cycle: two 16 x 16 matrices of 16 bits, as in the
#: largest cube published (Liao and others, "DaVinci: A Scalable Architecture for Neural Network
#: Computing", Hot Chips 31, 2019).
PORT_BITS = 8192

#: Rows, columns and depth of that cube; whatever the operands' width, a larger one is not built.
LARGEST_CUBE = 16

#: Most products of a column of a weight-stationary array (64 rows, 64 deep), a power of two.
_LONGEST = 4096

_array, _rows, _columns, _depth = param("array"), param("rows"), param("columns"), param("depth")
_lanes, _length = param("lanes"), param("accumulation_length")
_width_a, _width_b = param("width_a"), param("width_b")
_encoding, _encoder_place = param("encoding"), param("encoder_place")
_accumulator, _width = param("accumulator"), param("accumulator_width")
_shift, _adder_place = param("shift_place"), param("final_adder_place")

_SERIAL = _encoding.isin(["serial_twos", "serial_sign_magnitude"])
_COLUMN = _array == "bit_serial_column"
_HOISTED = _shift != "pe"
_CARRY_SAVE = _accumulator == "carry_save"
_GRID = _array.isin(["systolic_os", "matrix"])
_TWICE = _encoding.isin(["booth", "ent", "csd"])


@cache
def legality_rules() -> tuple[Rule, ...]:
    """All rules, in the order in which a broken one is reported."""
    return (*_operand_rules(), *_array_rules(), *_datapath_rules(), *_width_rules())


def _operand_rules() -> list[Rule]:
    return [
        Rule(
            "serial_encoding_is_temporal",
            _SERIAL.implies(_COLUMN),
            "a bit-serial encoding gives one digit at a time, which needs bit-serial columns",
        ),
        Rule(
            "array_multiplier_is_spatial",
            (_encoding == "radix2").implies(~_COLUMN),
            "a Baugh-Wooley array takes all bits at once; bit-serial columns take serial_twos",
        ),
        Rule(
            "carry_chain_encoder_outside_the_pe",
            _encoding.isin(["ent", "csd", "serial_sign_magnitude"]).implies(_encoder_place != "pe"),
            "this encoding needs a carry chain over the operand: encode at the edge or in memory",
        ),
    ]


def _array_rules() -> list[Rule]:
    why = f"operands of a cycle are more than the {PORT_BITS} bits of the operand port"
    stored = _rows * _width_a * 3 / 2
    return [
        Rule(
            "reduction_in_space",
            _array.isin(["tree", "matrix"]).implies(_depth >= 2),
            "trees and 2D matrices reduce K in space: at least two operand pairs a PE",
        ),
        Rule(
            "encoder_drives_its_row",
            param("columns_per_encoder") <= _columns,
            "an encoder cannot drive more columns than there are",
        ),
        Rule(
            "operands_fit_the_port",
            _GRID.implies(_depth * (_rows * _width_a + _columns * _width_b) <= PORT_BITS),
            why,
        ),
        Rule(
            "encoded_operands_fit_the_port",
            (_GRID & (_encoder_place == "memory") & _TWICE).implies(
                _depth * (stored + _columns * _width_b) <= PORT_BITS
            ),
            f"{why}: operands stored encoded have half as many bits again",
        ),
        Rule(
            "cube_operands_fit_the_port",
            (_array == "cube").implies(_columns <= LARGEST_CUBE),
            why,
        ),
        Rule(
            "streamed_operands_fit_the_port",
            (_array == "systolic_ws").implies(_rows * _depth * _width_a <= PORT_BITS),
            why,
        ),
        Rule(
            "column_operands_fit_the_port",
            _lanes * (_rows * 3 + _columns * _width_b) <= PORT_BITS,
            why,
        ),
    ]


def _datapath_rules() -> list[Rule]:
    return [
        Rule(
            "shift_before_the_final_add",
            ~((_shift == "simd") & (_adder_place == "edge")),
            "bit weights are shifted before they are added, not after",
        ),
        Rule(
            "serial_product_is_one_row",
            _COLUMN.implies(_accumulator != "separate"),
            "one digit makes one partial product: there is no product to add up before",
        ),
        Rule(
            "lanes_share_a_bit_weight",
            (_lanes > 1).implies(_HOISTED),
            "lanes of one compressor must have equal bit weight in a cycle, so that no lane "
            "needs a shifter: the shift stands behind the accumulator",
        ),
        Rule(
            "lanes_accumulate_apart",
            (_lanes > 1).implies(_CARRY_SAVE),
            "the shift stands behind the accumulator of lanes, so that sum and carry are kept",
        ),
        Rule(
            "no_cut_inside_the_loop",
            ((param("pipeline_depth") == 3) & (_accumulator != "separate")).implies(
                _encoder_place == "pe"
            ),
            "with the accumulator in the tree, registers stand after the encoder and after the "
            "partial products; a third stage needs an encoder in the PE",
        ),
        Rule(
            "array_multiplier_has_two_stages",
            ((param("pipeline_depth") == 3) & (_encoding == "radix2")).implies(
                _accumulator == "separate"
            ),
            "a Baugh-Wooley array has no encoder to cut after",
        ),
        Rule(
            "accumulation_covers_the_depth",
            _depth <= _length,
            "a PE accumulates at least what it reduces in a cycle",
        ),
    ]


def _width_rules() -> list[Rule]:
    column = _array == "systolic_ws"
    whole = "width_a + width_b + ceil(log2 K) bits hold a sum of K products: fewer overflow"
    apart = (
        "width_b + 2 + ceil(log2 K) bits hold the sum of one bit weight of K products, which are "
        "up to twice B: fewer overflow"
    )
    return [
        Rule(
            "accumulator_holds_the_sum",
            _CARRY_SAVE | _holds(_length, _width_a + _width_b),
            whole,
        ),
        Rule(
            "accumulator_holds_a_column",
            _CARRY_SAVE | ~column | _holds(_rows * _depth, _width_a + _width_b),
            whole,
        ),
        Rule(
            "sum_and_carry_hold_the_sum",
            _HOISTED | _holds(_length, _width_a + _width_b),
            whole,
        ),
        Rule(
            "sum_and_carry_hold_a_column",
            _HOISTED | ~column | _holds(_rows * _depth, _width_a + _width_b),
            whole,
        ),
        Rule(
            "bit_weight_accumulator_holds_the_sum",
            ~_HOISTED | _holds(_length, _width_b + 2),
            apart,
        ),
        Rule(
            "bit_weight_accumulator_holds_a_column",
            ~_HOISTED | ~column | _holds(_rows * _depth, _width_b + 2),
            apart,
        ),
    ]


def _holds(products: Expression, bits: Expression) -> Expression:
    """Whether the accumulator has at least `bits + ceil(log2(products))` bits.

    A chain of comparisons, which is exact and as fast on a column of designs as on one.
    """
    law = _width >= bits
    length, log = 1, 0
    while length < _LONGEST:
        law = law & ((products <= length) | (_width >= bits + (log + 1)))
        length, log = 2 * length, log + 1
    return law
