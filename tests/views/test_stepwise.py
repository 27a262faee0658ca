from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_of_stable_baselines3

import archgym
from archgym.data import Dataset
from archgym.errors import BudgetExhausted, DesignError, InvalidValueError
from archgym.space import Boolean, DesignSpace, Integer, Real, Rule, param
from archgym.views.stepwise import Steps, StepwiseView
from tests.helpers import Adder


def walk(view: StepwiseView, actions: list[int]) -> list[tuple[Any, ...]]:
    view.reset()
    return [view.step(action) for action in actions]


@pytest.mark.parametrize("space", ["default", "finite"])
@pytest.mark.parametrize("episode_length", [1, 3])
def test_checkers_are_content(space: str, episode_length: int) -> None:
    env = archgym.make("Conformance-v0", space=space, episode_length=episode_length)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(StepwiseView(env, levels=8), skip_render_check=True)
        check_env_of_stable_baselines3(StepwiseView(env, levels=8))


def test_one_parameter_a_step_and_the_last_one_evaluates(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    view = StepwiseView(env)
    assert view.action_space == Discrete(5)
    steps = walk(view, [1, 3, 1, 0])
    assert [step[1:4] for step in steps[:3]] == [(0.0, False, False)] * 3
    assert [step[4] for step in steps[:3]] == [{}] * 3
    _, reward, done, truncated, info = steps[3]
    assert info["design"] == {"x": 1, "y": 3, "mode": "scaled", "scale": 1}
    assert (done, truncated) == (True, False)
    assert reward == env.evaluate(info["design"]).reward > 0
    assert env.simulated == [info["design"]]
    view.close()
    rows = Dataset(tmp_path).evaluations().to_pylist()
    assert [row["reward"] for row in rows] == [reward, reward]


def test_an_inactive_parameter_takes_no_step() -> None:
    view = StepwiseView(Adder())
    *_, last = walk(view, [1, 3, 0])
    assert last[2]
    assert last[4]["design"] == {"x": 1, "y": 3, "mode": "plain"}


def test_fixed_parameters_take_no_step() -> None:
    view = StepwiseView(Adder(fixed={"x": 4, "mode": "scaled"}))
    view.reset()
    assert view.next_parameter == "y"
    view.step(1)
    assert view.next_parameter == "scale"
    assert view.step(1)[4]["design"] == {"x": 4, "y": 1, "mode": "scaled", "scale": 2}


def test_where_nothing_is_active_there_is_one_design_and_one_step() -> None:
    space = DesignSpace(
        [Boolean("on"), Integer("n", 1, 3, when=param("on").isin([True]))], fixed={"on": False}
    )
    steps = Steps(space)
    partial = steps.start()
    assert steps.choose(partial, 2)
    assert list(steps.designs([partial])) == [{"on": False}]


def test_observation_is_the_partial_design_what_is_next_and_the_last_metrics() -> None:
    env = Adder(episode_length=2)
    view = StepwiseView(env)
    baseline, _ = env.reset()
    start, _ = view.reset()
    assert start.tolist() == [0, 0, 0, 0, 1, 0, 0, 0, *baseline[4:]]
    steps = walk(view, [4, 0, 0, 2, 2, 0])
    np.testing.assert_allclose(steps[0][0][:8], [0.8, 0, 0, 0, 0, 1, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(steps[1][0][:8], [0.8, -0.8, 0, 0, 0, 0, 1, 0], rtol=1e-6)
    seen = env.observe(env.evaluate_batch([{"x": 4, "y": 0, "mode": "plain"}]))[0]
    assert steps[2][0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, *seen[4:]]
    assert [step[2] for step in steps] == [False] * 5 + [True]
    final = steps[5][0]
    np.testing.assert_allclose(final[:8], [0, 0, -0.5, 0, 0, 0, 0, 0], atol=1e-6)
    assert final[8:].tolist() == baseline[4:].tolist()  # the baseline's own design


def test_masks_are_the_levels_there_are_and_those_that_keep_the_rules() -> None:
    view = StepwiseView(Adder())
    view.reset()
    assert view.action_masks().tolist() == [True] * 5
    view.step(4)
    assert view.action_masks().tolist() == [True, True, True, True, False]  # x + y < 8
    view.step(3)
    assert view.action_masks().tolist() == [True, True, False, False, False]


def test_masked_random_walks_reach_every_legal_design_and_no_other() -> None:
    env = Adder()
    view, rng = StepwiseView(env), np.random.default_rng(0)
    view.reset()
    for _ in range(5000):
        _, _, done, _, _ = view.step(rng.choice(np.flatnonzero(view.action_masks())))
        if done:
            view.reset()
    assert env.evaluator.illegal == 0
    assert env.evaluator.simulations == 72


def test_masks_wait_for_all_that_a_rule_depends_on() -> None:
    # The rule looks at a fixed parameter that is active under a free one which comes last.
    space = DesignSpace(
        [
            Integer("a", 1, 3),
            Boolean("on"),
            Integer("b", 1, 3, when=param("on").isin([True])),
        ],
        [Rule("sum", param("a") + param("b") < 5)],
        fixed={"b": 2},
    )
    steps = Steps(space)
    partial = steps.start()
    assert steps.mask(partial).tolist() == [True, True, True]
    steps.choose(partial, 2)
    assert steps.mask(partial).tolist() == [True, False, False]


def test_masks_allow_everything_where_no_level_keeps_the_rules() -> None:
    space = DesignSpace(
        [Integer("a", 1, 3), Integer("b", 2, 3)], [Rule("sum", param("a") + param("b") < 5)]
    )
    steps = Steps(space)
    partial = steps.start()
    steps.choose(partial, 2)
    assert steps.mask(partial).tolist() == [True, True, False]


def test_actions_beyond_the_levels_wrap_around_in_equal_shares() -> None:
    steps = Steps(Adder.design_space)
    counts: dict[Any, int] = {}
    for action in range(steps.n_actions):
        partial = steps.start()
        for choice in (0, 0, action):
            done = steps.choose(partial, choice)
        mode = "plain" if done else "scaled"
        counts[mode] = counts.get(mode, 0) + 1
    assert counts == {"plain": 3, "scaled": 2}
    with pytest.raises(DesignError, match="action 5 does not exist: 0 to 4"):
        steps.choose(steps.start(), 5)


class Tuned(Adder):
    """A real parameter beside a whole one."""

    design_space = DesignSpace([Integer("x", 0, 4), Real("y", 0.0, 1.0)])
    baseline: ClassVar = {"x": 2, "y": 0.5}


def test_real_parameters_are_seen_at_levels() -> None:
    with pytest.raises(InvalidValueError, match="needs levels="):
        StepwiseView(Tuned())
    view = StepwiseView(Tuned(), levels=3)
    assert [walk(view, [0, a])[1][4]["design"]["y"] for a in range(3)] == [0.0, 0.5, 1.0]


def test_the_budget_holds_in_the_view() -> None:
    env = Adder()
    env.start_trial(archgym.TrialInfo(budget=1))
    view = StepwiseView(env)
    walk(view, [0, 0, 0])
    with pytest.raises(BudgetExhausted):
        walk(view, [0, 0, 0])
    assert view.next_parameter == "x"


def test_illegal_and_foreign_are_told_apart() -> None:
    _, reward, done, _, info = walk(StepwiseView(Adder()), [4, 4, 0])[-1]
    assert (reward, done, info["status"]) == (-1.0, True, "illegal")
    with pytest.raises(InvalidValueError, match="not an archgym environment"):
        StepwiseView(gymnasium.make("CartPole-v1"))
    wrapped = gymnasium.make("archgym/Conformance-v0", space="finite")
    assert isinstance(StepwiseView(wrapped).env, archgym.Environment)
