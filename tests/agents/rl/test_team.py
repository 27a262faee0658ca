from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import archgym
from archgym.agent import Sampler
from archgym.agents.rl.choices import Choices
from archgym.agents.rl.team import Team
from archgym.errors import AgentUnsuitableError, InvalidValueError
from archgym.evaluation.outcome import Outcomes
from archgym.registry import make_agent
from archgym.space import Boolean, Categorical, Designs, DesignSpace, Integer, Real, param
from archgym.views.multi_agent import ParallelView

LEARNERS = ("ippo", "ippo_shared", "mappo")
BEST: dict[str, Any] = {"kind": "c", "level": 6, "share": 0.3, "bit": True, "width": 2}


class Separable(archgym.Environment):
    """Every parameter adds its own share to the cost; agents have 2 to 32 choices."""

    design_space = DesignSpace(
        [
            Categorical("kind", ["a", "b", "c", "d"], group="head"),
            Integer("level", 0, 9, group="head"),
            Real("share", 0.0, 1.0),
            Boolean("bit", group="tail"),
            Integer("width", 1, 3, when=param("bit") == True, group="tail"),  # noqa: E712
        ]
    )
    metrics: ClassVar = (archgym.Metric("time_ns", "ns"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"kind": "a", "level": 0, "share": 1.0, "bit": False}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        away = abs(design["level"] - BEST["level"]) / 4 + 2 * abs(design["share"] - BEST["share"])
        away += design["kind"] != BEST["kind"]
        away += abs(design["width"] - BEST["width"]) if design["bit"] else 1.5
        return {"time_ns": 1.0 + away}


def trajectory(name: str, seed: int, budget: int, **hyperparameters: Any) -> list[dict[str, Any]]:
    env = Separable()
    seen: list[Outcomes] = []
    env.on_evaluated = seen.append
    agent = make_agent(name, env.design_space, seed=seed, **hyperparameters)
    agent.search(env, budget)
    return [design for outcomes in seen for design in outcomes.designs]


def learner(name: str, space: DesignSpace, **hyperparameters: Any) -> Team:
    agent = make_agent(name, space, **hyperparameters)
    assert isinstance(agent, Team)
    return agent


@pytest.mark.parametrize("groups", ["parameter", "suggested"])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_agent_learns_its_part(name: str, groups: str) -> None:
    env = Separable()
    rewards: list[float] = []
    env.on_evaluated = lambda outcomes: rewards.extend(outcomes.reward)
    agent = learner(name, env.design_space, seed=3, groups=groups)
    result = agent.search(env, 640)
    assert (result.simulations, result.duplicates) == (640, 0)
    assert agent.policy("kind").argmax() == 2
    assert abs(int(agent.policy("level").argmax()) - BEST["level"]) <= 1
    assert abs(int(agent.policy("share").argmax()) / 32 - BEST["share"]) < 0.15
    assert agent.policy("bit")[1] > 0.8
    assert np.mean(rewards[-100:]) > np.mean(rewards[:32]) + 0.1
    assert result.best is not None
    assert result.best.objectives[0] < 1.1


@pytest.mark.parametrize("name", LEARNERS)
def test_policies_are_even_at_first(name: str) -> None:
    agent = learner(name, Separable.design_space)
    for parameter, size in {"kind": 4, "level": 10, "share": 32, "bit": 2, "width": 3}.items():
        assert agent.policy(parameter) == pytest.approx(np.full(size, 1 / size))


@pytest.mark.parametrize("groups", ["parameter", "suggested"])
def test_agents_are_those_of_the_parallel_view(groups: str) -> None:
    env = Separable()
    agent = learner("ippo", env.design_space, groups=groups)
    view = ParallelView(env, env.design_space.groups if groups == "suggested" else None)
    assert agent.agents == view.possible_agents


@pytest.mark.parametrize("name", ["ippo", "mappo"])
def test_nothing_is_learned_from_an_inactive_parameter(name: str) -> None:
    env = Separable()
    agent = learner(name, env.design_space, batch_size=16, entropy=0.5)
    rng = np.random.default_rng(0)

    def tell(bit: bool) -> None:
        codes = env.design_space.sample(400, rng).codes
        (known,) = np.nonzero(codes[:, 3] == bit)
        designs = Designs(env.design_space, codes[known[:16]])
        agent.tell(designs, env.evaluate_batch(designs))

    tell(bit=True)
    width, kind = agent.policy("width"), agent.policy("kind")
    assert width != pytest.approx(np.full(3, 1 / 3))
    for _ in range(5):  # in none of which it acts
        tell(bit=False)
    assert (agent.policy("width") == width).all()
    assert not np.allclose(agent.policy("kind"), kind)


def test_designs_in_which_a_parameter_is_inactive_leave_its_gradient_alone() -> None:
    env = Separable()
    codes = env.design_space.sample(100, np.random.default_rng(0)).codes
    on = Designs(env.design_space, codes[codes[:, 3] == 1][:8])
    off = Designs(env.design_space, codes[codes[:, 3] == 0][:8])
    policies = []
    for batch in (on, on.concatenate(off)):
        agent = learner("ippo", env.design_space, batch_size=len(batch), entropy=0.0)
        agent.tell(batch, env.evaluate_batch(batch))
        policies.append([agent.policy("width"), agent.policy("bit"), agent.policy("kind")])
    assert policies[0][0] == pytest.approx(policies[1][0], abs=1e-9)
    assert policies[0][1] != pytest.approx(policies[1][1], abs=1e-3)
    assert policies[0][2] != pytest.approx(policies[1][2], abs=1e-3)


def test_a_group_is_learned_as_one() -> None:
    """An agent whose other parameter is inactive goes on to learn from the one that is not."""
    env = Separable(fixed={"kind": "a", "level": 0, "share": 0.5})
    agent = learner("ippo", env.design_space, groups="suggested", batch_size=4)
    off = env.design_space.designs([{"bit": False, **env.design_space.fixed}] * 2)
    on = env.design_space.designs([{"bit": True, "width": 2, **env.design_space.fixed}] * 2)
    designs = off.concatenate(on)
    agent.tell(designs, env.evaluate_batch(designs))
    assert agent.agents == ["tail"]
    assert agent.policy("bit")[1] > 0.5
    assert agent.policy("width").argmax() == 1
    assert agent.policy("width")[0] == pytest.approx(agent.policy("width")[2])  # neither was tried


@pytest.mark.parametrize("name", LEARNERS)
def test_equal_rewards_teach_nothing(name: str) -> None:
    env = Separable(objective={"minimize": "time_ns", "limits": ["time_ns <= 1e-9"]})
    env.simulate = lambda design: {"time_ns": 2.0}  # type: ignore[method-assign]
    agent = learner(name, env.design_space, entropy=0.0)
    agent.search(env, 96)
    for parameter in env.design_space.names:
        policy = agent.policy(parameter)
        assert policy == pytest.approx(np.full(len(policy), 1 / len(policy)))


@pytest.mark.parametrize("name", LEARNERS)
def test_outcomes_may_come_in_any_portions(name: str) -> None:
    """Policies depend on what was told, in which order, not on how many at a time."""
    env = Separable()
    designs = env.design_space.sample(96, np.random.default_rng(5))
    whole, portions = (learner(name, env.design_space, seed=1) for _ in range(2))
    whole.tell(designs, env.evaluate_batch(designs))
    for start, stop in ((0, 1), (1, 50), (50, 96)):
        part = designs[start:stop]
        portions.tell(part, env.evaluate_batch(part))
    assert (whole.policy("level") == portions.policy("level")).all()
    assert whole.ask(20).keys() == portions.ask(20).keys()


@pytest.mark.full
def test_search_is_the_same_in_another_process_and_with_more_threads() -> None:
    code = (
        "import importlib.util, json, sys, torch\n"
        "torch.set_num_threads(2)\n"
        "torch.manual_seed(7)\n"
        f"spec = importlib.util.spec_from_file_location('tests_of', {__file__!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(json.dumps([module.trajectory(n, 4, 128) for n in module.LEARNERS]))\n"
        "assert torch.get_num_threads() == 2\n"
        "assert torch.initial_seed() == 7\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout) == [trajectory(name, 4, 128) for name in LEARNERS]


def test_groups_and_seeds_make_a_difference() -> None:
    runs = [
        trajectory("ippo", 1, 96),
        trajectory("ippo", 2, 96),
        trajectory("ippo", 1, 96, groups="suggested"),
    ]
    assert runs[0] != runs[1]
    assert runs[0][:32] == runs[2][:32]  # before anything was learned
    assert runs[0] != runs[2]


def test_resumed_trial_proposes_the_same(tmp_path: Any) -> None:
    def search(budget: int, record: Any, resume: bool = False) -> Any:
        env = Separable(record=record)
        agent = make_agent("mappo", env.design_space, seed=2)
        result = agent.search(env, budget, trial_id="t", resume=resume)
        env.close()
        return result

    search(70, tmp_path / "a")
    resumed = search(130, tmp_path / "a", resume=True)
    whole = search(130, tmp_path / "b")
    assert resumed.best.design == whole.best.design
    assert (resumed.simulations, resumed.proposals) == (whole.simulations, whole.proposals)


def test_unsuitable_spaces_and_settings_are_refused() -> None:
    fixed = Separable.design_space.fix({**BEST})
    with pytest.raises(AgentUnsuitableError, match="'ippo' needs a parameter that is not fixed"):
        make_agent("ippo", fixed)
    with pytest.raises(InvalidValueError, match="groups"):
        make_agent("ippo", Separable.design_space, groups="page")


class TestChoices:
    space = Separable.design_space
    choices = Choices(space, 4)

    def test_sizes_are_limited(self) -> None:
        assert self.choices.sizes.tolist() == [4, 4, 4, 2, 3]
        assert self.choices.even.sum(axis=1) == pytest.approx(np.ones(5))

    def test_every_value_is_reached_from_its_share(self) -> None:
        rng = np.random.default_rng(0)
        drawn = self.choices.draw(self.choices.even, 2000, rng)
        designs = self.choices.designs(drawn, rng)
        assert set(designs.values("level").tolist()) == set(range(10))
        share = designs.values("share")
        assert (np.floor(share * 4).clip(max=3) == drawn[:, 2]).mean() > 0.99
        assert np.histogram(share, 8, (0, 1))[0].min() > 180

    def test_choices_of_designs_are_those_they_came_from(self) -> None:
        rng = np.random.default_rng(1)
        exact = Choices(self.space, 10)
        drawn = exact.draw(exact.even, 500, rng)
        back = exact.of(exact.designs(drawn, rng))
        active = drawn[:, 3] == 1
        assert (back[:, :2] == drawn[:, :2]).all()
        assert (back[active, 4] == drawn[active, 4]).all()
        assert (back[~active, 4] == -1).all()
        assert (exact.canonical(drawn) == np.where(back < 0, -1, drawn)).all()

    def test_weights_decide_how_often(self) -> None:
        weights = np.zeros((5, 4))
        weights[:, :2] = [0.25, 0.75]
        drawn = self.choices.draw(weights, 4000, np.random.default_rng(2))
        assert drawn.max() == 1
        assert drawn.mean(axis=0) == pytest.approx(np.full(5, 0.75), abs=0.03)


@pytest.mark.parametrize("name", LEARNERS)
def test_warm_start_is_learned_from(name: str) -> None:
    env = Separable()
    agent = make_agent(name, env.design_space)
    assert isinstance(agent, Sampler)
    known = env.design_space.sample(64, np.random.default_rng(3))
    agent.tell(known, env.evaluate_batch(known))
    assert isinstance(agent, Team)
    assert agent.policy("kind").argmax() == 2
    assert not set(agent.ask(50).keys()) & set(known.keys())


@pytest.mark.parametrize("name", LEARNERS)
def test_policies_are_saved_and_loaded(name: str, tmp_path: Path) -> None:
    env, path = Separable(), tmp_path / "team.npz"
    taught = learner(name, env.design_space, seed=1, batch_size=16)
    taught.search(env, 320)
    taught.save(path)
    again = learner(name, Separable().design_space, seed=2, batch_size=16)
    even = again.policy("kind")
    again.load(path)
    for parameter in env.design_space.names:
        np.testing.assert_array_equal(again.policy(parameter), taught.policy(parameter))
    assert again.policy("kind").max() > even.max() + 0.05
    told: list[float] = []
    env = Separable()
    env.on_evaluated = lambda outcomes: told.extend(outcomes.objectives[:, 0])
    again.search(env, 16)
    random = env.evaluate_batch(env.design_space.sample(500, np.random.default_rng(0)))
    assert np.mean(told[:16]) < random.objectives[:, 0].mean()


def test_policies_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    space, path = Separable.design_space, tmp_path / "team.npz"
    taught = learner("ippo", space)
    taught.save(path)
    before = taught.policy("level")
    with pytest.raises(InvalidValueError, match="policy of another agent"):
        learner("mappo", space).load(path)
    with pytest.raises(InvalidValueError, match="policy of another grouping"):
        learner("ippo", space, groups="suggested").load(path)
    with pytest.raises(InvalidValueError, match="policy of another design space"):
        learner("ippo", DesignSpace([Boolean("bit"), Integer("width", 1, 3)])).load(path)
    with pytest.raises(InvalidValueError, match="of another network: policies"):
        learner("ippo", space, shares=8).load(path)
    with pytest.raises(InvalidValueError, match="there is no policy"):
        taught.load(tmp_path / "none.npz")
    np.testing.assert_array_equal(taught.policy("level"), before)
