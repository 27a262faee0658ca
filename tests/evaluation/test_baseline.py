"""The baseline is simulated when it is first needed, once, and a failure of it is not the end."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import archgym
from archgym.data import Dataset
from archgym.errors import InvalidValueError, NotCoveredError, SimulationError
from archgym.space import DesignSpace, Integer
from archgym.views.multi_agent import ParallelView
from archgym.views.vector import VectorView


class Moody(archgym.Environment):
    """A closed form, the first ``bad`` calls of which raise ``error``."""

    design_space = DesignSpace([Integer("x", 1, 8), Integer("y", 1, 8)])
    metrics: ClassVar = (archgym.Metric("delay_ns", "ns"),)
    default_objective: ClassVar = {"minimize": "delay_ns", "limits": ["delay_ns <= 40"]}
    baseline: ClassVar = {"x": 4, "y": 5}
    incidental_arguments: ClassVar = ("bad", "error")

    def __init__(self, *, bad: int = 0, error: Exception | None = None, **arguments: Any) -> None:
        self.bad, self.error = bad, error or SimulationError("licence server is busy")
        self.simulated: list[dict[str, Any]] = []
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        self.simulated.append(design)
        if len(self.simulated) <= self.bad:
            raise self.error
        return {"delay_ns": float(design["x"] * design["y"])}


def test_making_an_environment_simulates_nothing() -> None:
    env = Moody(bad=99)
    assert env.observation_space.shape == (3,)
    assert env.baseline_design == {"x": 4, "y": 5}
    assert env.simulated == []


def test_the_baseline_is_simulated_once_whatever_asks_first() -> None:
    asks: tuple[Callable[[Moody], Any], ...] = (
        lambda env: env.reset(),
        lambda env: env.evaluate({"x": 1, "y": 1}),
        lambda env: env.step(np.array([0, 0])),
        lambda env: env.baseline_metrics,
        lambda env: env.evaluator,
        lambda env: env.start_trial(),
    )
    for first in asks:
        env = Moody()
        first(env)
        env.reset()
        env.start_trial()
        outcome = env.evaluate({"x": 1, "y": 1})
        assert env.simulated.count(env.baseline_design) == 1
        assert env.simulated[0] == env.baseline_design
        assert env.baseline_metrics.tolist() == [20.0]
        assert outcome.reward == pytest.approx(1 / (1 + 1 / 20))
        assert env.evaluator.simulations == 1  # the baseline does not count


def test_what_went_wrong_is_said_and_the_next_call_tries_again(tmp_path: Path) -> None:
    for error in (SimulationError("licence server is busy"), TimeoutError("after 3 s")):
        env = Moody(bad=2, error=error, record=tmp_path / type(error).__name__)
        for call in (env.reset, lambda env=env: env.evaluate({"x": 1, "y": 1})):
            with pytest.raises(SimulationError, match=f"baseline .*cannot be simulated: {error}"):
                call()
        assert env.evaluate({"x": 1, "y": 1}).status == "ok"
        env.close()
        dataset = Dataset(tmp_path / type(error).__name__)
        dataset.seal()
        assert len(dataset.evaluations()) == 1


def test_a_failure_is_tried_again_as_often_as_is_said() -> None:
    for error in (SimulationError("busy"), TimeoutError("late"), ValueError("odd")):
        assert Moody(bad=2, error=error).simulate_baseline(retries=2).tolist() == [20.0]
        with pytest.raises(SimulationError, match=str(error)):
            Moody(bad=2, error=error).simulate_baseline(retries=1)
    env = Moody(bad=1, error=NotCoveredError("x = 4 is not modelled"))
    with pytest.raises(SimulationError, match="x = 4 is not modelled"):
        env.simulate_baseline(retries=9)
    assert len(env.simulated) == 1


def test_who_knows_the_metrics_may_give_them() -> None:
    env = Moody(bad=99)
    env.baseline_metrics = [20.0]
    assert env.reset()[0][-1] == 0.0
    assert env.simulated == []
    with pytest.raises(InvalidValueError, match=r"shape \(2,\), there are 1 metrics"):
        Moody().baseline_metrics = [20.0, 1.0]


def test_a_broken_limit_is_named_before_and_after() -> None:
    env = Moody()
    assert env.evaluate({"x": 8, "y": 8}).reason == "limit delay_ns <= 40 exceeded by 60.0%"
    broken = Moody(objective={"minimize": "delay_ns", "limits": ["delay_ns <= 10"]})
    assert broken.evaluate(broken.baseline).reason == "limit delay_ns <= 10 exceeded by 100.0%"


def test_copies_before_and_after_give_the_same() -> None:
    copies: tuple[Callable[[Moody], Moody], ...] = (
        copy.deepcopy,
        lambda env: pickle.loads(pickle.dumps(env)),
    )
    for make in copies:
        fresh = Moody()
        early = make(fresh)
        fresh.reset()
        late = make(fresh)
        assert early.simulated == []
        assert late.simulated == fresh.simulated
        for env in (early, late):
            assert env.evaluate({"x": 2, "y": 3}).reward == fresh.evaluate({"x": 2, "y": 3}).reward
        assert late.simulated.count(late.baseline_design) == 1


def test_views_and_gymnasium_simulate_it_once() -> None:
    vector = Moody()
    view = VectorView(vector, n_envs=2)
    assert vector.simulated == []
    view.reset()
    view.step(np.array([[0, 0], [1, 1]]))
    parallel = Moody()
    agents = ParallelView(parallel)
    assert parallel.simulated == []
    agents.reset()
    agents.step({"x": 0, "y": 0})
    for env in (vector, parallel):
        assert env.simulated.count(env.baseline_design) == 1
    archgym.register("MoodyBaseline-v0", Moody)
    made = gymnasium.make("archgym/MoodyBaseline-v0")
    bare = made.unwrapped
    assert isinstance(bare, Moody)
    assert bare.simulated == []
    bare.action_space.seed(0)  # of 64 designs, draw others
    check_env(bare, skip_render_check=True)
    assert bare.simulated.count(bare.baseline_design) == 1
