"""A study: problems, what searched them, and what that came to. Everything shown comes from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archgym.analysis.measures import Measures
from archgym.experiment.spec.expand import Trial
from archgym.problem.goals import goal_unit, natural
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.scorer import Scorer
from archgym.space import DesignSpace

if TYPE_CHECKING:
    from archgym.analysis.importance import Importance

__all__ = ["N_COLOURS", "Chosen", "Problem", "Searcher", "Study"]

N_COLOURS = 8
"""Colours that lines are told apart by, before their styles are."""


@dataclass(frozen=True)
class Searcher:
    """What trials are put together under one name: an agent, or one with its hyperparameters.

    Attributes:
        name: unique in the study.
        agent: name of the agent.
        source: number of the folder that its trials come from; 0 unless two are compared.
        twin: name without the folder, so that those of two folders can be paired.
    """

    name: str
    agent: str
    source: int = 0
    twin: str = ""


@dataclass(frozen=True)
class Chosen:
    """A design that is shown, with all that is known of it.

    Attributes:
        codes: level of each parameter, -1 where it is inactive, shape (n_parameters,).
        metrics: ``None`` for one that the simulator does not give.
    """

    codes: NDArray[np.int64]
    metrics: dict[str, float | None]


@dataclass
class Problem:
    """What some trials searched, and what they came to.

    Attributes:
        name: readable, unique in the study.
        environment: name of the environment.
        workload: name of the workload.
        objective: what was sought.
        scorer: the objective, over the metrics that it names.
        metrics: of the environment.
        space: the design space, with nothing fixed.
        fixed: parameters held at a value.
        settings: the environment's own arguments.
        simulator: name and version.
        baseline: value of each goal for the baseline design, minimised.
        baseline_metrics: its metrics.
        baseline_breaks: limits that it breaks, each with the value that it has.
        optimum: cost of the exact optimum; ``None`` if it is not known.
        trials: of the problem, in the order of ``measures``.
        ids: names of the trials, unique in the study.
        states: ``finished``, ``failed``, ``closed`` or ``running``.
        searcher: number of each trial's searcher, shape (n_trials,).
        setting: number of each trial's hyperparameters, shape (n_trials,).
        measures: what they came to.
        stillborn: trials that failed before they had evaluated anything, by searcher; they are in
            none of the others.
        chosen: designs that are shown, by row; filled in by a second reading.
        picked: positions in ``measures.full_rows`` of designs that stand for all, increasing;
            all of them are in ``chosen``.
    """

    name: str
    environment: str
    workload: str
    objective: Objective
    scorer: Scorer
    metrics: tuple[Metric, ...]
    space: DesignSpace
    fixed: dict[str, Any]
    settings: dict[str, Any]
    simulator: dict[str, str]
    baseline: NDArray[np.float64]
    baseline_metrics: dict[str, float | None]
    baseline_breaks: list[str]
    optimum: float | None
    trials: list[Trial]
    ids: list[str]
    states: list[str]
    searcher: NDArray[np.int64]
    setting: NDArray[np.int64]
    measures: Measures
    stillborn: Counter[int] = field(default_factory=Counter)
    chosen: dict[int, Chosen] = field(default_factory=dict)
    picked: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def several(self) -> bool:
        """Whether there are several goals."""
        return len(self.objective.goals) > 1

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """What each trial is independent of the others in, shape (n_trials,): its seed.

        Trials of one seed with several sets of hyperparameters share their luck. A trial whose
        seed is not known stands for itself, with a negative number.
        """
        seeds = [trial.seed if trial.seed >= 0 else -1 - i for i, trial in enumerate(self.trials)]
        return np.array(seeds, dtype=np.int64)

    @cached_property
    def score(self) -> NDArray[np.float64]:
        """What ranks a trial, smaller is better, shape (n_trials,).

        With one goal its best value, ``inf`` if nothing feasible was found; with several, minus
        the hypervolume.
        """
        if self.several:
            found = self.measures.hypervolume
            return -found[:, -1] if found.shape[1] else np.zeros(len(self.ids))
        return np.asarray(self.measures.best[:, 0])

    @property
    def score_name(self) -> str:
        """What the score is called."""
        return "hypervolume" if self.several else self.objective.goals[0].name

    @property
    def score_unit(self) -> str:
        """Unit of the score."""
        return "" if self.several else goal_unit(self.objective.goals[0], self.metrics)

    def natural_score(self, value: float) -> float:
        """A score in its natural sign."""
        return -value if self.several else natural(self.objective.goals[0], self.metrics, value)

    @cached_property
    def target(self) -> float:
        """Cost from which regret counts: the exact optimum's, or else the best found here."""
        if self.optimum is not None:
            return self.optimum
        best = self.measures.best_cost
        return float(best.min()) if len(best) else np.inf

    @property
    def found(self) -> bool:
        """Whether any design kept all limits."""
        return bool(np.isfinite(self.measures.best_cost).any())

    @property
    def exact(self) -> bool:
        """Whether the optimum is known."""
        return self.optimum is not None

    def regret(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        """By which share costs are worse than the target: 0.1 is a tenth."""
        if not np.isfinite(self.target):
            return np.full(np.shape(costs), np.inf)
        with np.errstate(over="ignore"):
            return np.asarray(np.maximum(0.0, np.expm1(costs - self.target)))

    @cached_property
    def front(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Non-dominated designs of each searcher, with several goals.

        Their rows, shape (n,), values of the goals, shape (n, n_goals), and the searchers'
        numbers, shape (n,).
        """
        import moocore

        rows, values, searchers = [], [], []
        for searcher in np.unique(self.searcher).tolist():
            mine = [n for n in self.trials_of(searcher).tolist() if len(self.measures.fronts[n])]
            if mine:
                points = np.concatenate([self.measures.front_values[n] for n in mine])
                keep = moocore.is_nondominated(points, keep_weakly=False)
                rows.append(np.concatenate([self.measures.fronts[n] for n in mine])[keep])
                values.append(points[keep])
                searchers.append(np.full(int(keep.sum()), searcher))
        if not rows:
            width = len(self.objective.goals)
            return np.empty(0, dtype=np.int64), np.empty((0, width)), np.empty(0, dtype=np.int64)
        return np.concatenate(rows), np.concatenate(values), np.concatenate(searchers)

    @cached_property
    def pareto_set(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Designs that no other of any trial beats in every goal; none with one goal.

        Their rows, shape (n,), and values of the goals, shape (n, n_goals).
        """
        import moocore

        rows, values, _ = self.front
        if not len(rows):
            return rows, values
        keep = moocore.is_nondominated(values, keep_weakly=False)
        return rows[keep], values[keep]

    @cached_property
    def picked_designs(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Codes and costs of the designs that stand for all, shapes (n, n_parameters) and (n,)."""
        rows = self.measures.full_rows[self.picked].tolist()
        width = len(self.space.parameters)
        codes = np.array([self.chosen[row].codes for row in rows], dtype=np.int64)
        return codes.reshape(len(rows), width), self.measures.full_costs[self.picked]

    @cached_property
    def importance(self) -> Importance | None:
        """Which parameters matter; ``None`` if there are too few designs to tell."""
        from archgym.analysis.importance import importance  # slow to import, and to compute

        return importance(self)

    def trials_of(self, searcher: int) -> NDArray[np.int64]:
        """Numbers of a searcher's trials in the problem."""
        return np.flatnonzero(self.searcher == searcher)


@dataclass
class Study:
    """Everything that a report shows.

    Attributes:
        name: what it is called.
        folders: that were read.
        problems: what was searched.
        searchers: in the order of the experiment.
        settings: titles of the agents' hyperparameters, by number.
        setting_agent: name of the agent of each.
        failures: trials that failed, by id: number of the searcher, and why.
        missing: trials that have evaluated nothing.
        facts: what else is known of each run.
        versions: of programs, by name; several of one are joined.
        pooled: whether a searcher holds trials of several hyperparameters.
        compared: names of the two folders that are compared.
    """

    name: str
    folders: list[Path]
    problems: list[Problem]
    searchers: list[Searcher]
    settings: list[str]
    setting_agent: list[str]
    failures: dict[str, tuple[int, str]]
    missing: int
    facts: list[Mapping[str, Any]]
    versions: dict[str, str]
    pooled: bool
    compared: tuple[str, str] | None = None

    @property
    def looks(self) -> list[tuple[int, int]]:
        """Colour and line style of each searcher, by number; twins of two runs share a colour."""
        if self.compared is None:
            return [(n % N_COLOURS, n // N_COLOURS) for n in range(len(self.searchers))]
        twins = list(dict.fromkeys(searcher.twin for searcher in self.searchers))
        return [(twins.index(one.twin) % N_COLOURS, one.source) for one in self.searchers]

    @property
    def n_trials(self) -> int:
        """Trials that evaluated something."""
        return sum(len(problem.ids) for problem in self.problems)

    @property
    def n_proposals(self) -> int:
        """Designs that were evaluated, duplicates and illegal ones included."""
        return int(sum(problem.measures.counts.sum() for problem in self.problems))

    @property
    def n_simulations(self) -> int:
        """Designs that were simulated."""
        return int(sum(problem.measures.counts[:, :4].sum() for problem in self.problems))
