"""Expressions that are written as texts."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space import Categorical, DesignSpace, Expression, Integer, Rule, param
from archgym.space.formula import parse_formula

NAMES = {"a": param("a"), "b": param("b"), "p": param("p")}
VALUES = {"a": 8, "b": 3, "p": "lru"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a * b <= 24", True),
        ("1 < a <= 4", False),
        ("p == lru", True),
        ("lru == p", True),
        ("p != 'two words'", True),
        ("p in [lru, fifo] and a in (8, 16)", True),
        ("p not in {lru}", False),
        ("not (a > 1 or b < 2)", False),
        ("log2(a) == b", True),
        ("min(a, b) + max(a, b)", 11),
        ("-a + 2 ** 3 // 3 % 2", -8),
        ("ceil(a / b) - floor(a / b) + abs(-b) + sqrt(a * 2)", 8),
    ],
)
def test_values(text: str, value: object) -> None:
    found = parse_formula(text, NAMES)
    assert isinstance(found, Expression)
    assert found.evaluate(VALUES) == value
    again = Expression.from_json(found.to_json())
    assert again.evaluate(VALUES) == value
    columns = {name: np.array([one, one]) for name, one in VALUES.items()}
    assert found.evaluate(columns).tolist() == [value, value]


@pytest.mark.parametrize("text", ["1", "'word'", "true", "-2.5"])
def test_a_literal_alone_is_itself(text: str) -> None:
    assert parse_formula(text, NAMES) in (1, "word", True, -2.5)


@pytest.mark.parametrize(
    "text",
    ["a +", "", "a.b", "a[0]", "lambda: 1", "a if b else p", "[a]", "f'{a}'", "a @ b", "a is b",
     "min(a)", "a in b", "a := 1", "a" * 3000, "(" * 500 + "a" + ")" * 500, "min(*a)", "1j"],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError)):
        parse_formula(text, NAMES)


def test_unknown_names_are_suggested() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown name 'wayz'.*Did you mean 'ways'"):
        parse_formula("wayz > 1", {"ways": param("ways")})
    with pytest.raises(UnknownNameError, match="unknown function 'exec'"):
        parse_formula("exec('1')", NAMES)


def test_functions_hold_in_design_spaces() -> None:
    rule = parse_formula("log2(a) >= 1 and p == lru", NAMES)
    assert isinstance(rule, Expression)
    space = DesignSpace(
        [Integer("a", 0, 3), Categorical("p", ["lru", "fifo"])], [Rule("both", rule)]
    )
    assert space.canonical_cardinality == 2
    assert DesignSpace.from_json(space.to_json()) == space
    assert np.isnan(param("a").evaluate({"a": np.nan}))
