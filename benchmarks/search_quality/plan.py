"""What is run: budgets and seeds, fixed before anything was measured.

An optimiser is not told of its budget, so a run of 1,000 evaluations holds the ones of 100 and
300. The NK-like problems get 1,000 evaluations, all others 300. Slow optimisers (those on Gaussian
processes) get 100 evaluations everywhere, and 300 with fewer seeds on two problems; on problems
other than the NK-like ones they get fewer seeds, slow peers fewest. The slowest, scikit-optimize's
own functions, BoTorch and the one that trains proxies, only run on those two. The portfolio, with
a Gaussian process among its members, gets 300 evaluations everywhere, a quarter of the seeds on
problems other than the NK-like ones, and 1,000 with fewer seeds on those two. Reinforcement
learners get fewer seeds: at these budgets they hardly differ from random search. nevergrad's
portfolio and our hyperband get 300 evaluations and fewer seeds, scikit-optimize's Gaussian
process and the one that trains proxies 100, for their price.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.search_quality.contestants import GRIDS, Contestant, contestant
from benchmarks.search_quality.problems import problem

__all__ = ["DEEP", "FULL", "SUBSET", "Size", "Task", "tasks"]

DEEP = ("nk-9001", "table-dijkstra-product")
"""Problems on which slow optimisers get more evaluations, and hyperparameters are varied."""

SHORT = 300
"""Evaluations on problems that get fewer."""


@dataclass(frozen=True)
class Size:
    """How much to run.

    Attributes:
        seeds: runs of each contestant on each problem.
        slow_seeds: runs of a slow one, on the problems with the full budget and on the others.
        bounded_seeds: runs of one that gets the short budget everywhere, on the problems with the
            full budget and on the others.
        bounded_budget: most evaluations of such a one's, but on the two deep problems.
        slow_peer_seeds: runs of a slow peer on the problems without the full budget.
        dear_seeds: runs of one that takes milliseconds a proposal, without being the better.
        budget: most evaluations of a run.
        slow_budget: most evaluations of a slow one's.
        deep: evaluations of slow ones on the two deep problems, and seeds of those that get more
            there.
        learner_seeds: runs of a reinforcement learner on each problem.
        grid_seeds: runs of each setting of hyperparameters.
        problems: names; empty for all.
        slowest_everywhere: whether the slowest run on other problems than the deep ones too.
    """

    seeds: int = 20
    slow_seeds: tuple[int, int] = (20, 5)
    bounded_seeds: tuple[int, int] = (20, 5)
    bounded_budget: int = SHORT
    slow_peer_seeds: int = 3
    dear_seeds: int = 6
    budget: int = 1000
    slow_budget: int = 100
    deep: tuple[int, int] = (300, 5)
    learner_seeds: int = 5
    grid_seeds: int = 10
    problems: tuple[str, ...] = ()
    slowest_everywhere: bool = False

    def runs(self, player: Contestant, name: str, seed: int) -> int:
        """Evaluations of one run; 0 if it is not part of it."""
        full = name in DEEP or problem(name).family == "nk"
        budget = self.budget if full else min(self.budget, SHORT)
        budget = min(budget, player.most or budget)
        if player.bounded:
            more = name in DEEP and seed < self.deep[1]
            budget = budget if more else min(budget, self.bounded_budget)
            return budget if seed < self.bounded_seeds[not full] else 0
        if not player.slow:
            seeds = self.seeds
            if player.learner or player.most:
                seeds = min(seeds, self.learner_seeds if player.learner else self.dear_seeds)
            return budget if seed < seeds else 0
        if name in DEEP and seed < self.deep[1]:
            return min(max(self.deep[0], self.slow_budget), player.most or self.deep[0])
        if player.slowest and not self.slowest_everywhere:
            return 0
        most = self.slow_seeds[not full]
        if not full and not player.own:
            most = min(most, self.slow_peer_seeds)
        return min(budget, self.slow_budget) if seed < most else 0


FULL = Size()
SUBSET = Size(
    seeds=5,
    slow_seeds=(2, 1),
    bounded_seeds=(3, 2),
    dear_seeds=2,
    budget=300,
    deep=(100, 0),
    learner_seeds=2,
    grid_seeds=2,
    problems=("nk-9001", "large-9001", "table-dijkstra-product", "dram-sqlite", "pareto-nk-9001"),
)
_GRID_BUDGET = 300


@dataclass(frozen=True)
class Task:
    """One run.

    Attributes:
        problem: its name.
        contestant: its name.
        seed: of the contestant.
        budget: evaluations.
        settings: hyperparameters that are not the defaults.
    """

    problem: str
    contestant: str
    seed: int
    budget: int
    settings: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        """Tells tasks apart."""
        settings = json.dumps(self.settings, sort_keys=True)
        return f"{self.problem}|{self.contestant}|{settings}|{self.seed}|{self.budget}"


def tasks(size: Size, problems: Sequence[str], contestants: Sequence[str]) -> Iterator[Task]:
    """The runs, seed by seed, so that what is done at any time is even.

    Args:
        size: how much to run.
        problems: names of those that can be run.
        contestants: names of those that can be run.
    """
    wanted = [name for name in problems if not size.problems or name in size.problems]
    players = [contestant(name) for name in contestants]
    for seed in range(max(size.seeds, *size.slow_seeds)):
        for name in wanted:
            for player in players:
                budget = size.runs(player, name, seed) if player.suits(problem(name)) else 0
                if budget:
                    yield Task(name, player.name, seed, budget)
    for seed in range(size.grid_seeds):
        for name in (name for name in wanted if name in DEEP):
            for agent in (c for c in contestants if c in GRIDS):
                for settings in GRIDS[agent]:
                    yield Task(name, agent, seed, _GRID_BUDGET, settings)
