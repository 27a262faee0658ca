"""Minari datasets for offline learners: their kinds of actions, and lengths of episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import archgym
from archgym.data import Selection, load
from archgym.data.rows import Rows
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.export.files import export

minari = pytest.importorskip("minari")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Minari looks for datasets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Selection:
    folder = tmp_path_factory.mktemp("finite")
    env = archgym.make("Conformance-v0", space="finite", record=folder)
    for seed in (0, 1):
        archgym.make_agent("random", env.design_space, seed=seed).search(env, budget=20)
    env.close()
    return load(folder)


def the_dataset() -> Any:
    (name,) = minari.list_local_datasets()
    return minari.load_dataset(name)


@pytest.mark.parametrize("action", ["auto", "multi_discrete", "discrete", "box"])
@pytest.mark.parametrize("episodes", [1, 4, "4", "recorded"])
def test_the_recovered_environment_gives_what_the_dataset_has(
    action: str, episodes: str | int, data: Selection, home: Path
) -> None:
    export(data, home, "minari", action=action, episodes=episodes)
    found = the_dataset()
    env = found.recover_environment()
    assert found.spec.action_space == env.action_space
    assert type(env.action_space).__name__.lower() == {
        "auto": "multidiscrete",
        "multi_discrete": "multidiscrete",
    }.get(action, action)
    length = 1 if episodes == "recorded" else int(episodes)
    assert env.unwrapped.episode_length == length
    lengths = [len(episode) for episode in found.iterate_episodes()]
    assert max(lengths) == length
    assert sum(lengths) == len(data)
    for episode in found.iterate_episodes():
        first, _ = env.reset()
        assert episode.observations[0].tolist() == first.tolist()
        for i, taken in enumerate(episode.actions):
            assert taken in env.action_space
            seen, reward, terminated, _, _ = env.step(taken)
            assert seen.tolist() == episode.observations[i + 1].tolist()
            assert reward == episode.rewards[i]
            assert terminated == episode.terminations[i]
    env.close()


def test_real_parameters_have_levels_in_discrete_actions(tmp_path: Path, home: Path) -> None:
    env = archgym.make("Conformance-v0", record=tmp_path / "data", action="discrete", levels=9)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(6)]
    for action in actions:
        env.step(action)
    env.close()
    rows = load(tmp_path / "data")
    with pytest.raises(InvalidValueError, match="levels"):
        export(rows, tmp_path / "bad", "minari", action="discrete")
    export(rows, home, "minari", action="discrete", levels=9)
    again = the_dataset().recover_environment()
    assert again.action_space == env.action_space
    for episode, action in zip(the_dataset().iterate_episodes(), actions, strict=True):
        design = again.unwrapped.encoding.decode(episode.actions)[0]
        assert design == env.encoding.decode(np.array([action]))[0]


def test_impossible_forms(data: Selection, tmp_path: Path) -> None:
    def written(**options: Any) -> None:
        export(data, tmp_path / "bad", "minari", **options)

    with pytest.raises(UnknownNameError, match="Did you mean 'discrete'"):
        written(action="discreet")
    with pytest.raises(UnknownNameError, match="a number of designs"):
        written(episodes="4.5")
    with pytest.raises(InvalidValueError, match="episodes must be an integer of at least 1"):
        written(episodes=0)
    with pytest.raises(InvalidValueError, match="levels"):
        written(action="discrete", levels=1)
    with pytest.raises(InvalidValueError, match="lacks steps of an episode"):
        export(data.where("step != 3"), tmp_path / "bad", "minari", episodes=4)
    assert not (tmp_path / "bad").exists()
    assert isinstance(data, Rows)


@pytest.mark.full
@pytest.mark.nightly
@pytest.mark.parametrize(
    "algorithm", ["DQN", "DiscreteCQL", "DiscreteBCQ", "CQL", "TD3PlusBC", "IQL"]
)
def test_d3rlpy_learns_offline(algorithm: str, data: Selection, home: Path) -> None:
    d3rlpy = pytest.importorskip("d3rlpy", reason="needs pip install d3rlpy, and Gymnasium 1.0")
    discrete = algorithm.startswith(("D",))
    action = "discrete" if discrete else "box"
    episodes = 5
    export(data, home, "minari", action=action, episodes=episodes)
    (name,) = minari.list_local_datasets()
    replay, env = d3rlpy.datasets.get_minari(name)
    assert replay.transition_count == len(data)
    assert isinstance(env.action_space, gymnasium.spaces.Discrete) == discrete
    learner = getattr(d3rlpy.algos, f"{algorithm}Config")(batch_size=16).create(device="cpu:0")
    learner.fit(
        replay,
        n_steps=20,
        n_steps_per_epoch=20,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        show_progress=False,
    )
    observation, _ = env.reset()
    proposal = learner.predict(observation[None])[0]
    _, reward, _, _, info = env.step(proposal)
    assert -1 <= reward <= 1
    assert info["status"] in ("ok", "illegal")
