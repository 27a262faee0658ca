from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

import archgym
from archgym.check import check
from archgym.data import Dataset
from archgym.data.dataset import TIMING_COLUMNS
from archgym.errors import ArchgymError, InvalidValueError, UnknownNameError
from archgym.evaluation.outcome import Incidental
from archgym.registry import environment_class, environment_names
from archgym.space import BoxEncoding, DesignSpace, Integer, Real, Rule, param
from tests.helpers import Adder, Grumpy


def test_reset_simulates_nothing_and_observes_the_baseline() -> None:
    env = Adder()
    observation, info = env.reset(seed=1)
    assert env.simulated == []
    assert info == {}
    design = env.design_space.designs([{"x": 2, "y": 2, "mode": "plain"}])
    assert observation[:4].tolist() == BoxEncoding(env.design_space).encode(design)[0].tolist()
    assert observation[4:].tolist() == [0.0, 0.0]
    observation[:] = 9.0
    assert env.reset()[0].max() <= 1.0


def test_observations_are_bounded_functions_of_the_log_ratio() -> None:
    env = Adder()
    _, _, _, _, info = env.step(np.array([0, 0, 0, 0]))
    observation = env.observe(env.evaluate_batch([info["design"]]))[0]
    ratio = info["metrics"]["total_ns"] / 5.0
    assert observation[4] == pytest.approx(np.tanh(np.log(ratio) / 2))
    assert observation.dtype == np.float32


def test_episodes_have_the_length_that_was_asked_for() -> None:
    env = Adder(episode_length=3)
    for _ in range(2):
        env.reset()
        assert [env.step(np.array([1, 1, 0, 0]))[2] for _ in range(3)] == [False, False, True]


def test_render_shows_the_last_design() -> None:
    env = Grumpy(render_mode="ansi")
    assert env.render() == "nothing evaluated yet"
    env.evaluate({"x": 2, "y": 0, "mode": "plain"})
    assert (
        env.render()
        == "x = 2\ny = 0\nmode = plain\ntotal_ns: 3 ns\nspeed_rate: 0.333333 \nstatus: ok"
    )
    env.evaluate({"x": 0, "y": 0, "mode": "plain"})
    assert str(env.render()).endswith("status: failed no x")
    assert Adder().render() is None


def test_workloads_that_nothing_makes_ready() -> None:
    class Listing(Adder):
        workloads = ("small", "large")  # type: ignore[assignment]

    with pytest.raises(InvalidValueError, match="does not override load_workload"):
        Listing(workload="small")


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"workload": "mcf"}, InvalidValueError, "has no workloads, got workload='mcf'"),
        ({"objective": "minimize total"}, UnknownNameError, "Did you mean 'total_ns'"),
        ({"space": "smal"}, UnknownNameError, "unknown space 'smal'"),
        ({"fixed": {"z": 1}}, UnknownNameError, "unknown parameter 'z'"),
        ({"fixed": {"x": 7}}, InvalidValueError, "'x' cannot be 7"),
        ({"simulator": "embeded"}, UnknownNameError, "Did you mean 'embedded'"),
        ({"episode_length": 0}, InvalidValueError, "at least 1, not 0"),
        ({"action": "boxx"}, UnknownNameError, "Did you mean 'box'"),
        ({"render_mode": "human"}, TypeError, "ansi"),
        (
            {"fixed": {"x": 4, "y": 4}},
            InvalidValueError,
            "baseline design is illegal: .*stays below",
        ),
    ],
)
def test_impossible_arguments(kwargs: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Adder(**kwargs)


def test_fixed_parameters_leave_the_rest_to_search() -> None:
    env = Adder(fixed={"mode": "scaled", "x": 1})
    assert env.action_space == gymnasium.spaces.MultiDiscrete([5, 2])
    _, _, _, _, info = env.step(np.array([3, 1]))
    assert info["design"] == {"x": 1, "y": 3, "mode": "scaled", "scale": 2}
    assert env.evaluate({"y": 3, "scale": 2}).cached
    # What the fixed mode makes active takes its first level in the baseline.
    assert env.baseline_design == {"x": 1, "y": 2, "mode": "scaled", "scale": 1}


def test_names_are_looked_up_with_suggestions() -> None:
    assert "Conformance-v0" in environment_names()
    with pytest.raises(UnknownNameError, match="Did you mean 'Conformance-v0'"):
        archgym.make("Conformnce-v0")
    with pytest.raises(ArchgymError, match="cannot load 'nowhere:Env'"):
        archgym.make("nowhere:Env")
    with pytest.raises(UnknownNameError, match="Did you mean 'JSONDecoder'"):
        environment_class("json.decoder:JSONDecodr")
    with pytest.raises(InvalidValueError, match="not a subclass"):
        environment_class("json:JSONDecoder")
    with pytest.raises(InvalidValueError, match="neither an environment nor an agent"):
        check("json:JSONDecoder")
    with pytest.raises(UnknownNameError, match="TPE-v0, module:Class"):
        environment_class("json.JSONDecoder")
    with pytest.raises(InvalidValueError, match="-v0"):
        archgym.register("Cache", Adder)
    with pytest.raises(InvalidValueError, match="is taken"):
        archgym.register("Conformance-v0", Adder)


def test_a_registered_class_is_made_by_gymnasium_too() -> None:
    archgym.register("Adder-v7", Adder)
    archgym.register("Adder-v7", Adder)
    env = gymnasium.make("archgym/Adder-v7", episode_length=2)
    assert isinstance(env.unwrapped, Adder)
    assert env.unwrapped.name == "Adder-v7"
    assert env.unwrapped.episode_length == 2
    assert env.spec is not None
    json.loads(json.dumps({"id": env.spec.id, "kwargs": env.spec.kwargs}))


def test_gymnasium_make_records(tmp_path: Path) -> None:
    env = gymnasium.make("archgym/Conformance-v0", record=tmp_path)
    env.reset(seed=0)
    env.action_space.seed(0)
    told = [env.step(env.action_space.sample())[1] for _ in range(5) if env.reset()]
    env.close()
    assert Dataset(tmp_path).evaluations()["reward"].to_pylist() == told


def test_vector_environments_record_every_step(tmp_path: Path) -> None:
    vector = gymnasium.make_vec(
        "archgym/Conformance-v0", num_envs=3, vectorization_mode="sync", record=tmp_path
    )
    vector.reset(seed=0)
    vector.action_space.seed(0)
    for _ in range(4):
        vector.step(vector.action_space.sample())
    vector.close()
    dataset = Dataset(tmp_path)
    assert dataset.trials().num_rows == 3
    # Gymnasium spends every second step on the reset of an episode of one step.
    assert dataset.evaluations().num_rows == 6


def conformance(folder: Path, **kwargs: Any) -> Callable[[], archgym.Environment]:
    return lambda: archgym.make("Conformance-v0", space="finite", record=folder, **kwargs)


@pytest.mark.parametrize("subprocesses", [False, True])
def test_stable_baselines3_vector_environments_record(tmp_path: Path, subprocesses: bool) -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    makers: list[Any] = [conformance(tmp_path)] * 2
    vector = SubprocVecEnv(makers, "fork") if subprocesses else DummyVecEnv(makers)
    vector.reset()
    rewards = [
        vector.step(np.array([vector.action_space.sample() for _ in makers]))[1] for _ in range(5)
    ]
    vector.close()
    dataset = Dataset(tmp_path)
    assert dataset.trials().num_rows == 2
    assert sorted(dataset.evaluations()["reward"].to_pylist()) == pytest.approx(
        sorted(np.concatenate(rewards).tolist())
    )
    assert not list((tmp_path / "journal").iterdir())  # the last one to close sealed them


def test_stable_baselines3_makes_environments_by_name() -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    vector = make_vec_env("archgym/Conformance-v0", n_envs=2)
    assert len(vector.reset()) == 2
    PPO("MlpPolicy", "archgym/Conformance-v0", n_steps=8, batch_size=8, device="cpu").learn(8)


def test_a_simulation_that_gives_nothing_is_a_failed_design() -> None:
    class Silent(archgym.Environment):
        design_space = DesignSpace([Integer("x", 0, 3)])
        metrics = (archgym.Metric("delay_ns", "ns"),)
        default_objective = "minimize delay_ns"
        baseline: ClassVar = {"x": 0}

        def simulate(self, design: dict[str, Any]) -> Any:
            return {"delay_ns": 1.0} if design["x"] == 0 else None

    env = Silent()
    outcome = env.evaluate({"x": 2})
    assert (outcome.status, outcome.reward) == ("failed", -1.0)
    assert "None" in outcome.reason


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"metrics": ()}, "Wrong must set metrics to a tuple of Metric"),
        ({"metrics": archgym.Metric("total_ns", "ns")}, "must set metrics to a tuple of Metric"),
        ({"metrics": (*Adder.metrics, Adder.metrics[0])}, "metrics named twice: total_ns"),
        ({"baseline": {"x": 2}}, "the baseline design: the design lacks parameter 'y'"),
        ({"baseline": {"z": 2}}, "the baseline design: unknown parameter 'z'"),
        ({"simulate": lambda *_: {"total": 1.0}}, "gave no total_ns; it gave total"),
    ],
)
def test_a_class_that_is_wrong_says_where(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchgymError, match=message):
        type("Wrong", (Adder,), attributes)()


def test_a_fork_after_a_trial_leaves_other_open_files_alone(tmp_path: Path) -> None:
    env = conformance(tmp_path)()
    env.evaluate(env.baseline_design)
    env.close()
    read, write = os.pipe()  # takes the descriptors that the journal gave back
    child = os.fork()
    if child == 0:
        try:
            os._exit(os.write(write, b"!") - 1 + os.read(read, 1).count(b"?"))
        except OSError:
            os._exit(9)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_a_plain_script_a_batch_and_a_loop_leave_equal_rows(tmp_path: Path, algorithm: str) -> None:
    from stable_baselines3 import DQN, PPO

    if algorithm == "ppo":
        env = conformance(tmp_path / "rl")()
        model: Any = PPO("MlpPolicy", env, n_steps=32, batch_size=32, seed=0)
    else:
        env = conformance(tmp_path / "rl", action="discrete")()
        model = DQN("MlpPolicy", env, learning_starts=16, buffer_size=100, seed=0)
    model.learn(64)
    env.close()
    taken = Dataset(tmp_path / "rl").evaluations()
    assert taken.num_rows == 64
    designs = Dataset(tmp_path / "rl").logged_trial(taken["trial_id"][0].as_py()).codes

    batch = conformance(tmp_path / "batch")()
    space = batch.design_space
    batch.evaluate_batch(space.canonicalise(designs))
    batch.close()
    loop = conformance(tmp_path / "loop")()
    for codes in designs.tolist():
        loop.evaluate(space.design(codes))
    loop.close()
    wanted = [c for c in taken.column_names if c not in ("trial_id", *TIMING_COLUMNS[:3])]
    for name in ("batch", "loop"):
        assert (
            Dataset(tmp_path / name).evaluations(wanted).to_pylist()
            == taken.select(wanted).to_pylist()
        )


def test_the_budget_ends_a_reinforcement_learner_in_mid_rollout(tmp_path: Path) -> None:
    from stable_baselines3 import PPO

    env = conformance(tmp_path)()
    env.start_trial(archgym.TrialInfo(budget=10))
    with pytest.raises(archgym.BudgetExhausted):
        PPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0).learn(1000)
    assert env.evaluator.simulations == 10


def test_incidental_numbers_are_equal_only_among_themselves() -> None:
    assert Incidental(0.1) == Incidental(0.2)
    assert Incidental(1.0) == 1
    assert Incidental(0.1) != 0.2
    assert not Incidental(False)


def test_two_processes_draw_and_enumerate_the_same() -> None:
    code = """
import hashlib, json, numpy as np, archgym
env = archgym.make("Conformance-v0", space="finite")
space = env.design_space
parts = [space.sample(500, np.random.default_rng(7)).codes]
parts += [part.codes for part in space.enumerate(1000)]
text = json.dumps([p.tolist() for p in parts])
rewards = env.evaluate_batch(space.sample(200, np.random.default_rng(8))).reward.tolist()
print(hashlib.sha256((text + json.dumps(rewards)).encode()).hexdigest())
"""
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert len(digests.pop()) == 65


def test_the_baseline_moves_to_the_nearest_legal_design_where_fixed_values_make_it_illegal() -> (
    None
):
    class Tiled(archgym.Environment):
        """A tile has to fit its buffer."""

        design_space = DesignSpace(
            [Integer("buffer", 1, 64), Integer("tile", 1, 64), Real("voltage", 0.5, 1.0)],
            rules=[Rule("fits", param("tile") <= param("buffer"), "the tile exceeds the buffer")],
        )
        metrics = (archgym.Metric("time_ns", "ns"),)
        default_objective = "minimize time_ns"
        baseline: ClassVar[dict[str, Any]] = {"buffer": 32, "tile": 20, "voltage": 0.8}

        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            return {"time_ns": 64.0 / design["tile"]}

    moved = Tiled(fixed={"buffer": 8}).baseline_design
    assert (moved["buffer"], moved["tile"]) == (8, 8)
    assert moved["voltage"] == pytest.approx(0.8, abs=1e-4)
    assert Tiled(fixed={"buffer": 24}).baseline_design["tile"] == 20
    with pytest.raises(InvalidValueError, match=r"baseline design is illegal: .*fits"):
        Tiled(fixed={"buffer": 8, "tile": 9})


def test_what_cannot_be_loaded_says_where_and_what_may_have_been_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_env.py").write_text("x = 1\ny = undefined\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ArchgymError, match=r"not defined \(broken_env.py, line 2\)$"):
        environment_class("broken_env:Env")
    for wrong in ("brokn_env:Env", "broken_env.py:Env"):
        (tmp_path / "broken_env.py").write_text("")
        with pytest.raises(ArchgymError, match=r"Did you mean 'broken_env'\?$"):
            environment_class(wrong)
