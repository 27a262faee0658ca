"""Search in two stages."""

from __future__ import annotations

from typing import Any

import pytest

import archgym
from archgym.environment.environment import Environment
from archgym.errors import AgentUnsuitableError, InvalidValueError, UnknownNameError
from archgym.evaluation.outcome import Outcome
from archgym.registry import make_agent
from archgym.space import Boolean, DesignSpace, Integer, param

LEVELS = 12


class Bowl(Environment):
    """Two groups: the goal wants ``net_*`` large, the limit wants all of them small."""

    design_space = DesignSpace(
        [
            Integer("net_a", 0, LEVELS, group="net"),
            Integer("net_b", 0, LEVELS, group="net"),
            Boolean("chip_on", group="chip"),
            Integer("chip_b", 0, LEVELS, group="chip", when=param("chip_on").isin([True])),
        ]
    )
    metrics = (
        archgym.Metric("quality_rate", "", "maximize"),
        archgym.Metric("area_um2", "um2", "minimize"),
    )
    default_objective = {"maximize": "quality_rate", "limits": ["area_um2 <= 20"]}  # noqa: RUF012
    baseline = {"net_a": 1, "net_b": 1, "chip_on": True, "chip_b": LEVELS}  # noqa: RUF012

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        net = design["net_a"] + design["net_b"]
        return {"quality_rate": 1.0 + net, "area_um2": 2.0 * net + design.get("chip_b", 0)}


def run(budget: int = 200, **hyperparameters: Any) -> tuple[Any, list[Outcome]]:
    env = Bowl()
    seen: list[Outcome] = []
    env.on_evaluated = seen.extend
    agent = make_agent("staged", env.design_space, seed=3, **hyperparameters)
    agent.search(env, budget)
    return agent, seen


def stages(seen: list[Outcome]) -> tuple[list[Outcome], list[Outcome]]:
    """The first stage, until the other group changes; the second one, until the first one does."""
    second = next(i for i, o in enumerate(seen) if o.design.get("chip_b") != LEVELS)
    held = [seen[second].design[name] for name in ("net_a", "net_b")]
    rest = seen[second:]
    length = next(
        (i for i, o in enumerate(rest) if [o.design["net_a"], o.design["net_b"]] != held), len(rest)
    )
    return seen[:second], rest[:length]


def test_the_second_stage_holds_what_the_first_one_found() -> None:
    agent, seen = run(first="net", first_limits="ignored", searcher="random")
    first, second = stages(seen)
    assert all(o.design["chip_b"] == LEVELS for o in first)
    best = max(first, key=lambda o: o.metrics["quality_rate"] or 0)
    assert agent.held == {"net_a": best.design["net_a"], "net_b": best.design["net_b"]}
    assert all(o.design["net_a"] == agent.held["net_a"] for o in second)
    assert {o.design.get("chip_b") for o in second} == {None, *range(LEVELS)}


def test_limits_count_in_the_first_stage_unless_they_are_ignored() -> None:
    kept, _ = run(first="net", searcher="local")
    ignored, _ = run(first="net", first_limits="ignored", searcher="local")
    assert sum(ignored.held.values()) == 2 * LEVELS
    # At chip_b = 12 the limit leaves an area of 8 for the nets.
    assert sum(kept.held.values()) == 4


def test_last_is_the_reverse_of_first() -> None:
    one, seen = run(first="net", searcher="ga")
    other, seen_too = run(last="chip*", searcher="ga")
    assert one.held == other.held
    assert [o.design for o in seen] == [o.design for o in seen_too]


def test_the_budget_is_shared() -> None:
    _, seen = run(budget=100, first="net", share=0.3, searcher="random")
    first, second = stages(seen)
    assert sum(not o.cached for o in first) == 30
    # The second group has only 14 designs, one of which is known: the rest goes to all parameters.
    assert sum(not o.cached for o in second) == 13
    assert sum(not o.cached for o in seen) == 100


def test_groups_are_halved_where_nothing_is_named() -> None:
    agent, _ = run(searcher="random")
    assert set(agent.held) == {"net_a", "net_b"}


@pytest.mark.parametrize(
    ("hyperparameters", "error", "message"),
    [
        ({"first": "nets"}, UnknownNameError, "net"),
        ({"first": "net", "last": "chip"}, InvalidValueError, "not both"),
        ({"first": "*"}, AgentUnsuitableError, "second stage"),
        ({"last": "net, chip"}, AgentUnsuitableError, "first stage"),
        ({"searcher": "gaa"}, UnknownNameError, "ga"),
        ({"searcher": "ppo"}, AgentUnsuitableError, "asks and tells"),
        ({"searcher": "staged"}, AgentUnsuitableError, "asks and tells"),
        ({"share": 1.0}, InvalidValueError, "share"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    hyperparameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make_agent("staged", Bowl.design_space, **hyperparameters)


def test_the_same_seed_gives_the_same_search() -> None:
    assert [o.design for o in run(budget=60)[1]] == [o.design for o in run(budget=60)[1]]


def test_rounds_take_turns() -> None:
    _, seen = run(budget=20, first="net", searcher="random", rounds=2)
    new = [outcome.design for outcome in seen if not outcome.cached]
    assert len(new) == 20
    for quarter in range(4):
        designs = new[5 * quarter : 5 * (quarter + 1)]
        nets = {(design["net_a"], design["net_b"]) for design in designs}
        chips = {design.get("chip_b") for design in designs}
        held, searched = (nets, chips) if quarter % 2 else (chips, nets)
        assert len(held) == 1
        assert len(searched) > 1
