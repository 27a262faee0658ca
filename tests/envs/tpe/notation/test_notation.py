"""The loop nest: from the textbook MAC to each published optimisation, and what is illegal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archgym.envs.tpe.microarchitecture.pe import PE, ArrayKind
from archgym.envs.tpe.notation.arrays import array_of_placement, placement_of
from archgym.envs.tpe.notation.loop_nest import IllegalPlacementError, Loop, Placement, Primitive
from archgym.envs.tpe.notation.transformations import (
    defer,
    hoist,
    in_space,
    in_time,
    insert,
    interchange,
    optimised,
    remove,
    split,
    textbook_mac,
)
from archgym.envs.tpe.space.design_space import array_of, design_space
from archgym.envs.tpe.space.named import named_array, named_designs
from archgym.errors import InvalidValueError, UnknownNameError

MAC = textbook_mac(rows=16, columns=32, length=1024, digits=4)


def scope(placement: Placement, primitive: Primitive) -> list[str]:
    return [loop.name for loop in placement.loops if placement.inside(primitive, loop.name)]


def test_the_textbook_mac() -> None:
    assert [(loop.name, loop.spatial) for loop in MAC.loops] == [
        ("mp", True),
        ("np", True),
        ("kt", False),
        ("bw", True),
    ]
    assert MAC.order == ("encode", "map", "shift", "half_reduce", "add", "accumulate")
    # Four digits in each of 512 PEs; both adders in every PE, every cycle.
    assert MAC.copies("encode") == MAC.copies("map") == 4 * 512
    assert (MAC.copies("add"), MAC.runs("add")) == (512, 1024)


def test_opt1_keeps_sum_and_carry() -> None:
    one_chain = defer(MAC, "add", "accumulate")
    assert one_chain.order[-2:] == ("accumulate", "add")
    assert scope(one_chain, "add") == ["mp", "np", "kt"]
    outside = hoist(one_chain, "add", "kt")
    assert (outside.copies("add"), outside.runs("add")) == (512, 1)
    shared = hoist(outside, "add", "mp", "np")
    # 512 results every 1024 cycles: one adder is busy half of the time.
    assert (shared.copies("add"), shared.runs("add")) == (1, 512)
    assert scope(shared, "accumulate") == ["mp", "np", "kt"]
    assert shared == optimised(MAC, "OPT1")


def test_opt1_in_one_step_moves_the_adder_behind_the_accumulator() -> None:
    assert hoist(MAC, "add", "kt") == hoist(defer(MAC, "add", "accumulate"), "add", "kt")


def test_opt2_reduces_equal_bit_weights() -> None:
    opt1 = optimised(MAC, "OPT1")
    weights_outside = interchange(opt1, "kt", "bw")
    two = split(weights_outside, "kt", 4, ("kt", "kp"))
    assert [loop.extent for loop in two.over("K")] == [256, 4]
    deep = in_space(two, "kp")
    assert "kp" not in deep.scopes["half_reduce"]
    done = hoist(deep, "shift", "kt", "kp", "mp", "np")
    assert done.order == ("encode", "map", "half_reduce", "accumulate", "shift", "add")
    # One narrow accumulator a bit weight, four partial products each; four shifts in all.
    assert done.copies("accumulate") == 4 * 512
    assert done.copies("map") == 4 * 4 * 512
    assert done.copies("shift") == 4
    assert done == optimised(MAC, "OPT2")


def test_opt3_skips_zero_digits_in_time() -> None:
    outside = interchange(optimised(MAC, "OPT1"), "kt", "bw")
    serial = in_time(outside, "bw")
    assert serial.copies("map") == 512
    assert serial.runs("map") == 4 * 1024
    same_weight = hoist(serial, "shift", "kt", "mp", "np")
    sparse = insert(same_weight, "sparse", {"mp", "np", "bw", "kt"}, before="map", with_sync={"mp"})
    assert sparse.order == (
        *("encode", "sparse", "map", "half_reduce", "accumulate", "shift", "add", "sync"),
    )
    assert sparse.copies("encode") == sparse.copies("sparse") == 512
    assert sparse == optimised(MAC, "OPT3")


def test_opt4c_encodes_once_a_row() -> None:
    opt3 = optimised(MAC, "OPT3")
    shared = hoist(hoist(opt3, "encode", "np"), "sparse", "np")
    assert shared.copies("encode") == shared.copies("sparse") == 16
    assert shared.copies("map") == 512
    assert shared == optimised(MAC, "OPT4C")


def test_opt4e_shares_the_compressor() -> None:
    opt4c = optimised(MAC, "OPT4C")
    lanes = in_space(split(opt4c, "kt", 4, ("kt", "kp")), "kp")
    assert lanes.copies("map") == 4 * 512
    assert lanes.copies("half_reduce") == lanes.copies("accumulate") == 512
    assert lanes.runs("accumulate") == opt4c.runs("accumulate") // 4
    assert lanes == optimised(MAC, "OPT4E")


@pytest.mark.parametrize(
    ("name", "kind", "depth"),
    [
        ("systolic_os", "systolic_os", 1),
        ("systolic_os/OPT1", "systolic_os", 1),
        ("matrix/OPT2", "matrix", 4),
        ("OPT3", "bit_serial_column", 1),
        ("OPT4C", "bit_serial_column", 1),
        ("OPT4E", "bit_serial_column", 4),
    ],
)
def test_derived_placements_are_the_named_designs(name: str, kind: ArrayKind, depth: int) -> None:
    array = named_array(name)
    mac = textbook_mac(array.rows, array.columns, array.accumulation_length, array.pe.digits)
    optimisation = name.rpartition("/")[2]
    derived = optimised(mac, optimisation, depth) if optimisation.startswith("OPT") else mac
    if optimisation == "OPT2":
        derived = hoist(derived, "encode", "np")  # an EN-T encoder is never in the PE
    assert array_of_placement(derived, kind, array.pe) == array


@pytest.mark.parametrize("name", named_designs())
def test_named_designs_are_placements_and_back(name: str) -> None:
    array = named_array(name)
    assert array_of_placement(placement_of(array), array.kind, array.pe) == array


def test_random_designs_are_placements_and_back() -> None:
    for design in design_space((4, 4)).sample(200, np.random.default_rng(2)):
        array = replace(array_of(design), clock_mhz=0.0)
        placement = placement_of(array)
        assert array_of_placement(placement, array.kind, array.pe) == array
        assert placement.copies("map") == array.multipliers // (
            array.rows if array.kind == "systolic_ws" else 1
        ) * (1 if array.pe.temporal else array.pe.digits)


@pytest.mark.parametrize(
    ("rule", "transform"),
    [
        ("inside_its_loops", lambda mac: hoist(mac, "encode", "kt")),
        ("inside_its_loops", lambda mac: hoist(mac, "map", "np")),
        ("inside_its_loops", lambda mac: hoist(mac, "shift", "bw")),
        ("hoisted_shift_accumulates_apart", lambda mac: hoist(mac, "shift", "kt")),
        ("shared_outside_k", lambda mac: hoist(mac, "add", "mp")),
        ("sums_over_k", lambda mac: hoist(mac, "half_reduce", "kt")),
        ("sums_over_k", lambda mac: hoist(mac, "accumulate", "kt")),
        ("data_flow", lambda mac: defer(mac, "encode", "map")),
        ("shift_before_the_final_add", lambda mac: defer(mac, "shift", "add")),
        (
            "sparse_digits_in_time",
            lambda mac: insert(mac, "sparse", scope(mac, "map"), before="map", with_sync={"mp"}),
        ),
        (
            "sparse_needs_sync",
            lambda mac: insert(in_time(mac, "bw"), "sparse", scope(mac, "map"), before="map"),
        ),
        (
            "sync_after_the_stream",
            lambda mac: insert(mac, "sync", {"mp", "kt"}),
        ),
        (
            "lanes_share_a_bit_weight",
            lambda mac: in_space(
                split(in_time(optimised(mac, "OPT1"), "bw"), "kt", 4, ("kt", "kp")), "kp"
            ),
        ),
        ("loops_nest", lambda mac: hoist(in_time(optimised(mac, "OPT1"), "bw"), "shift", "kt")),
        ("every_primitive", lambda mac: remove(mac, "map")),
    ],
)
def test_illegal_transformations_name_the_rule(rule: str, transform: object) -> None:
    with pytest.raises(IllegalPlacementError, match=rule) as caught:
        transform(MAC)  # type: ignore[operator]
    assert caught.value.rule == rule


def test_an_operand_stored_encoded_needs_no_encoder() -> None:
    stored = remove(optimised(MAC, "OPT1"), "encode")
    array = array_of_placement(stored, "systolic_os", PE(8, 8, 32, "ent", "memory"))
    assert array.pe.encoder_place == "memory"
    assert not array.pe.has_encoder


def test_an_adder_that_idles_in_every_pe_is_no_design() -> None:
    idle = hoist(MAC, "add", "kt")
    with pytest.raises(InvalidValueError, match="share it by the rows"):
        array_of_placement(idle, "systolic_os", PE(8, 8, 32))


def test_other_bad_input() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'kt'"):
        hoist(MAC, "add", "kts")
    with pytest.raises(InvalidValueError, match="cannot be split by 3"):
        split(MAC, "kt", 3, ("kt", "kp"))
    with pytest.raises(InvalidValueError, match="does not follow"):
        interchange(MAC, "mp", "kt")
    with pytest.raises(InvalidValueError, match="not inside"):
        hoist(MAC, "add", "bw")
    with pytest.raises(InvalidValueError, match="named twice"):
        Placement((Loop("a", "M", 2), Loop("a", "N", 2)), (), {})
    with pytest.raises(InvalidValueError, match="OPT4D"):
        optimised(MAC, "OPT4D")
    with pytest.raises(InvalidValueError, match="has 4"):
        array_of_placement(MAC, "systolic_os", PE(16, 8, 32))
    assert "encode: 2048 copies, inside mp, np, kt, bw" in MAC.describe()


def test_names_and_sizes_that_are_not_possible() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'shift'"):
        hoist(MAC, "shft", "kt")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="Did you mean 'accumulate'"):
        defer(MAC, "add", "acumulate")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="loop mp: extent=0"):
        textbook_mac(rows=0, columns=32, length=1024, digits=4)
    with pytest.raises(InvalidValueError, match="the loops around encode are missing"):
        Placement(MAC.loops, MAC.order, {})
