"""What learners gain from a policy pretrained on history, and what misleading history costs.

The problems are ``table-*`` of :mod:`benchmarks.search_quality`: a tabulated DRAM controller, four
programs and three objectives. History are the 150 evaluations of each other program by random
search and by the genetic algorithm, scored by the objective of the problem. Compared are

- ``plain``: nothing is known,
- ``start``: the best designs are evaluated first, and nothing is learned (what agents do that
  override nothing),
- ``pretrained``: what learners do,
- ``shuffled``: the same with the results of each source shuffled among its designs,
- ``opposed``: the same with the best results given to the worst designs.

Bars: ``pretrained`` is better than ``plain`` after 50 and after 100 evaluations, ``shuffled`` and
``opposed`` are not worse, by Wilcoxon's signed-rank test of the regrets, paired by problem and
seed.

    python -m benchmarks.history_learners [--agents ppo ippo] [--seeds 8] [--problems sort-latency]
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.agent import Agent
from archgym.agents.common.observations import some_outcomes
from archgym.evaluation.outcome import Outcomes, joined
from archgym.history import History, HistorySource
from archgym.registry import make_agent
from archgym.space import Designs
from benchmarks.search_quality import tables
from benchmarks.search_quality.__main__ import FOLDER
from benchmarks.search_quality.problems import problem, read_facts
from benchmarks.search_quality.statistics import signed_rank

AGENTS = ("ppo", "a2c", "maskable_ppo", "dqn", "sac", "ippo", "ippo_shared", "mappo")
ARMS = ("plain", "start", "pretrained", "shuffled", "opposed")
LOGGERS = ("random", "ga")
LOGGED = 150
BUDGETS = (50, 100)
_NOTHING = 9.99
"""Regret where no design keeps the limits yet, and the largest that counts."""


def logged(env: archgym.Environment, agent: str, seed: int) -> Outcomes:
    """Outcomes of the distinct designs of a search, in the order of evaluation."""
    found: list[Outcomes] = []
    env.on_evaluated = found.append
    make_agent(agent, env.design_space, seed=seed).search(env, LOGGED)
    outcomes = found[0]
    for more in found[1:]:
        outcomes = joined(outcomes, more)
    first = {key: row for row, key in reversed(list(enumerate(outcomes.designs.keys())))}
    return some_outcomes(outcomes, np.sort(list(first.values())), env.design_space)


def histories(workload: str, objective: dict[str, object], seed: int) -> dict[str, History]:
    """The history of each arm."""
    sources = []
    for other in tables.WORKLOADS:
        if other != workload:
            for agent in LOGGERS:
                env = tables.table_environment(other, objective)
                sources.append(HistorySource(f"{other} {agent}", logged(env, agent, 1000 + seed)))
    rng = np.random.default_rng(seed)
    shuffled = [_exchanged(source, rng.permutation(len(source))) for source in sources]
    opposed = [_exchanged(source, _opposite(source.outcomes.reward)) for source in sources]
    true = History(tuple(sources))
    return {
        "start": true,
        "pretrained": true,
        "shuffled": History(tuple(shuffled)),
        "opposed": History(tuple(opposed)),
    }


def regrets(
    agent: Agent, env: archgym.Environment, optimum: float, history: History | None
) -> list[float]:
    """By which share the best design is worse than the optimum, after each of the budgets."""
    best: list[float] = []

    def watch(outcomes: Outcomes) -> None:
        goals = np.where(outcomes.feasible, outcomes.objectives[:, 0], np.inf)
        best.extend(goals[~outcomes.cached].tolist())

    env.on_evaluated = watch
    agent.search(env, max(BUDGETS), history=history)
    so_far = np.minimum.accumulate(best)
    reached = [so_far[min(budget, len(best)) - 1] for budget in BUDGETS]
    return [min(_NOTHING, float(goal) / optimum - 1.0) for goal in reached]


def start_only(agent: Agent) -> Agent:
    """The agent with what :class:`archgym.agent.Agent` does with history."""

    def recall(history: History) -> Designs:
        return Agent.recall(agent, history)

    agent.recall = recall  # type: ignore[method-assign]
    return agent


def _exchanged(source: HistorySource, rows: NDArray[np.int64]) -> HistorySource:
    """The same designs with the results of others."""
    others = some_outcomes(source.outcomes, rows, source.outcomes.designs.space)
    return HistorySource(
        source.name, dataclasses.replace(others, designs=source.outcomes.designs), source.same
    )


def _opposite(rewards: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each design the row of the result whose rank is the opposite."""
    order = rewards.argsort(kind="stable")
    rows = np.empty(len(order), dtype=np.int64)
    rows[order] = order[::-1]
    return rows


def measure(
    names: list[str], agents: list[str], compared: list[str], seeds: int, folder: Path
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Regrets by agent and arm, shape (n_problems * seeds, n_budgets)."""
    found: dict[str, dict[str, list[list[float]]]] = {
        agent: {arm: [] for arm in compared} for agent in agents
    }
    for name in names:
        chosen = problem(f"table-{name}")
        facts = read_facts(chosen, folder)
        assert facts.optimum is not None  # tables are enumerated
        for seed in range(seeds):
            history = histories(name.rsplit("-", 1)[0], facts.notes["objective"], seed)
            for agent in agents:
                for arm in compared:
                    env = chosen.make_environment(facts)
                    made = make_agent(agent, env.design_space, seed=seed)
                    made = start_only(made) if arm == "start" else made
                    reached = regrets(made, env, facts.optimum, history.get(arm))
                    found[agent][arm].append(reached)
    return {a: {arm: np.array(v) for arm, v in arms.items()} for a, arms in found.items()}


def main() -> None:
    """Prints a line for each agent and arm."""
    parser = argparse.ArgumentParser(description="Learners pretrained on history, and plain ones.")
    every = [f"{w}-{o}" for w in tables.WORKLOADS for o in tables.OBJECTIVES]
    parser.add_argument("--agents", nargs="+", default=list(AGENTS))
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--problems", nargs="+", default=every)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--facts", type=Path, default=FOLDER, help="folder of the problems' facts")
    options = parser.parse_args()
    found = measure(options.problems, options.agents, options.arms, options.seeds, options.facts)
    print(f"{len(options.problems)} problems, {options.seeds} seeds; regret: median (worse than")
    print("plain: share of runs, p that the arm is the same)")
    print(f"{'agent':12} {'arm':11}" + "".join(f"  after {n:<22}" for n in BUDGETS))
    for agent, arms in found.items():
        for arm, values in arms.items():
            line = f"{agent:12} {arm:11}"
            for i in range(len(BUDGETS)):
                own, plain = values[:, i], arms["plain"][:, i]
                line += f"  {np.median(own):7.1%}"
                if arm != "plain":
                    p = signed_rank(own.tolist(), plain.tolist())
                    line += f" ({(own > plain).mean():4.0%} worse, {p:.4f})"
                else:
                    line += " " * 21
            print(line, flush=True)


if __name__ == "__main__":
    main()
