"""Digits of every encoding, against their definitions and published averages."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.envs.tpe.microarchitecture.encodings import (
    digit_count,
    digits,
    operand_range,
    radix,
    weights,
)
from archgym.envs.tpe.microarchitecture.pe import ENCODINGS, Encoding
from archgym.errors import UnknownNameError


def _all_values(width: int) -> np.ndarray:
    low, high = operand_range(width)
    return np.arange(low, high + 1)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 16])
def test_digits_times_weights_are_the_operand(encoding: Encoding, width: int) -> None:
    values = _all_values(width)
    found = digits(values, width, encoding)
    assert found.shape == (len(values), digit_count(width, encoding))
    np.testing.assert_array_equal(found @ weights(width, encoding), values)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_digits_stay_in_their_set(encoding: Encoding) -> None:
    found = digits(_all_values(8), 8, encoding)
    if radix(encoding) == 4:
        assert set(found.ravel().tolist()) <= {-2, -1, 0, 1, 2}
    elif encoding == "serial_sign_magnitude":
        positive = (found > 0).any(axis=1)
        assert not (positive & (found < 0).any(axis=1)).any()
    else:
        assert set(found[:, :-1].ravel().tolist()) == {0, 1}
        assert set(found[:, -1].tolist()) == {0, -1}


@pytest.mark.parametrize(
    ("value", "encoding", "highest_first"),
    [
        (124, "ent", [2, 0, -1, 0]),  # worked examples of the EN-T paper
        (91, "ent", [1, 2, -1, -1]),
        (-91, "ent", [-1, -2, 1, 1]),
        (-128, "booth", [-2, 0, 0, 0]),
        (127, "booth", [2, 0, 0, -1]),
        (5, "csd", [0, 0, 1, 1]),
        (7, "csd", [0, 0, 2, -1]),
        (-128, "serial_sign_magnitude", [-1, 0, 0, 0, 0, 0, 0, 0]),
        (-1, "serial_twos", [-1, 1, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_known_digits(value: int, encoding: Encoding, highest_first: list[int]) -> None:
    assert digits([value], 8, encoding)[0, ::-1].tolist() == highest_first


@pytest.mark.parametrize(
    ("encoding", "average"),
    # Exact enumeration of the 256 operands of 8 bits: 768, 747, 711, 1024 and 897 digits.
    [
        ("booth", 768 / 256),
        ("ent", 747 / 256),
        ("csd", 711 / 256),
        ("serial_twos", 1024 / 256),
        ("serial_sign_magnitude", 897 / 256),
    ],
)
def test_average_of_non_zero_digits(encoding: Encoding, average: float) -> None:
    assert np.count_nonzero(digits(_all_values(8), 8, encoding)) / 256 == average


def test_csd_has_the_fewest_digits_and_no_two_neighbours() -> None:
    values = _all_values(10)
    fewest = np.count_nonzero(digits(values, 10, "csd"), axis=1)
    for encoding in ENCODINGS:
        assert (fewest <= np.count_nonzero(digits(values, 10, encoding), axis=1)).all()
    # A binary digit beside another would make a pair of value 3 or -3, or meet the next pair.
    pairs = digits(values, 10, "csd")
    even, odd = pairs % 2 != 0, np.abs(pairs) == 2
    assert not (odd[:, :-1] & even[:, 1:]).any()


def test_any_shape_is_kept() -> None:
    assert digits(np.zeros((2, 3, 4), dtype=np.int32), 8, "booth").shape == (2, 3, 4, 4)


def test_bad_operands_are_refused() -> None:
    with pytest.raises(
        ValueError, match="operand 128 does not fit 8 bits: allowed are -128 to 127"
    ):
        digits([128], 8, "booth")
    with pytest.raises(ValueError, match="integers"):
        digits([0.5], 8, "booth")
    with pytest.raises(ValueError, match="width is 1 to 31 bits, not 0"):
        digits([0], 0, "booth")
    with pytest.raises(UnknownNameError, match="Did you mean 'booth'"):
        digits([0], 8, "boothe")  # type: ignore[arg-type]
