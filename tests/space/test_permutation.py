"""Permutations: what they hold, how they read, and what is wrong with wrong ones."""

from __future__ import annotations

import itertools
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archgym.errors import DesignError, InvalidValueError
from archgym.space import (
    BoxEncoding,
    Categorical,
    DesignSpace,
    FeatureEncoding,
    Integer,
    MultiDiscreteEncoding,
    OptunaEncoding,
    Permutation,
    SkoptEncoding,
    UnitCubeEncoding,
    param,
)
from archgym.space.nearest import nearest_legal

LOOPS = Permutation("order", ["K", "C", "R", "S", "P", "Q"])
STAGES = Permutation("stages", ["load", "compute", "store"])
LARGE = Permutation("order", [f"loop{i}" for i in range(12)])


def kendall(one: str, other: str) -> float:
    """Share of pairs that two texts of letters order differently, counted one by one."""
    pairs = list(itertools.combinations(one, 2))
    return sum(other.index(a) > other.index(b) for a, b in pairs) / len(pairs)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_levels_are_all_orders_in_lexicographic_order(n: int) -> None:
    parameter = Permutation("order", "ABCDEF"[:n].__iter__())
    values = [parameter.value(code) for code in range(parameter.size)]
    assert values == ["".join(order) for order in itertools.permutations("ABCDEF"[:n])]
    assert [parameter.code(value) for value in values] == list(range(math.factorial(n)))
    assert parameter.values(np.arange(parameter.size)).tolist() == values


@settings(deadline=None)
@given(st.lists(st.integers(0, math.factorial(12) - 1), min_size=1, max_size=50))
def test_large_ones_round_trip(levels: list[int]) -> None:
    codes = np.array(levels)
    assert (LARGE.codes_of(LARGE.orders(codes)) == codes).all()
    assert (LARGE.from_places(LARGE.places(codes)) == codes).all()
    assert (LARGE.from_digits(LARGE.digits(codes)) == codes).all()
    texts = LARGE.values(codes).tolist()
    assert [LARGE.code(text) for text in texts] == levels
    assert [LARGE.value(code) for code in levels] == texts


def test_values_are_texts_and_lists_are_accepted() -> None:
    assert STAGES.value(5) == "store-compute-load"
    assert STAGES.code(["store", "compute", "load"]) == STAGES.code(("store", "compute", "load"))
    assert LOOPS.parse("QPSRCK") == "QPSRCK"
    space = DesignSpace([STAGES])
    assert space.canonical({"stages": ["store", "load", "compute"]}) == {
        "stages": "store-load-compute"
    }


@pytest.mark.parametrize(
    ("parameter", "value", "said"),
    [
        (LOOPS, "KCRSPX", ["'X' is no item", "missing: Q", "'KCRSPQ'?"]),
        (LOOPS, "QCRSPQ", ["'Q' occurs twice", "missing: K", "'QCRSPK'?"]),
        (LOOPS, "SCR", ["missing: K, P, Q", "'SCRKPQ'?"]),
        (LOOPS, "qpsrck", ["'QPSRCK'?"]),
        (LOOPS, "K,C,R,S,P,Q", ["',' is no item", "'KCRSPQ'?"]),
        (LOOPS, "S,C,R", ["',' is no item", "'SCRKPQ'?"]),
        (STAGES, "store, load, compute", ["'store-load-compute'?"]),
        (LOOPS, ["K", ["C"]], ["missing"]),
        (LOOPS, 3, ["K, C, R, S, P, Q"]),
        (LOOPS, None, ["'KCRSPQ'?"]),
        (LOOPS, {"K": 1}, ["'KCRSPQ'?"]),
        (LOOPS, "K" * 1_000_000, ["'K' occurs twice"]),
        (STAGES, "store-laod-compute", ["'laod' is no item", "'store-load-compute'?"]),
        (LARGE, "loop1", ["missing: loop0, loop2"]),
    ],
)
def test_wrong_orders_are_one_message_with_a_suggestion(
    parameter: Permutation, value: object, said: list[str]
) -> None:
    with pytest.raises(DesignError) as raised:
        parameter.code(value)
    message = str(raised.value)
    assert message.startswith(f"parameter {parameter.name!r} cannot be ")
    assert len(message) < 500
    for part in said:
        assert part in message


@pytest.mark.parametrize(
    "items",
    [[], ["A", "A"], "ABC", ["A", 1], ["a b"], ["1"], ["a-b"], ["é"], [f"i{n}" for n in range(13)]],
)
def test_items_are_few_distinct_names(items: list[str]) -> None:
    with pytest.raises(InvalidValueError, match="parameter 'order'"):
        Permutation("order", items)


def test_json_pickle_and_equality() -> None:
    when = param("kind") == "nest"
    space = DesignSpace(
        [Categorical("kind", ["nest", "flat"]), Permutation("order", ["A", "B", "C"], when=when)]
    )
    again = DesignSpace.from_json(json.loads(json.dumps(space.to_json())))
    assert again == space == pickle.loads(pickle.dumps(space))
    assert again.canonical_cardinality == 7
    assert again.canonical({"kind": "flat", "order": "CAB"}) == {"kind": "flat"}
    assert [one["order"] for one in next(again.enumerate()) if "order" in one] == [
        "ABC", "ACB", "BAC", "BCA", "CAB", "CBA",
    ]  # fmt: skip


def test_rules_compare_orders_and_refuse_arithmetic() -> None:
    from archgym.space import Rule

    rule = Rule("inner", param("order").isin(["KCRSPQ", "QPSRCK"]))
    assert DesignSpace([LOOPS], [rule]).canonical_cardinality == 2
    with pytest.raises(InvalidValueError, match="can never match"):
        DesignSpace([LOOPS], [Rule("typo", param("order") == "KCRSPX")])
    with pytest.raises(InvalidValueError, match="not a number"):
        DesignSpace([LOOPS], [Rule("sum", param("order") + 1 > 2)])


def test_a_large_one_costs_no_memory() -> None:
    space = DesignSpace([LARGE, Integer("ways", 1, 4)])
    assert space.canonical_cardinality == 4 * math.factorial(12)
    designs = space.sample(1000, np.random.default_rng(0))
    assert len(set(designs.keys())) > 990
    for kind in (BoxEncoding, UnitCubeEncoding, FeatureEncoding, SkoptEncoding):
        encoding = kind(space)
        assert (encoding.decode(encoding.encode(designs)).codes == designs.codes).all()
    discrete = MultiDiscreteEncoding(space)
    assert discrete.nvec.tolist() == [*range(12, 1, -1), 4]
    assert (discrete.decode(discrete.encode(designs)).codes == designs.codes).all()
    assert len(space.neighbours(designs[0])) in (177, 178)


def test_draws_are_uniform() -> None:
    space = DesignSpace([Permutation("order", ["A", "B", "C", "D"])])
    rng = np.random.default_rng(0)
    for codes in (
        space.sample(24_000, rng).codes[:, 0],
        UnitCubeEncoding(space).decode(rng.random((24_000, 4))).codes[:, 0],
        MultiDiscreteEncoding(space).decode(rng.integers([4, 3, 2], size=(24_000, 3))).codes[:, 0],
    ):
        counts = np.bincount(codes, minlength=24)
        assert ((counts - 1000) ** 2 / 1000).sum() < 60  # chi square of 23 degrees: 1 in 50,000


def test_optuna_sees_keys() -> None:
    pytest.importorskip("optuna")
    space = DesignSpace([STAGES, Integer("ways", 1, 4)])
    encoding = OptunaEncoding(space)
    assert list(encoding.distributions) == [
        "stages[load]", "stages[compute]", "stages[store]", "ways",
    ]  # fmt: skip
    designs = space.sample(30, np.random.default_rng(0))
    assert (encoding.from_params(encoding.to_params(designs)).codes == designs.codes).all()
    keys = {"stages[load]": 0.9, "stages[compute]": 0.2, "stages[store]": 0.5, "ways": 0}
    assert list(encoding.from_params([keys])) == [
        {"stages": "compute-store-load", "ways": 1},
    ]


def test_neighbours_swap_two_items_or_put_one_elsewhere() -> None:
    for code in (0, 17, 719):
        here = LOOPS.value(code)
        expected = set()
        for one, other in itertools.permutations(range(6), 2):
            swapped = list(here)
            swapped[one], swapped[other] = swapped[other], swapped[one]
            rest = here[:one] + here[one + 1 :]
            expected |= {"".join(swapped), rest[:other] + here[one] + rest[other:]}
        assert {LOOPS.value(int(level)) for level in LOOPS.neighbours(code)} == expected
        assert here not in expected
    neighbours = DesignSpace([LOOPS]).neighbours({"order": "KCRSPQ"})
    assert len(neighbours) == len(LOOPS.neighbours(0)) == 35


def test_the_nearest_legal_order_is_a_neighbour() -> None:
    from archgym.space import Rule

    space = DesignSpace([LOOPS], [Rule("one", param("order") == "KCRSQP")])
    assert nearest_legal(space, np.array([0])) == (1,)


def test_discordance_counts_pairs_and_is_right_invariant() -> None:
    parameter = Permutation("order", ["A", "B", "C", "D"])
    codes = np.arange(24)
    found = parameter.discordance(codes, codes)
    texts = [parameter.value(code) for code in range(24)]
    assert found == pytest.approx(np.array([[kendall(a, b) for b in texts] for a in texts]))
    for renaming in itertools.permutations("ABCD"):
        table = str.maketrans("ABCD", "".join(renaming))
        renamed = np.array([parameter.code(text.translate(table)) for text in texts])
        assert parameter.discordance(renamed, renamed) == pytest.approx(found)
