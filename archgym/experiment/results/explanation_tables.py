"""An explanation as tables and sentences, for the terminal and for reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archgym.analysis.explanation import NOTHING, UNKNOWN, Difference, Explanation, Margin, Step
from archgym.experiment.results.texts import design_text, plain, seed_text

_BINDS = 0.005
"""Share of a bound; a limit of which less is left is called reached."""


def limit_rows(one: Explanation) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the table of limits."""
    columns = ["limit", ">best design", ">left", "what the limit costs"]
    return columns, [
        [
            margin.limit,
            "-" if margin.value is None else f"{margin.value:.5g} {margin.unit}".rstrip(),
            "-" if margin.margin is None else f"{margin.margin:.1%}",
            _cost(margin, one.goals),
        ]
        for margin in one.limits
    ]


def difference_rows(one: Explanation) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the table of differences; :func:`summary` has notes on them."""
    columns = ["best design (baseline)", ">put back", ">alone"]
    return columns, [
        [_named(each), _worth(each.back, one.goals), _worth(each.alone, one.goals)]
        for each in one.differences
    ]


def summary(one: Explanation) -> list[str]:
    """What the best design achieves; then how to read the tables, a sentence each."""
    of = f"{one.agent}{seed_text(one.seed)}"
    state = "" if one.best.feasible else f" (not feasible: it {one.best.reason})"
    if not one.differences:
        return [f"The best design ({of}) is the baseline design{state}."]
    goals = ", ".join(
        f"{name} {value:.5g}{_from(start)}"
        for name, value, start in zip(
            one.goals, one.best.goals, _padded(one.baseline.goals, one.goals), strict=True
        )
    )
    lines = [f"Best design ({of}): {goals}{state}"]
    lines += [note for each in one.differences for note in _notes(each)]
    lines.append(
        "Put back: how much worse (+) or better (-) the best design gets with the value of the "
        "baseline. Alone: how much the baseline gets with only this difference."
    )
    if "maximize" in one.objective:
        lines.append(
            "Reciprocals are compared where a goal is maximized: +100 % is half of its value, -50 "
            "% twice as much."
        )
    if one.simpler is not None and one.simpler.feasible and max(one.simpler.worse) <= NOTHING:
        lines.append(f"As good, with fewer differences: {design_text(one.simpler.design)}")
    if one.left:
        lines.append(f"{one.left} designs were not simulated: --budget allows more.")
    return lines


def _cost(margin: Margin, goals: Sequence[str]) -> str:
    if margin.margin is not None and margin.margin < 0:
        return "broken: no design that was found keeps all limits"
    if margin.without is not None:
        value = margin.without.metrics.get(margin.metric)
        at = "" if value is None else f", at {value:.5g} {margin.unit}".rstrip()
        worth = _worth(margin.without, goals)
        return f"binds: without it, the run knows a design at {worth}{at}"
    if margin.keeps:
        return f"kept by {', '.join(margin.keeps)}; no better design beyond it is known"
    if margin.margin is not None and margin.margin <= _BINDS:
        return "reached; no better design beyond it is known"
    return "nothing that is known"


def _named(difference: Difference) -> str:
    return ", ".join(
        f"{name}={plain(difference.best[name])} ({plain(difference.baseline[name])})"
        for name in difference.parameters
    )


def _worth(step: Step, goals: Sequence[str]) -> str:
    """By how much a design is worse, as a text for a cell."""
    if step.status == UNKNOWN:
        return "not simulated"
    if step.status != "ok":
        return step.status
    texts = [_percent(worse) for worse in _padded(step.worse, goals)]
    return ", ".join(texts) if len(set(texts)) > 1 else texts[0]


def _notes(difference: Difference) -> list[str]:
    """Sentences on what the table has no room for."""
    name, notes = ", ".join(difference.parameters), []
    if difference.along:
        notes.append(f"{name} comes with {_values(difference.along)}")
    for step, what in ((difference.back, "put back"), (difference.alone, "alone")):
        if step.status not in ("ok", UNKNOWN):
            notes.append(f"{name} {what} is {step.status}: {step.reason}")
        elif step.breaks:
            notes.append(f"{name} {what} breaks {' and '.join(step.breaks)}")
    return notes


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={plain(value)}" for name, value in values.items())


def _padded(found: Sequence[float], goals: Sequence[str]) -> list[float | None]:
    """A number for each goal, ``None`` where there is none."""
    return [*found, *([None] * (len(goals) - len(found)))]


def _percent(worse: float | None) -> str:
    if worse is None:
        return "-"
    return "0 %" if abs(worse) < NOTHING / 2 else f"{worse * 100:+.3g} %"


def _from(start: float | None) -> str:
    return "" if start is None else f" (baseline {start:.5g})"
