"""A study: problems, the searchers that searched them, and their results.

Everything that a report shows comes from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.analysis.dataset_rows import metric_vector
from archgym.analysis.held_out import HeldOut
from archgym.analysis.importance import Importance, importance
from archgym.analysis.measures import Measures, non_dominated, regret
from archgym.analysis.statistics import Comparison, compare_all
from archgym.evaluation.trial_info import HistoryInfo
from archgym.problem.goals import goal_unit, natural
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.scoring import Scorer
from archgym.space import DesignSpace

N_COLOURS = 8
"""Colours of lines; further lines differ in their style."""


@dataclass(frozen=True)
class Searcher:
    """Trials that are shown under one name: those of an agent, or of one with its hyperparameters.

    Attributes:
        name: unique in the study.
        agent: name of the agent.
        source: index of the folder of its trials; 0 unless two are compared.
        pair: name without the folder: searchers of two folders with the same one are compared.
    """

    name: str
    agent: str
    source: int = 0
    pair: str = ""


@dataclass(frozen=True)
class StudiedTrial:
    """A trial that evaluated something.

    Attributes:
        id: name of the trial, unique in the study.
        environment: name of its environment.
        arguments: constructor arguments of the environment.
        agent: name of the agent.
        hyperparameters: of the agent.
        seed: of the agent, -1 if it is not known.
        state: ``finished``, ``failed``, ``closed`` or ``running``.
        held_out: its best design on a workload that it did not search, if there is one.
        history: what it learned from before; ``None`` if it began from nothing.
    """

    id: str
    environment: str
    arguments: Mapping[str, Any]
    agent: str
    hyperparameters: Mapping[str, Any]
    seed: int
    state: str
    held_out: HeldOut | None = None
    history: HistoryInfo | None = None


@dataclass(frozen=True)
class Group:
    """The trials of one searcher on one problem.

    Attributes:
        searchers: all searchers of the study.
        searcher: index of this one.
        trials: indices of its trials in the problem, shape (n,).
        scores: their scores, shape (n,).
        units: their units, shape (n,).
    """

    searchers: Sequence[Searcher]
    searcher: int
    trials: NDArray[np.int64]
    scores: NDArray[np.float64]
    units: NDArray[np.int64]

    @property
    def name(self) -> str:
        """Name of the searcher."""
        return self.searchers[self.searcher].name


@dataclass(frozen=True)
class Chosen:
    """A design that is shown.

    Attributes:
        codes: level of each parameter, -1 where it is inactive, shape (n_parameters,).
        metrics: by name, ``None`` for one that the simulator does not give.
    """

    codes: NDArray[np.int64]
    metrics: dict[str, float | None]


@dataclass
class Problem:
    """A problem that some trials searched, and their results.

    Attributes:
        name: readable, unique in the study.
        environment: name of the environment.
        workload: name of the workload.
        objective: goals and limits.
        scorer: the objective, over the metrics that it names.
        metrics: of the environment.
        space: the design space, with nothing fixed.
        fixed: parameters held at a value.
        settings: arguments of the environment under which metrics hold.
        simulator: name and version.
        baseline: value of each goal for the baseline design, minimised.
        baseline_metrics: its metrics.
        baseline_breaks: limits that it breaks, each with its value.
        optimum: cost of the exact optimum; ``None`` if it is not known.
        trials: of the problem, in the order of ``measures``.
        searchers: all searchers of the study.
        searcher: index of each trial's searcher, shape (n_trials,).
        setting: index of each trial's hyperparameters, shape (n_trials,).
        measures: of the trials.
        history_accounts: what became of the rows of each earlier problem, if a run says so.
        stillborn: number of trials that failed before they had evaluated anything, by searcher;
            they are in none of the others.
        chosen: designs that are shown, by row; filled in by a second reading.
        picked: positions in ``measures.full_rows`` of designs that represent all, increasing;
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
    trials: list[StudiedTrial]
    searchers: Sequence[Searcher]
    searcher: NDArray[np.int64]
    setting: NDArray[np.int64]
    measures: Measures
    history_accounts: list[str] = field(default_factory=list)
    stillborn: Counter[int] = field(default_factory=Counter)
    chosen: dict[int, Chosen] = field(default_factory=dict)
    picked: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def several(self) -> bool:
        """Whether there are several goals."""
        return len(self.objective.goals) > 1

    @property
    def ids(self) -> list[str]:
        """Names of the trials."""
        return [trial.id for trial in self.trials]

    def natural(self, goal: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Minimised values of a goal in its natural sign.

        Args:
            goal: index of the goal.
            values: of any shape.
        """
        return natural(self.objective.goals[goal], self.metrics, values)

    def natural_values(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Minimised values of all goals in their natural sign, shape (n, n_goals)."""
        return np.column_stack([self.natural(i, column) for i, column in enumerate(values.T)])

    def goal_values(self, metrics: Sequence[Mapping[str, float | None]]) -> NDArray[np.float64]:
        """Values of the goals in their natural sign, by the metrics of each of some designs."""
        names = self.scorer.metric_names
        vectors = np.array([metric_vector(one, names) for one in metrics])
        return self.natural_values(self.scorer.values(vectors))

    @property
    def natural_baseline(self) -> list[float]:
        """Value of each goal for the baseline design in its natural sign."""
        return list(map(float, self.natural_values(self.baseline[None])[0]))

    @cached_property
    def groups(self) -> list[Group]:
        """The trials of each searcher, by the index of the searcher."""
        return [
            Group(self.searchers, searcher, mine, self.score[mine], self.units[mine])
            for searcher in np.unique(self.searcher).tolist()
            for mine in [np.flatnonzero(self.searcher == searcher)]
        ]

    @cached_property
    def best_trials(self) -> list[tuple[int, int]]:
        """Best trial of each searcher, and the row of its best design, -1 for none."""
        found = [int(g.trials[self.measures.best_cost[g.trials].argmin()]) for g in self.groups]
        return [(trial, int(self.measures.best_row[trial])) for trial in found]

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """Unit of independence of each trial, shape (n_trials,): its seed.

        Trials of one seed with several sets of hyperparameters share their luck. A trial whose
        seed is not known is a unit by itself, with a negative number.
        """
        seeds = [trial.seed if trial.seed >= 0 else -1 - i for i, trial in enumerate(self.trials)]
        return np.array(seeds, dtype=np.int64)

    @cached_property
    def score(self) -> NDArray[np.float64]:
        """Score by which trials are ranked, smaller is better, shape (n_trials,).

        With one goal its best value, ``inf`` if nothing feasible was found; with several, minus
        the hypervolume.
        """
        if self.several:
            found = self.measures.hypervolume
            return -found[:, -1] if found.shape[1] else np.zeros(len(self.trials))
        return np.asarray(self.measures.best[:, 0])

    @property
    def score_name(self) -> str:
        """Name of the score."""
        return "hypervolume" if self.several else self.objective.goals[0].name

    @property
    def score_unit(self) -> str:
        """Unit of the score."""
        return "" if self.several else goal_unit(self.objective.goals[0], self.metrics)

    @property
    def score_label(self) -> str:
        """Name of the score with its unit."""
        return self.score_name + (f" [{self.score_unit}]" if self.score_unit else "")

    def natural_scores(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores in their natural sign."""
        return -scores if self.several else self.natural(0, scores)

    def natural_score(self, score: float) -> float:
        """A score in its natural sign."""
        return float(self.natural_scores(np.array([score]))[0])

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
        return regret(costs, self.target)

    @cached_property
    def front(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Non-dominated designs of each searcher, with several goals.

        Their rows, shape (n,), values of the goals, shape (n, n_goals), and the searchers'
        numbers, shape (n,).
        """
        goals = len(self.objective.goals)
        rows, values = [np.empty(0, dtype=np.int64)], [np.empty((0, goals))]
        searchers = [np.empty(0, dtype=np.int64)]
        for group in self.groups:
            mine = [n for n in group.trials.tolist() if len(self.measures.fronts[n])]
            if mine:
                points = np.concatenate([self.measures.front_values[n] for n in mine])
                keep = non_dominated(points)
                rows.append(np.concatenate([self.measures.fronts[n] for n in mine])[keep])
                values.append(points[keep])
                searchers.append(np.full(len(keep), group.searcher))
        return np.concatenate(rows), np.concatenate(values), np.concatenate(searchers)

    @cached_property
    def pareto_set(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Designs that no other of any trial beats in every goal; none with one goal.

        Their rows, shape (n,), and values of the goals, shape (n, n_goals).
        """
        rows, values, _ = self.front
        keep = non_dominated(values) if len(rows) else slice(0)
        return rows[keep], values[keep]

    @cached_property
    def picked_designs(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Codes and costs of the designs that represent all, shapes (n, n_parameters) and (n,)."""
        rows = self.measures.full_rows[self.picked].tolist()
        width = len(self.space.parameters)
        codes = np.array([self.chosen[row].codes for row in rows], dtype=np.int64)
        return codes.reshape(len(rows), width), self.measures.full_costs[self.picked]

    @cached_property
    def comparisons(self) -> dict[frozenset[int], Comparison]:
        """Comparison of each pair of groups with at least two units each, by their indices."""
        scores, units = zip(*((group.scores, group.units) for group in self.groups), strict=True)
        return {frozenset((one.first, one.second)): one for one in compare_all(scores, units)}

    @cached_property
    def importance(self) -> Importance | None:
        """Which parameters matter; ``None`` if there are too few designs to tell."""
        return importance(self.space.parameters, *self.picked_designs)


@dataclass
class Study:
    """Everything that a report shows.

    Attributes:
        name: title of the report.
        folders: that were read.
        problems: that were searched.
        searchers: in the order of the experiment.
        settings: titles of the agents' sets of hyperparameters.
        setting_agent: name of the agent of each.
        failures: trials that failed, by id: index of the searcher, and why.
        missing: number of trials that have evaluated nothing.
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
        """Colour and line style of each searcher, by index; a pair of two runs shares a colour."""
        if self.compared is None:
            return [(n % N_COLOURS, n // N_COLOURS) for n in range(len(self.searchers))]
        pairs = list(dict.fromkeys(searcher.pair for searcher in self.searchers))
        return [(pairs.index(one.pair) % N_COLOURS, one.source) for one in self.searchers]

    @property
    def n_trials(self) -> int:
        """Trials that evaluated something."""
        return sum(len(problem.trials) for problem in self.problems)

    @property
    def n_proposals(self) -> int:
        """Designs that were evaluated, duplicates and illegal ones included."""
        return int(sum(problem.measures.counts.sum() for problem in self.problems))

    @property
    def n_simulations(self) -> int:
        """Designs that were simulated."""
        return int(sum(problem.measures.simulations.sum() for problem in self.problems))
