"""The tables of what went wrong: designs that were not good, and trials that failed."""

from __future__ import annotations

from collections import Counter

import numpy as np

from archgym.analysis.study import Problem, Study
from archgym.report.table import Table

__all__ = ["failed_trials_table", "failures_table", "reasons_table"]

_MOST_REASONS = 12
_MOST_FAILURES = 200


def reasons_table(study: Study, problem: Problem) -> list[Table]:
    """Why proposals were illegal, infeasible or failed."""
    totals: Counter[tuple[int, str]] = Counter()
    for (trial, reason), count in problem.measures.reasons.items():
        totals[int(problem.searcher[trial]), reason] += count
    if not totals:
        return []
    overall: Counter[str] = Counter()
    for (_, reason), count in totals.items():
        overall[reason] += count
    groups = np.unique(problem.searcher).tolist()
    proposals = {g: int(problem.measures.counts[problem.searcher == g].sum()) for g in groups}
    rows = [
        [
            reason,
            f"{count:,}",
            *(f"{totals[g, reason] / max(1, proposals[g]):.1%}" for g in groups),
        ]
        for reason, count in overall.most_common(_MOST_REASONS)
    ]
    more = len(overall) - len(rows)
    return [
        Table(
            "Why designs were not good",
            ["reason", ">times", *(f">{study.searchers[g].name}" for g in groups)],
            rows,
            "Share of each agent's proposals, duplicates included."
            + (f" {more} rarer reasons are left out." if more else ""),
        )
    ]


def failures_table(study: Study) -> list[Table]:
    """Why trials failed, and how many."""
    if not study.failures:
        return []
    by_reason: dict[tuple[int, str], list[str]] = {}
    for trial_id, reason in study.failures.items():
        by_reason.setdefault(reason, []).append(trial_id)
    ordered = sorted(by_reason.items(), key=lambda pair: -len(pair[1]))
    rows = [
        [study.searchers[searcher].name, reason, f"{len(trials):,}", ", ".join(trials[:3])]
        for (searcher, reason), trials in ordered[:_MOST_REASONS]
    ]
    more = len(ordered) - len(rows)
    return [
        Table(
            "Why trials failed",
            ["agent", "reason", ">trials", "such as"],
            rows,
            "Each trial is in the list at the end, and its traceback in the run's folder errors."
            + (f" {more} rarer reasons are left out." if more else ""),
        )
    ]


def failed_trials_table(study: Study) -> list[Table]:
    """Trials that ended in an error, for looking up."""
    if not study.failures:
        return []
    some = list(study.failures.items())[:_MOST_FAILURES]
    more = len(study.failures) - len(some)
    note = f"{more:,} more are in results/trials.parquet of the run." if more else ""
    rows = [[trial_id, error] for trial_id, (_, error) in some]
    return [Table("Trials that failed", ["trial", "why"], rows, note)]
