"""An array computes the exact product, for every design and extreme operands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archgym.envs.tpe.functional import execute
from archgym.envs.tpe.microarchitecture.encodings import digits, operand_range
from archgym.envs.tpe.microarchitecture.pe import ENCODINGS, PE, Array, EncoderPlace, Encoding
from archgym.envs.tpe.space.design_space import array_of, broken_rules, design_space
from archgym.envs.tpe.space.named import BASELINES, named_array, named_designs
from archgym.errors import InvalidValueError


def extremes(array: Array, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Operands of which many are the most negative, the greatest, -1, 0 and 1."""
    (low_a, high_a), (low_b, high_b) = map(operand_range, (array.pe.width_a, array.pe.width_b))
    a = rng.choice([low_a, low_a + 1, high_a, -1, 0, 1, *rng.integers(low_a, high_a, 3)], (4, k))
    b = rng.choice([low_b, low_b + 1, high_b, -1, 0, 1, *rng.integers(low_b, high_b, 3)], (k, 4))
    a[0], a[1] = low_a, high_a
    b[:, 0], b[:, 1] = low_b, high_b
    return a, b


def test_random_designs_give_the_exact_product() -> None:
    rng = np.random.default_rng(4)
    for design in design_space((4, 4)).sample(120, rng):
        array = array_of(design)
        # More than one tile where it is short; a partial one at the end.
        a, b = extremes(array, min(2 * array.accumulation_length + 3, 150), rng)
        np.testing.assert_array_equal(execute(array, a, b).product, a @ b, err_msg=str(array))


@pytest.mark.parametrize("name", named_designs())
def test_named_designs_hold_a_whole_tile_of_the_most_negative_operands(name: str) -> None:
    array = named_array(name)
    k = array.accumulation_length
    a, b = np.full((1, k), -128), np.full((k, 2), [-128, 127])
    assert execute(array, a, b).product.tolist() == [[k * 16384, -k * 16256]]


@pytest.mark.parametrize("encoding", [e for e in ENCODINGS if not e.startswith("serial")])
@pytest.mark.parametrize("widths", [(4, 4), (4, 16), (16, 4), (16, 16)])
def test_the_narrowest_legal_accumulators_hold(encoding: Encoding, widths: tuple[int, int]) -> None:
    width_a, width_b = widths
    place: EncoderPlace = "memory" if encoding in ("ent", "csd") else "pe"
    bits = width_a + width_b + 4
    whole = Array(
        "systolic_os",
        4,
        4,
        PE(width_a, width_b, bits, encoding, place),
        16,
        4,
    )
    pe = replace(whole.pe, accumulator="carry_save", final_adder_place="simd")
    narrow = width_b + 4 + (1 if encoding == "radix2" else 2)
    apart = replace(pe, shift_place="simd", accumulator_width=narrow + narrow % 2)
    low_a, low_b = operand_range(width_a)[0], operand_range(width_b)[0]
    a, b = np.full((1, 16), low_a), np.full((16, 1), low_b)
    for built in (whole.pe, pe, apart):
        assert execute(replace(whole, pe=built), a, b).product == [[16 * low_a * low_b]]


def test_an_accumulator_that_would_overflow_is_refused() -> None:
    array = BASELINES["systolic_os"]
    narrow = replace(array, pe=replace(array.pe, accumulator_width=22))
    with pytest.raises(InvalidValueError, match="accumulator_holds_the_sum"):
        execute(narrow, [[1]], [[1]])
    assert "accumulator_holds_the_sum" not in broken_rules(replace(narrow, accumulation_length=64))


def test_cycles_of_spatial_and_dense_designs() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (32, 64)), rng.integers(-128, 128, (64, 40))
    mac = BASELINES["systolic_os"]
    # Two times three tiles of 16 x 16 results, 64 steps each.
    assert execute(mac, a, b).cycles == 2 * 3 * 64
    # A cube takes 8 products a step, 4 x 5 tiles.
    assert execute(BASELINES["cube"], a, b).cycles == 4 * 5 * 8
    # A weight-stationary array streams 32 rows through 4 x 3 tiles of weights.
    assert execute(BASELINES["systolic_ws"], a, b).cycles == 4 * 3 * 32
    opt4c = named_array("OPT4C")
    dense = replace(opt4c, pe=replace(opt4c.pe, bit_weights="temporal_dense"))
    assert execute(dense, a, b).cycles == 2 * 2 * 64 * 4


def test_sparse_designs_take_a_cycle_a_non_zero_digit() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-128, 128, (16, 48)), rng.integers(-128, 128, (48, 32))
    opt4c = named_array("OPT4C")
    row = np.count_nonzero(digits(a, 8, "ent"), axis=2).sum(axis=1)
    assert execute(opt4c, a, b).cycles == row.max()
    alone = replace(opt4c, rows=1)
    assert execute(alone, a, b).cycles == row.sum()
    # Lanes meet at the end of each bit weight: never faster than a quarter of the digits.
    lanes = execute(named_array("OPT4E"), a, b).cycles
    assert row.max() / 4 < lanes < row.max() / 2
    assert execute(opt4c, np.zeros((16, 48), int), b).cycles == 0


def test_bad_matrices_are_refused() -> None:
    mac = BASELINES["systolic_os"]
    with pytest.raises(InvalidValueError, match="no product of shapes"):
        execute(mac, [[1, 2]], [[1, 2]])
    with pytest.raises(InvalidValueError, match="operand A: 128 does not fit 8 bits"):
        execute(mac, [[128]], [[1]])
    with pytest.raises(InvalidValueError, match="operand B: -129 does not fit 8 bits"):
        execute(mac, [[1]], [[-129]])
    with pytest.raises(InvalidValueError, match="operand A must be integers, not float64"):
        execute(mac, [[1.5]], [[1]])
    assert execute(mac, np.zeros((0, 3), int), np.zeros((3, 2), int)).product.shape == (0, 2)
    with pytest.raises(InvalidValueError, match="above 65536"):
        execute(mac, np.ones((1, 65537), int), np.ones((65537, 1), int))
