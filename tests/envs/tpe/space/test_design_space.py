"""The design space: legality rules by name, and designs and arrays both ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archgym.envs.tpe.microarchitecture.pe import PE, Array
from archgym.envs.tpe.space.design_space import array_of, broken_rules, design_of, design_space
from archgym.envs.tpe.space.named import BASELINES, named_array, named_designs
from archgym.errors import DesignError, InvalidValueError, UnknownNameError

SPACE = design_space()
MAC = BASELINES["systolic_os"]
OPT4E = named_array("OPT4E")


def changed(array: Array, **changes: object) -> Array:
    """The array with some fields of its PE (or its own) replaced."""
    own = {name: value for name, value in changes.items() if hasattr(array, name)}
    inner = {name: value for name, value in changes.items() if name not in own}
    return replace(array, pe=replace(array.pe, **inner), **own)  # type: ignore[arg-type]


CARRY_SAVE = changed(MAC, accumulator="carry_save", final_adder_place="simd")


@pytest.mark.parametrize("name", named_designs())
def test_named_designs_are_legal_and_go_both_ways(name: str) -> None:
    design = named_designs()[name]
    assert SPACE.broken_rule(design) == ""
    assert SPACE.canonical(design) == design
    assert array_of(design) == named_array(name)


def test_random_designs_go_both_ways() -> None:
    for design in SPACE.sample(300, np.random.default_rng(5)):
        array = array_of(design)
        assert broken_rules(array) == {}
        assert design_of(array) == design


@pytest.mark.parametrize(
    ("rule", "array"),
    [
        ("final_adder_outside_the_loop", changed(CARRY_SAVE, final_adder_place="pe")),
        ("final_adder_outside_the_loop", changed(MAC, final_adder_place="simd")),
        ("hoisted_shift_accumulates_apart", changed(MAC, shift_place="simd")),
        (
            "shift_before_the_final_add",
            changed(CARRY_SAVE, shift_place="simd", final_adder_place="edge"),
        ),
        ("temporal_digits_need_columns", changed(CARRY_SAVE, bit_weights="temporal_sparse")),
        ("temporal_digits_need_columns", changed(OPT4E, bit_weights="spatial")),
        ("serial_encoding_is_temporal", changed(MAC, encoding="serial_twos")),
        ("array_multiplier_is_spatial", changed(OPT4E, encoding="radix2")),
        ("sum_and_carry_hold_the_sum", changed(CARRY_SAVE, accumulator_width=22)),
        ("lanes_accumulate_apart", changed(OPT4E, accumulator="merged", final_adder_place="pe")),
        ("lanes_share_a_bit_weight", changed(OPT4E, shift_place="pe", accumulator_width=32)),
        ("carry_chain_encoder_outside_the_pe", changed(MAC, encoding="ent")),
        ("carry_chain_encoder_outside_the_pe", changed(MAC, encoding="csd")),
        ("accumulator_holds_the_sum", changed(MAC, accumulator_width=22)),
        ("accumulator_holds_a_column", changed(BASELINES["systolic_ws"], accumulator_width=18)),
        ("bit_weight_accumulator_holds_the_sum", changed(OPT4E, accumulator_width=16)),
        ("reduction_in_space", changed(BASELINES["tree"], reduction=1)),
        ("array_shape", changed(BASELINES["cube"], rows=16)),
        ("operands_fit_the_port", changed(MAC, reduction=64)),
        (
            "cube_operands_fit_the_port",
            changed(BASELINES["cube"], rows=32, columns=32, reduction=32),
        ),
        ("no_cut_inside_the_loop", changed(CARRY_SAVE, encoder_place="edge", pipeline_depth=3)),
        ("serial_product_is_one_row", changed(OPT4E, accumulator="separate")),
        ("encoder_drives_its_row", changed(OPT4E, columns_per_encoder=64)),
    ],
)
def test_each_rule_is_named(rule: str, array: Array) -> None:
    assert rule in broken_rules(array)
    with pytest.raises(InvalidValueError, match="illegal array: "):
        design_of(array)


def test_the_accumulator_that_overflowed_in_the_published_code_is_illegal() -> None:
    # Sixteen operands of 8 bits need 8 + 2 + log2(16) = 14 bits a bit weight, not 13: sixteen
    # products -2 * -128 = 256 are 4096.
    deep = changed(named_array("tree/OPT2"), accumulation_length=16, accumulator_width=14)
    assert broken_rules(deep) == {}
    assert "bit_weight_accumulator_holds_the_sum" in broken_rules(
        changed(deep, accumulator_width=12)
    )


def test_there_are_no_narrower_operands_than_the_workload_needs() -> None:
    design = {**design_of(MAC), "width_a": 4}
    with pytest.raises(DesignError, match="'width_a' cannot be 4"):
        SPACE.broken_rule(design)
    assert design_space((4, 8)).broken_rule(design) == ""


def test_what_does_not_apply_is_left_out() -> None:
    assert "final_adder_place" not in design_of(MAC)
    assert not {"lanes", "shift_place"} & set(design_of(MAC))
    cube = design_of(BASELINES["cube"])
    assert not {"rows", "depth", "bit_weights", "columns_per_encoder"} & set(cube)
    assert "accumulation_length" not in design_of(BASELINES["systolic_ws"])
    radix2 = {**design_of(MAC), "encoding": "radix2", "encoder_place": "edge"}
    assert "encoder_place" not in SPACE.canonical(radix2)


def test_sampling_meets_every_array_and_encoding() -> None:
    designs = SPACE.sample(3000, np.random.default_rng(0))
    for name in ("array", "encoding", "accumulator", "compressor"):
        levels = SPACE.parameters[SPACE.index(name)].size
        assert len(set(designs.values(name).tolist())) == levels


def test_unknown_values_are_refused() -> None:
    with pytest.raises(DesignError, match="accumulator_width"):
        design_of(changed(MAC, accumulator_width=33))
    with pytest.raises(UnknownNameError, match="Did you mean 'cube'"):
        named_array("cubes/OPT1")
    with pytest.raises(UnknownNameError, match="OPT4C"):
        named_array("OPT4D")
    with pytest.raises(InvalidValueError, match="separate kind, a bit-serial column"):
        named_array("cube/OPT3")


def test_hardware_forgets_what_is_not_in_the_pe() -> None:
    edge = changed(CARRY_SAVE, encoder_place="edge").pe
    assert replace(edge, encoder_place="memory").hardware() == edge.hardware()
    assert replace(edge, final_adder="ripple").hardware() == edge.hardware()
    assert replace(MAC.pe, final_adder="ripple").hardware() != MAC.pe.hardware()
    assert isinstance(edge.hardware(), PE)
