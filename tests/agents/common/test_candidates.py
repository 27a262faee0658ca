"""Candidates near good designs."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.agents.common.candidates import Candidates
from archgym.agents.common.moves import Moves
from archgym.space import Boolean, Categorical, DesignSpace, Integer, Ordinal, Real, param

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
