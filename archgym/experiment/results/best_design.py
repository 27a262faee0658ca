"""The best design of a run, as the command that evaluates it again, and its metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from archgym.analysis.held_out import HeldOut
from archgym.analysis.trials import TrialSummary
from archgym.experiment.results.reproduce import evaluate_command
from archgym.experiment.results.texts import (
    plain,
    regret_text,
    seed_text,
    source_names,
    value_text,
)
from archgym.experiment.spec.expand import Trial
from archgym.problem.spread import SPREAD, change_of, plus_minus
from archgym.registry import environment_class, environment_names


def best_of(summaries: Sequence[TrialSummary]) -> TrialSummary | None:
    """The trial with the best outcome; feasible ones first, then the larger reward."""
    found = [(one.best.feasible, one.best.reward, one) for one in summaries if one.best is not None]
    return max(found, key=lambda rank: rank[:2])[2] if found else None


def best_design(summary: TrialSummary, trial: Trial) -> RenderableType:
    """The best design of a trial, as the command that evaluates it again, and its metrics.

    The command is one line, however wide the terminal: print it with ``crop=False``.
    """
    assert summary.best is not None
    agent = trial.agent.rpartition(":")[2]  # as in the table
    origin = f"{agent}{seed_text(summary.seed)}, simulation {summary.best_at}"
    feasible = "" if summary.best.feasible else f"not feasible: {summary.best.reason}; "
    if summary.regret is not None and summary.best.feasible:
        origin += f", regret {regret_text(summary.regret)}"
    caveats: list[str] = []
    if summary.environment in environment_names():  # a dataset decides on no imports
        caveats = environment_class(summary.environment).caveats_of(summary.best.design)
    several = len(summary.objective.goals) > 1
    what = "Best compromise" if several else "Best design"
    metrics = _metrics(summary.best.metrics, summary.baseline_metrics)
    changes = _changes(summary.best.design, summary.baseline_design)
    return Group(
        Text(f"{what} ({feasible}{origin}); evaluate it again with:", style="bold"),
        Text(f"  {evaluate_command(trial, summary.best.design)}", no_wrap=True, overflow="ignore"),
        _Flow("", metrics, "dim"),
        *([_Flow("other than the baseline: ", changes)] if changes else []),
        *(Text(f"  {line}", style="dim") for line in [_part_of_history(summary)] if line),
        *(Text(f"  note: {caveat}", style="yellow") for caveat in caveats),
    )


def _part_of_history(summary: TrialSummary) -> str:
    """Whether the best design is one that history suggested, and how good those were."""
    if summary.history is None:
        return ""
    suggested = f"history suggested {len(summary.history.first):,} designs to begin with"
    ignored = [source for source in summary.history.sources if not source.used]
    if ignored:
        suggested = f"no use made of {source_names(ignored)}; {suggested}"
    if not summary.history.first:
        return suggested
    if summary.from_history:
        return f"{suggested}, this one among them"
    if summary.best_from_history is None:
        return f"{suggested}, none of which was simulated"
    values = enumerate(summary.best_from_history.objectives)
    best = ", ".join(value_text(summary, number, value) for number, value in values)
    return f"{suggested}, the best one simulated {best}"


def best_held_out(held_out: HeldOut) -> RenderableType:
    """The metrics of the best design of a trial on the workload that its search left out."""
    metrics = _metrics(held_out.metrics, held_out.baseline)
    reason = "" if held_out.feasible else f"not feasible: {held_out.reason}"
    label = "" if held_out.workload == "held_out" else f"workload {held_out.workload}, "
    return _Flow(f"on {label}held out: ", [*metrics, *([reason] if reason else [])], "dim")


def _metrics(values: Mapping[str, float | None], baseline: Mapping[str, float | None]) -> list[str]:
    """Metrics with their change against the baseline design."""
    texts = []
    for name, value in values.items():
        if value is not None and not name.endswith(SPREAD):
            change = change_of(name, values, baseline, digits=0)
            around = plus_minus(name, values)
            spread = "" if around is None else f" ± {around:.2g}"
            texts.append(f"{name} {value:.5g}{spread}" + (f" ({change})" if change else ""))
    return texts


def _changes(design: Mapping[str, Any], baseline: Mapping[str, Any]) -> list[str]:
    """Values that differ from the baseline design's, which are in brackets."""
    return [
        f"{name}={plain(value)}" + (f" ({plain(baseline[name])})" if name in baseline else "")
        for name, value in design.items()
        if baseline and (name not in baseline or baseline[name] != value)
    ]


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
