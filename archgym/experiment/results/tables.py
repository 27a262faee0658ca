"""The tables that end a run."""

from __future__ import annotations

import math
import re
import shlex
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from archgym.analysis.statistics import quantile
from archgym.analysis.trials import TrialSummary
from archgym.experiment.results.best_design import best_design, best_of
from archgym.experiment.results.run_result import RunResult
from archgym.experiment.results.texts import (
    agent_titles,
    from_here,
    history_text,
    regret_text,
    value_text,
)
from archgym.experiment.spec.expand import Trial
from archgym.problem.goals import direction, goal_unit, natural

_MAX_ROWS = 30
_MAX_REASONS = 3
_ANY_WIDTH = 1000
_LEGEND = (
    "median / best: over trials, of the best feasible value found. better: share of simulated "
    "designs that beat the baseline. sims: designs simulated. dupl., illegal: share of proposals "
    "that were known already, or that a rule or the simulator refused. Metrics of the best "
    "design: in brackets, change from the baseline."
)
_LEGEND_OF_SEVERAL = (
    " Pareto: designs that no other one of the trial beats in every goal, median over trials. "
    "hypervolume: the volume that they dominate in log ratios to the baseline, up to twice the "
    "baseline; the baseline alone has 1, and 0 is nothing within twice the baseline in every goal. "
    "Best compromise: the least product of the goals' ratios to the baseline, each by its weight."
)
_LEGEND_OF_FIDELITY = (
    " spent: simulations by the relative cost of their fidelity; median, best and better are of "
    "the full ones."
)
_LEGEND_OF_STOPPED = (
    " stopped: simulations that were ended early, as even the best that could be expected of them "
    "was worse than the best found; they count as none that beats the baseline."
)
_LEGEND_OF_REGRET = " regret: by how much the best found is worse than the exact optimum."
_HEADING_WIDTH = 24
_Column = tuple[str, Callable[[Sequence[TrialSummary]], str]]


def by_agent(result: RunResult) -> RunResult:
    """The same result with hyperparameters left out where they are too many to tell apart."""
    if len({trial.agent_label for trial in result.trials}) <= _MAX_ROWS:
        return result
    trials = [
        replace(trial, agent_label=trial.agent, hyperparameters={}) for trial in result.trials
    ]
    return replace(result, trials=trials)


def run_tables(result: RunResult) -> RenderableType:
    """A table for each setting, with a line for each agent, and its best design below.

    Settings of which no trial has run yet, as in a run of shards, are left out.
    """
    by_id = {trial.trial_id: trial for trial in result.trials}
    result = by_agent(result)
    titles = agent_titles(result.trials)
    parts: list[RenderableType] = []
    known = result.summaries.keys() | result.failures
    begun = {trial.setting for trial in result.trials if trial.trial_id in known}
    settings = dict.fromkeys(trial.setting for trial in result.trials)
    for setting in (name for name in settings if name in begun or not begun):
        trials = [trial for trial in result.trials if trial.setting == setting]
        parts.append(_setting_table(setting, trials, titles, result))
        parts += _failed_designs(trials, result)
        best = best_of(result.summaries_of(trials))
        if best is not None:
            parts.append(best_design(best, by_id[best.trial_id]))
            if best.trial_id in result.failures:
                parts.append(Text("  note: its trial failed before its end", style="yellow"))
            parts.append(Text())
    several = any(len(s.objective.goals) > 1 for s in result.summaries.values())
    legend = _LEGEND + (_LEGEND_OF_SEVERAL if several else "")
    if any(s.spent != s.simulations for s in result.summaries.values()):
        legend += _LEGEND_OF_FIDELITY
    if any(s.stopped for s in result.summaries.values()):
        legend += _LEGEND_OF_STOPPED
    if any(s.regret is not None for s in result.summaries.values()):
        legend += _LEGEND_OF_REGRET
    if result.failures.keys() & result.summaries.keys():
        legend += " *: of a trial that failed before its end."
    parts.append(Text(legend, style="dim"))
    if several:
        command = f"archgym best {shlex.quote(str(from_here(result.folder.path)))}"
        parts.append(Text(f"Pareto sets: {command}", style="dim"))
    return Group(*parts)


def _failed_designs(trials: Sequence[Trial], result: RunResult) -> list[RenderableType]:
    """How many designs could not be simulated, and why."""
    reasons: Counter[str] = Counter()
    for summary in result.summaries_of(trials):
        reasons.update(summary.reasons)
    if not reasons:
        return []
    lines = [f"{reasons.total():,} designs could not be simulated:"]
    lines += [f"  {n:,} x {reason}" for reason, n in reasons.most_common(_MAX_REASONS)]
    others = len(reasons) - _MAX_REASONS
    if others > 0:
        rest = reasons.total() - sum(n for _, n in reasons.most_common(_MAX_REASONS))
        lines.append(f"  {rest:,} x {others:,} other {'reason' if others == 1 else 'reasons'}")
    return [Text("\n".join(lines), style="red"), Text()]


def title(setting: str, known: Sequence[TrialSummary]) -> Text:
    """The title of a setting: its name, goals with the baseline's values, limits."""
    text = Text(setting, style="bold")
    if known:
        some = known[0]
        for i, goal in enumerate(some.objective.goals):
            verb = "target" if goal.kind == "target" else direction(goal, some.metrics)
            text.append(
                f"\n  {verb} {goal.name}, baseline {value_text(some, i, float(some.baseline[i]))}",
                style="not bold",
            )
        for limit in some.objective.limits:
            base = some.baseline_metrics.get(limit.metric)
            beyond = f", which the baseline breaks ({base:,.5g})" if limit.broken_by(base) else ""
            text.append(f"\n  limit {limit}{beyond}", style="not bold")
    for line in dict.fromkeys(filter(None, map(history_text, known))):
        text.append(f"\n  history: {line}", style="not bold")
    return text


def _setting_table(
    setting: str, trials: Sequence[Trial], titles: Mapping[str, str], result: RunResult
) -> RenderableType:
    known = result.summaries_of(trials)
    labels = list(dict.fromkeys(trial.agent_label for trial in trials))
    agents = {
        titles[label]: [trial for trial in trials if trial.agent_label == label]
        for label in labels[:_MAX_ROWS]
    }
    goals = range(len(known[0].objective.goals) if known else 0)
    parts: list[RenderableType] = [title(setting, known)]
    # One goal under the other: side by side they would not fit a terminal.
    apart = [_table(agents, result, known, [number], counts=False) for number in goals]
    apart.append(_table(agents, result, known, (), counts=True))
    if len(goals) == 1:
        parts.append(_Fitting(_table(agents, result, known, goals, counts=True), apart))
    else:
        parts += apart
    if len(labels) > _MAX_ROWS:
        more = f"... and {len(labels) - _MAX_ROWS} more in {result.folder.results.name}"
        parts.append(Text(more))
    return Group(*parts)


class _Fitting:
    """A table, or its parts one under the other where it is wider than the terminal.

    Rich would take the width from the names of the agents until nothing is left of them.
    """

    def __init__(self, whole: Table, apart: Sequence[Table]) -> None:
        self._whole = whole
        self._apart = apart

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.update_width(_ANY_WIDTH)
        for column in self._whole.columns:
            if column.no_wrap:  # which Rich measures by its longest word
                cells = (column.header, *column.cells)
                column.min_width = max(Measurement.get(console, wide, c).maximum for c in cells)
        least = Measurement.get(console, wide, self._whole).minimum
        yield from [self._whole] if least <= options.max_width else self._apart


def _table(
    agents: Mapping[str, Sequence[Trial]],
    result: RunResult,
    known: Sequence[TrialSummary],
    goals: Sequence[int],
    *,
    counts: bool,
) -> Table:
    """A row an agent: the values of some goals, and counts of designs."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    longest = max((len(word) for name in agents for word in name.split()), default=0)
    table.add_column("agent", min_width=min(max(12, longest), 30), overflow="fold")
    table.add_column("trials", justify="right", no_wrap=True)
    columns = [_goal_column(known[0], number, result.failures) for number in goals]
    columns += _count_columns(known) if counts else []
    for heading, _ in columns:
        table.add_column(Text(heading), justify="right", no_wrap=True)
    failed = {
        name: sum(trial.trial_id in result.failures for trial in trials)
        for name, trials in agents.items()
    }
    with_failed = counts and any(failed.values())
    if with_failed:
        table.add_column("failed", justify="right", style="red", no_wrap=True)
    for name, trials in agents.items():
        summaries = result.summaries_of(trials)
        cells = [cell(summaries) for _, cell in columns]
        cells += [str(failed[name])] if with_failed else []
        table.add_row(Text(name), str(len(trials)), *cells)
    return table


def _goal_column(some: TrialSummary, number: int, failures: Collection[str]) -> _Column:
    goal = some.objective.goals[number]
    unit = goal_unit(goal, some.metrics)
    heading = _folded(goal.name) + (f"\n[{unit}]" if unit else "")
    return f"{heading}\nmedian / best", lambda found: _median_and_best(found, number, failures)


def _count_columns(known: Sequence[TrialSummary]) -> list[_Column]:
    columns: dict[str, Callable[[Sequence[TrialSummary]], str]] = {}
    if any(one.regret is not None for one in known):
        columns["regret\nmedian / best"] = _regrets
    if known and len(known[0].objective.goals) > 1:
        columns["Pareto"] = lambda found: _median([len(s.front) for s in found], "g")
        columns["hypervolume"] = lambda found: _median([s.hypervolume or 0.0 for s in found], ".3f")
    columns["better"] = lambda found: _share(found, "better", "full_simulations")
    columns["sims"] = lambda found: f"{sum(s.simulations for s in found):,}"
    if any(one.spent != one.simulations for one in known):
        columns["spent"] = lambda found: f"{sum(s.spent for s in found):,.6g}"
    if any(one.stopped for one in known):
        columns["stopped"] = lambda found: f"{sum(s.stopped for s in found):,}"
    columns["dupl."] = lambda found: _share(found, "duplicates", "proposals")
    columns["illegal"] = lambda found: _share(found, "illegal", "proposals")
    return list(columns.items())


def _folded(name: str) -> str:
    """A goal's name in lines that leave room for the other columns."""
    lines = [""]
    for part in re.findall(r"[^_*]*[_*]?", name):
        if len(lines[-1]) + len(part) > _HEADING_WIDTH:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _median_and_best(
    summaries: Sequence[TrialSummary], number: int, failures: Collection[str]
) -> str:
    """Of the trials' ends; those that found nothing feasible count as infinitely bad.

    A best that only trials have that failed is marked.
    """
    ends = [float(s.curve[-1, number]) if len(s.curve) else math.inf for s in summaries]
    if not ends or min(ends) == math.inf:
        return "- / -"
    goal, metrics = summaries[0].objective.goals[number], summaries[0].metrics
    choose = min if direction(goal, metrics) == "minimize" else max
    best = choose(natural(goal, metrics, end) for end in ends)
    median = natural(goal, metrics, quantile(np.array(ends), 0.5))
    text = f"{median:.5g}" if math.isfinite(median) else "-"
    whole = [end for s, end in zip(summaries, ends, strict=True) if s.trial_id not in failures]
    mark = "*" if min(whole, default=math.inf) > min(ends) else ""
    return f"{text} / {best:.5g}{mark}"


def _regrets(summaries: Sequence[TrialSummary]) -> str:
    """Median and least regret of the trials."""
    ends = [s.regret for s in summaries if s.regret is not None]
    if not ends:
        return "- / -"
    return f"{regret_text(quantile(np.array(ends), 0.5))} / {regret_text(min(ends))}"


def _median(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}}" if values else "-"


def _share(summaries: Sequence[TrialSummary], part: str, whole: str) -> str:
    parts, wholes = (sum(getattr(one, name) for one in summaries) for name in (part, whole))
    return f"{parts / wholes:.0%}" if wholes else "-"
