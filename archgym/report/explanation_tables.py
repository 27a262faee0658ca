"""The tables of why the best design is the best, as ``archgym explain`` kept them."""

from __future__ import annotations

from collections.abc import Iterator

from archgym.analysis.study import Problem, Study
from archgym.experiment.results.explain import kept_explanations
from archgym.experiment.results.explanation_tables import difference_rows, limit_rows, summary
from archgym.report.table import Table

__all__ = ["explanation_tables"]


def explanation_tables(study: Study, problem: Problem) -> Iterator[Table]:
    """Limits, and differences of the best design to the baseline; nothing if nothing was kept.

    Raises:
        DatasetError: if the file that holds them is damaged.
    """
    if study.compared is not None:
        return
    own = set(problem.ids)
    for folder in study.folders:
        for one in kept_explanations(folder):
            if one.trial_id not in own:
                continue
            head, *notes = summary(one)
            columns, rows = limit_rows(one)
            if rows:
                yield Table("What the limits cost", columns, rows, head)
            columns, rows = difference_rows(one)
            if rows:
                title = "What each difference to the baseline is worth"
                yield Table(title, columns, rows, ". ".join(one.rstrip(".") for one in notes) + ".")
