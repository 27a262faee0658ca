"""The report: Markdown for people, JSON for scripts."""

from __future__ import annotations

import math
import platform
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.search_quality.facts import COUNTS_FROM, Facts
from benchmarks.search_quality.summary import Cell, Overall, Summary, finite_or_none

__all__ = ["as_json", "as_markdown", "versions"]

_PACKAGES = (
    "archgym",
    "numpy",
    "scipy",
    "scikit-learn",
    "scikit-optimize",
    "optuna",
    "torch",
    "botorch",
    "stable-baselines3",
    "sb3-contrib",
    "nevergrad",
    "pymoo",
    "moocore",
)
_LEGEND = """\
Regret is normalised: (found - optimum) / (median random design - optimum), so 0 is the optimum and
1 a median random design that keeps the limits. Every proposal counts as an evaluation, also one
that was made before. In brackets: 95 % bootstrap interval of the median. "Within 1 %" is a regret
of at most 0.01; "evaluations to 1 %" are all evaluations spent by the number of runs that got
there. "Wasted" counts proposals that repeat an earlier one: the very same vector / the same design
once inactive parameters are folded / once dead parameters are folded, too / the same metrics, for
whatever reason. Seconds are the optimiser's own processor time."""


def versions() -> dict[str, str]:
    """Versions of Python and of all packages that take part; absent ones are left out."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def as_json(
    summary: Summary, facts: Mapping[str, Facts], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything in the report as a JSON object."""
    return {
        **about,
        "problems": {name: fact.to_json() for name, fact in facts.items()},
        "optima": summary.optima,
        "random_evaluations": {
            name: None if n is None or math.isinf(n) else n
            for name, n in summary.random_evaluations.items()
        },
        "counting": summary.counting,
        "cells": [cell.to_json() for cell in summary.cells],
        "grids": [cell.to_json() for cell in summary.grids],
        "reference": summary.reference,
        "overall": _overall_json(summary.overall),
        "against_random": _overall_json(summary.against_random),
        "unsuitable": summary.unsuitable,
        "failures": [
            {"key": line["key"], "error": line["error"].strip().splitlines()[-1]}
            for line in summary.failures
        ],
    }


def as_markdown(summary: Summary, facts: Mapping[str, Facts], about: Mapping[str, Any]) -> str:
    """The report."""
    parts = ["# Search quality", f"`{about['command']}`", _LEGEND]
    parts.append(", ".join(f"{k} {v}" for k, v in about["versions"].items()))
    parts += [f"- skipped: {line}" for line in about.get("skipped", [])]
    parts += ["## Problems", _problems(summary, facts)]
    for n, ranked in summary.overall.items():
        parts.append(f"## All counting problems with one goal, {n} evaluations")
        parts.append(_overall(ranked, summary.reference[n]))
        if n in summary.against_random:
            parts.append(_overall(summary.against_random[n], "random"))
    easy = [name for name in facts if name not in summary.counting]
    for title, names in (("Counting problems", summary.counting), ("Easy problems", easy)):
        parts.append(f"## {title}")
        for name in names:
            by_n: dict[int, list[Cell]] = defaultdict(list)
            for cell in summary.cells:
                if cell.problem == name:
                    by_n[cell.evaluations].append(cell)
            for n, cells in sorted(by_n.items()):
                parts += [f"### {name}, {n} evaluations", _cells(cells)]
    if summary.grids:
        parts += ["## Spread over hyperparameters", _grids(summary.grids)]
    if summary.unsuitable:
        parts.append("## Not suitable")
        parts += [f"- {p}, {c}: {why}" for p, c, why in summary.unsuitable]
    if summary.failures:
        parts.append("## Failed runs")
        for line in summary.failures:
            parts.append(f"- {line['key']}: {line['error'].strip().splitlines()[-1]}")
    return "\n\n".join(parts) + "\n"


def _problems(summary: Summary, facts: Mapping[str, Facts]) -> str:
    rows = []
    for name, fact in facts.items():
        needed = summary.random_evaluations.get(name)
        shown = (
            "-"
            if needed is None
            else "none in the sample"
            if needed == math.inf
            else f"{needed:,.0f}"
        )
        how = "exact" if fact.exact else "sampled" if fact.random_evaluations else "measured"
        optimum = summary.optima.get(name)
        objective = fact.notes.get("objective", {})
        rows.append(
            [
                name,
                "-" if optimum is None else f"{optimum:.6g}",
                f"{fact.median:.6g}",
                f"{fact.feasible:.2%}",
                f"{shown} ({how})",
                "yes" if name in summary.counting else "no",
                ", ".join(objective.get("limits", [])),
                ", ".join(fact.dead),
            ]
        )
    title = f"counts (from {COUNTS_FROM:,})"
    head = ["problem", "optimum", "median random", "feasible", "random's evaluations to 1 %"]
    return _table([*head, title, "limits", "dead parameters"], rows)


def _cells(cells: Iterable[Cell]) -> str:
    head = ["optimiser", "seeds", "median regret", "worst", "within 1 %", "exact"]
    head += ["evaluations to 1 %", "wasted", "infeasible", "s a proposal"]
    return _table(
        head,
        [
            [
                cell.contestant,
                str(cell.runs),
                f"{cell.median:.4f} [{cell.low:.4f}, {cell.high:.4f}]",
                f"{cell.worst:.3f}",
                f"{cell.within:.0%}",
                f"{cell.exact:.0%}",
                "-" if cell.expected == math.inf else f"{cell.expected:.0f}",
                " / ".join(f"{count:.0f}" for count in cell.waste.values()),
                f"{cell.infeasible:.0f}",
                f"{cell.agent_s:.5f}",
            ]
            for cell in cells
        ],
    )


def _overall(ranked: Sequence[Overall], reference: str) -> str:
    head = ["optimiser", "mean rank", "worst median regret", "worst regret"]
    head += [f"significantly better than {reference} on", "worse on", "p over problems"]
    return _table(
        head,
        [
            [
                one.contestant,
                f"{one.rank:.2f}",
                f"{one.worst_median:.3f}",
                f"{one.worst:.3f}",
                f"{len(one.better)}: {', '.join(one.better)}" if one.better else "0",
                str(len(one.worse)),
                "-" if one.p is None else f"{one.p:.3g}",
            ]
            for one in ranked
        ],
    )


def _grids(cells: Iterable[Cell]) -> str:
    groups: dict[tuple[str, str, int], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.contestant, cell.problem, cell.evaluations].append(cell)
    rows = []
    for (name, problem, n), found in sorted(groups.items()):
        best, worst = min(found, key=lambda c: c.mean), max(found, key=lambda c: c.mean)
        rows.append(
            [
                name,
                f"{problem}, {n}",
                str(len(found)),
                f"{best.mean:.4f} ({_settings(best)})",
                f"{worst.mean:.4f} ({_settings(worst)})",
                f"{min(min(c.regrets) for c in found):.4f} to {max(c.worst for c in found):.4f}",
            ]
        )
    head = ["agent", "problem, evaluations", "settings", "best mean regret", "worst mean regret"]
    return _table([*head, "single runs"], rows)


def _settings(cell: Cell) -> str:
    return ", ".join(f"{k}={v}" for k, v in cell.settings.items())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _overall_json(by_n: Mapping[int, Sequence[Overall]]) -> dict[str, Any]:
    return {
        str(n): [{k: finite_or_none(v) for k, v in vars(one).items()} for one in ranked]
        for n, ranked in by_n.items()
    }
