"""Designs that come to the same as a known one are foreseen, and passed over while others are left.

A few are let through on purpose, so shares are compared, not single designs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import archgym
from archgym.agents.common.equivalence import Equivalence
from archgym.agents.common.unseen import Unseen
from archgym.evaluation.outcome import Outcomes
from archgym.registry import make_agent
from archgym.space import Categorical, Designs, DesignSpace, Integer, Real

SPACE = DesignSpace(
    [
        Categorical("mode", ["off", "slow", "fast"]),
        Integer("size", 0, 7),
        Integer("depth", 0, 7),
        Categorical("policy", ["a", "b", "c"]),
        Real("share", 0.0, 1.0),
    ]
)
Cost = Callable[[dict[str, Any]], float]


def everything_counts(design: dict[str, Any]) -> float:
    policy = "abc".index(design["policy"])
    return float(
        ["off", "slow", "fast"].index(design["mode"])
        + 10 * design["size"]
        + 100 * design["depth"]
        + 1000 * policy
        + design["share"] / 2
    )


class Region(archgym.Environment):
    """Metrics that follow from a function that a test gives."""

    design_space = SPACE
    metrics: ClassVar = (
        archgym.Metric("time_ns", "ns"),
        archgym.Metric("energy_pj", "pJ"),
        archgym.Metric("area_mm2", "mm2"),
    )
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"mode": "off", "size": 0, "depth": 0, "policy": "a", "share": 0.0}

    incidental_arguments: ClassVar = ("cost",)

    def __init__(self, cost: Cost, **arguments: Any) -> None:
        self.cost = cost
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        cost = self.cost(design)
        return {"time_ns": 1.0 + cost, "energy_pj": 5.0 + 2.0 * cost, "area_mm2": 2.0}


def told(cost: Cost, designs: Designs) -> tuple[Equivalence, Outcomes]:
    equivalence = Equivalence(SPACE)
    outcomes = Region(cost).evaluate_batch(designs)
    equivalence.learn(outcomes.designs, outcomes)
    return equivalence, outcomes


def moved(design: dict[str, Any], **changes: list[Any]) -> Designs:
    """The design, and others in which one parameter has another value."""
    others = [{**design, name: value} for name, values in changes.items() for value in values]
    return SPACE.designs([design, *others])


HERE: dict[str, Any] = {"mode": "off", "size": 3, "depth": 3, "policy": "b", "share": 0.25}


def share_foreseen(
    equivalence: Equivalence, design: dict[str, Any], name: str, values: list[Any]
) -> float:
    return float(equivalence.likely(moved(design, **{name: values}).codes[1:]).mean())


def test_a_dead_parameter_is_found_and_the_others_are_not_taken_for_dead() -> None:
    dead_depth = moved(HERE, depth=[0, 5], size=[1, 2], policy=["a", "c"], mode=["slow", "fast"])
    equivalence, _ = told(lambda d: everything_counts({**d, "depth": 0}), dead_depth)
    assert share_foreseen(equivalence, HERE, "depth", [1, 2, 4, 6, 7]) >= 0.8
    there = {**HERE, "size": 1}  # nothing is known of depth at this size
    assert share_foreseen(equivalence, there, "depth", [0, 1, 2, 4, 5, 6, 7]) >= 0.7
    assert share_foreseen(equivalence, HERE, "size", [0, 4, 5, 6, 7]) == 0.0
    new = SPACE.sample(200, np.random.default_rng(0))
    assert not equivalence.likely(new.codes).any()


def test_a_parameter_may_be_dead_at_one_level_of_another() -> None:
    def cost(design: dict[str, Any]) -> float:
        return everything_counts({**design, **({"policy": "a"} if design["mode"] == "off" else {})})

    lines = []
    for mode in ("off", "slow", "fast"):
        for size in range(5):
            lines += list(moved({**HERE, "mode": mode, "size": size}, policy=["a"]))
    equivalence, _ = told(cost, SPACE.designs(lines))
    new = {**HERE, "size": 6}
    equivalence.expect(
        SPACE.designs([{**new, "mode": mode} for mode in ("off", "slow", "fast")]).codes
    )
    assert share_foreseen(equivalence, {**new, "mode": "off"}, "policy", ["a", "c"]) >= 0.5
    assert share_foreseen(equivalence, {**new, "mode": "slow"}, "policy", ["a", "c"]) == 0.0
    assert share_foreseen(equivalence, {**new, "mode": "fast"}, "policy", ["a", "c"]) == 0.0


def test_an_ordered_parameter_may_be_dead_above_a_level() -> None:
    def cost(design: dict[str, Any]) -> float:
        return everything_counts({**design, "size": min(design["size"], 4)})

    equivalence, _ = told(cost, moved({**HERE, "size": 4}, size=[0, 1, 3, 5, 7]))
    new = {**HERE, "size": 4, "policy": "c"}
    equivalence.expect(SPACE.designs([new]).codes)
    assert share_foreseen(equivalence, new, "size", [5, 6, 7]) >= 0.6
    assert share_foreseen(equivalence, new, "size", [0, 1, 2, 3]) == 0.0


def test_a_rule_that_proves_wrong_is_dropped() -> None:
    def cost(design: dict[str, Any]) -> float:
        small = design["size"] < 4
        return everything_counts({**design, **({"depth": 0} if small else {})})

    designs = moved({**HERE, "size": 1}, depth=[0, 5])
    equivalence, _ = told(cost, designs)
    large = {**HERE, "size": 6}
    equivalence.expect(SPACE.designs([large]).codes)
    assert share_foreseen(equivalence, large, "depth", [0, 1, 2, 4, 5, 6, 7]) >= 0.8
    outcomes = Region(cost).evaluate_batch(moved(large, depth=[0, 5]))
    equivalence.learn(outcomes.designs, outcomes)
    assert share_foreseen(equivalence, large, "depth", [1, 2, 4, 6, 7]) == 0.0


def test_a_plateau_of_few_metrics_is_no_evidence() -> None:
    designs = moved(HERE, depth=[0, 5], size=[1, 2])
    outcomes = Region(lambda d: 1.0).evaluate_batch(designs)
    equivalence = Equivalence(SPACE)
    equivalence.learn(designs, dataclasses.replace(outcomes, metrics=outcomes.metrics[:, :2]))
    assert not equivalence.aware


def test_without_equal_metrics_or_outcomes_nothing_is_foreseen() -> None:
    designs = SPACE.sample(300, np.random.default_rng(1))
    equivalence, _ = told(everything_counts, designs)
    assert not equivalence.aware
    assert not equivalence.likely(moved(HERE, depth=[1, 2]).codes).any()
    untold = Equivalence(SPACE)
    untold.expect(designs.codes)
    assert not untold.likely(designs.codes).any()


def test_designs_of_one_batch_are_no_twins_of_each_other() -> None:
    env = Region(lambda d: everything_counts({**d, "depth": 0, "share": 0.0}))
    unseen = Unseen(SPACE, np.random.default_rng(0))
    known = moved(HERE, depth=[0, 5, 7], share=[0.5, 0.75])
    unseen.learn(known, env.evaluate_batch(known))

    def alike(n: int, failures: int) -> Designs:
        new = {**HERE, "mode": "slow"}
        return moved(new, depth=list(range(8)), share=np.linspace(0, 1, 20).tolist())

    taken = unseen.take(8, alike)
    assert len(taken) == 8
    values = env.evaluate_batch(taken).metrics[:, 0]
    assert len(np.unique(values)) >= 6


def test_twins_are_proposed_when_nothing_else_is_left() -> None:
    space = DesignSpace([Integer("size", 0, 5), Integer("depth", 0, 5)])

    class Small(Region):
        design_space = space
        baseline: ClassVar = {"size": 0, "depth": 0}

    for name in ("bayesian", "local", "ga", "sa", "aco", "nsga2"):
        env = Small(lambda d: float(d["size"]))
        result = make_agent(name, space, seed=0).search(env, 100)
        assert (result.simulations, result.duplicates) == (36, 0), name


@pytest.mark.parametrize(
    "name", [pytest.param("bayesian", marks=pytest.mark.full), "local", "ga", "sa", "aco", "nsga2"]
)
def test_searches_waste_little_on_dead_parameters(name: str) -> None:
    """One parameter of five is dead, another one in two thirds of the space."""

    def cost(design: dict[str, Any]) -> float:
        used = {**design, "share": 0.0}
        if design["mode"] != "fast":
            used["policy"] = "a"
        return everything_counts(used)

    env = Region(cost)
    values: list[float] = []
    env.on_evaluated = lambda outcomes: values.extend(outcomes.metrics[:, 0])
    make_agent(name, SPACE, seed=3).search(env, 80)
    assert len(values) == 80
    assert len(values) - len(set(values)) <= 10


def test_only_the_latest_designs_are_compared_with() -> None:
    equivalence, _ = told(lambda d: everything_counts({**d, "depth": 0}), moved(HERE, depth=[0, 5]))
    assert share_foreseen(equivalence, HERE, "depth", [1, 2, 4, 6, 7]) >= 0.8
    equivalence.expect(SPACE.sample(5000, np.random.default_rng(2)).codes)
    assert share_foreseen(equivalence, HERE, "depth", [1, 2, 4, 6, 7]) == 0.0
