"""Rows of other libraries name who asked for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import archgym
from archgym.data import Dataset, load
from archgym.data.journal import with_checksum
from archgym.errors import BudgetExhausted, InvalidValueError
from archgym.experiment import read_experiment
from archgym.experiment.spec.checks import check_experiment
from archgym.experiment.spec.expand import expand
from tests.helpers import Adder

ACTIONS = [np.array([x, y, 0, 0]) for x in range(4) for y in range(3)]


def the_trial(folder: Path) -> dict[str, Any]:
    (row,) = Dataset(folder).trials().to_pylist()
    return dict(row)


def described(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["agent"], row["seed"], row["label"], row["budget"]


def test_rows_name_their_library(tmp_path: Path) -> None:
    env = gymnasium.make(
        "archgym/Conformance-v0",
        record=tmp_path,
        agent="cleanrl-ppo",
        seed=np.int64(7),
        hyperparameters={"learning_rate": np.float32(0.5), "layers": (64, 64), "anneal": True},
        label="train",
        budget=50,
    )
    env.reset(seed=7)
    env.step(env.action_space.sample())
    env.close()
    row = the_trial(tmp_path)
    assert (row["agent"], row["seed"], row["label"], row["budget"]) == (
        "cleanrl-ppo",
        7,
        "train",
        50,
    )
    assert json.loads(row["hyperparameters"]) == {
        "learning_rate": 0.5,
        "layers": [64, 64],
        "anneal": True,
    }
    assert load(tmp_path).arrow(["agent", "seed", "label"]).to_pylist() == [
        {"agent": "cleanrl-ppo", "seed": 7, "label": "train"}
    ]


def test_without_arguments_rows_are_of_an_unknown_library(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    env.reset(seed=5)  # the environment's, which draws nothing
    env.step(ACTIONS[0])
    env.close()
    row = the_trial(tmp_path)
    assert (row["agent"], row["seed"], row["label"], row["budget"]) == (
        "external",
        None,
        None,
        None,
    )
    assert row["hyperparameters"] == "{}"


def test_labels_are_told_apart(tmp_path: Path) -> None:
    for label, n in (("train", 3), ("eval", 2), (None, 1)):
        env = Adder(record=tmp_path, agent="ppo", label=label)
        for action in ACTIONS[:n]:
            env.step(action)
        env.close()
    data = load(tmp_path)
    assert [len(data.where(f"label == {name}")) for name in ("train", "eval")] == [3, 2]
    assert Dataset(tmp_path).info()["labels"] == ["eval", "train"]


def test_an_agent_of_archgym_keeps_its_own_name(tmp_path: Path) -> None:
    env = Adder(record=tmp_path, agent="mine", seed=3, label="train", budget=2)
    archgym.make_agent("random", env.design_space, seed=0).search(env, budget=5)
    env.close()
    row = the_trial(tmp_path)
    assert described(row) == ("random", 0, None, 5)


@pytest.mark.parametrize("name", ["agent", "seed", "hyperparameters", "label", "budget"])
@pytest.mark.parametrize(
    "value",
    [
        "",
        "a b",
        "../x",
        "x" * 65,
        "new\nline",
        -1,
        1.5,
        True,
        [],
        {"f": print},
        {"f": float("nan")},
    ],
)
def test_impossible_values_are_refused(name: str, value: Any) -> None:
    if name == "hyperparameters" and value == []:
        value = ["a list"]
    with pytest.raises(InvalidValueError, match=name):
        Adder(**{name: value})


def test_too_large_a_seed_is_refused() -> None:
    assert Adder(seed=2**63 - 1).trial_info.seed == 2**63 - 1
    with pytest.raises(InvalidValueError, match="below 2"):
        Adder(seed=2**63)


def test_the_episode_is_truncated_where_the_budget_ends(tmp_path: Path) -> None:
    env = Adder(record=tmp_path, episode_length=100, budget=3)
    env.reset()
    ends = [env.step(action)[2:4] for action in (ACTIONS[0], ACTIONS[0], ACTIONS[1], ACTIONS[2])]
    assert ends == [(False, False)] * 3 + [(False, True)]  # one was known already
    env.reset()
    with pytest.raises(BudgetExhausted, match="budget 3"):
        env.step(ACTIONS[3])
    env.close()
    assert Dataset(tmp_path).info()["simulated"] == 3
    assert env.step(ACTIONS[3])[3] is False  # a new trial, with a new budget


def test_a_learner_ends_where_the_budget_does(tmp_path: Path) -> None:
    from stable_baselines3 import PPO

    env = archgym.make("Conformance-v0", record=tmp_path, agent="sb3-ppo", seed=1, budget=40)
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=16, seed=1, device="cpu")
    with pytest.raises(BudgetExhausted):
        model.learn(10_000)
    env.close()
    assert Dataset(tmp_path).info()["simulated"] == 40


def test_a_subclass_may_have_an_argument_of_the_same_name() -> None:
    class Noisy(Adder):
        def __init__(self, *, seed: int = 0, **arguments: Any) -> None:
            self.noise = seed
            super().__init__(**arguments)

    assert Noisy(agent="x").trial_info.agent == "x"
    with pytest.raises(InvalidValueError, match="its settings do not name 'seed'"):
        Noisy(seed=3)


@pytest.mark.parametrize("name", ["agent", "seed", "hyperparameters", "label", "budget"])
def test_experiments_say_it_themselves(name: str) -> None:
    experiment = read_experiment(
        {
            "name": "x",
            "budget": 3,
            "environments": [{"id": "Conformance-v0", "arguments": {name: 1}}],
            "agents": [{"name": "random"}],
        }
    )
    with pytest.raises(InvalidValueError, match=rf"environments\[0\].arguments: {name}"):
        check_experiment(experiment, expand(experiment))


def test_a_dataset_from_before_there_were_labels_is_read(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    env.step(ACTIONS[0])
    env.end_trial()
    (journal,) = (tmp_path / "journal").glob("*.jsonl")
    first, *rows = journal.read_bytes().splitlines(keepends=True)
    trial = json.loads(first)["trial"]
    del trial["label"]
    line, _ = with_checksum({"trial": trial, "n": 0}, 0)
    journal.write_bytes(line)
    assert len(rows) == 2
    assert Dataset(tmp_path).trials()["label"].to_pylist() == [None]
