"""Texts for the terminal and for reports: names of agents, designs, values and regrets."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archgym.analysis.trials import TrialSummary
from archgym.evaluation.trial_info import SourceInfo
from archgym.experiment.spec.expand import Trial
from archgym.problem.goals import goal_unit, natural

_ROUNDING = 1e-9
_LARGE_PER_CENT = 1e6
_MAX_SOURCES = 3


def agent_titles(trials: Sequence[Trial]) -> dict[str, str]:
    """Title of each agent label: the agent, and the hyperparameters that differ."""
    sets = {trial.agent_label: (trial.agent, trial.hyperparameters) for trial in trials}
    titles: dict[str, str] = {}

    def short(value: Any) -> str:
        return f"{value:.3g}" if isinstance(value, float) else plain(value)

    for label, (agent, values) in sets.items():
        others = [given for name, given in sets.values() if name == agent]
        differing = {
            name: value
            for name, value in values.items()
            if len({json.dumps(given.get(name), sort_keys=True) for given in others}) > 1
        }
        name = agent.rpartition(":")[2]
        titles[label] = " ".join([name, *(f"{key}={short(v)}" for key, v in differing.items())])
    repeated = [title for title in titles.values() if list(titles.values()).count(title) > 1]
    return {label: label if title in repeated else title for label, title in titles.items()}


def common_values(designs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The parameters that several designs have in common; none of a single one."""
    if len(designs) < 2:
        return {}
    return {
        name: value
        for name, value in designs[0].items()
        if all(name in design and design[name] == value for design in designs)
    }


def seed_text(seed: int | None) -> str:
    """``, seed 3``; empty where a trial has none, as one that other software searched."""
    return "" if seed is None else f", seed {seed}"


def design_text(design: Mapping[str, Any]) -> str:
    """A design as arguments of ``archgym evaluate``."""
    return " ".join(f"{name}={plain(value)}" for name, value in design.items())


def value_text(summary: TrialSummary, number: int, value: float) -> str:
    """A goal's value in its natural sign, with its unit."""
    goal = summary.objective.goals[number]
    return (
        f"{natural(goal, summary.metrics, value):.5g} {goal_unit(goal, summary.metrics)}".rstrip()
    )


def history_text(summary: TrialSummary) -> str:
    """What a search learned from before; empty if it began from nothing."""
    history = summary.history
    if history is None:
        return ""
    return f"{history.designs:,} designs of {source_names(history.sources)}"


def source_names(sources: Sequence[SourceInfo]) -> str:
    """The names of the first sources."""
    names = [source.name for source in sources]
    return ", ".join(names[:_MAX_SOURCES]) + (", ..." if len(names) > _MAX_SOURCES else "")


def regret_text(regret: float) -> str:
    """A regret in per cent, to three significant digits; what is below 1e-9 is rounding.

    A power of ten stands for large ones: an optimum of 0 makes every other value very much worse.
    """
    if regret == math.inf:
        return "-"
    per_cent = 100 * regret if regret >= _ROUNDING else 0.0
    if per_cent >= _LARGE_PER_CENT:
        return f"{per_cent:.2e}%"
    digits = 2 if per_cent == 0 else max(0, 2 - math.floor(math.log10(per_cent)))
    return f"{per_cent:.{digits}f}%"


def from_here(path: Path) -> Path:
    """A path as one would type it in the working folder."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def plain(value: Any) -> str:
    """The value of a parameter as one types it, with six digits."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
