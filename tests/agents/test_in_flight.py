"""Every agent keeps every worker busy, without a setting, and the same every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archgym
from archgym.agent import Sampler
from archgym.environment.environment import Environment
from archgym.evaluation.outcome import Outcomes
from archgym.experiment.simulate.simulators import Simulators
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.registry import agent_names, make, make_agent
from archgym.space import Designs

WORKERS = 8
SLOW = {"active", "botorch", "ippo", "ippo_shared", "mappo", "dqn", "sac", "gp", "auto", "bayesian"}
AGENTS = [
    pytest.param(name, marks=[pytest.mark.full] if name in SLOW else []) for name in agent_names()
]


def clocked(workers: int = WORKERS, **arguments: Any) -> Environment:
    env = make("Conformance-v0", **arguments)
    settings = SimulationSettings(
        workers=workers, clock="simulated", duration={"log_normal": {"median": 60, "sigma": 1}}
    )
    Simulators(settings).serve(env, "Conformance-v0", {})
    return env


class Watch:
    """What a search does, and how many workers are busy meanwhile."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self.designs: list[tuple[int, ...]] = []
        self.idle: list[int] = []  # free workers after each outcome was told
        env.on_evaluated = self._note
        self._collect = env.collect
        env.collect = self._collecting  # type: ignore[method-assign]

    def _collecting(self, timeout_s: float | None = None) -> list[tuple[int, Outcomes]]:
        core = self._env.evaluator
        if not core.exhausted:
            self.idle.append(core.slots - len(core.in_flight))
        return self._collect(timeout_s)

    def _note(self, outcomes: Outcomes) -> None:
        self.designs += map(tuple, outcomes.designs.codes.tolist())


@pytest.mark.parametrize("name", AGENTS)
def test_every_worker_is_busy_as_long_as_the_budget_lasts(name: str) -> None:
    env = clocked()
    watch = Watch(env)
    result = make_agent(name, env.design_space, seed=2).search(env, 60)
    assert result.spent > 59
    assert np.mean(watch.idle) <= 0.2 * WORKERS, (
        f"on average {np.mean(watch.idle):.1f} of {WORKERS} workers had nothing to do: {name}.ask "
        "must propose designs while others are in flight, not wait for a whole batch of outcomes"
    )
    again = clocked()
    second = Watch(again)
    make_agent(name, again.design_space, seed=2).search(again, 60)
    assert second.designs == watch.designs


class Generations(Sampler):
    """A stranger that proposes four designs, and nothing more until it knows all of them."""

    name = "generations"

    def setup(self) -> None:
        self._waiting = 0
        self._queue: list[Designs] = []

    def ask(self, n: int) -> Designs:
        if not self._queue and not self._waiting:
            self._queue = [self.space.sample(1, self.rng) for _ in range(4)]
            self._waiting = 4
        return self._queue.pop() if self._queue else self.space.designs(())

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        self._waiting -= len(designs)


def test_a_strangers_agent_that_waits_is_waited_for() -> None:
    env = clocked()
    result = Generations(env.design_space, seed=1).search(env, 30)
    assert result.simulations == 30


class Mappings(Sampler):
    """A stranger that proposes more than it is asked for, as mappings."""

    name = "mappings"

    def ask(self, n: int) -> Any:
        return list(self.space.sample(n + 2, self.rng))

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        assert len(designs) == len(outcomes) == 1


def test_a_strangers_agent_may_propose_more_than_it_is_asked_for() -> None:
    env = clocked()
    assert Mappings(env.design_space, seed=1).search(env, 30).simulations == 30


def test_initial_designs_are_in_flight_like_others() -> None:
    env = clocked()
    initial = env.design_space.sample(20, np.random.default_rng(0))
    result = make_agent("local", env.design_space, seed=1).search(env, 40, initial=initial)
    assert result.spent == 40


def test_one_worker_is_a_plain_loop() -> None:
    for name in ("ga", "hyperband", "local", "random"):
        plain, env = archgym.make("Conformance-v0"), clocked(1)
        found: list[list[tuple[int, ...]]] = []
        for each in (plain, env):
            watch = Watch(each)
            make_agent(name, each.design_space, seed=4).search(each, 30)
            found.append(watch.designs)
        assert found[0] == found[1], name
