from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

import archgym
from archgym.check import check_environment
from archgym.envs.conformance import ConformanceEnvironment
from archgym.space import Designs
from tests.helpers import Adder, Grumpy


def failed(target: Any, **kwargs: Any) -> dict[str, str]:
    return {r.name: r.detail for r in check_environment(target, **kwargs) if not r.passed}


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"space": "finite"},
        {"space": "finite", "action": "discrete"},
        {"action": "multi_discrete", "levels": 4},
        {"episode_length": 3, "render_mode": "ansi"},
        {"fixed": {"voltage": 0.8, "prefetch": False}},
        {"objective": {"minimize": ["access_ns", "energy_pj"], "limits": ["area_mm2 <= 0.3"]}},
    ],
    ids=str,
)
def test_the_conformance_environment_passes_in_all_its_forms(kwargs: dict[str, Any]) -> None:
    results = check_environment("Conformance-v0", **kwargs)
    assert [r for r in results if not r.passed] == []
    assert len(results) == 16
    assert all(r.detail for r in results)


def test_classes_strings_and_instances_are_checked_alike() -> None:
    path = "archgym.envs.conformance:ConformanceEnvironment"
    for target in (path, ConformanceEnvironment, ConformanceEnvironment(), Adder):
        assert failed(target) == {}


def test_failures_on_purpose_pass_and_accidents_do_not() -> None:
    assert list(failed(Grumpy)) == ["metrics"]  # x = 4, y = 0 divides by zero
    assert "ZeroDivisionError" in failed(Grumpy)["metrics"] or "nan" in failed(Grumpy)["metrics"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "total_ns is nan"),
        (-1.0, "total_ns is -1"),
        (None, "gave no total_ns"),
        ("fast", "total_ns is 'fast'"),
    ],
)
def test_metrics_that_are_no_metrics_are_found(value: Any, words: str) -> None:
    class Wrong(Adder):
        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            good = super().simulate(design)
            return good if design == self.baseline_design else {**good, "total_ns": value}

    assert words in failed(Wrong)["metrics"]


class Random(Adder):
    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {"total_ns": float(np.random.random()), "speed_rate": 0.5}  # noqa: NPY002


class Remembers(Adder):
    calls = itertools.count()

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {"total_ns": 1.0 + next(self.calls), "speed_rate": 0.5}


class Misspells(Adder):
    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {**super().simulate(design), "total_us": 1.0}


class OtherBatch(Adder):
    def simulate_batch(self, designs: Designs) -> list[tuple[Any, float]]:
        results = super().simulate_batch(designs)
        return results if len(designs) == 1 else results[::-1]


class ShortBatch(Adder):
    def simulate_batch(self, designs: Designs) -> list[tuple[Any, float]]:
        return super().simulate_batch(designs)[:1]


class Crashes(Adder):
    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return super().simulate(design) if design["x"] == 2 else {}[design["x"]]


class CrashesAtOnce(Adder):
    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {}[design["x"]]


class NotANumber(Adder):
    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        figures = super().simulate(design)
        return figures if design["x"] == 2 else {**figures, "total_ns": math.nan}


class Unpaired(Adder):
    def simulate_batch(self, designs: Designs) -> Any:
        return [self.simulate(design) for design in designs]


class WideObservation(Adder):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.observation_space = gymnasium.spaces.Box(-0.1, 0.1, (6,), np.float32)


class Double(Adder):
    def step(self, action: Any) -> Any:
        observation, reward, done, truncated, info = super().step(action)
        return observation.astype(np.float64), np.float64(reward), done, truncated, info


class Uninformative(Adder):
    def step(self, action: Any) -> Any:
        *result, info = super().step(action)
        return *result, {k: v for k, v in info.items() if k != "status"}


class Unscored(Adder):
    def evaluate_batch(self, designs: Any, fidelity: float = 1.0) -> Any:
        outcomes = super().evaluate_batch(designs, fidelity)
        outcomes.reward[:] = outcomes.reward[::-1].copy()
        return outcomes


class NoBaseline(Adder):
    baseline: ClassVar = {"x": 2}


class TakesNothing(Adder):
    def __init__(self, size: int = 1) -> None:
        super().__init__()


class Legacy(Adder):
    def reset(self, **kwargs: Any) -> Any:
        return super().reset(**kwargs)[0]


@pytest.mark.parametrize(
    ("broken", "check", "message"),
    [
        (Random, "determinism", "two simulations of a design differ"),
        (Remembers, "determinism", "total_ns"),
        (Misspells, "metrics", "total_us"),
        (OtherBatch, "batches", "a batch and a single design differ"),
        (ShortBatch, "batches", "gave 1 results for"),
        (Crashes, "metrics", "KeyError"),
        (Crashes, "metrics", " (test_check.py, line "),
        (Crashes, "metrics", ", of x="),
        (CrashesAtOnce, "can_be_made", " (test_check.py, line "),
        (NotANumber, "metrics", "total_ns is nan, not a finite number, of x="),
        (Unpaired, "can_be_made", "gave metrics alone"),
        (WideObservation, "steps", "not in the observation space"),
        (Double, "steps", "not in the observation space"),
        (Uninformative, "steps", "info lacks status"),
        (Unscored, "rewards", "a worse objective has a better reward"),
        (NoBaseline, "can_be_made", "lacks parameter 'y'"),
        (Legacy, "gymnasium", "reset"),
        (TakesNothing, "can_be_made", "TakesNothing does not take workload, objective"),
        ("nowhere:Env", "can_be_made", "No module named 'nowhere'"),
        ("Conformence-v0", "can_be_made", "Did you mean 'Conformance-v0'"),
        (dict, "can_be_made", "not a subclass"),
    ],
    ids=str,
)
def test_broken_environments_are_caught_and_reported(broken: Any, check: str, message: str) -> None:
    found = failed(broken)
    assert message in found[check], found


def test_an_instance_takes_no_arguments_and_keeps_its_settings(tmp_path: Any) -> None:
    assert "come too late" in failed(Adder(), fixed={"x": 1})["can_be_made"]
    env = Adder(record=tmp_path)
    assert failed(env) == {}
    assert env.record == tmp_path
    assert isinstance(env, archgym.Environment)
