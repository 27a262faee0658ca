"""The operators that agents share: what they reach, and what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.agents.common.moves import Moves
from archgym.agents.common.scores import costs
from archgym.agents.common.unseen import Unseen
from archgym.envs.conformance import ConformanceEnvironment
from archgym.space import Boolean, Categorical, DesignSpace, Integer, Ordinal, Real, Rule, param

FLAT = DesignSpace(
    [
        Categorical("kind", ["a", "b", "c", "d"]),
        Ordinal("size", [1, 2, 4, 8, 16]),
        Integer("count", 0, 999),
        Boolean("flag"),
        Real("share", 0.0, 1.0),
        Real("rate", 1e-3, 1e3, log=True),
    ]
)
NESTED = DesignSpace(
    [
        Boolean("cache"),
        Categorical("policy", ["lru", "fifo", "random"], when=param("cache") == True),  # noqa: E712
        Integer("history", 1, 8, when=param("policy") == "lru"),
        Boolean("other"),
    ]
)


def moves(space: DesignSpace, seed: int = 0) -> Moves:
    return Moves(space, np.random.default_rng(seed))


@pytest.mark.parametrize("changes", [1, 3, 6, 99])
def test_mutation_moves_the_number_of_parameters_asked_for(changes: int) -> None:
    start = FLAT.sample(500, np.random.default_rng(1)).codes
    moved = moves(FLAT).mutate(start, np.full(500, changes)).codes
    differing = (moved != start).sum(axis=1)
    assert differing.max() == min(changes, 6)
    assert (differing == min(changes, 6)).mean() > 0.99  # a tiny step of a real may round to none


def test_mutation_of_nothing_changes_nothing() -> None:
    start = NESTED.sample(50, np.random.default_rng(1)).codes
    assert (moves(NESTED).mutate(start, np.zeros(50, np.int64)).codes == start).all()


def test_one_move_reaches_every_level_of_a_parameter_and_small_steps_are_common() -> None:
    start = np.repeat(FLAT.designs([_middle()]).codes, 20_000, axis=0)
    moved = moves(FLAT).mutate(start, np.ones(20_000, np.int64)).codes
    for position in (0, 1, 3):
        assert set(moved[:, position].tolist()) == set(range(FLAT.parameters[position].size))
    step = np.abs(moved[:, 2] - start[:, 2])
    step = step[step > 0]
    assert step.max() > 400
    assert 0.05 < (step == 1).mean() < 0.2
    for position in (4, 5):
        parameter = FLAT.parameters[position]
        shift = np.abs(
            parameter.unit_interval(moved[:, position])
            - parameter.unit_interval(start[:, position])
        )
        shift = shift[shift > 0]
        assert (shift < 0.01).any()
        assert (shift > 0.4).any()


def test_around_a_design_is_every_single_move_of_what_has_few_levels() -> None:
    start = FLAT.designs([_middle()]).codes
    near = moves(FLAT).around(start).codes
    moved = near != start
    assert moved.sum(axis=1).max() == 1
    for position in (0, 1, 3):
        levels = near[moved[:, position], position].tolist()
        assert sorted([*levels, start[0, position]]) == list(range(FLAT.parameters[position].size))
    steps = np.abs(near[moved[:, 2], 2] - start[0, 2])
    assert steps.min() == 1
    assert steps.max() >= 256
    assert len(steps) < 20
    for position in (4, 5):
        assert 10 <= moved[:, position].sum() <= 20
    first = {int(row.argmax()) for row in moved[:6]}
    assert len(first) >= 5  # parameters take turns; a tiny step of a real may round to none


def test_around_a_design_what_becomes_active_takes_a_level_and_the_rest_is_left_out() -> None:
    off = NESTED.designs([{"cache": False, "other": False}]).codes
    assert len(moves(NESTED).around(off)) == 2
    on = NESTED.designs([{"cache": True, "policy": "lru", "history": 3, "other": False}]).codes
    near = moves(NESTED).around(on)
    assert len(near) == len(set(near.keys())) == 1 + 2 + 7 + 1
    assert {"cache": False, "other": False} in list(near)


@pytest.mark.parametrize("code", [0, 1, 7])
def test_steps_from_the_ends_stay_inside_and_go_somewhere(code: int) -> None:
    space = DesignSpace([Integer("x", 0, 7), Boolean("y")])
    start = np.tile(np.array([[code, 0]]), (400, 1))
    moved = moves(space).mutate(start, np.full(400, 2)).codes[:, 0]
    assert set(moved.tolist()) == set(range(8)) - {code}


def test_children_take_every_level_from_a_parent_that_has_it() -> None:
    rng = np.random.default_rng(2)
    first, second = NESTED.sample(400, rng).codes, NESTED.sample(400, rng).codes
    child = moves(NESTED).crossover(first, second).codes
    assert (NESTED.canonicalise(child.copy()).codes == child).all()
    active = child >= 0
    inherited = (child == first) | (child == second)
    in_a_parent = (first >= 0) | (second >= 0)
    assert inherited[active & in_a_parent].all()
    for parent in (first, second):
        differ = active & (first != second) & (first >= 0) & (second >= 0)
        assert 0.35 < (child == parent)[differ].mean() < 0.65


def test_a_parameter_that_becomes_active_takes_any_level() -> None:
    start = np.repeat(NESTED.designs([{"cache": False, "other": False}]).codes, 4000, axis=0)
    moved = moves(NESTED).mutate(start, np.ones(4000, np.int64))
    assert {d["policy"] for d in moved if "policy" in d} == {"lru", "fifo", "random"}
    assert {d["history"] for d in moved if "history" in d} == set(range(1, 9))


def test_unseen_gives_each_design_once_where_one_branch_is_hard_to_hit() -> None:
    gates = [
        Boolean(f"g{i}", when=None if i == 0 else param(f"g{i - 1}") == True)  # noqa: E712
        for i in range(12)
    ]
    space = DesignSpace([*gates, Integer("deep", 1, 300, when=param("g11") == True)])  # noqa: E712
    unseen = Unseen(space, np.random.default_rng(0))
    keys: list[int] = []
    while len(batch := unseen.take(50)):
        keys += batch.keys()
    assert len(keys) == len(set(keys)) == space.canonical_cardinality == 312
    assert unseen.exhausted


def test_unseen_gives_up_on_a_space_with_rules_that_leave_few_reals() -> None:
    space = DesignSpace(
        [Real("x", 0.0, 1.0), Categorical("kind", ["a", "b"])],
        [Rule("narrow", param("x") <= 0.0003)],
    )
    unseen = Unseen(space, np.random.default_rng(0))
    assert unseen.size == float("inf")
    designs = unseen.take(100)
    assert len(set(designs.keys())) == len(designs) == 62  # 31 levels of x are left
    assert len(unseen.take(1)) == 0


def test_cost_orders_designs_as_the_reward_does() -> None:
    for objective in (
        {"minimize": "access_ns", "limits": ["area_mm2 <= 0.05", "energy_pj <= 5"]},
        {"minimize": ["access_ns", "energy_pj"], "limits": ["area_mm2 <= 0.05"]},
    ):
        env = ConformanceEnvironment(objective=objective)
        outcomes = env.evaluate_batch(env.design_space.sample(400, np.random.default_rng(3)))
        assert {"ok", "failed"} <= {outcome.status for outcome in outcomes}
        cost, reward = costs(outcomes), outcomes.reward
        assert np.isfinite(cost).all()
        order = np.argsort(cost, kind="stable")
        assert (np.diff(reward[order]) <= 1e-15).all()
        assert len(np.unique(cost)) >= len(np.unique(reward.round(9)))


def _middle() -> dict[str, object]:
    return {"kind": "b", "size": 4, "count": 500, "flag": False, "share": 0.5, "rate": 1.0}
