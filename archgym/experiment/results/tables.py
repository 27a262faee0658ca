"""The tables that end a run."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from archgym.analysis.statistics import quantile
from archgym.analysis.trials import TrialSummary
from archgym.evaluation.outcome import Outcome
from archgym.experiment.results.reproduce import evaluate_command
from archgym.problem.goals import direction, goal_unit, natural
from archgym.problem.metrics import change_text
from archgym.registry import environment_class, environment_names

if TYPE_CHECKING:
    from archgym.experiment.results.run_result import RunResult
    from archgym.experiment.spec.expand import Trial

_MOST_ROWS = 30
_MOST_REASONS = 3
_ANY_WIDTH = 1000
_LEGEND = (
    "median / best: over trials, of the best feasible value found. better: share of simulated "
    "designs that beat the baseline. sims: designs simulated. dupl., illegal: share of proposals "
    "that were known already or broke a rule, and so were not simulated. Metrics of the best "
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
_LEGEND_OF_REGRET = " regret: by how much the best found is worse than the exact optimum."
_HEADING_WIDTH = 24
_ROUNDING = 1e-9

__all__ = [
    "agent_titles",
    "best_design",
    "best_of",
    "by_agent",
    "common_values",
    "design_text",
    "regret_text",
    "run_tables",
    "title",
    "value_text",
    "from_here",
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
        titles[label] = " ".join([name, *(f"{key}={_short(v)}" for key, v in differing.items())])
    repeated = [title for title in titles.values() if list(titles.values()).count(title) > 1]
    return {label: label if title in repeated else title for label, title in titles.items()}


def by_agent(result: RunResult) -> RunResult:
    """The same result with hyperparameters left out where they are too many to tell apart."""
    if len({trial.agent_label for trial in result.trials}) <= _MOST_ROWS:
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
    begun = {
        trial.setting
        for trial in result.trials
        if trial.trial_id in result.summaries or trial.trial_id in result.failures
    }
    settings = dict.fromkeys(trial.setting for trial in result.trials)
    for setting in (name for name in settings if name in begun or not begun):
        trials = [trial for trial in result.trials if trial.setting == setting]
        parts.append(_setting_table(setting, trials, titles, result))
        parts += _failed_designs(trials, result)
        best = best_of([s for t in trials if (s := result.summaries.get(t.trial_id)) is not None])
        if best is not None:
            parts += [best_design(best, by_id[best.trial_id]), Text()]
    several = any(len(s.objective.goals) > 1 for s in result.summaries.values())
    legend = _LEGEND + (_LEGEND_OF_SEVERAL if several else "")
    if any(s.spent != s.simulations for s in result.summaries.values()):
        legend += _LEGEND_OF_FIDELITY
    if any(s.regret is not None for s in result.summaries.values()):
        legend += _LEGEND_OF_REGRET
    parts.append(Text(legend, style="dim"))
    if several:
        parts.append(
            Text(f"Pareto sets: archgym best {from_here(result.folder.path)}", style="dim")
        )
    return Group(*parts)


def from_here(path: Path) -> Path:
    """A path as one would type it in the working folder."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _failed_designs(trials: Sequence[Trial], result: RunResult) -> list[RenderableType]:
    """How many designs could not be simulated, and why."""
    reasons: Counter[str] = Counter()
    for trial in trials:
        if (summary := result.summaries.get(trial.trial_id)) is not None:
            reasons.update(summary.reasons)
    if not reasons:
        return []
    lines = [f"{reasons.total():,} designs could not be simulated:"]
    lines += [f"  {n:,} x {reason}" for reason, n in reasons.most_common(_MOST_REASONS)]
    others = len(reasons) - _MOST_REASONS
    if others > 0:
        rest = reasons.total() - sum(n for _, n in reasons.most_common(_MOST_REASONS))
        lines.append(f"  {rest:,} x {others:,} other {'reason' if others == 1 else 'reasons'}")
    return [Text("\n".join(lines), style="red"), Text()]


def best_of(summaries: Sequence[TrialSummary]) -> TrialSummary | None:
    """The trial with the best outcome; feasible ones first, then the larger reward."""
    found = [summary for summary in summaries if summary.best is not None]
    if not found:
        return None

    def rank(summary: TrialSummary) -> tuple[bool, float]:
        assert summary.best is not None
        return summary.best.feasible, summary.best.reward

    return max(found, key=rank)


def best_design(summary: TrialSummary, trial: Trial) -> RenderableType:
    """The best design of a trial, as the command that evaluates it again, and its metrics.

    The command is one line, however wide the terminal: print it with ``crop=False``.
    """
    assert summary.best is not None
    agent = trial.agent.rpartition(":")[2]  # as in the table
    origin = f"{agent}, seed {summary.seed}, simulation {summary.best_at}"
    feasible = "" if summary.best.feasible else f"not feasible: {summary.best.reason}; "
    if summary.regret is not None and summary.best.feasible:
        origin += f", regret {regret_text(summary.regret)}"
    caveats = _caveats(summary.environment, summary.best.design)
    several = len(summary.objective.goals) > 1
    what = "Best compromise" if several else "Best design"
    metrics = _metric_texts(summary, summary.best)
    changes = _changes(summary.best.design, summary.baseline_design)
    return Group(
        Text(f"{what} ({feasible}{origin}); evaluate it again with:", style="bold"),
        Text(f"  {evaluate_command(trial, summary.best.design)}", no_wrap=True, overflow="ignore"),
        _Flow("", metrics, "dim"),
        *([_Flow("other than the baseline: ", changes)] if changes else []),
        *(Text(f"  note: {caveat}", style="yellow") for caveat in caveats),
    )


def _caveats(environment: str, design: Mapping[str, Any]) -> list[str]:
    """What metrics do not show of a design; a dataset does not decide which code is imported."""
    if environment not in environment_names():
        return []
    return environment_class(environment).caveats_of(design)


def common_values(designs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The parameters that several designs have in common; none of a single one."""
    if len(designs) < 2:
        return {}
    return {
        name: value
        for name, value in designs[0].items()
        if all(name in design and design[name] == value for design in designs)
    }


def design_text(design: Mapping[str, Any]) -> str:
    """A design as arguments of ``archgym evaluate``."""
    return " ".join(f"{name}={_plain(value)}" for name, value in design.items())


def _changes(design: Mapping[str, Any], baseline: Mapping[str, Any]) -> list[str]:
    """What a design has otherwise than the baseline design, and in brackets what that has."""
    return [
        f"{name}={_plain(value)}" + (f" ({_plain(baseline[name])})" if name in baseline else "")
        for name, value in design.items()
        if baseline and (name not in baseline or baseline[name] != value)
    ]


def _metric_texts(summary: TrialSummary, outcome: Outcome) -> list[str]:
    """Metrics, each with its change from the baseline design, if that has the same sign."""
    parts = []
    for name, value in outcome.metrics.items():
        if value is not None:
            change = change_text(value, summary.baseline_metrics.get(name), digits=0)
            parts.append(f"{name} {value:.5g}" + (f" ({change})" if change else ""))
    return parts


def value_text(summary: TrialSummary, number: int, value: float) -> str:
    """A goal's value in its natural sign, with its unit."""
    goal = summary.objective.goals[number]
    return (
        f"{natural(goal, summary.metrics, value):.5g} {goal_unit(goal, summary.metrics)}".rstrip()
    )


def _setting_table(
    setting: str, trials: Sequence[Trial], titles: Mapping[str, str], result: RunResult
) -> RenderableType:
    known = [s for t in trials if (s := result.summaries.get(t.trial_id)) is not None]
    labels = list(dict.fromkeys(trial.agent_label for trial in trials))
    agents = {
        titles[label]: [trial for trial in trials if trial.agent_label == label]
        for label in labels[:_MOST_ROWS]
    }
    goals = range(len(known[0].objective.goals) if known else 0)
    parts: list[RenderableType] = [title(setting, known)]
    if len(goals) > 1:
        # One goal under the other: side by side they would not fit a terminal.
        parts += [_table(agents, result, known, [number], counts=False) for number in goals]
    if len(goals) == 1:
        whole = _table(agents, result, known, goals, counts=True)
        apart = [
            _table(agents, result, known, goals, counts=False),
            _table(agents, result, known, (), counts=True),
        ]
        parts.append(_Fitting(whole, apart))
    else:
        parts.append(_table(agents, result, known, (), counts=True))
    if len(labels) > _MOST_ROWS:
        more = f"... and {len(labels) - _MOST_ROWS} more in {result.folder.results.name}"
        parts.append(Text(more))
    return Group(*parts)


class _Flow:
    """Texts in indented lines, none of them broken into two."""

    def __init__(self, label: str, texts: Sequence[str], style: str = "") -> None:
        self._label = label
        self._texts = texts
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [f"  {self._label}"]
        for number, text in enumerate(self._texts, 1):
            piece = text if number == len(self._texts) else f"{text}, "
            if len(lines[-1]) + len(piece.rstrip()) > options.max_width and lines[-1].strip():
                lines.append("  ")
            lines[-1] += piece
        yield from (Text(line.rstrip(), style=self._style) for line in lines)


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
    """A row an agent: what it reached in some goals, and what it took."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    longest = max((len(word) for name in agents for word in name.split()), default=0)
    table.add_column("agent", min_width=min(max(12, longest), 30), overflow="fold")
    table.add_column("trials", justify="right", no_wrap=True)
    for number in goals:
        goal = known[0].objective.goals[number]
        unit = goal_unit(goal, known[0].metrics)
        heading = _folded(goal.name) + (f"\n[{unit}]" if unit else "")
        table.add_column(Text(f"{heading}\nmedian / best"), justify="right", no_wrap=True)
    several = counts and bool(known) and len(known[0].objective.goals) > 1
    tabulated = counts and any(s.regret is not None for s in known)
    if tabulated:
        table.add_column("regret\nmedian / best", justify="right", no_wrap=True)
    headings = [*(("Pareto", "hypervolume") if several else ())]
    partly = counts and any(s.spent != s.simulations for s in known)
    if counts:
        headings += ["better", "sims", *(("spent",) if partly else ()), "dupl.", "illegal"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    any_failed = any(t.trial_id in result.failures for ours in agents.values() for t in ours)
    if counts and any_failed:
        table.add_column("failed", justify="right", style="red", no_wrap=True)
    for name, trials in agents.items():
        summaries = [s for t in trials if (s := result.summaries.get(t.trial_id)) is not None]
        cells: list[RenderableType] = [Text(name), str(len(trials))]
        cells += [_median_and_best(summaries, number) for number in goals]
        cells += [_regrets(summaries)] if tabulated else []
        cells += _pareto_cells(summaries) if several else []
        cells += _count_cells(summaries, partly) if counts else []
        if counts and any_failed:
            cells.append(str(sum(trial.trial_id in result.failures for trial in trials)))
        table.add_row(*cells)
    return table


def _folded(name: str) -> str:
    """A goal's name in lines that leave room for the other columns."""
    lines = [""]
    for part in re.findall(r"[^_*]*[_*]?", name):
        if len(lines[-1]) + len(part) > _HEADING_WIDTH:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def title(setting: str, known: Sequence[TrialSummary]) -> Text:
    """What was searched: its name, goals with the baseline's values, limits."""
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
    return text


def _pareto_cells(summaries: Sequence[TrialSummary]) -> list[RenderableType]:
    volumes = [s.hypervolume for s in summaries if s.hypervolume is not None]
    sizes = [len(s.front) for s in summaries]
    return [
        f"{statistics.median(sizes):g}" if sizes else "-",
        f"{statistics.median(volumes):.3f}" if volumes else "-",
    ]


def _count_cells(summaries: Sequence[TrialSummary], partly: bool) -> list[RenderableType]:
    proposals = sum(s.proposals for s in summaries)
    return [
        _share(sum(s.better for s in summaries), sum(s.full_simulations for s in summaries)),
        f"{sum(s.simulations for s in summaries):,}",
        *((f"{sum(s.spent for s in summaries):,.6g}",) if partly else ()),
        _share(sum(s.duplicates for s in summaries), proposals),
        _share(sum(s.illegal for s in summaries), proposals),
    ]


def _median_and_best(summaries: Sequence[TrialSummary], number: int) -> str:
    """Of the trials' ends; those that found nothing feasible count as infinitely bad."""
    ends = [float(s.curve[-1, number]) if len(s.curve) else math.inf for s in summaries]
    if not ends or min(ends) == math.inf:
        return "- / -"
    goal = summaries[0].objective.goals[number]
    told = [natural(goal, summaries[0].metrics, end) for end in ends]
    best = min(told) if direction(goal, summaries[0].metrics) == "minimize" else max(told)
    median = natural(goal, summaries[0].metrics, quantile(np.array(ends), 0.5))
    shown = f"{median:.5g}" if math.isfinite(median) else "-"
    return f"{shown} / {best:.5g}"


def _regrets(summaries: Sequence[TrialSummary]) -> str:
    """Median and least regret of the trials."""
    ends = [s.regret for s in summaries if s.regret is not None]
    if not ends:
        return "- / -"
    return f"{regret_text(quantile(np.array(ends), 0.5))} / {regret_text(min(ends))}"


def regret_text(regret: float) -> str:
    """A regret in per cent, to three significant digits; what is below 1e-9 is rounding."""
    if regret == math.inf:
        return "-"
    per_cent = 100 * regret if regret >= _ROUNDING else 0.0
    digits = 2 if per_cent == 0 else max(0, 2 - math.floor(math.log10(per_cent)))
    return f"{per_cent:.{digits}f}%"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else _plain(value)
