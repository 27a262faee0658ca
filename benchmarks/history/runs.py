"""Records earlier searches, and searches with and without them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.evaluation.outcome import Outcomes
from archgym.history import History, HistorySource
from archgym.history.transfer import transferred
from archgym.registry import make_agent
from archgym.space import Designs
from benchmarks.history.problems import Problem

__all__ = ["Kind", "history_of", "search"]

Kind = Literal["nothing", "initial", "history", "shuffled", "reversed"]
LOGGED = 150
"""Designs of each earlier search."""


@dataclasses.dataclass(frozen=True)
class Log:
    """What an earlier search evaluated."""

    environment: archgym.Environment
    codes: NDArray[np.int64]
    metrics: NDArray[np.float64]
    status: NDArray[np.int8]


def record(environment: archgym.Environment, agent: str, seed: int) -> Log:
    """Searches an earlier problem."""
    parts: list[Outcomes] = []
    environment.on_evaluated = parts.append
    make_agent(agent, environment.design_space, goals(environment), seed=seed).search(
        environment, LOGGED
    )
    environment.on_evaluated = None
    _, first = np.unique(
        np.concatenate([p.designs.codes for p in parts]), axis=0, return_index=True
    )
    rows = np.sort(first)
    return Log(
        environment,
        np.concatenate([p.designs.codes for p in parts])[rows],
        np.concatenate([p.metrics for p in parts])[rows],
        np.concatenate([p.status for p in parts])[rows],
    )


def goals(environment: archgym.Environment) -> tuple[str, ...]:
    """The direction of each goal, as agents take it."""
    return ("minimize",) * len(environment.objective.goals)


_LOGS: dict[tuple[str, str, int], Log] = {}


def history_of(
    problem: Problem, env: archgym.Environment, agent: str, seed: int, kind: Kind
) -> Any:
    """The history of a problem; ``None`` for a search from nothing.

    Args:
        problem: what is searched.
        env: its environment.
        agent: that searched the earlier problems.
        seed: of it.
        kind: ``initial`` is history too, of which only the best designs are used; ``shuffled``
            gives each design the metrics of another one, ``reversed`` the best design those of
            the worst one.
    """
    if kind == "nothing":
        return None
    sources = []
    for number, arguments in enumerate(problem.earlier):
        key = (f"{problem.environment} {arguments}", agent, seed)
        if key not in _LOGS:
            _LOGS[key] = record(archgym.make(problem.environment, **arguments), agent, seed)
        log = _LOGS[key]
        same = _without_objective(arguments) == _without_objective(problem.arguments)
        baseline = (env if same else log.environment).baseline_metrics
        designs = Designs(env.design_space, log.codes)
        outcomes = transferred(designs, log.metrics, log.status, baseline, env)
        if kind in ("shuffled", "reversed"):
            order = np.random.default_rng(seed).permutation(len(designs))
            if kind == "reversed":
                ranked = outcomes.reward.argsort(kind="stable")
                order = np.empty_like(ranked)
                order[ranked] = ranked[::-1]
            outcomes = transferred(designs, log.metrics[order], log.status[order], baseline, env)
        sources.append(HistorySource(f"earlier {number + 1}", outcomes, same))
    return History(tuple(sources))


def _without_objective(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "objective"}


def search(
    problem: Problem, agent: str, seed: int, kind: Kind, budget: int, logged_by: str
) -> tuple[list[float], float]:
    """Cost of the best feasible design after each one (infinite before there is any), and CPU s."""
    env = problem.make()
    history = history_of(problem, env, logged_by, seed, kind)
    best: list[float] = []

    def note(outcomes: Outcomes) -> None:
        for row in outcomes.rows():
            if not row.cached and row.status != 1:
                known = best[-1] if best else np.inf
                best.append(min(known, row.costs[0]) if row.feasible else known)

    env.on_evaluated = note
    cpu = time.process_time()
    initial: Any = ()
    if kind == "initial":
        initial, history = history.start(5), None
    searcher = make_agent(agent, env.design_space, goals(env), seed=seed)
    searcher.search(env, budget, initial=initial, history=history)
    return best, time.process_time() - cpu
