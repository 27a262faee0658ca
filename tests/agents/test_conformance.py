"""What every registered agent must do, on every kind of environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from archgym.agent import Agent, Sampler
from archgym.envs.conformance import ConformanceEnvironment
from archgym.errors import InvalidValueError, NotCoveredError, SimulationError, UnknownNameError
from archgym.outcome import Outcomes
from archgym.registry import agent_class, agent_names, make_agent

AGENTS = agent_names()
SAMPLERS = [name for name in AGENTS if issubclass(agent_class(name), Sampler)]
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "default": {},
    "finite": {"space": "finite"},
    "limits": {"objective": {"minimize": "access_ns", "limits": ["area_mm2 <= 0.2"]}},
    "two goals": {"space": "finite", "objective": {"minimize": ["access_ns", "energy_pj"]}},
}
# Prefetching 1 to 8 lines ahead or not at all, 1 to 4 ways: 36 designs, some of which fail.
SMALL: dict[str, Any] = {"space": "finite", "fixed": {"replacement": "random", "size_kb": 1}}
SMALL_SIZE = 36
QUICK: dict[str, dict[str, Any]] = {"bayesian": {"candidates": 100}}


class Troubled(ConformanceEnvironment):
    """Does not cover some designs, or fails on all, if told so."""

    covered_distance = 8
    broken = False

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        if self.broken:
            raise SimulationError("broken")
        if design.get("distance", 0) > self.covered_distance:
            raise NotCoveredError("too far ahead")
        return super().simulate(design)


def make(name: str, env: ConformanceEnvironment, seed: int = 0, **extra: Any) -> Agent:
    return make_agent(name, env.design_space, seed=seed, **{**QUICK.get(name, {}), **extra})


def watch(env: ConformanceEnvironment) -> list[Outcomes]:
    seen: list[Outcomes] = []
    env.on_evaluated = seen.append
    return seen


def trajectory(name: str, seed: int, budget: int = 24) -> list[dict[str, Any]]:
    env = ConformanceEnvironment()
    seen = watch(env)
    make(name, env, seed).search(env, budget)
    return [design for outcomes in seen for design in outcomes.designs]


@pytest.fixture(params=SAMPLERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_proposals_are_new_canonical_and_legal(name: str, kind: str) -> None:
    env = ConformanceEnvironment(**ENVIRONMENTS[kind])
    seen = watch(env)
    result = make(name, env).search(env, 32)
    assert (result.simulations, result.illegal, result.duplicates) == (32, 0, 0)
    for outcomes in seen:
        for design in outcomes.designs:
            assert env.design_space.canonical(design) == design
            assert not env.design_space.broken_rule(design)
            json.dumps(design)


def test_budget_is_kept_and_a_smaller_one_is_a_prefix(name: str) -> None:
    long, short = trajectory(name, seed=3, budget=24), trajectory(name, seed=3, budget=13)
    assert (len(long), len(short)) == (24, 13)
    assert long[:13] == short


def test_seed_decides_the_trajectory(name: str) -> None:
    assert trajectory(name, seed=1) == trajectory(name, seed=1) != trajectory(name, seed=2)


def test_global_random_state_plays_no_part(name: str) -> None:
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    first = trajectory(name, seed=1)
    assert (np.random.get_state()[1] == state).all()  # type: ignore[index]  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert trajectory(name, seed=1) == first


def test_trajectories_are_equal_in_another_process() -> None:
    code = (
        "import importlib.util, json, sys\n"
        f"spec = importlib.util.spec_from_file_location('table', {__file__!r})\n"
        "table = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(table)\n"
        "print(json.dumps({n: table.trajectory(n, 5, 20) for n in table.SAMPLERS}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert json.loads(done.stdout) == {name: trajectory(name, 5, 20) for name in SAMPLERS}


@pytest.mark.parametrize("n", [1, 3, 7, 40])
def test_any_number_can_be_asked_for(name: str, n: int) -> None:
    env = ConformanceEnvironment()
    agent = make(name, env)
    assert isinstance(agent, Sampler)
    keys: set[int] = set()
    for _ in range(-(-40 // n)):
        designs = agent.ask(n)
        assert len(designs) == n
        agent.tell(designs, env.evaluate_batch(designs))
        keys.update(designs.keys())
    assert len(keys) == n * -(-40 // n)


def test_small_space_is_exhausted_exactly(name: str) -> None:
    env = ConformanceEnvironment(**SMALL)
    seen = watch(env)
    result = make(name, env).search(env, 1000)
    keys = [key for outcomes in seen for key in outcomes.designs.keys()]  # noqa: SIM118
    everything = [key for chunk in env.design_space.enumerate() for key in chunk.keys()]  # noqa: SIM118
    assert len(keys) == SMALL_SIZE == env.design_space.canonical_cardinality
    assert sorted(keys) == sorted(everything)
    assert result.simulations == result.proposals == SMALL_SIZE


def test_exhausted_agent_proposes_nothing(name: str) -> None:
    env = ConformanceEnvironment(**SMALL)
    agent = make(name, env)
    assert isinstance(agent, Sampler)
    everything = next(env.design_space.enumerate())
    agent.tell(everything[:-1], env.evaluate_batch(everything[:-1]))
    last = agent.ask(5)
    assert last.keys() == everything[-1:].keys()
    assert len(agent.ask(5)) == 0


def test_designs_that_the_simulator_does_not_cover_do_not_stop_a_search(name: str) -> None:
    env = Troubled(**SMALL)
    env.covered_distance = 5
    result = make(name, env).search(env, 1000)
    assert result.simulations == 4 * (1 + 5)
    assert result.illegal == 4 * 3


def test_search_in_which_every_design_fails_goes_on_to_its_end(name: str) -> None:
    env = Troubled(**SMALL)
    env.broken = True
    result = make(name, env).search(env, 20)
    assert result.simulations == 20
    assert result.best is None


def test_warm_start_is_evaluated_first_and_used(name: str) -> None:
    env = ConformanceEnvironment()
    known = env.design_space.sample(15, np.random.default_rng(9))
    seen = watch(env)
    result = make(name, env).search(env, 24, initial=list(known))
    told = [design for outcomes in seen for design in outcomes.designs]
    assert told[:15] == list(known)
    assert result.duplicates == 0
    assert result.simulations == 24


def test_unordered_and_partial_tell_is_taken(name: str) -> None:
    env = ConformanceEnvironment()
    agent = make(name, env)
    assert isinstance(agent, Sampler)
    asked = agent.ask(9)
    some = asked[np.array([4, 1])]
    agent.tell(some, env.evaluate_batch(some))
    agent.tell(some, env.evaluate_batch(some))
    again = agent.ask(9)
    assert not set(asked.keys()) & set(again.keys())


def test_every_value_of_every_parameter_is_reached(name: str) -> None:
    env = Troubled()
    env.broken = True  # nothing that would draw the search to one place
    extra = {"n_initial": 150} if name == "bayesian" else {}
    seen = watch(env)
    make(name, env, **extra).search(env, 156 if name == "bayesian" else 600)
    designs = [design for outcomes in seen for design in outcomes.designs]
    for parameter in env.design_space.parameters:
        values = {design[parameter.name] for design in designs if parameter.name in design}
        if parameter.continuous:
            assert min(values) < 0.65
            assert max(values) > 1.05
        else:
            assert len(values) == parameter.size


def test_fixed_parameters_stay(name: str) -> None:
    env = ConformanceEnvironment(fixed={"prefetch": True, "distance": 3, "voltage": 0.8})
    seen = watch(env)
    make(name, env).search(env, 20)
    for outcomes in seen:
        for design in outcomes.designs:
            assert (design["prefetch"], design["distance"], design["voltage"]) == (True, 3, 0.8)


@pytest.mark.parametrize("agent", AGENTS)
def test_hyperparameters_are_documented_and_bounded(agent: str) -> None:
    kind = agent_class(agent)
    assert kind.name == agent
    for field_name, field in kind.Hyperparameters.model_fields.items():
        assert field.description, field_name
        assert not field.is_required(), field_name
        assert (
            field.annotation in (bool, str) or field.metadata or "Literal" in str(field.annotation)
        ), f"{field_name} has no bounds"


@pytest.mark.parametrize("agent", AGENTS)
def test_unknown_and_impossible_hyperparameters_are_refused(agent: str) -> None:
    space = ConformanceEnvironment.design_spaces["default"]
    for field_name, field in agent_class(agent).Hyperparameters.model_fields.items():
        misspelt = field_name[:-1] + "x"
        with pytest.raises(UnknownNameError, match=f"Did you mean '{field_name}'"):
            make_agent(agent, space, **{misspelt: 1})
        if field.annotation in (int, float):
            for value in (-1, "many", float("inf")):
                with pytest.raises(InvalidValueError, match=field_name):
                    make_agent(agent, space, **{field_name: value})
        else:
            with pytest.raises(InvalidValueError, match=field_name):
                make_agent(agent, space, **{field_name: "nonsense"})


@pytest.mark.parametrize("seed", [-1, True, 1.5, "0"])
def test_seed_must_be_a_whole_number(name: str, seed: Any) -> None:
    with pytest.raises(InvalidValueError, match="seed"):
        make_agent(name, ConformanceEnvironment.design_spaces["default"], seed=seed)
