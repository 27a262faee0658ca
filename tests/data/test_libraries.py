"""Whatever drives an environment leaves the same dataset: an agent, a loop, CleanRL, SB3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from archgym.check.agents.environments import FAMILIES, Family
from archgym.data import Dataset, Selection, load, replay, validate
from archgym.environment.environment import Environment
from archgym.registry import make_agent
from archgym.space import Designs

DESIGNS = 12
TIMING = ("simulation_s", "agent_s", "timestamp")
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
resets_in_same_step = pytest.mark.skipif(
    not hasattr(gymnasium.vector, "AutoresetMode"), reason="Gymnasium 1.0 resets in the next step"
)


def rows(data: Selection, condition: str = "") -> list[dict[str, Any]]:
    """The rows, without what may differ from run to run."""
    chosen = data.where(condition) if condition else data
    names = [n for n in data.dataset.schema.names if n not in (*TIMING, "trial_id")]
    found: list[dict[str, Any]] = chosen.arrow(names).to_pylist()
    return found


def agent_rows(family: Family, folder: Path) -> tuple[Designs, list[dict[str, Any]]]:
    """What one of our agents evaluated, illegal designs and repeats included, and its rows."""
    env = family.make(record=folder)
    env.start_trial()
    rng = np.random.default_rng(11)
    agent = make_agent("random", env.design_space, ["minimize"] * len(env.objective.goals), seed=3)
    agent.search(env, budget=DESIGNS, initial=raw_designs(env, rng))
    data = load(folder)
    valid(data)
    return Designs(
        env.design_space, data.dataset.logged_trial(data.trials[-1]["trial_id"]).codes
    ), rows(data)


def raw_designs(env: Environment, rng: np.random.Generator) -> Designs:
    """Designs that no rule has sifted, and the first of them again."""
    space = env.design_space
    codes = np.column_stack(
        [
            rng.choice(np.asarray(allowed), size=4)
            for allowed in map(space.allowed_codes, range(len(space.names)))
        ]
    )
    designs = space.canonicalise(codes)
    return designs.concatenate(designs[:1])


def valid(data: Selection) -> None:
    wrong = {check.name: check.examples for check in validate(data.dataset) if not check.passed}
    assert wrong == {}


@families
def test_what_was_recorded_can_be_made_and_evaluated_again(family: Family, tmp_path: Path) -> None:
    _, expected = agent_rows(family, tmp_path)
    found = replay(load(tmp_path), None)
    assert (found.rows, found.mismatches, found.skipped) == (len(expected), [], {})
    assert found.notes == []


@families
def test_a_hand_written_loop(family: Family, tmp_path: Path) -> None:
    designs, expected = agent_rows(family, tmp_path / "agent")
    env = gymnasium.wrappers.RecordEpisodeStatistics(family.make(record=tmp_path / "loop"))
    for action in env.unwrapped.encoding.encode(designs):  # type: ignore[attr-defined]
        env.reset()
        env.step(action)
    env.close()
    data = load(tmp_path / "loop")
    assert rows(data) == expected
    valid(data)
    assert data.trials[0]["agent"] == "external"


@resets_in_same_step
@families
def test_a_loop_in_the_style_of_cleanrl(family: Family, tmp_path: Path) -> None:
    designs, expected = agent_rows(family, tmp_path / "agent")
    made: list[Environment] = []

    def thunk() -> Environment:
        made.append(family.make(record=tmp_path / "clean"))
        return made[-1]

    envs = SyncVectorEnv([thunk, thunk], autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    envs.reset(seed=1)
    told = []
    for action in made[0].encoding.encode(designs):
        _, reward, _, _, _ = envs.step(np.stack([action, action]))
        told.append(reward)
    envs.close()
    data = load(tmp_path / "clean")
    valid(data)
    assert len(data.trials) == 2
    for number, trial in enumerate(data.trials):
        mine = rows(data, f"trial_id == {trial['trial_id']}")
        assert mine == expected
        assert [row["reward"] for row in mine] == [float(rewards[number]) for rewards in told]


@families
def test_a_script_of_stable_baselines3(family: Family, tmp_path: Path) -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    told: list[float] = []

    class Listen(BaseCallback):
        def _on_step(self) -> bool:
            told.extend(self.locals["rewards"].tolist())
            return True

    env = family.make(record=tmp_path / "ppo")
    model = PPO(
        "MlpPolicy", env, n_steps=DESIGNS, batch_size=DESIGNS, n_epochs=1, device="cpu", seed=0
    )
    model.learn(DESIGNS, callback=Listen())
    env.close()
    data = load(tmp_path / "ppo")
    valid(data)
    mine = rows(data)
    assert np.array([row["reward"] for row in mine], np.float32).tolist() == told
    # The same designs in the hands of one of our agents leave the same rows.
    again = family.make(record=tmp_path / "again")
    codes = data.dataset.logged_trial(data.trials[0]["trial_id"]).codes
    again.evaluate_batch(Designs(again.design_space, codes))
    again.close()
    assert rows(load(tmp_path / "again")) == mine
    assert load(tmp_path / "again").dataset.schema == data.dataset.schema


@resets_in_same_step
def test_environments_in_processes_of_their_own(tmp_path: Path) -> None:
    family = next(family for family in FAMILIES if family.name == "finite")
    makers: list[Callable[[], Any]] = [lambda: family.make(record=tmp_path)] * 2
    envs = AsyncVectorEnv(makers, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    envs.reset(seed=1)
    envs.action_space.seed(4)
    told = np.array([envs.step(envs.action_space.sample())[1] for _ in range(8)])
    envs.close()
    Dataset(tmp_path).seal()
    data = load(tmp_path)
    valid(data)
    recorded = [
        [row["reward"] for row in rows(data, f"trial_id == {trial['trial_id']}")]
        for trial in data.trials
    ]
    assert sorted(recorded) == sorted(told.T.tolist())
