"""``render_mode="rgb_array"``: pictures of designs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import AddRenderObservation, RecordVideo, RenderCollection

import archgym
from archgym.registry import environment_names
from archgym.views.multi_agent import ParallelView
from archgym.views.stepwise import StepwiseView
from tests.helpers import Adder

GREEN, RED, AMBER, BLUE = (43, 138, 86), (192, 57, 43), (185, 119, 14), (59, 111, 182)


def pixels(picture: Any, colour: tuple[int, int, int]) -> int:
    return int((picture == np.array(colour, dtype=np.uint8)).all(axis=2).sum())


@pytest.mark.parametrize("name", environment_names())
def test_every_environment_has_a_picture(name: str) -> None:
    env = archgym.make(name, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    env.action_space.seed(0)
    seen = [first]
    for _ in range(3):
        env.step(env.action_space.sample())
        seen.append(env.render())
    for picture in seen:
        assert picture.dtype == np.uint8
        assert picture.shape == first.shape
        assert picture.shape[2] == 3
    assert any((picture != first).any() for picture in seen)


def test_sides_are_even_as_video_encoders_want_them() -> None:
    for fixed in ({}, {"x": 1}):
        height, width, _ = Adder(render_mode="rgb_array", fixed=fixed).render().shape
        assert height % 2 == width % 2 == 0


def test_the_picture_says_what_became_of_the_design() -> None:
    env = Adder(render_mode="rgb_array", objective="minimize total_ns", space="default")
    assert pixels(env.render(), BLUE) > 500  # the baseline
    env.evaluate({"x": 0, "y": 0, "mode": "plain"})
    good = env.render()
    assert pixels(good, GREEN) > 2500  # the status, and a metric that is better
    assert pixels(good, RED) == 0
    env.evaluate({"x": 4, "y": 3, "mode": "plain"})
    assert 0 < pixels(env.render(), RED) < 2000  # a metric that is worse
    env.evaluate({"x": 4, "y": 4, "mode": "plain"})
    illegal = env.render()
    assert pixels(illegal, RED) > 2000
    assert pixels(illegal, GREEN) == 0


def test_a_broken_limit_shows() -> None:
    objective = {"minimize": "total_ns", "limits": ["total_ns <= 3"]}
    env = Adder(render_mode="rgb_array", objective=objective)
    env.evaluate({"x": 3, "y": 3, "mode": "plain"})
    assert pixels(env.render(), AMBER) > 2000


def test_looking_changes_nothing() -> None:
    env, blind = Adder(render_mode="rgb_array", budget=3), Adder(budget=3)
    env.render()
    for x in range(3):
        design = {"x": x, "y": 0, "mode": "plain"}
        assert env.evaluate(design).metrics == blind.evaluate(design).metrics
        env.render()
    assert env.evaluator.simulations == 3


def test_gymnasiums_wrappers_get_frames() -> None:
    env = gymnasium.make("archgym/Conformance-v0", render_mode="rgb_array")
    env.reset(seed=0)
    shape = env.render().shape  # type: ignore[union-attr]
    collected = RenderCollection(env)
    collected.reset(seed=0)
    collected.step(env.action_space.sample())
    assert [frame.shape for frame in collected.render()] == [shape] * 2  # type: ignore[union-attr]
    seen, _ = AddRenderObservation(env).reset(seed=0)
    assert seen.shape == shape


def test_views_show_the_environments_picture() -> None:
    env = archgym.make("Conformance-v0", render_mode="rgb_array", space="finite")
    for view in (StepwiseView(env), ParallelView(env)):
        assert view.render_mode == "rgb_array"
        assert "rgb_array" in view.metadata["render_modes"]
        assert view.render().shape == env.render().shape


@pytest.mark.skipif(not hasattr(gymnasium.vector, "AutoresetMode"), reason="Gymnasium 1.0")
def test_a_vector_environment_has_a_picture_of_each() -> None:
    envs = gymnasium.make_vec("archgym/Conformance-v0", num_envs=3, render_mode="rgb_array")
    envs.action_space.seed(0)
    envs.reset(seed=0)
    first = envs.render()
    assert first is not None
    assert len(first) == 3
    envs.step(envs.action_space.sample())
    frames = envs.render()
    assert frames is not None
    assert all(not np.array_equal(one, frames[0]) for one in frames[1:])
    blind = gymnasium.make_vec("archgym/Conformance-v0", num_envs=3)
    assert blind.render() is None


def test_a_video_is_recorded(tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="RecordVideo needs moviepy")
    made = gymnasium.make("archgym/Conformance-v0", render_mode="rgb_array", episode_length=5)
    env: gymnasium.Env[Any, Any] = RecordVideo(made, str(tmp_path), disable_logger=True)
    env.reset(seed=0)
    for _ in range(5):
        env.step(env.action_space.sample())
    env.close()
    (video,) = tmp_path.glob("*.mp4")
    assert video.stat().st_size > 1000
