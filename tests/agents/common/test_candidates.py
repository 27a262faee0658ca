"""Candidates near good designs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.agents.common.candidates import Candidates
from archgym.agents.common.moves import Moves
from archgym.space import Boolean, Categorical, Designs, DesignSpace, Integer, Ordinal, Real, param

SPACE = DesignSpace(
    [
        Integer("rows", 1, 8),
        Ordinal("columns", [1, 2, 4, 8]),
        Categorical("kind", ["a", "b"]),
        Real("share", 0.0, 1.0),
        Boolean("buffered"),
        Integer("depth", 1, 6, when=param("buffered") == True),  # noqa: E712
    ]
)


def exchanges(**design: Any) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    pool = Candidates(Moves(SPACE, rng), rng, 100, 4)
    return list(pool.exchanges(SPACE.designs([design]).codes))


def test_an_exchange_raises_one_parameter_and_lowers_another() -> None:
    here: dict[str, Any] = {
        "rows": 4,
        "columns": 2,
        "kind": "a",
        "share": 0.5,
        "buffered": True,
        "depth": 3,
    }
    levels = {"columns": [1, 2, 4, 8]}
    seen = set()
    for design in exchanges(**here):
        changed = {
            name: levels.get(name, list(range(20))).index(design[name])
            - levels.get(name, list(range(20))).index(value)
            for name, value in here.items()
            if design.get(name) != value and name in ("rows", "columns", "depth")
        }
        assert sorted(name for name in here if design.get(name) != here[name]) == sorted(changed)
        assert sorted(np.sign(list(changed.values()))) == [-1, 1]
        assert sorted(map(abs, changed.values())) in ([1, 1], [1, 2])
        seen.add(frozenset(changed))
    assert seen == {
        frozenset(pair) for pair in (("rows", "columns"), ("rows", "depth"), ("columns", "depth"))
    }


def test_an_inactive_parameter_is_not_exchanged() -> None:
    found = exchanges(rows=1, columns=8, kind="b", share=0.1, buffered=False)
    assert {(d["rows"], d["columns"]) for d in found} == {(2, 4), (3, 4), (2, 2)}


def test_breeding_joins_what_different_candidates_have_right() -> None:
    """Six switches that help in threes only: no change of one or two of the best helps."""
    space = DesignSpace([Integer(f"x{i}", 0, 4) for i in range(6)])
    rng = np.random.default_rng(1)
    pool = Candidates(Moves(space, rng), rng, 100, 4)

    def score(designs: Designs) -> NDArray[np.float64]:
        first, second = ((designs.codes[:, a : a + 3] == 4).all(axis=1) for a in (0, 3))
        return np.asarray(first * 1.0 + second * 1.0)

    start = np.array([[4, 4, 4, 0, 0, 0], [1, 0, 2, 4, 4, 4], [1, 2, 3, 1, 2, 3]])
    assert score(pool.neighbours(start)).max() == 1.0
    for _ in range(10):
        children = pool.bred(start)
        designs = Designs(space, np.concatenate([start, children.codes]))
        start = designs.codes[score(designs).argsort(kind="stable")[::-1]]
    assert score(Designs(space, start)).max() == 2.0


def test_children_stay_in_the_space_and_hold_the_neighbours_of_the_best() -> None:
    rng = np.random.default_rng(2)
    pool = Candidates(Moves(SPACE, rng), rng, 100, 4)
    ranked = SPACE.sample(50, rng).codes
    children = pool.bred(ranked)
    assert SPACE.legal(children).all()
    assert (SPACE.canonicalise(children.codes.copy()).codes == children.codes).all()
    for level in range(SPACE.parameters[0].size):
        beside = ranked[0].copy()
        beside[0] = level
        assert (children.codes == beside).all(axis=1).any()
