"""An environment as a problem of pymoo."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import archgym
from archgym.data import Dataset
from archgym.errors import MissingDependencyError
from archgym.views.pymoo import WORST, pymoo_problem

GOALS = {"minimize": ["access_ns", "energy_pj"], "limits": ["area_mm2 <= 1"]}


def test_goals_and_constraints_are_those_of_the_objective() -> None:
    pytest.importorskip("pymoo")
    env = archgym.make("Conformance-v0", objective=GOALS)
    problem = pymoo_problem(env)
    designs = env.design_space.sample(10, np.random.default_rng(0))
    found = problem.evaluate(
        np.array(problem.encoding.to_points(designs)), return_as_dictionary=True
    )
    expected = archgym.make("Conformance-v0", objective=GOALS).evaluate_batch(designs)
    assert (found["F"] == expected.objectives).all()
    assert (found["G"] == np.column_stack([np.zeros(10), expected.violations])).all()


def test_an_illegal_design_is_not_feasible_and_costs_nothing() -> None:
    pytest.importorskip("pymoo")
    env = archgym.make("Conformance-v0", objective=GOALS, budget=3)
    problem = pymoo_problem(env)
    point = problem.encoding.point(env.baseline_design)
    broken = {**point, "size_kb": 0, "ways": env.design_space["ways"].size - 1}
    assert env.design_space.broken_rule(problem.encoding.design(broken))
    found = problem.evaluate(np.array([broken, point]), return_as_dictionary=True)
    assert found["F"][0].tolist() == [WORST, WORST]
    assert found["G"][:, 0].tolist() == [1.0, 0.0]
    assert not problem.exhausted


def test_the_budget_ends_evaluation_and_every_row_is_recorded(tmp_path: Path) -> None:
    pytest.importorskip("pymoo")
    arguments: dict[str, Any] = {"agent": "pymoo", "seed": 1, "label": "train", "budget": 25}
    env = gymnasium.make(
        "archgym/Conformance-v0", objective=GOALS, record=tmp_path / "designs", **arguments
    )
    problem = pymoo_problem(env)
    mixed = pytest.importorskip("pymoo.core.mixed")
    pytest.importorskip("pymoo.optimize").minimize(
        problem, mixed.MixedVariableGA(pop_size=10, survival=_crowding()), ("n_evals", 60), seed=1
    )
    env.close()
    assert problem.exhausted
    dataset = Dataset(tmp_path / "designs")
    (trial,) = dataset.trials().to_pylist()
    assert (trial["agent"], trial["seed"], trial["label"]) == ("pymoo", 1, "train")
    statuses = dataset.evaluations()["status"].to_pylist()
    cached = dataset.evaluations()["cached"].to_pylist()
    assert sum(s != "illegal" and not c for s, c in zip(statuses, cached, strict=True)) == 25


def _crowding() -> Any:
    return pytest.importorskip("pymoo.algorithms.moo.nsga2").RankAndCrowdingSurvival()


def test_without_pymoo_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any) -> Any:
        if name.startswith("pymoo"):
            raise ImportError(name)
        return real(name, *args)

    env = archgym.make("Conformance-v0")
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=r"archgym\[pymoo\]"):
        pymoo_problem(env)
