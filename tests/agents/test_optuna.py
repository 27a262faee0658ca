"""Optuna's samplers behind our interface."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from archgym.agents.optuna import OptunaSearch
from archgym.envs.conformance import ConformanceEnvironment
from archgym.errors import AgentUnsuitableError, MissingDependencyError

optuna = pytest.importorskip("optuna")
SAMPLERS = ["tpe", pytest.param("gp", marks=pytest.mark.full), "nsga2", "cmaes"]
LIMITED: dict[str, Any] = {"objective": {"minimize": "access_ns", "limits": ["area_mm2 <= 0.1"]}}
TWO: dict[str, Any] = {"objective": {"minimize": ["access_ns", "energy_pj"]}}
SMALL: dict[str, Any] = {"space": "finite", "fixed": {"replacement": "random", "size_kb": 1}}


@pytest.fixture(params=SAMPLERS)
def sampler(request: pytest.FixtureRequest) -> str:
    if request.param == "cmaes":
        pytest.importorskip("cmaes")
    return str(request.param)


def trajectory(sampler: str, seed: int = 0, budget: int = 18, **extra: Any) -> list[dict[str, Any]]:
    env = ConformanceEnvironment(**extra)
    seen: list[dict[str, Any]] = []
    env.on_evaluated = lambda outcomes: seen.extend(outcomes.designs)
    directions = ["minimize"] * len(env.objective.goals)
    agent = OptunaSearch(
        env.design_space, directions, seed=seed, sampler=sampler, population_size=10
    )
    result = agent.search(env, budget)
    assert (result.duplicates, result.illegal) == (0, 0)
    return seen


def test_seed_decides_and_nothing_is_printed(
    sampler: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = trajectory(sampler, seed=1)
        np.random.seed(3)  # noqa: NPY002
        assert first == trajectory(sampler, seed=1) != trajectory(sampler, seed=2)
    assert not caught
    assert capfd.readouterr() == ("", "")


@pytest.mark.full
def test_duplicates_of_a_sampler_cost_nothing_and_a_small_space_is_exhausted(sampler: str) -> None:
    seen = trajectory(sampler, budget=100, **SMALL)
    assert len(seen) == len({tuple(d.items()) for d in seen}) == 36


def test_limits_steer_it(sampler: str) -> None:
    def kept(designs: list[dict[str, Any]]) -> float:
        env = ConformanceEnvironment(**LIMITED)
        return float(np.mean([env.evaluate(d).feasible for d in designs]))

    budget = 30 if sampler == "gp" else 60  # a tenth of a second each
    designs = trajectory(sampler, budget=budget, **LIMITED)
    assert kept(designs[budget // 2 :]) > kept(designs[:10])


@pytest.mark.parametrize("sampler", ["tpe", pytest.param("gp", marks=pytest.mark.full), "nsga2"])
def test_several_goals_are_searched(sampler: str) -> None:
    assert len(trajectory(sampler, **TWO)) == 18


def test_cma_es_refuses_several_goals() -> None:
    pytest.importorskip("cmaes")
    space = ConformanceEnvironment.design_spaces["default"]
    with pytest.raises(AgentUnsuitableError, match="one goal, not 2"):
        OptunaSearch(space, ["minimize", "minimize"], sampler="cmaes")


def test_what_was_not_asked_for_is_learned_from() -> None:
    env = ConformanceEnvironment()
    agent = OptunaSearch(env.design_space, n_initial=5)
    known = env.design_space.sample(30, np.random.default_rng(0))
    agent.tell(known, env.evaluate_batch(known))
    asked = agent.ask(4)
    assert not set(asked.keys()) & set(known.keys())
    assert agent._study is not None
    finished = agent._study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
    told = agent._encoding.from_params([trial.params for trial in finished])  # type: ignore[union-attr]
    outcomes = env.evaluate_batch(known)
    assert set(told.keys()) == {
        key
        for key, status in zip(known.keys(), outcomes.status.tolist(), strict=True)
        if status == 0
    }


def test_verbosity_of_optuna_is_left_as_it_was() -> None:
    before = optuna.logging.get_verbosity()
    trajectory("tpe")
    assert optuna.logging.get_verbosity() == before


@pytest.mark.parametrize(("sampler", "package"), [("tpe", "optuna"), ("cmaes", "cmaes")])
def test_missing_package_is_named(
    sampler: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else 1)
    space = ConformanceEnvironment.design_spaces["default"]
    with pytest.raises(
        MissingDependencyError, match=rf"{package}: pip install 'archgym\[optuna\]'"
    ):
        OptunaSearch(space, sampler=sampler)
