"""Spreads of metrics: what agents and people are told of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.spread import GoalSpread, change_of, median_error, plus_minus, spread_of_goal
from archgym.registry import make_agent
from benchmarks.noisy_search import Noisy, NoisyWithSpread
from tests.cli.conftest import Called, call  # noqa: F401 - a fixture
from tests.declared.conftest import QUEUE

METRICS = (
    Metric("time_ms", "ms"),
    Metric("energy_pj", "pJ"),
    Metric("time_ms_spread_share", ""),
    Metric("energy_pj_spread_share", ""),
)


def test_standard_errors_of_goals() -> None:
    objective = Objective.parse({"product": {"time_ms": 2, "energy_pj": 1}})
    found = GoalSpread.of(objective, METRICS, 1)
    assert found is not None
    errors = found.errors(np.array([[1.0, 1.0, 0.3, 0.8], [1.0, 1.0, np.nan, np.nan]]))
    assert errors == pytest.approx(np.array([[1.0], [0.0]]))
    assert GoalSpread.of(objective, METRICS[:2], 3) is None
    rng = np.random.default_rng(0)
    medians = np.median(rng.normal(size=(20_000, 5)), axis=1)
    assert medians.std() == pytest.approx(median_error(5), rel=0.06)


def test_a_difference_within_the_spread_is_no_change() -> None:
    noisy: dict[str, float | None] = {"time_ms": 10.0, "time_ms_spread_share": 0.03}
    base: dict[str, float | None] = {"time_ms": 10.4, "time_ms_spread_share": 0.03}
    assert change_of("time_ms", noisy, base) == "within the spread"
    assert change_of("time_ms", {"time_ms": 10.0}, {"time_ms": 10.4}) == "-3.8%"
    assert change_of("time_ms", noisy, {**base, "time_ms": 12.0}) == "-16.7%"
    assert plus_minus("time_ms", noisy) == pytest.approx(0.3)
    (goal,) = Objective.parse("minimize time_ms").goals
    assert spread_of_goal(goal, noisy) == 0.03


@pytest.mark.parametrize("agent", ["gp", "bayesian"])
def test_no_spread_and_a_spread_of_zero_give_the_same_search(agent: str) -> None:
    found = []
    for kind in (Noisy, NoisyWithSpread):
        env = kind(noise=0.0)
        outcomes: list[Any] = []
        env.on_evaluated = outcomes.append
        make_agent(agent, env.design_space, seed=3).search(env, 14)
        found.append(np.concatenate([one.designs.codes for one in outcomes]))
    assert np.array_equal(*found)


@pytest.mark.parametrize("agent", ["gp", "bayesian", "botorch"])
def test_models_learn_from_the_spread(agent: str) -> None:
    if agent == "botorch":
        pytest.importorskip("botorch")
    found = []
    for kind in (Noisy, NoisyWithSpread):
        env = kind(noise=0.5)
        outcomes: list[Any] = []
        env.on_evaluated = outcomes.append
        make_agent(agent, env.design_space, seed=3).search(env, 24)
        found.append(np.concatenate([one.designs.codes for one in outcomes]))
    assert not np.array_equal(*found)


def test_best_shows_the_spread(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[..., Called],  # noqa: F811
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    text = QUEUE.replace("files:", "noise: {repeats: 3, spread: [area_um2]}\nfiles:", 1)
    Path("queue.yaml").write_text(
        text.replace("{{ area }}", "{{ area + repeat * repeat }}"), encoding="utf-8"
    )
    assert archgym.registry.environment_class("queue.yaml").repeats == 3
    env = archgym.make("queue.yaml", record="found", objective="minimize area_um2")
    make_agent("random", env.design_space).search(env, 3)
    env.close()
    assert "area_um2 111 ± 2.1 (+171%)" in call("best", "found").out
    shown = call("evaluate", "queue.yaml", "--set", "keep=never").out
    assert "-0.0%" not in shown
