"""``gymnasium.make_vec``: one environment, and no step that is spent on a reset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import archgym
from archgym.data import Dataset
from archgym.errors import BudgetExhausted, DesignError, InvalidValueError, UnknownNameError

vector = pytest.importorskip("gymnasium.vector", reason="Gymnasium 1.0 has no such mode")
if not hasattr(vector, "AutoresetMode"):
    pytest.skip("Gymnasium 1.0 has no mode in which resets take no step", allow_module_level=True)

from archgym.views.batch_view import BatchView  # noqa: E402

NAME = "archgym/Conformance-v0"


def without_times(value: Any) -> Any:
    """Infos as plain values, without how long something took."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if "simulation_s" not in k}
    return (
        value.tolist()
        if isinstance(value, np.ndarray) and value.dtype != object
        else ([without_times(one) for one in value] if isinstance(value, np.ndarray) else value)
    )


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("action", ["multi_discrete", "box", "discrete"])
def test_steps_are_those_of_a_sync_vector_environment(length: int, action: str) -> None:
    arguments: dict[str, Any] = {"space": "finite", "episode_length": length, "action": action}
    ours = gymnasium.make_vec(NAME, num_envs=4, **arguments)
    theirs = gymnasium.make_vec(
        NAME,
        num_envs=4,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": vector.AutoresetMode.SAME_STEP},
        **arguments,
    )
    assert isinstance(ours.unwrapped, BatchView)
    assert ours.metadata["autoreset_mode"] is vector.AutoresetMode.SAME_STEP
    assert ours.action_space == theirs.action_space
    assert ours.observation_space == theirs.observation_space
    ours.action_space.seed(0)
    assert ours.reset(seed=3)[0].tolist() == theirs.reset(seed=3)[0].tolist()
    for _ in range(7):
        actions = ours.action_space.sample()
        one, other = ours.step(actions), theirs.step(actions)
        assert one[0] in ours.observation_space
        for a, b in zip(one[:4], other[:4], strict=True):
            assert a.tolist() == b.tolist()
            assert a.dtype == b.dtype
        found, expected = (step[4] for step in (one, other))
        for infos in (found, expected):  # the four share no evaluations there
            (infos if "cached" in infos else infos["final_info"]).pop("cached")
        assert without_times(found) == without_times(expected)


def test_every_step_evaluates_a_design_of_each(tmp_path: Path) -> None:
    envs = gymnasium.make_vec(NAME, num_envs=4, record=tmp_path, agent="cleanrl", label="train")
    envs.action_space.seed(0)
    envs.reset(seed=0)
    for _ in range(10):
        envs.step(envs.action_space.sample())
    envs.close()
    info = Dataset(tmp_path).info()
    assert (info["evaluations"], info["trials"], info["agents"]) == (40, 1, ["cleanrl"])
    assert info["labels"] == ["train"]


def test_statistics_count_every_episode() -> None:
    envs = RecordEpisodeStatistics(gymnasium.make_vec(NAME, num_envs=3, episode_length=2))
    envs.reset(seed=0)
    for _ in range(6):
        envs.step(envs.action_space.sample())
    assert envs.episode_count == 9
    assert set(envs.length_queue) == {2}


def test_an_episode_can_be_cut_off() -> None:
    envs = gymnasium.make_vec(NAME, num_envs=2, episode_length=9, max_episode_steps=2)
    envs.reset(seed=0)
    flags = [envs.step(envs.action_space.sample())[2:4] for _ in range(4)]
    assert [t.tolist() for t, _ in flags] == [[False] * 2] * 4
    assert [t.tolist() for _, t in flags] == [[False] * 2, [True] * 2] * 2


def test_some_episodes_can_begin_anew() -> None:
    envs = gymnasium.make_vec(NAME, num_envs=3, episode_length=9)
    first, _ = envs.reset(seed=0)
    seen = envs.step(envs.action_space.sample())[0]
    again, _ = envs.reset(options={"reset_mask": np.array([True, False, False])})
    assert again[0].tolist() == first[0].tolist()
    assert again[1:].tolist() == seen[1:].tolist()
    for mask in (np.array([True]), np.array([1, 0, 0])):
        with pytest.raises(InvalidValueError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})


def test_the_budget_ends_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    envs = gymnasium.make_vec(NAME, num_envs=4, budget=6, space="finite", record=tmp_path)
    envs.reset()
    actions = np.array([[0, 3, 3, 0, k % 3] for k in range(8)])
    actions[:, 2] = np.arange(8)

    def until_it_ends() -> None:
        for _ in range(40):
            envs.step(actions[:4])
            actions[:, 1] = (actions[:, 1] + 1) % 4

    with pytest.raises(BudgetExhausted):
        until_it_ends()
    envs.close()
    assert Dataset(tmp_path).info()["simulated"] == 6


def test_impossible_arguments() -> None:
    with pytest.raises(InvalidValueError, match="num_envs"):
        BatchView(archgym.make("Conformance-v0"), 0)
    with pytest.raises(InvalidValueError, match="max_episode_steps"):
        gymnasium.make_vec(NAME, max_episode_steps=0)
    with pytest.raises(UnknownNameError, match=r"Did you mean 'record'"):
        gymnasium.make_vec(NAME, num_envs=2, recrod="x")
    envs = gymnasium.make_vec(NAME, num_envs=2, space="finite")
    envs.reset()
    with pytest.raises(InvalidValueError, match="2 actions are needed, got 3"):
        envs.step(np.zeros((3, 5), dtype=int))
    with pytest.raises(DesignError):
        envs.step(np.full((2, 5), 99))
