"""Environments whose design space is narrowed by arguments: fixed, exclude, include."""

from __future__ import annotations

from typing import Any

import pytest

import archgym
from archgym.errors import ArchgymError

SMALL: dict[str, Any] = {"space": "finite"}


def test_every_search_keeps_to_what_is_left() -> None:
    env = archgym.make(
        "Conformance-v0",
        **SMALL,
        exclude={"replacement": ["lru"], "ways": [1, 2]},
        fixed={"prefetch": False},
    )
    result = archgym.make_agent("ga", env.design_space, seed=1).search(env, budget=60)
    assert result.best is not None
    for design in env.design_space.sample(100, env.np_random):
        assert design["replacement"] != "lru"
        assert design["ways"] > 2
        assert not design["prefetch"]


def test_the_baseline_moves_to_the_nearest_value_that_is_left() -> None:
    whole = archgym.make("Conformance-v0", **SMALL)
    ways = whole.baseline_design["ways"]
    less = archgym.make("Conformance-v0", **SMALL, exclude={"ways": [ways]})
    assert abs(less.baseline_design["ways"] - ways) == 1
    assert less.design_space.broken_rule(less.baseline_design) == ""


def test_given_parameters_are_held_unless_named() -> None:
    env = archgym.make("Accelerator-v0", workload="alexnet")
    assert env.design_space.fixed == {"technology": "cmos28"}
    newer = archgym.make("Accelerator-v0", workload="alexnet", fixed={"technology": "cmos7"})
    assert newer.baseline_design["technology"] == "cmos7"
    searched = archgym.make("Accelerator-v0", workload="alexnet", include=["technology"])
    assert searched.design_space.fixed == {}
    count = searched.design_space["technology"].size
    whole, held = (one.design_space.canonical_cardinality for one in (searched, env))
    assert whole == count * held


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"include": "ways"}, "include must be a list"),
        ({"include": ["way"]}, "Did you mean 'ways'"),
        ({"exclude": {"ways": [99]}}, "from 1 to 16"),
        ({"exclude": {"ways": [4]}, "fixed": {"ways": 4}}, "excluded from the search"),
    ],
)
def test_bad_arguments_are_refused(arguments: Any, says: str) -> None:
    with pytest.raises(ArchgymError, match=says):
        archgym.make("Conformance-v0", **SMALL, **arguments)


def test_a_baseline_that_is_moved_has_the_parameters_that_act_then() -> None:
    env = archgym.make("Conformance-v0", exclude={"prefetch": [False]})
    baseline = archgym.make("Conformance-v0").baseline_design
    assert env.baseline_design == {**baseline, "prefetch": True, "distance": 1}
