"""Gymnasium's descriptions of environments: they go through JSON and make the same again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

import archgym
from archgym.problem import Objective
from archgym.registry import environment_names
from tests.helpers import Adder

ARGUMENTS: dict[str, Any] = {"space": "finite", "fixed": {"ways": np.int64(4)}, "episode_length": 3}


@pytest.mark.parametrize("name", environment_names())
def test_a_registered_environment_is_described_in_json(name: str) -> None:
    spec = gymnasium.spec(f"archgym/{name}")
    data = json.loads(spec.to_json())
    assert data["kwargs"] == {"name": name}
    assert EnvSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("through", ["archgym", "gymnasium"])
def test_a_made_environment_is_made_again_from_json(through: str, tmp_path: Path) -> None:
    arguments = {**ARGUMENTS, "objective": Objective.parse("minimize energy_pj"), "seed": 3}
    arguments["record"] = tmp_path
    env: gymnasium.Env[Any, Any]
    if through == "archgym":
        env = archgym.make("Conformance-v0", **arguments)
    else:
        env = gymnasium.make("archgym/Conformance-v0", **arguments)
    assert env.spec is not None
    text = env.spec.to_json()
    again = gymnasium.make(EnvSpec.from_json(text))
    assert again.spec is not None
    assert json.loads(again.spec.to_json())["kwargs"] == json.loads(text)["kwargs"]
    assert again.unwrapped.trial_info.seed == 3  # type: ignore[attr-defined]
    assert env.action_space == again.action_space
    env.reset(seed=0)
    again.reset(seed=0)
    for _ in range(3):
        action = env.action_space.sample()
        one, other = env.step(action), again.step(action)
        assert one[0].tolist() == other[0].tolist()
        assert one[1:3] == other[1:3]
        assert one[4] == other[4]
    env.close()
    again.close()


def test_the_length_of_an_episode_is_in_the_spec_of_what_is_made() -> None:
    assert gymnasium.spec("archgym/Conformance-v0").max_episode_steps is None  # an argument
    env = gymnasium.make("archgym/Conformance-v0", episode_length=7)
    assert env.spec is not None
    assert env.spec.max_episode_steps == 7
    bare = archgym.make("Conformance-v0").spec
    assert bare is not None
    assert bare.max_episode_steps == 1


def test_an_environment_without_a_name_has_no_spec() -> None:
    assert Adder().spec is None


def test_a_module_may_be_named_with_the_environment() -> None:
    code = "import gymnasium; print(gymnasium.make('archgym:archgym/Conformance-v0').unwrapped)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ConformanceEnvironment" in done.stdout, done.stderr


def test_json_is_enough_in_a_process_that_does_not_know_archgym() -> None:
    env = archgym.make("Conformance-v0", workload=None, episode_length=2)
    assert env.spec is not None
    code = (
        "import sys, gymnasium; from gymnasium.envs.registration import EnvSpec\n"
        "print(gymnasium.make(EnvSpec.from_json(sys.argv[1])).unwrapped.episode_length)"
    )
    command = [sys.executable, "-c", code, env.spec.to_json()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "2\n", done.stderr


def test_minari_collects_from_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minari = pytest.importorskip("minari")
    pytest.importorskip("jax", reason="collecting needs pip install 'minari[create]'")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    made = gymnasium.make("archgym/Conformance-v0", episode_length=4)
    env = minari.DataCollector(made, data_format="arrow")
    env.action_space.seed(0)
    for _ in range(3):
        env.reset(seed=0)
        ended = False
        while not ended:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            ended = terminated or truncated
    data = env.create_dataset("archgym/collected-v0", author="somebody", description="a test")
    assert (data.total_episodes, data.total_steps) == (3, 12)
    again = minari.load_dataset("archgym/collected-v0").recover_environment()
    assert again.unwrapped.episode_length == 4
    assert again.action_space == env.action_space
