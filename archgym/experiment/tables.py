"""The tables that end a run."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from archgym.experiment.summary import TrialSummary, goal_unit, natural
from archgym.outcome import Outcome

if TYPE_CHECKING:
    from archgym.experiment.expand import Trial
    from archgym.experiment.run import RunResult

_MOST_ROWS = 30
_LEGEND = (
    "median / best: over trials, of the best feasible value found. better: share of simulated "
    "designs that beat the baseline. sims: designs simulated. dupl., illegal: share of proposals "
    "that were known already or broke a rule, and so were not simulated."
)

__all__ = [
    "agent_titles",
    "best_design",
    "best_of",
    "design_text",
    "run_tables",
    "title",
    "value_text",
]


def agent_titles(trials: Sequence[Trial]) -> dict[str, str]:
    """What to call each agent label: the agent, and the hyperparameters that differ."""
    sets = {trial.agent_label: (trial.agent, trial.hyperparameters) for trial in trials}
    titles: dict[str, str] = {}
    for label, (agent, values) in sets.items():
        others = [given for name, given in sets.values() if name == agent]
        differing = {
            name: value
            for name, value in values.items()
            if len({json.dumps(given.get(name), sort_keys=True) for given in others}) > 1
        }
        name = agent.rpartition(":")[2]
        titles[label] = " ".join([name, *(f"{key}={_plain(v)}" for key, v in differing.items())])
    repeated = [title for title in titles.values() if list(titles.values()).count(title) > 1]
    return {label: label if title in repeated else title for label, title in titles.items()}


def run_tables(result: RunResult) -> RenderableType:
    """A table for each setting, with a line for each agent, and its best design below."""
    titles = agent_titles(result.trials)
    parts: list[RenderableType] = []
    for setting in dict.fromkeys(trial.setting for trial in result.trials):
        trials = [trial for trial in result.trials if trial.setting == setting]
        parts.append(_setting_table(setting, trials, titles, result))
        best = best_of([s for t in trials if (s := result.summaries.get(t.trial_id)) is not None])
        if best is not None:
            parts += [best_design(best), Text()]
    parts.append(Text(_LEGEND, style="dim"))
    return Group(*parts)


def best_of(summaries: Sequence[TrialSummary]) -> TrialSummary | None:
    """The trial with the best outcome; feasible ones first, then the larger reward."""
    found = [summary for summary in summaries if summary.best is not None]
    if not found:
        return None

    def rank(summary: TrialSummary) -> tuple[bool, float]:
        assert summary.best is not None
        return summary.best.feasible, summary.best.reward

    return max(found, key=rank)


def best_design(summary: TrialSummary) -> RenderableType:
    """The best design of a trial and its metrics against the baseline's goals."""
    assert summary.best is not None
    origin = f"{summary.agent}, seed {summary.seed}, simulation {summary.best_at}"
    feasible = "" if summary.best.feasible else f"not feasible: {summary.best.reason}; "
    return Group(
        Text(f"Best design ({feasible}{origin}):", style="bold"),
        Text("  " + design_text(summary.best.design)),
        Text("  " + metrics_text(summary, summary.best), style="dim"),
    )


def design_text(design: Mapping[str, Any]) -> str:
    """A design as arguments of ``archgym evaluate``."""
    return " ".join(f"{name}={_plain(value)}" for name, value in design.items())


def metrics_text(summary: TrialSummary, outcome: Outcome) -> str:
    """Metrics, in a line, each with its change from the baseline design."""
    parts = []
    for name, value in outcome.metrics.items():
        if value is not None:
            base = summary.baseline_metrics.get(name)
            change = f" ({value / base - 1:+.0%})" if base else ""
            parts.append(f"{name} {value:.5g}{change}")
    return ", ".join(parts)


def value_text(summary: TrialSummary, number: int, value: float) -> str:
    """A goal's value in its natural sign, with its unit."""
    goal = summary.objective.goals[number]
    return f"{natural(goal, value):.5g} {goal_unit(goal, summary.metrics)}".rstrip()


def _setting_table(
    setting: str, trials: Sequence[Trial], titles: Mapping[str, str], result: RunResult
) -> RenderableType:
    known = [s for t in trials if (s := result.summaries.get(t.trial_id)) is not None]
    goals = known[0].objective.goals if known else ()
    any_failed = any(trial.trial_id in result.failures for trial in trials)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("agent", min_width=12, overflow="fold")
    table.add_column("trials", justify="right")
    for goal in goals:
        unit = goal_unit(goal, known[0].metrics)
        heading = goal.name.replace("*", "\n*") + (f"\n[{unit}]" if unit else "")
        table.add_column(Text(f"{heading}\nmedian / best"), justify="right", no_wrap=True)
    if len(goals) > 1:
        table.add_column("hyper-\nvolume", justify="right", no_wrap=True)
    for heading in ("better", "sims", "dupl.", "illegal"):
        table.add_column(heading, justify="right", no_wrap=True)
    if any_failed:
        table.add_column("failed", justify="right", style="red", no_wrap=True)
    labels = list(dict.fromkeys(trial.agent_label for trial in trials))
    for label in labels[:_MOST_ROWS]:
        ours = [trial for trial in trials if trial.agent_label == label]
        cells = _agent_row(titles[label], ours, len(goals), result)
        table.add_row(*cells[: len(table.columns)])
    parts: list[RenderableType] = [title(setting, known), table]
    if len(labels) > _MOST_ROWS:
        more = f"... and {len(labels) - _MOST_ROWS} more in {result.folder.results.name}"
        parts.append(Text(more))
    return Group(*parts)


def title(setting: str, known: Sequence[TrialSummary]) -> Text:
    """What was searched: its name, goals with the baseline's values, limits."""
    text = Text(setting, style="bold")
    if known:
        some = known[0]
        for i, goal in enumerate(some.objective.goals):
            verb = "minimize" if goal.kind == "product" else goal.kind
            text.append(
                f"\n  {verb} {goal.name}, baseline {value_text(some, i, float(some.baseline[i]))}",
                style="not bold",
            )
        for limit in some.objective.limits:
            text.append(f"\n  limit {limit}", style="not bold")
    return text


def _agent_row(
    name: str, trials: Sequence[Trial], goals: int, result: RunResult
) -> list[RenderableType]:
    summaries = [s for t in trials if (s := result.summaries.get(t.trial_id)) is not None]
    cells: list[RenderableType] = [Text(name), str(len(trials))]
    cells += [_median_and_best(summaries, number) for number in range(goals)]
    if goals > 1:
        volumes = [s.hypervolume for s in summaries if s.hypervolume is not None]
        cells.append(f"{statistics.median(volumes):.3f}" if volumes else "-")
    simulations = sum(s.simulations for s in summaries)
    proposals = sum(s.proposals for s in summaries)
    return [
        *cells,
        _share(sum(s.better for s in summaries), simulations),
        f"{simulations:,}",
        _share(sum(s.duplicates for s in summaries), proposals),
        _share(sum(s.illegal for s in summaries), proposals),
        str(sum(trial.trial_id in result.failures for trial in trials)),
    ]


def _median_and_best(summaries: Sequence[TrialSummary], number: int) -> str:
    """Of the trials' ends; those that found nothing feasible count as infinitely bad."""
    ends = [float(s.curve[-1, number]) if len(s.curve) else math.inf for s in summaries]
    if not ends or min(ends) == math.inf:
        return "- / -"
    goal = summaries[0].objective.goals[number]
    median = statistics.median(ends)
    shown = f"{natural(goal, median):.5g}" if median < math.inf else "-"
    return f"{shown} / {natural(goal, min(ends)):.5g}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
