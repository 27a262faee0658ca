from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
from pettingzoo.utils import parallel_to_aec

import archgym
from archgym.data import Dataset
from archgym.errors import BudgetExhausted, InvalidValueError, UnknownNameError
from archgym.views.multi_agent import ParallelView
from tests.helpers import Adder


def conformance(grouped: bool, **kwargs: Any) -> Callable[[], ParallelView]:
    def make() -> ParallelView:
        env = archgym.make("Conformance-v0", **kwargs)
        return ParallelView(env, env.design_space.groups if grouped else None)

    return make


def check(make: Callable[[], ParallelView]) -> None:
    """All of PettingZoo's own tests, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(make(), num_cycles=50)
        parallel_seed_test(make, num_cycles=20)
        # Agents are called as the parameters are, and may have several.
        warnings.filterwarnings("ignore", "We recommend agents to be named")
        warnings.filterwarnings("ignore", "Action space for each agent probably")
        api_test(parallel_to_aec(make()), num_cycles=20)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    "kwargs", [{}, {"space": "finite"}, {"space": "finite", "episode_length": 5}], ids=str
)
def test_pettingzoo_is_content(grouped: bool, kwargs: dict[str, Any]) -> None:
    check(conformance(grouped, **kwargs))


@pytest.mark.parametrize("groups", ["parameter", "suggested", "split"])
def test_pettingzoo_is_content_with_conditions_and_rules(groups: str) -> None:
    """Also where one agent decides whether another's parameter acts, and choices can be illegal."""

    def make() -> ParallelView:
        if groups == "split":
            return ParallelView(Adder(), {"b": ["scale", "x"], "a": ["mode"], "c": ["y"]})
        env = archgym.make("DRAM-v0", workload={"generator": "random", "requests": 50})
        return ParallelView(env, env.design_space.groups if groups == "suggested" else None)

    check(make)


@pytest.mark.parametrize("grouped", [False, True])
def test_views_of_real_parameters_at_levels_and_of_fixed_ones(grouped: bool) -> None:
    check(conformance(grouped, action="multi_discrete", levels=5, fixed={"prefetch": True}))


def test_agents_are_parameters_or_groups() -> None:
    view = conformance(False, space="finite")()
    assert view.possible_agents == ["replacement", "size_kb", "ways", "prefetch", "distance"]
    assert view.action_space("ways") == Discrete(16)
    grouped = conformance(True, space="finite")()
    assert grouped.possible_agents == ["cache", "prefetcher"]
    assert grouped.action_space("cache") == MultiDiscrete([3, 7, 16])
    real = conformance(True)()
    assert real.action_space("voltage") == Box(-1, 1, (1,), np.float32)
    assert real.action_space("cache") == Box(-1, 1, (3,), np.float32)


def test_the_agents_choices_are_one_evaluated_and_recorded_design(tmp_path: Path) -> None:
    view = ParallelView(
        Adder(record=tmp_path), {"back": ["scale", "mode"], "front": ["y"], "rest": ["x"]}
    )
    start, _ = view.reset(seed=0)
    actions = {"back": np.array([1, 1]), "front": 3, "rest": np.array([2])}
    seen, rewards, done, truncated, infos = view.step(actions)
    assert infos["front"]["design"] == {"x": 2, "y": 3, "mode": "scaled", "scale": 2}
    assert len(set(rewards.values())) == 1
    assert done == dict.fromkeys(view.possible_agents, True)
    assert not any(truncated.values())
    assert view.agents == []
    assert (view.state() == seen["rest"]).all()
    assert not (start["rest"] == seen["rest"]).all()
    view.close()
    (row,) = Dataset(tmp_path).evaluations().to_pylist()
    assert (row["param.y"], row["param.scale"], row["reward"]) == (3, 2, rewards["back"])


def test_the_budget_holds_in_the_view() -> None:
    env = Adder()
    env.start_trial(archgym.TrialInfo(budget=1))
    view = ParallelView(env)
    view.reset()
    actions = dict.fromkeys(view.possible_agents, 0)
    view.step(actions)
    view.reset()
    with pytest.raises(BudgetExhausted):
        view.step(actions)


def test_wrapped_environments_are_unwrapped() -> None:
    view = ParallelView(gymnasium.make("archgym/Conformance-v0", space="finite"))
    assert isinstance(view.env, archgym.Environment)


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ({"a": ["x", "y", "mode"]}, InvalidValueError, "no agent chooses scale"),
        (
            {"a": ["x", "y", "mode", "scale"], "b": ["x"]},
            InvalidValueError,
            "two agents, 'a' and 'b'",
        ),
        (
            {"a": ["x", "y", "mode", "scale"], "b": []},
            InvalidValueError,
            "'b' chooses no parameter",
        ),
        ({"a": ["x", "y", "mode", "scal"]}, UnknownNameError, "Did you mean 'scale'"),
    ],
)
def test_groups_that_do_not_fit(
    groups: dict[str, list[str]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ParallelView(Adder(), groups)


def test_what_cannot_be_viewed_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="action='multi_discrete'"):
        ParallelView(Adder(action="discrete"))
    with pytest.raises(InvalidValueError, match="not an archgym environment"):
        ParallelView(gymnasium.make("CartPole-v1"))
    view = ParallelView(Adder())
    with pytest.raises(InvalidValueError, match="before reset"):
        view.state()
    view.reset()
    with pytest.raises(InvalidValueError, match="agent 'x' is missing"):
        view.step({})
    with pytest.raises(InvalidValueError, match="agent 'x' has length 1"):
        view.step(dict.fromkeys(view.possible_agents, np.array([0, 1])))
