"""Every agent finds more than random search does, on a small landscape with a known optimum."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
import pytest

import archgym
from archgym.environment.environment import Environment
from archgym.problem.metrics import Metric
from archgym.registry import make_agent
from archgym.space import Boolean, Categorical, DesignSpace, Integer, Ordinal, Real, param

SEEDS = range(100, 110)
FOREST: dict[str, Any] = {"surrogate": "extra_trees", "acquisition": "EI", "trees": 25}
BEST = {
    "kind": "c",
    "size": 32,
    "count": 11,
    "share": 0.3,
    "ahead": True,
    "distance": 5,
    "bias": 0.1,
}


class Bowl(Environment):
    """A quadratic bowl over every kind of parameter; the optimum costs 1."""

    design_space = DesignSpace(
        [
            Categorical("kind", ["a", "b", "c", "d"]),
            Ordinal("size", [1, 2, 4, 8, 16, 32, 64, 128]),
            Integer("count", 0, 19),
            Real("share", 0.0, 1.0),
            Boolean("ahead"),
            Integer("distance", 1, 8, when=param("ahead") == True),  # noqa: E712
            Real("bias", 1e-3, 1e3, log=True),
        ]
    )
    metrics: ClassVar = (Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {
        "kind": "a",
        "size": 1,
        "count": 0,
        "share": 1.0,
        "ahead": False,
        "bias": 10.0,
    }

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        away = [
            {"a": 1.0, "b": 0.7, "c": 0.0, "d": 0.4}[design["kind"]],
            (np.log2(design["size"]) - 5) / 7,
            (design["count"] - 11) / 19,
            design["share"] - 0.3,
            (design["distance"] - 5) / 8 if design["ahead"] else 1.0,
            (np.log10(design["bias"]) + 1) / 6,
        ]
        return {"time_ns": float(1 + 10 * np.square(away).sum())}


@functools.cache
def regret(name: str, budget: int, **hyperparameters: Any) -> float:
    """Median over seeds of how far above the optimum the best design is, ns."""
    found = []
    for seed in SEEDS:
        env = Bowl()
        agent = make_agent(name, env.design_space, seed=seed, **hyperparameters)
        best = agent.search(env, budget).best
        assert best is not None
        found.append(best.objectives[0] - 1.0)
    return float(np.median(found))


def test_optimum_is_where_it_should_be() -> None:
    assert Bowl().evaluate(BEST).objectives == (1.0,)


@pytest.mark.parametrize(
    ("name", "budget"), [("ga", 200), ("aco", 200), ("sa", 200), ("bayesian", 30)]
)
def test_agent_clearly_beats_random_search(name: str, budget: int) -> None:
    assert regret(name, budget) < 0.4 * regret("random", budget)


@pytest.mark.full
def test_forest_beats_random_search() -> None:
    assert regret("bayesian", 30, **FOREST) < 0.7 * regret("random", 30)


@pytest.mark.full
@pytest.mark.parametrize("name", ["ga", "aco", "sa"])
def test_more_budget_comes_close_to_the_optimum(name: str) -> None:
    assert regret(name, 500) < 0.05


@pytest.mark.full
def test_auto_finds_the_rare_design_that_keeps_a_limit_and_costs_less() -> None:
    """Of 184 networks that could be cheaper than a good one, two are accurate enough."""
    product = {"latency_cycles": 1, "energy_nj": 1}
    objective = {"product": product, "limits": ["accuracy_percent >= 93"]}
    regrets = []
    for seed in range(3):
        env = archgym.make("NAS-v0", simulator="tabular:suite-nas-digits", objective=objective)
        result = make_agent("auto", env.design_space, seed=seed).search(env, 300)
        assert result.regret is not None
        regrets.append(result.regret)
    assert np.median(regrets) < 0.01
