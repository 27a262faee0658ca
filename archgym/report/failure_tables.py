"""The tables of failures: designs that were not good, and trials that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from archgym.analysis.study import Problem, Study
from archgym.report.table import Table

_MAX_REASONS = 12
_MAX_FAILURES = 200


def reasons_table(problem: Problem) -> Iterator[Table]:
    """Reasons why proposals were illegal, infeasible or failed."""
    totals, overall = Counter[tuple[int, str]](), Counter[str]()
    for (trial, reason), count in problem.measures.reasons.items():
        totals[int(problem.searcher[trial]), reason] += count
        overall[reason] += count
    if not totals:
        return
    proposals = {
        group.searcher: max(1, int(problem.measures.counts[group.trials].sum()))
        for group in problem.groups
    }
    rows = [
        [reason, f"{count:,}", *(f"{totals[g, reason] / n:.1%}" for g, n in proposals.items())]
        for reason, count in overall.most_common(_MAX_REASONS)
    ]
    yield Table(
        "Why designs were not good",
        ["reason", ">times", *(f">{group.name}" for group in problem.groups)],
        rows,
        "Share of each agent's proposals, duplicates included." + _rarer(overall, rows),
    )


def failures_table(study: Study) -> Iterator[Table]:
    """Reasons why trials failed, and how many did."""
    if not study.failures:
        return
    by_reason: dict[tuple[int, str], list[str]] = {}
    for trial_id, reason in study.failures.items():
        by_reason.setdefault(reason, []).append(trial_id)
    ordered = sorted(by_reason.items(), key=lambda pair: -len(pair[1]))
    rows = [
        [study.searchers[searcher].name, reason, f"{len(trials):,}", ", ".join(trials[:3])]
        for (searcher, reason), trials in ordered[:_MAX_REASONS]
    ]
    yield Table(
        "Why trials failed",
        ["agent", "reason", ">trials", "such as"],
        rows,
        "Each trial is in the list at the end, and its traceback in the run's folder errors."
        + _rarer(by_reason, rows),
    )


def failed_trials_table(study: Study) -> Iterator[Table]:
    """Trials that ended in an error, with it."""
    if not study.failures:
        return
    rows = [[trial_id, error] for trial_id, (_, error) in study.failures.items()][:_MAX_FAILURES]
    more = len(study.failures) - len(rows)
    note = f"{more:,} more are in results/trials.parquet of the run." if more else ""
    yield Table("Trials that failed", ["trial", "why"], rows, note)


def _rarer(reasons: Collection[Any], rows: Collection[Any]) -> str:
    more = len(reasons) - len(rows)
    return f" {more} rarer reasons are left out." if more else ""
