"""What is particular to the agents that learn policies; the rest is in the conformance table."""

from __future__ import annotations

import importlib.util
import random
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import archgym
from archgym.agents.rl.learner import Learner
from archgym.data import Dataset
from archgym.envs.conformance import ConformanceEnvironment
from archgym.errors import (
    AgentUnsuitableError,
    BudgetExhausted,
    InvalidValueError,
    MissingDependencyError,
    SimulationError,
)
from archgym.registry import agent_class, make_agent
from archgym.space import Boolean, Categorical, DesignSpace, Integer, Real

FORMS: list[tuple[str, dict[str, Any]]] = [
    ("ppo", {}),
    ("ppo", {"form": "stepwise"}),
    ("maskable_ppo", {}),
    ("a2c", {}),
    ("a2c", {"form": "stepwise"}),
    ("dqn", {"learning_starts": 10, "exploration": 100}),
    ("sac", {"learning_starts": 10}),
]
QUICK = {"n_envs": 4, "width": 16}
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "default": {},
    "limits": {"objective": {"minimize": "access_ns", "limits": ["area_mm2 <= 0.2"]}},
    "two goals": {"space": "finite", "objective": {"minimize": ["access_ns", "energy_pj"]}},
    "episodes": {"episode_length": 4},
}


class Valley(archgym.Environment):
    """Six categories, each best at its third value: a hundredth of designs come close."""

    design_space = DesignSpace([Categorical(f"p{i}", ["a", "b", "c", "d"]) for i in range(6)])
    metrics = (archgym.Metric("cost_ns", "ns"),)
    default_objective = "minimize cost_ns"
    baseline: ClassVar = {f"p{i}": "c" if i < 3 else "a" for i in range(6)}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {"cost_ns": 2.0 ** sum(value != "c" for value in design.values())}


def learner(name: str, env: archgym.Environment, seed: int = 0, **extra: Any) -> Learner:
    if name == "maskable_ppo":
        pytest.importorskip("sb3_contrib")
    goals = ["minimize"] * len(env.objective.goals)
    agent = make_agent(name, env.design_space, goals, seed=seed, **{**QUICK, **extra})
    assert isinstance(agent, Learner)
    return agent


def trajectory(
    name: str, kwargs: dict[str, Any], seed: int = 0, budget: int = 60, **env_arguments: Any
) -> list[dict[str, Any]]:
    env = ConformanceEnvironment(**env_arguments)
    seen: list[dict[str, Any]] = []
    env.on_evaluated = lambda outcomes: seen.extend(outcomes.designs)
    result = learner(name, env, seed, **kwargs).search(env, budget)
    assert result.simulations == budget
    assert result.proposals == len(seen)
    return seen


@pytest.fixture(params=FORMS, ids=lambda form: "-".join([form[0], *map(str, form[1].values())]))
def form(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    found: tuple[str, dict[str, Any]] = request.param
    return found


def test_the_seed_alone_decides_and_global_generators_are_left_alone(
    form: tuple[str, dict[str, Any]],
) -> None:
    name, kwargs = form
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    first = trajectory(name, kwargs, seed=1)
    drawn = random.random(), np.random.random()  # noqa: NPY002
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    assert (random.random(), np.random.random()) == drawn  # noqa: NPY002
    assert trajectory(name, kwargs, seed=1) == first
    assert trajectory(name, kwargs, seed=2) != first


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_every_kind_of_problem_is_searched_to_the_end_of_the_budget(
    form: tuple[str, dict[str, Any]], kind: str
) -> None:
    trajectory(*form, budget=40, **ENVIRONMENTS[kind])


def test_a_resumed_search_proposes_the_same(
    form: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    name, kwargs = form
    whole = trajectory(name, kwargs)
    env = ConformanceEnvironment(record=tmp_path)

    def stop(outcomes: Any) -> None:
        if env.evaluator.proposals >= 30:
            raise KeyboardInterrupt

    env.on_evaluated = stop
    with pytest.raises(KeyboardInterrupt):
        learner(name, env, **kwargs).search(env, 60, trial_id="t")
    env = ConformanceEnvironment(record=tmp_path)
    env.on_evaluated = None
    learner(name, env, **kwargs).search(env, 60, trial_id="t", resume=True)
    env.close()
    rows = Dataset(tmp_path).evaluations().to_pylist()
    logged = [
        {n: row[f"param.{n}"] for n in env.design_space.names if row[f"param.{n}"] is not None}
        for row in rows
    ]
    assert logged == whole


@pytest.mark.full
@pytest.mark.parametrize("name", ["ppo", "maskable_ppo", "a2c", "dqn", "sac"])
def test_it_learns(name: str) -> None:
    env = Valley()
    costs: list[float] = []

    def watch(outcomes: Any) -> None:
        costs.extend(outcomes.objectives[:, 0])
        if len(costs) >= 1200:
            raise BudgetExhausted("seen enough")

    env.on_evaluated = watch
    extra = {"exploration": 500} if name == "dqn" else {}
    learner(name, env, **extra).search(env, 1200)
    cost = np.log2(costs)
    # Random designs have 4.5 of 6 values wrong.
    assert abs(cost[:60].mean() - 4.5) < 0.6
    assert cost[-200:].mean() < 4.0  # of as many random ones within 0.1


def test_masked_proposals_are_legal() -> None:
    env = ConformanceEnvironment()
    result = learner("maskable_ppo", env).search(env, 150)
    assert (result.simulations, result.illegal) == (150, 0)


@pytest.mark.parametrize("name", ["ppo", "a2c", "sac"])
def test_every_value_is_reached(name: str) -> None:
    class Broken(ConformanceEnvironment):
        broken = False

        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            if self.broken:
                raise SimulationError("broken")  # nothing that would draw it to one place
            return super().simulate(design)

    env = Broken()
    env.simulate_baseline()
    env.broken = True
    seen: list[dict[str, Any]] = []
    env.on_evaluated = lambda outcomes: seen.extend(outcomes.designs)
    extra = {"learning_starts": 500} if name == "sac" else {}
    result = learner(name, env, **extra).search(env, 500)
    assert (result.simulations, result.best) == (500, None)
    for parameter in env.design_space.parameters:
        values = {design[parameter.name] for design in seen if parameter.name in design}
        if parameter.continuous:
            assert min(values) < 0.65
            assert max(values) > 1.05
        else:
            assert len(values) == parameter.size


def test_initial_designs_come_first() -> None:
    env = ConformanceEnvironment()
    known = list(env.design_space.sample(7, np.random.default_rng(3)))
    seen: list[dict[str, Any]] = []
    env.on_evaluated = lambda outcomes: seen.extend(outcomes.designs)
    assert learner("ppo", env).search(env, 20, initial=known).simulations == 20
    assert seen[:7] == known


def test_nothing_is_left_in_the_temporary_folder(
    form: tuple[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Stable-Baselines3 makes a folder for its log in every learn() without a logger of its own.
    from stable_baselines3 import PPO

    monkeypatch.delenv("SB3_LOGDIR")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    env = ConformanceEnvironment()
    learner(form[0], env, **form[1]).search(env, 12)
    assert not list(tmp_path.glob("SB3*"))
    PPO("MlpPolicy", ConformanceEnvironment(), n_steps=8, batch_size=8, device="cpu").learn(8)
    assert len(list(tmp_path.glob("SB3*"))) == 1


def test_small_space_ends_the_search() -> None:
    fixed = {"replacement": "random", "size_kb": 1, "prefetch": False, "voltage": 0.9}
    env = ConformanceEnvironment(fixed=fixed)
    result = learner("a2c", env).search(env, 100)
    assert env.design_space.canonical_cardinality == result.simulations == 4


def test_policies_are_saved_and_loaded(tmp_path: Path) -> None:
    env = Valley()
    taught = learner("ppo", env, seed=1)
    with pytest.raises(InvalidValueError, match="no policy before"):
        taught.save(tmp_path / "policy.npz")
    taught.search(env, 800)
    taught.save(tmp_path / "policy.npz")
    again = learner("ppo", env, seed=2)
    again.load(tmp_path / "policy.npz")
    costs: list[float] = []
    env.on_evaluated = lambda outcomes: costs.extend(outcomes.objectives[:, 0])
    again.search(env, 16)
    assert np.log2(costs[:16]).mean() < 3.0  # random: 4.5


def test_policies_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    env, path = Valley(), tmp_path / "policy.npz"
    taught = learner("ppo", env)
    taught.search(env, 20)
    taught.save(path)
    with pytest.raises(InvalidValueError, match="policy of another agent"):
        learner("a2c", env).load(path)
    with pytest.raises(InvalidValueError, match="policy of another form"):
        learner("ppo", env, form="stepwise").load(path)
    with pytest.raises(InvalidValueError, match="policy of another design space"):
        learner("ppo", ConformanceEnvironment()).load(path)
    wider = learner("ppo", env, width=17)
    wider.load(path)
    with pytest.raises(InvalidValueError, match=r"another network: action_net\.weight"):
        wider.search(env, 20)
    with pytest.raises(InvalidValueError, match="there is no policy"):
        taught.load(tmp_path / "none.npz")
    path.write_bytes(b"PK\x03\x04 nonsense")
    with pytest.raises(InvalidValueError, match="not a saved policy"):
        taught.load(path)
    np.savez(path, about=np.array([{}], dtype=object))  # would need a pickle
    with pytest.raises(InvalidValueError, match="not a saved policy"):
        taught.load(path)


def test_dqn_chooses_its_form_by_the_size_of_the_space() -> None:
    small = DesignSpace([Integer("a", 1, 32), Integer("b", 1, 32)])
    large = DesignSpace([Integer("a", 1, 32), Integer("b", 1, 33)])
    forms = [make_agent("dqn", space) for space in (small, large)]
    assert [agent.form for agent in forms if isinstance(agent, Learner)] == ["design", "stepwise"]
    assert learner("dqn", Valley(), form="stepwise").form == "stepwise"
    with pytest.raises(AgentUnsuitableError, match="1,056 combinations are too many"):
        make_agent("dqn", large, form="design")


def test_spaces_that_cannot_be_learned_are_refused() -> None:
    huge = DesignSpace([Integer("n", 0, 1 << 17)])
    for name in ("ppo", "a2c", "dqn"):
        with pytest.raises(AgentUnsuitableError, match="131,073 values to choose from"):
            make_agent(name, huge)
    make_agent("sac", huge)
    fixed = DesignSpace([Integer("n", 0, 3)], fixed={"n": 1})
    with pytest.raises(AgentUnsuitableError, match="every parameter is fixed"):
        make_agent("sac", fixed)
    env = ConformanceEnvironment()
    other = DesignSpace([Real("r", 0, 1), Boolean("on")])
    with pytest.raises(InvalidValueError, match="another design space"):
        make_agent("ppo", other).search(env, 5)


def test_maskable_ppo_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'archgym\[sb3-contrib\]'"):
        make_agent("maskable_ppo", ConformanceEnvironment.design_spaces["finite"])


def test_masked_choices_are_a_parameter_a_step() -> None:
    with pytest.raises(InvalidValueError, match="form"):
        agent_class("maskable_ppo").check_hyperparameters({"form": "design"})
