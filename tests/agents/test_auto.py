"""The portfolio: its members see all data, earn their turns, and none is written off."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from archgym.agents.auto import Auto
from archgym.environment.environment import Environment
from archgym.envs.conformance import ConformanceEnvironment
from archgym.errors import UnknownNameError
from archgym.problem.metrics import Metric
from archgym.registry import make_agent
from archgym.space import Categorical, DesignSpace, Integer


class Plateau(Environment):
    """Level but for one joint setting of three knobs; a fourth knob is dead."""

    design_space = DesignSpace(
        [
            *(Categorical(name, ["p", "q", "r", "s"]) for name in ("a", "b", "c")),
            Integer("dead", 1, 6),
        ]
    )
    metrics: ClassVar = (Metric("time_ns", "ns", "minimize"),)
    default_objective = "minimize time_ns"
    baseline: ClassVar = {"a": "p", "b": "p", "c": "p", "dead": 1}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        levels = [design[name] for name in ("a", "b", "c")]
        return {"time_ns": 80.0 if levels == ["q", "r", "s"] else 100.0 + (levels[0] == "s")}


def found(name: str, seed: int, budget: int) -> float:
    env = Plateau()
    best = make_agent(name, env.design_space, seed=seed).search(env, budget).best
    assert best is not None
    return best.objectives[0]


def test_it_finds_the_rare_joint_setting_on_a_plateau() -> None:
    # 64 designs of 384 differ; random search finds the one with 60 draws in 15 of 100 runs.
    assert sum(found("auto", seed, 60) == 80.0 for seed in range(5)) >= 4


def test_the_fast_effort_searches_too() -> None:
    env = ConformanceEnvironment()
    found = make_agent("auto", env.design_space, seed=1, effort="fast").search(env, 60).best
    assert found is not None
    assert found.reward > 0.84


def test_it_has_nothing_to_tune() -> None:
    assert set(Auto.Hyperparameters.model_fields) == {"batch_size", "effort"}
    with pytest.raises(UnknownNameError, match="kappa"):
        Auto(Plateau().design_space, kappa=2.0)


@pytest.mark.parametrize("goals", [1, 2])
def test_while_there_is_progress_it_is_gp_with_the_same_seed(goals: int) -> None:
    objective = {"minimize": ["access_ns", "energy_pj"][:goals]}
    evaluated: dict[str, list[int]] = {"auto": [], "gp": []}
    for name, keys in evaluated.items():
        env = ConformanceEnvironment(objective=objective)
        env.on_evaluated = lambda outcomes, keys=keys: keys.extend(outcomes.designs.keys())
        make_agent(name, env.design_space, ["minimize"] * goals, seed=3).search(env, 50)
    assert len(evaluated["gp"]) == 50
    assert evaluated["auto"] == evaluated["gp"]


@pytest.mark.parametrize("goals", [1, 2])
def test_blind_members_get_their_turns_when_there_is_no_progress(goals: int) -> None:
    objective = {"minimize": ["access_ns", "energy_pj"][:goals]}
    env = ConformanceEnvironment(objective=objective)
    agent = Auto(env.design_space, ("minimize",) * goals, seed=2)
    drawn = env.design_space.sample(400, np.random.default_rng(1))
    outcomes = env.evaluate_batch(drawn)
    order = (-outcomes.reward).argsort(kind="stable")
    worst_first, best_first = drawn[order[::-1]], drawn[order]
    agent.tell(worst_first, env.evaluate_batch(worst_first))
    assert agent.odds["gp"] > 0.9  # each design was better than all before
    agent = Auto(env.design_space, ("minimize",) * goals, seed=2)
    agent.tell(best_first, env.evaluate_batch(best_first))
    assert 0.5 < agent.odds["gp"] < 0.7
    assert sum(agent.odds.values()) == pytest.approx(1.0)
    assert min(agent.odds.values()) > 0.1


def test_the_later_the_best_design_the_longer_the_model_goes_on_alone() -> None:
    env = ConformanceEnvironment()
    drawn = env.design_space.sample(400, np.random.default_rng(1))
    drawn = drawn[(-env.evaluate_batch(drawn).reward).argsort(kind="stable")]
    best, rest = drawn[:1], drawn[1:]

    def gp_odds(before: int, after: int) -> float:
        agent = Auto(env.design_space, seed=2)
        for designs in (rest[:before], best, rest[before : before + after]):
            agent.tell(designs, env.evaluate_batch(designs))
        return agent.odds["gp"]

    assert gp_odds(before=20, after=60) == 1.0
    assert gp_odds(before=20, after=70) < 1.0
    assert gp_odds(before=150, after=70) == 1.0
    assert gp_odds(before=150, after=151) == 1.0
    assert gp_odds(before=150, after=160) < 1.0


def test_blind_members_help_until_a_design_keeps_the_limits() -> None:
    env = ConformanceEnvironment(objective={"minimize": "access_ns", "limits": ["energy_pj <= 0"]})
    designs = env.design_space.sample(30, np.random.default_rng(1))
    outcomes = env.evaluate_batch(designs)
    order = (-outcomes.reward).argsort(kind="stable")[::-1]
    designs = designs[order]  # each nearer to the limit than all before: there is progress
    agent = Auto(env.design_space, seed=2)
    agent.tell(designs, env.evaluate_batch(designs))
    assert agent.odds["gp"] == pytest.approx(0.7)
    easier = ConformanceEnvironment(
        objective={"minimize": "access_ns", "limits": ["energy_pj <= 1e9"]}
    )
    kept = easier.design_space.sample(1, np.random.default_rng(2))
    agent.tell(kept, easier.evaluate_batch(kept))
    assert agent.odds["gp"] == 1.0


def test_members_are_told_of_what_others_found() -> None:
    env = ConformanceEnvironment()
    known = env.design_space.sample(40, np.random.default_rng(0))
    outcomes = env.evaluate_batch(known)
    agent = Auto(env.design_space, seed=1)
    agent.tell(known, outcomes)
    asked = agent.ask(30)  # without a single outcome of its own proposals
    assert np.median(env.evaluate_batch(asked).reward) > np.quantile(outcomes.reward, 0.7)
    assert not set(asked.keys()) & set(known.keys())


def test_a_batch_holds_no_design_twice() -> None:
    env = ConformanceEnvironment()
    agent = Auto(env.design_space, batch_size=8, seed=4)
    result = agent.search(env, 64)
    assert (result.simulations, result.duplicates) == (64, 0)
