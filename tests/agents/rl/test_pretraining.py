"""Policies that are pretrained on history: what they gain, what misleads, what stays explored."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import archgym
from archgym.agents.common.observations import some_outcomes
from archgym.agents.rl.lessons import Lessons
from archgym.agents.rl.logged import logged_steps
from archgym.agents.rl.team import Team
from archgym.data import Dataset
from archgym.envs.conformance import ConformanceEnvironment
from archgym.evaluation.outcome import Outcomes
from archgym.history import History, HistorySource
from archgym.registry import make_agent
from archgym.space import Categorical, DesignSpace, MultiDiscreteEncoding, Permutation
from archgym.views.stepwise import StepwiseView

QUICK: dict[str, Any] = {"n_envs": 4, "width": 16}
LEARNERS: list[tuple[str, dict[str, Any]]] = [
    ("ppo", QUICK),
    ("ppo", {**QUICK, "form": "stepwise"}),
    ("maskable_ppo", QUICK),
    ("a2c", QUICK),
    ("dqn", QUICK),
    ("sac", QUICK),
    ("ippo", {}),
    ("ippo_shared", {}),
    ("mappo", {}),
]


class Valley(archgym.Environment):
    """Six categories, each best at its third value: random designs have 4.5 of 6 wrong."""

    design_space = DesignSpace([Categorical(f"p{i}", ["a", "b", "c", "d"]) for i in range(6)])
    metrics = (archgym.Metric("cost_ns", "ns"),)
    default_objective = "minimize cost_ns"
    baseline = {f"p{i}": "c" if i < 3 else "a" for i in range(6)}  # noqa: RUF012

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {"cost_ns": 2.0 ** sum(value != "c" for value in design.values())}


class Loops(archgym.Environment):
    """The best order of loops is that of their names."""

    design_space = DesignSpace([Permutation("order", list("abcdef")), Categorical("x", [1, 2])])
    metrics = (archgym.Metric("cost_ns", "ns"),)
    default_objective = "minimize cost_ns"
    baseline = {"order": list("fedcba"), "x": 1}  # noqa: RUF012

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        order = list(design["order"])
        return {"cost_ns": 1.0 + sum(order.index(item) != i for i, item in enumerate("abcdef"))}


@pytest.fixture(params=LEARNERS, ids=lambda form: "-".join([form[0], form[1].get("form", "")]))
def learner(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    found: tuple[str, dict[str, Any]] = request.param
    if found[0] == "maskable_ppo":
        pytest.importorskip("sb3_contrib")
    return found


def log(env: archgym.Environment, n: int = 150, seed: int = 5) -> Outcomes:
    """Random designs, the very best ones left out."""
    designs = env.design_space.sample(n, np.random.default_rng(seed))
    _, first = np.unique(np.array(designs.keys()), return_index=True)
    outcomes = type(env)().evaluate_batch(designs[np.sort(first)])
    worse = np.flatnonzero(outcomes.reward < np.quantile(outcomes.reward, 0.99))
    return some_outcomes(outcomes, worse, env.design_space)


def history(outcomes: Outcomes, *, same: bool = False) -> History:
    return History((HistorySource("earlier", outcomes, same),))


def exchanged(outcomes: Outcomes, rows: NDArray[np.int64]) -> Outcomes:
    others = some_outcomes(outcomes, rows, outcomes.designs.space)
    return dataclasses.replace(others, designs=outcomes.designs)


def rewards(
    learner: tuple[str, dict[str, Any]], env: archgym.Environment, earlier: History | None
) -> list[float]:
    found: list[float] = []
    env.on_evaluated = lambda outcomes: found.extend(outcomes.reward)
    make_agent(learner[0], env.design_space, seed=2, **learner[1]).search(env, 42, history=earlier)
    return found


@pytest.mark.nightly
def test_pretrained_learners_propose_better_designs_from_the_beginning(
    learner: tuple[str, dict[str, Any]],
) -> None:
    wide = learner[0], {key: value for key, value in learner[1].items() if key != "width"}
    plain = rewards(wide, Valley(), None)
    taught = rewards(wide, Valley(), history(log(Valley(), 600)))
    # The first ten are the best of the log, and random ones.
    assert np.mean(taught[10:42]) > np.mean(plain[10:42]) + 0.04


def test_what_misleads_is_not_learned() -> None:
    env, rng = Valley(), np.random.default_rng(0)
    outcomes = log(env)
    order = outcomes.reward.argsort(kind="stable")
    opposite = np.empty(len(order), dtype=np.int64)
    opposite[order] = order[::-1]
    sources = [outcomes, exchanged(outcomes, rng.permutation(len(order)))]
    sources += [exchanged(outcomes, opposite), log(env, 10)]
    several = History(tuple(HistorySource(str(i), one) for i, one in enumerate(sources)))
    lessons = Lessons(several, env.design_space, rng)
    first = env.evaluate_batch(several.start(5).concatenate(lessons.probes))
    trust = lessons.trust(first)
    assert trust[0] > 0.5
    assert trust[1:].tolist() == [0.0, 0.0, 0.0]  # shuffled, opposed, too few
    weights = lessons.weights(trust)
    assert np.flatnonzero(weights).tolist() == list(range(len(outcomes)))
    assert np.corrcoef(weights[: len(outcomes)], outcomes.reward)[0, 1] > 0.5


def test_a_misled_learner_goes_on_as_if_it_knew_nothing() -> None:
    outcomes = log(Valley())
    misleading = history(exchanged(outcomes, np.random.default_rng(1).permutation(len(outcomes))))
    agent = make_agent("ippo", Valley.design_space, seed=2)
    assert isinstance(agent, Team)
    agent.search(Valley(), 12, history=misleading)  # 32 designs before it learns for itself
    for name in Valley.design_space.names:
        np.testing.assert_allclose(agent.policy(name), 0.25)


def test_of_many_sources_those_of_the_same_problem_come_first() -> None:
    env, rng = Valley(), np.random.default_rng(0)
    others = [HistorySource(str(i), log(env, 60, seed=i)) for i in range(40)]
    many = History((*others, HistorySource("same", log(env, 60, seed=99), same=True)))
    lessons = Lessons(many, env.design_space, rng)
    trust = lessons.trust(env.evaluate_batch(many.start(5).concatenate(lessons.probes)))
    assert len(trust) == 32
    assert len(lessons.outcomes) <= 2048
    assert (
        lessons.outcomes.designs.codes[0].tolist()
        == many.sources[-1].outcomes.designs.codes[0].tolist()
    )


def test_sources_that_tell_nothing_are_not_believed() -> None:
    env, rng = Valley(), np.random.default_rng(0)
    outcomes = log(env)
    equal = dataclasses.replace(outcomes, reward=np.full(len(outcomes), 0.5))
    lessons = Lessons(history(equal), env.design_space, rng)
    assert lessons.trust(env.evaluate_batch(lessons.probes)).tolist() == [0.0]


def test_only_sources_of_other_problems_are_probed() -> None:
    env, rng = Valley(), np.random.default_rng(0)
    same = Lessons(history(log(env), same=True), env.design_space, rng)
    other = Lessons(history(log(env)), env.design_space, rng)
    assert (len(same.probes), len(other.probes)) == (0, 5)


@pytest.mark.parametrize("name", ["ippo", "ippo_shared", "mappo"])
def test_pretrained_policies_still_explore(name: str) -> None:
    env = Valley()
    outcomes = env.evaluate_batch(env.design_space.designs([{f"p{i}": "c" for i in range(6)}]))
    many = some_outcomes(log(env), np.arange(100), env.design_space)
    best = some_outcomes(outcomes, np.zeros(60, dtype=np.int64), env.design_space)
    columns = {
        field.name: np.concatenate([getattr(many, field.name), getattr(best, field.name)])
        for field in dataclasses.fields(many)
        if isinstance(getattr(many, field.name), np.ndarray)
    }
    both = dataclasses.replace(
        many,
        **columns,
        designs=many.designs.concatenate(best.designs),
        reason=many.reason + best.reason,
    )
    agent = make_agent(name, env.design_space, seed=0)
    assert isinstance(agent, Team)
    first = agent.recall(history(both))
    agent.tell(first, env.evaluate_batch(first))
    for parameter in env.design_space.names:
        policy = agent.policy(parameter)
        assert policy.argmax() == 2
        assert policy.min() > 0.01  # a tenth of the choices are even


@pytest.mark.nightly
@pytest.mark.parametrize("settings", [{}, {"episode_length": 3}, {"space": "finite"}], ids=str)
def test_every_kind_of_space_is_learned_from(
    learner: tuple[str, dict[str, Any]], settings: dict[str, Any]
) -> None:
    env = ConformanceEnvironment(**settings)
    earlier = env.evaluate_batch(env.design_space.sample(60, np.random.default_rng(1)))
    agent = make_agent(learner[0], env.design_space, seed=1, **learner[1])
    again = ConformanceEnvironment(**settings)
    assert agent.search(again, 30, history=history(earlier)).simulations == 30


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["design", "stepwise"])
def test_orders_are_learned_from(form: str) -> None:
    env = Loops()
    kind = ("ppo", {**QUICK, "form": form})
    taught = rewards(kind, Loops(), history(log(env, 400)))
    assert np.mean(taught[10:]) > np.mean(rewards(kind, Loops(), None)[10:]) + 0.02


@pytest.mark.nightly
def test_resumed_search_and_seed(learner: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    earlier = history(log(Valley(), 80))

    def search(env: archgym.Environment, seed: int = 3, **keywords: Any) -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = []
        watch = env.on_evaluated
        env.on_evaluated = watch or (lambda outcomes: seen.extend(outcomes.designs))
        agent = make_agent(learner[0], env.design_space, seed=seed, **learner[1])
        agent.search(env, 40, history=earlier, **keywords)
        return seen

    whole = search(Valley())
    assert search(Valley()) == whole
    assert search(Valley(), seed=4) != whole
    env = Valley(record=tmp_path)

    def stop(outcomes: Any) -> None:
        if env.evaluator.proposals >= 25:
            raise KeyboardInterrupt

    env.on_evaluated = stop
    with pytest.raises(KeyboardInterrupt):
        search(env, trial_id="t")
    env = Valley(record=tmp_path)
    search(env, trial_id="t", resume=True)
    env.close()
    rows = Dataset(tmp_path).evaluations().to_pylist()
    assert [{n: row[f"param.{n}"] for n in env.design_space.names} for row in rows] == whole


def test_steps_of_the_log_are_those_of_the_view() -> None:
    env = ConformanceEnvironment(space="finite", episode_length=2)
    outcomes = env.evaluate_batch(env.design_space.sample(6, np.random.default_rng(1)))
    steps = logged_steps(env, outcomes, None, 32, 0.5, np.random.default_rng(0), masked=True)
    view = StepwiseView(env)
    seen, _ = view.reset()
    assert steps.masks is not None
    for i in range(len(steps)):
        np.testing.assert_array_equal(steps.observations[i], seen)
        np.testing.assert_array_equal(steps.masks[i], view.action_masks())
        seen, reward, done, _, info = view.step(steps.actions[i])
        np.testing.assert_array_equal(steps.next_observations[i], seen)
        assert (steps.rewards[i], bool(steps.dones[i])) == (pytest.approx(reward), done)
        if info:
            assert info["design"] == outcomes.designs[int(steps.designs[i])]
        if done:
            assert steps.returns[i] == pytest.approx(reward)
            seen, _ = view.reset()
        else:
            expected = reward + 0.5 * steps.returns[i + 1]
            assert steps.returns[i] == pytest.approx(expected)
    assert steps.dones.sum() == 3


def test_what_inactive_parameters_had_is_drawn() -> None:
    env = ConformanceEnvironment(space="finite")
    outcomes = env.evaluate_batch(env.design_space.sample(200, np.random.default_rng(1)))
    encoding = MultiDiscreteEncoding(env.design_space)
    steps = logged_steps(env, outcomes, encoding, 32, 1.0, np.random.default_rng(0))
    assert encoding.decode(steps.actions).keys() == outcomes.designs.keys()
    inactive = outcomes.designs.codes < 0
    assert inactive.any()
    for column in np.flatnonzero(inactive.any(axis=0)):
        drawn = steps.actions[inactive[:, column], column]
        assert len(np.unique(drawn)) == encoding.nvec[column]
