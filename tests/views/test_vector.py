from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import archgym
from archgym.data import Dataset
from archgym.errors import BudgetExhausted, DesignError, InvalidValueError
from archgym.space import BoxEncoding, Designs, FlatEncoding
from archgym.views.stepwise import StepwiseView
from archgym.views.vector import StepwiseVectorView, VectorView
from tests.helpers import Adder, Batched, Grumpy


class Watched(Batched):
    """Remembers how many designs came at once."""

    def __init__(self, **kwargs: Any) -> None:
        self.sizes: list[int] = []
        super().__init__(**kwargs)
        self.simulate_baseline()
        self.sizes.clear()

    def simulate_batch(self, designs: Designs) -> list[tuple[Any, float]]:
        self.sizes.append(len(designs))
        return super().simulate_batch(designs)


ACTIONS = np.array([[0, 1, 0, 0], [4, 4, 0, 0], [2, 3, 1, 1], [0, 1, 0, 1]])


def test_a_step_is_one_batch_with_the_results_of_single_steps() -> None:
    env, single = Watched(), Adder()
    view = VectorView(env, 4)
    first = view.reset()
    seen, rewards, dones, infos = view.step(ACTIONS)
    assert env.sizes == [2]  # one design is illegal, one is there twice
    for i, action in enumerate(ACTIONS):
        start, _ = single.reset()
        observation, reward, done, _, info = single.step(action)
        assert infos[i].pop("terminal_observation").tolist() == observation.tolist()
        assert infos[i] == info
        assert (rewards[i], dones[i]) == (np.float32(reward), done)
        assert first[i].tolist() == seen[i].tolist() == start.tolist()


def test_episodes_last_as_many_designs_as_the_environment_says() -> None:
    env = Adder(episode_length=3)
    view = VectorView(env, 2)
    first = view.reset()
    ends = []
    for _ in range(6):
        seen, _, dones, infos = view.step(ACTIONS[2:])
        ends.append(dones.tolist())
        expected = first if dones[0] else env.observe(env.evaluate_batch([infos[0]["design"]]))
        assert seen[0].tolist() == expected[0].tolist()
        assert ("terminal_observation" in infos[0]) == dones[0]
    assert ends == [[False, False], [False, False], [True, True]] * 2


@pytest.mark.parametrize("kind", [VectorView, StepwiseVectorView])
def test_a_budget_that_ends_within_a_batch(kind: type[VectorView], tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    env.start_trial(archgym.TrialInfo(trial_id="t", budget=3))
    told: list[dict[str, Any]] = []
    env.on_evaluated = lambda outcomes: told.extend(outcomes.designs)
    view = kind(env, 5)
    view.reset()
    actions = np.array([[x, 0, 0, 0] for x in range(5)])
    if kind is StepwiseVectorView:  # x and y, before the mode completes the design
        view.step(actions[:, 0])
        view.step(actions[:, 1])
        actions = actions[:, 2]
    with pytest.raises(BudgetExhausted):
        view.step(actions)
    assert [design["x"] for design in told] == [0, 1, 2]
    assert env.evaluator.simulations == 3
    view.close()
    assert [row["param.x"] for row in Dataset(tmp_path).evaluations().to_pylist()] == [0, 1, 2]


def test_uncovered_designs_do_not_end_a_batch_early() -> None:
    env = Grumpy()
    env.start_trial(archgym.TrialInfo(budget=2))
    view = VectorView(env, 4)
    view.reset()
    actions = np.array([[3, 0, 0, 0], [3, 1, 0, 0], [3, 2, 0, 0], [2, 2, 0, 0]])
    _, rewards, _, infos = view.step(actions)
    assert [info["status"] for info in infos] == ["illegal"] * 3 + ["ok"]
    assert rewards.tolist() == [-1, -1, -1, 0.5]  # the baseline's reward is a half


def test_stepwise_is_the_single_view_many_times() -> None:
    """Random walks, with parameters that are at times inactive: the same step by step."""
    n, rng = 3, np.random.default_rng(4)
    many = StepwiseVectorView(Adder(episode_length=2), n)
    singles = [StepwiseView(Adder(episode_length=2)) for _ in range(n)]
    seen = many.reset()
    assert [row.tolist() for row in seen] == [s.reset()[0].tolist() for s in singles]
    evaluated = 0
    for _ in range(60):
        masks = many.env_method("action_masks")
        assert [m.tolist() for m in masks] == [s.action_masks().tolist() for s in singles]
        actions = rng.integers(5, size=n)
        seen, rewards, dones, infos = many.step(actions)
        for i, single in enumerate(singles):
            observation, reward, done, _, info = single.step(actions[i])
            assert (rewards[i], dones[i]) == (np.float32(reward), done)
            if done:
                assert infos[i].pop("terminal_observation").tolist() == observation.tolist()
                observation, _ = single.reset()
            assert seen[i].tolist() == observation.tolist()
            for key in ("design", "metrics", "status", "reason"):
                assert infos[i].get(key) == info.get(key)
            evaluated += bool(info)
    assert many.env.evaluator.proposals == evaluated > 30


def test_completed_designs_are_one_batch() -> None:
    env = Watched()
    view = StepwiseVectorView(env, 4)
    view.reset()
    view.step(np.array([0, 1, 2, 3]))
    view.step(np.array([0, 0, 0, 0]))
    *_, dones, _ = view.step(np.array([0, 1, 0, 0]))  # the second one has a parameter more
    assert dones.tolist() == [True, False, True, True]
    assert env.sizes == [3]
    *_, dones, infos = view.step(np.array([0, 1, 0, 0]))
    assert dones.tolist() == [False, True, False, False]
    assert infos[1]["design"] == {"x": 1, "y": 0, "mode": "scaled", "scale": 2}


def test_other_encodings() -> None:
    env = Adder()
    flat = VectorView(env, 2, FlatEncoding(env.design_space))
    assert flat.action_space == Discrete(100)
    flat.reset()
    *_, infos = flat.step(np.array([0, 99]))
    assert [info["status"] for info in infos] == ["ok", "illegal"]
    box = VectorView(env, 1, BoxEncoding(env.design_space))
    box.reset()
    *_, infos = box.step(np.array([[-1.0, 1.0, 1.0, -0.1]], np.float32))
    assert infos[0]["design"] == {"x": 0, "y": 4, "mode": "scaled", "scale": 1}


def test_attributes_are_the_environments() -> None:
    env = Adder()
    view = VectorView(env, 3)
    assert view.get_attr("episode_length") == [1, 1, 1]
    assert view.get_attr("episode_length", 1) == [1]
    assert not view.has_attr("action_masks")
    assert StepwiseVectorView(env, 2).has_attr("action_masks")
    assert view.env_is_wrapped(gymnasium.Wrapper, [0, 2]) == [False, False]
    view.set_attr("episode_length", 2)
    assert env.episode_length == 2


def test_what_cannot_be_viewed_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="not an archgym environment"):
        VectorView(gymnasium.make("CartPole-v1"))
    with pytest.raises(InvalidValueError, match="n_envs must be an integer of at least 1, not 0"):
        StepwiseVectorView(Adder(), 0)
    other = archgym.make("Conformance-v0").design_space
    with pytest.raises(InvalidValueError, match="another design space"):
        VectorView(Adder(), 2, BoxEncoding(other))
    view = VectorView(Adder(), 4)
    view.reset()
    with pytest.raises(InvalidValueError, match="4 actions are needed, got 2"):
        view.step(ACTIONS[:2])
    with pytest.raises(DesignError, match="level 5 of parameter 'x'"):
        view.step(np.full((4, 4), 5))
