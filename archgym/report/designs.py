"""The best designs, and the command that evaluates each of them again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

from archgym import bounded_yaml
from archgym.experiment.expand import Trial
from archgym.report.study import Problem, Study

__all__ = ["BestDesign", "best_designs", "command"]

_OPTIONS = ("workload", "objective", "space", "simulator")


@dataclass(frozen=True)
class BestDesign:
    """The best design of a searcher on a problem.

    Attributes:
        searcher: number of the searcher.
        trial_id: the trial that found it.
        seed: of the agent.
        at: budget spent when it was found.
        regret: against the optimum, or the best design of the report.
        design: its active parameters.
        metrics: in their units, ``None`` for one that the simulator does not give.
        command: that evaluates it again.
    """

    searcher: int
    trial_id: str
    seed: int
    at: float
    regret: float
    design: dict[str, Any]
    metrics: dict[str, float | None]
    command: str


def best_designs(study: Study, problem: Problem) -> list[BestDesign]:
    """The best feasible design of each searcher, the best one first."""
    measures = problem.measures
    found = []
    for searcher in np.unique(problem.searcher).tolist():
        mine = problem.trials_of(searcher)
        number = int(mine[int(measures.best_cost[mine].argmin())])
        chosen = problem.chosen.get(int(measures.best_row[number]))
        if chosen is None:
            continue
        trial, design = problem.trials[number], problem.space.design(chosen.codes.tolist())
        regret = problem.regret(measures.best_cost[number : number + 1])
        best = BestDesign(
            searcher=searcher,
            trial_id=problem.ids[number],
            seed=trial.seed,
            at=float(measures.best_at[number]),
            regret=float(regret[0]),
            design=design,
            metrics=chosen.metrics,
            command=command(trial, design),
        )
        found.append((float(measures.best_cost[number]), best))
    return [best for _, best in sorted(found, key=lambda pair: pair[0])]


def command(trial: Trial, design: Mapping[str, Any]) -> str:
    """A line for a shell that evaluates a design as a trial did.

    >>> trial = Trial("t", "s", "d", "DRAM-v0", "ga", "ga", 0, 10, {"workload": "a trace.stl"})
    >>> command(trial, {"arbiter": "simple"})
    "archgym evaluate DRAM-v0 arbiter=simple --workload 'a trace.stl'"
    """
    words = ["archgym", "evaluate", trial.environment]
    words += [f"{name}={_plain(value)}" for name, value in design.items()]
    for name, value in trial.arguments.items():
        if name in ("record", "render_mode"):
            continue
        text = _text(value)
        words += [f"--{name}", text] if name in _OPTIONS else ["--arg", f"{name}={text}"]
    return shlex.join(words)


def _plain(value: Any) -> str:
    """A parameter's value as ``archgym evaluate`` reads it, with every digit."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(value: Any) -> str:
    """A value as YAML on one line: a text by itself where that means the same."""
    if isinstance(value, str):
        try:
            same = bounded_yaml.parse(value) == value
        except yaml.YAMLError:
            same = False
        return value if same else json.dumps(value)
    return json.dumps(value)
