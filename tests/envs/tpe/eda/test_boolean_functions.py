"""Boolean functions in Liberty's notation."""

from __future__ import annotations

import pytest

from archgym.envs.tpe.eda.boolean_functions import parse
from archgym.errors import InvalidValueError

# Bits of the eight cases of three pins.
PINS = {"A": 0b10101010, "B": 0b11001100, "C": 0b11110000}
ALL = 0b11111111


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A", PINS["A"]),
        ("!A", ALL ^ PINS["A"]),
        ("A'", ALL ^ PINS["A"]),
        ("!(A & B)", ALL ^ (PINS["A"] & PINS["B"])),
        ("(A B)'", ALL ^ (PINS["A"] & PINS["B"])),
        ("A * B + C", PINS["A"] & PINS["B"] | PINS["C"]),
        ("A | B & C", PINS["A"] | PINS["B"] & PINS["C"]),
        ("A & B ^ C", PINS["A"] & (PINS["B"] ^ PINS["C"])),
        ("A ^ B ^ C", PINS["A"] ^ PINS["B"] ^ PINS["C"]),
        ("!A !B", ALL ^ (PINS["A"] | PINS["B"])),
        ("1", ALL),
        ("A & 0", 0),
        (" ( A+ B )'' ", PINS["A"] | PINS["B"]),
    ],
)
def test_functions(text: str, value: int) -> None:
    assert parse(text)(PINS, ALL) == value


@pytest.mark.parametrize("text", ["", "A &", "(A", "A)", "A % B", "& A", "A + + B", "!"])
def test_what_is_no_function(text: str) -> None:
    with pytest.raises(InvalidValueError, match="not understood"):
        parse(text)
