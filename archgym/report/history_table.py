"""The table of what searches learned from before they began."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from archgym.analysis.study import Problem
from archgym.report.table import Table

__all__ = ["history_table"]

_MAX_SOURCES = 5


def history_table(problem: Problem) -> Iterator[Table]:
    """What each searcher learned from, and whether its best design was known from there.

    Nothing if all of them began from nothing.
    """
    rows = []
    for number, row in problem.best_trials:
        searcher = int(problem.searcher[number])
        mine = [problem.trials[i] for i in np.flatnonzero(problem.searcher == searcher)]
        known = [trial.history for trial in mine if trial.history is not None]
        if not known:
            continue
        sources = {one.name: one for history in known for one in history.sources}
        names = [
            f"{name} ({one.designs:,}{'' if one.used else ', not used'})"
            for name, one in list(sources.items())[:_MAX_SOURCES]
        ]
        chosen, learned = problem.chosen.get(row), problem.trials[number].history
        found = "-"
        if chosen is not None and learned is not None:
            key = str(problem.space.key(chosen.codes.tolist()))
            found = "yes" if key in learned.first else "no"
        firsts = sorted({len(history.first) for history in known})
        rows.append(
            [
                problem.searchers[searcher].name,
                f"{len(known):,} of {len(mine):,}",
                ", ".join(names) + (", ..." if len(sources) > _MAX_SOURCES else ""),
                " to ".join(dict.fromkeys(f"{n:,}" for n in (firsts[0], firsts[-1]))),
                found,
            ]
        )
    if rows:
        yield Table(
            "What searches learned from",
            ["agent", ">trials", "earlier problems (designs)", ">suggested", "best among them"],
            rows,
            "Trials that learned from earlier runs, the problems of these runs, the designs that "
            "they suggested to begin with, and whether the best design of the agent is one of "
            "these. An agent makes no use of problems with few designs, nor of those in which "
            f"designs say nothing of one another.{_left_out(problem)}",
        )


def _left_out(problem: Problem) -> str:
    """What became of the rows of earlier problems, as the run said when it began."""
    accounts = problem.history_accounts
    shown = "; ".join(accounts[:_MAX_SOURCES]) + ("; ..." if len(accounts) > _MAX_SOURCES else "")
    return f" What was read: {shown}." if shown else ""
