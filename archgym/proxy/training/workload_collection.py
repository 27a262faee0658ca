"""Collects what a proxy of many workloads learns from: good designs of each, simulated on all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archgym.agent import Agent, Sampler
from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError, check_integer
from archgym.evaluation.outcome import Outcomes
from archgym.evaluation.trial_info import TrialInfo
from archgym.registry import agent_class, make_agent
from archgym.space import Designs

AGENT = "proxy-cross"
"""Agent of the trials in which the best designs of all workloads are simulated on each."""
MIN_WORKLOADS = 3

Make = Callable[[Any, Any], Environment]
"""Makes the environment on a workload with an objective, recorded."""
Progress = Callable[[str], None]


def collect_workloads(
    make: Make,
    workloads: Sequence[Any],
    objectives: Sequence[Any],
    *,
    drawn: int = 200,
    searched: int = 250,
    crossed: int = 4,
    agent: str = "auto",
    hyperparameters: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> int:
    """Simulates designs on many workloads, so that a proxy can predict one it has not seen.

    The same random designs are simulated on each workload, and an agent searches it for each
    objective, without knowing of the other workloads. Then the best designs of every search are
    simulated on every workload: which of them are good on which workloads is what a search on an
    unseen one starts from (:func:`archgym.proxy.zero_shot.zero_shot`).

    Args:
        make: makes an environment; all have one design space.
        workloads: as the environment takes them.
        objectives: as the environment takes them; ``None`` is its default.
        drawn: random designs of each workload.
        searched: designs that each search simulates.
        crossed: number of the best designs of each search that all workloads simulate.
        agent: that searches.
        hyperparameters: of the agent.
        seed: the only source of randomness.
        progress: called with what is done next.

    Returns:
        Number of designs that were crossed.

    Raises:
        UnknownNameError: for an agent or a hyperparameter that does not exist.
        InvalidValueError: if a number or a hyperparameter is not possible, or the design spaces
            differ.
    """
    for name, value, low in (
        ("drawn", drawn, 0),
        ("searched", searched, 1),
        ("crossed", crossed, 1),
    ):
        check_integer(name, value, low)
    if len(workloads) < MIN_WORKLOADS or not objectives:
        raise InvalidValueError(
            f"there are {len(workloads)} workloads and {len(objectives)} objectives; a proxy of "
            f"many workloads needs at least {MIN_WORKLOADS} and one"
        )
    settings = hyperparameters or {}
    agent_class(agent).check_hyperparameters(settings)
    say = progress or (lambda text: None)
    best: list[Designs] = []
    for number, workload in enumerate(workloads, start=1):
        for objective in objectives:
            env = make(workload, objective)
            if best and env.design_space != best[0].space:
                raise InvalidValueError(
                    f"workload {env.workload_name!r} has another design space than the first"
                )
            directions = ["minimize"] * len(env.objective.goals)
            searching = make_agent(agent, env.design_space, directions, seed, **settings)
            if objective is objectives[0]:
                say(f"{env.workload_name}: {number} of {len(workloads)}")
                _draw(env, drawn, seed)
            best.append(_search(env, searching, searched, crossed))
            env.close()
    shared = _distinct(best)
    for number, workload in enumerate(workloads, start=1):
        env = make(workload, objectives[0])
        say(f"{len(shared):,} designs on {env.workload_name}: {number} of {len(workloads)}")
        _simulate(env, shared, TrialInfo(agent=AGENT, seed=seed, budget=len(shared)))
    return len(shared)


def _draw(env: Environment, n: int, seed: int) -> None:
    if not n:
        return
    drawing = make_agent("random", env.design_space, seed=seed, batch_size=n)
    assert isinstance(drawing, Sampler)
    _simulate(env, drawing.ask(n), TrialInfo(agent="random", seed=seed, budget=n))


def _simulate(env: Environment, designs: Designs, trial: TrialInfo) -> None:
    env.start_trial(trial)
    try:
        for start in range(0, len(designs), 256):
            env.evaluate_batch(designs[start : start + 256])
    finally:
        env.end_trial("finished")


def _search(env: Environment, searching: Agent, budget: int, n: int) -> Designs:
    """The best feasible designs that a search finds."""
    codes, rewards = [], []

    def keep(outcomes: Outcomes) -> None:
        good = outcomes.feasible & ~outcomes.cached
        codes.append(outcomes.designs.codes[good])
        rewards.append(outcomes.reward[good])

    env.on_evaluated = keep
    searching.search(env, budget)
    order = np.argsort(-np.concatenate(rewards), kind="stable")[:n]
    return Designs(env.design_space, np.concatenate(codes)[order])


def _distinct(parts: Sequence[Designs]) -> Designs:
    codes = np.concatenate([part.codes for part in parts])
    _, first = np.unique(codes, axis=0, return_index=True)
    return Designs(parts[0].space, codes[np.sort(first)])
