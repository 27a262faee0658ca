"""Design spaces without some values of their parameters."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from archgym.environment.arguments import search_arguments
from archgym.errors import DesignError, InvalidValueError, UnknownNameError
from archgym.space import (
    Boolean,
    BoxEncoding,
    Categorical,
    Designs,
    DesignSpace,
    Integer,
    MultiDiscreteEncoding,
    Ordinal,
    Permutation,
    Real,
    Rule,
    param,
)
from archgym.space.designs import MISSING, recoded

SPACE = DesignSpace(
    [
        Categorical("refresh", ["none", "all", "bank"]),
        Integer("postponed", 0, 8, when=param("refresh") != "none"),
        Ordinal("size", [1, 2, 4, 8, 16]),
        Integer("ways", 2, 10, step=2, unit="ways"),
        Boolean("prefetch"),
        Categorical("policy", ["lru", "fifo", "random"]),
    ],
    [
        Rule("small", param("ways") * param("size") <= 80),
        Rule("no_lru", (param("policy") != "lru") | (param("refresh") != "none")),
    ],
)
OUT: dict[str, list[Any]] = {
    "refresh": ["none"],
    "size": [4],
    "ways": [4, 10],
    "prefetch": [True],
    "policy": ["fifo"],
}


def keeps(design: dict[str, Any]) -> bool:
    return all(design.get(name) not in values for name, values in OUT.items())


def everything(space: DesignSpace) -> list[dict[str, Any]]:
    return [design for chunk in space.enumerate() for design in chunk]


def test_the_space_holds_exactly_the_designs_without_the_values() -> None:
    less = SPACE.exclude(OUT)
    wanted = [design for design in everything(SPACE) if keeps(design)]
    assert everything(less) == wanted
    assert less.canonical_cardinality == len(wanted)
    assert less.raw_cardinality == 2 * 9 * 4 * 3 * 1 * 2
    drawn = less.sample(500, np.random.default_rng(0))
    assert all(keeps(design) for design in drawn)
    assert {design["size"] for design in drawn} == {1, 2, 8, 16}


@pytest.mark.parametrize("encoding", [MultiDiscreteEncoding, BoxEncoding])
def test_encodings_reach_every_value_that_is_left(encoding: Any) -> None:
    less = SPACE.exclude(OUT)
    view = encoding(less)
    view.space.seed(1)
    decoded = [view.space.sample() for _ in range(400)]
    designs = view.decode(np.array(decoded))
    assert all(keeps(design) for design in designs)
    assert {design["policy"] for design in designs} == {"lru", "random"}
    legal = designs[less.legal(designs)]
    assert list(view.decode(view.encode(legal))) == list(legal)


def test_neighbours_step_over_what_is_excluded() -> None:
    less = SPACE.exclude({"size": [4]}).fix({"prefetch": False})
    design = {"refresh": "none", "size": 2, "ways": 2, "policy": "fifo", "prefetch": False}
    sizes = {near["size"] for near in less.neighbours(design)}
    assert sizes == {1, 2, 8}


def test_json_pickle_and_merging() -> None:
    less = SPACE.exclude(OUT)
    assert DesignSpace.from_json(less.to_json()) == less != SPACE
    assert pickle.loads(pickle.dumps(less)) == less
    assert SPACE.exclude({"size": [4]}).exclude({"size": [8]}) == SPACE.exclude({"size": [4, 8]})
    assert less.release(OUT) == SPACE
    assert SPACE.fix({"size": 4}).release(["size"]) == SPACE
    assert SPACE.exclude({"size": []}) == SPACE
    assert SPACE.to_json().keys() == {"parameters", "rules", "fixed"}


def test_designs_go_from_one_space_to_the_other() -> None:
    less = SPACE.exclude(OUT)
    designs = less.sample(100, np.random.default_rng(3))
    assert list(Designs(SPACE, recoded(designs, SPACE))) == list(designs)
    assert (SPACE.rank(designs) >= 0).all()
    all_of_them = SPACE.sample(200, np.random.default_rng(3))
    codes, ranks = recoded(all_of_them, less), less.rank(all_of_them)
    for design, row, rank in zip(all_of_them, codes, ranks, strict=True):
        assert (row == MISSING).any() == (rank < 0) == (not keeps(design))


@pytest.mark.parametrize("n", range(5))
def test_arguments_that_make_one_space_of_another(n: int) -> None:
    offered = SPACE.exclude({"refresh": ["none"]}).fix({"size": 8})
    cases: list[tuple[DesignSpace, dict[str, Any]]] = [
        (offered, {"size": 8}),
        (offered, {"size": 8, "ways": 4}),
        (offered.release(["size"]).exclude({"policy": ["lru"]}), {}),
        (SPACE.exclude({"ways": [2]}), {"size": 2}),
        (SPACE.exclude({"refresh": ["bank"]}), {"refresh": "none"}),
    ]
    wanted, fixed = cases[n]
    arguments = search_arguments(wanted, fixed, offered)
    made = offered.release(arguments.get("include", ())).exclude(arguments.get("exclude", {}))
    made = made.fix(arguments.get("fixed", {}))
    assert made == wanted.without_fixed().fix(fixed)


@pytest.mark.parametrize(
    ("exclude", "error", "says"),
    [
        ({"refesh": ["none"]}, UnknownNameError, "Did you mean 'refresh'"),
        ({"refresh": ["nnone"]}, DesignError, "Did you mean 'none'"),
        ({"refresh": "none"}, InvalidValueError, r"must be a list of values, as in {refresh"),
        ({"refresh": None}, InvalidValueError, "must be a list"),
        ({"refresh": ["none", "all", "bank"]}, InvalidValueError, "no value of 'refresh' is left"),
        (["refresh"], InvalidValueError, "must be a mapping"),
        ({"ways": [3]}, DesignError, "from 2 to 10 in steps of 2"),
        ({"prefetch": [1]}, DesignError, "prefetch"),
    ],
)
def test_bad_input(exclude: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        SPACE.exclude(exclude)


def test_real_numbers_and_orders_keep_all_values() -> None:
    space = DesignSpace([Real("volt", 0.5, 1.0), Permutation("order", ["a", "b", "c"])])
    for exclude in ({"volt": [0.5]}, {"order": [["a", "b", "c"]]}):
        with pytest.raises(InvalidValueError, match="single values cannot be excluded"):
            space.exclude(exclude)


def test_a_value_that_is_excluded_is_refused_with_the_reason() -> None:
    less = SPACE.exclude({"refresh": ["none"]})
    design = {"refresh": "none", "size": 1, "ways": 2, "prefetch": False, "policy": "fifo"}
    with pytest.raises(DesignError, match="excluded from the search"):
        less.codes(design)
    with pytest.raises(DesignError, match="excluded from the search"):
        less.fix({"refresh": "none"})
    with pytest.raises(DesignError, match="excluded from the search"):
        less.parse("refresh", "none")
    with pytest.raises(DesignError, match="excluded"):
        SPACE.fix({"refresh": "none"}).exclude({"refresh": ["none"]})
