"""Who takes part: every registered agent with its defaults, and the peers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archgym.errors import AgentUnsuitableError, MissingDependencyError
from archgym.experiment.spec.checks import goal_directions
from archgym.registry import agent_class, agent_names, make_agent
from benchmarks.search_quality.facts import Facts
from benchmarks.search_quality.peers import PEERS
from benchmarks.search_quality.problems import Problem
from benchmarks.search_quality.tracker import Done, Tracker

__all__ = ["GRIDS", "Contestant", "contestant", "contestants", "perform"]

SLOW_AGENTS = frozenset({"active", "bayesian", "botorch", "gp", "optuna"})
"""Our agents that fit a model to what they know: they get smaller budgets."""
SLOWEST_AGENTS = frozenset({"active", "botorch"})
"""Those of them that also get few problems."""
BOUNDED_AGENTS = frozenset({"auto"})
"""Our agents with a Gaussian process among others, whose price is bounded: they get the short
budget everywhere."""
DEAR = {"active": 100, "hyperband": 300, "nevergrad portfolio": 300, "skopt gp_minimize": 100}
"""Get this many evaluations at most, and fewer seeds."""
LEARNERS = frozenset(
    {"a2c", "dqn", "ippo", "ippo_shared", "mappo", "maskable_ppo", "ppo", "sac", "sb3 PPO"}
)
"""Reinforcement learners: they get fewer seeds."""
GRIDS: dict[str, tuple[dict[str, Any], ...]] = {
    "ga": tuple({"population_size": p, "crossover_rate": c} for p in (8, 32) for c in (0.5, 0.9)),
    "sa": tuple({"initial_temperature": t} for t in (0.1, 0.3, 1.0)),
    "aco": tuple({"ants": n} for n in (4, 16, 32)),
}
"""Hyperparameters around the defaults, for the spread that tuning by luck can give."""


@dataclass(frozen=True)
class Contestant:
    """A searcher.

    Attributes:
        name: of the agent or the peer.
        own: whether it is an agent of ours.
        slow: whether it gets smaller budgets.
        slowest: whether it also gets few problems.
        bounded: whether it gets a short budget, but everywhere.
        learner: whether it gets fewer seeds.
        most: evaluations that it gets at most, and then fewer seeds; 0 for no limit of its own.
        several_goals: whether it can take a problem with several goals.
        with_limits: whether it is only for problems with limits.
        missing: what it lacks to be run; empty if nothing.
    """

    name: str
    own: bool
    slow: bool = False
    slowest: bool = False
    bounded: bool = False
    learner: bool = False
    most: int = 0
    several_goals: bool = True
    with_limits: bool = False
    missing: str = ""

    def suits(self, problem: Problem) -> bool:
        """Whether it takes part in a problem."""
        if problem.several_goals:
            return self.several_goals and not self.with_limits
        return not self.with_limits or problem.limited


def contestants() -> list[str]:
    """Names of all agents, then of all peers."""
    return [*agent_names(), *PEERS]


def contestant(name: str) -> Contestant:
    """A contestant by name.

    Raises:
        UnknownNameError: if there is no such agent.
    """
    if name in PEERS:
        peer = PEERS[name]
        return Contestant(
            name=name,
            own=False,
            slow=peer.slow,
            slowest=peer.needs == "skopt",
            learner=name in LEARNERS,
            most=DEAR.get(name, 0),
            several_goals=peer.several_goals,
            with_limits=peer.with_limits,
            missing=peer.missing,
        )
    agent_class(name)
    return Contestant(
        name,
        True,
        slow=name in SLOW_AGENTS,
        slowest=name in SLOWEST_AGENTS,
        bounded=name in BOUNDED_AGENTS,
        learner=name in LEARNERS,
        most=DEAR.get(name, 0),
    )


def perform(
    problem: Problem,
    facts: Facts,
    name: str,
    seed: int,
    budget: int,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Lets a contestant search once.

    Returns:
        What :meth:`Tracker.result` gives; only ``unsuitable``, with the reason, if an agent says
        that it cannot work on the problem.
    """
    np.random.seed(seed)  # noqa: NPY002 - a peer might draw from it
    random.seed(seed)
    env = problem.make_environment(facts)
    volume = problem.volume(facts) if problem.several_goals else None
    tracker = Tracker(env, budget, facts.dead, volume)
    try:
        if name in PEERS:
            PEERS[name].run(tracker, seed)
        else:
            directions = goal_directions(env)
            agent = make_agent(name, env.design_space, directions, seed=seed, **(settings or {}))
            agent.search(env, budget)
    except Done:
        pass
    except (AgentUnsuitableError, MissingDependencyError) as error:
        return {"unsuitable": str(error)}
    finally:
        env.close()
    return tracker.result()
