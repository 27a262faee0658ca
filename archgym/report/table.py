"""A table of a report: texts in cells, and how numbers stand in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archgym.analysis.statistics import least_p
from archgym.analysis.study import Problem

__all__ = ["SIGNIFICANT", "Table", "independence", "number_text", "p_text"]

SIGNIFICANT = 0.05
"""A corrected p-value below it stands out."""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: what it shows.
        columns: headings; one that begins with ``>`` is of numbers.
        rows: texts; one that begins with ``*`` stands out.
        note: how to read it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def number_text(value: float) -> str:
    """A number in a cell; a dash for one that is not finite."""
    if not math.isfinite(value):
        return "-"
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.4g}"
    return f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"


def p_text(value: float) -> str:
    """A p-value in a cell; it stands out below :data:`SIGNIFICANT`."""
    text = "< 0.0001" if value < 1e-4 else f"{value:.2g}" if value < 0.1 else f"{value:.2f}"
    return f"*{text}" if value < SIGNIFICANT else text


def independence(*problems: Problem) -> str:
    """What counts as an independent repetition in intervals and tests, and where it is too few."""
    return _unit_of_independence(problems) + _too_few(problems)


def _too_few(problems: Sequence[Problem]) -> str:
    """Says so where no difference, however large, could be significant."""
    pairs = []
    for problem in problems:
        groups = np.unique(problem.searcher).tolist()
        sizes = sorted(len(np.unique(problem.units[problem.searcher == n])) for n in groups)
        pairs += [(sizes[-1], sizes[-2])] if len(sizes) > 1 else []
    if not pairs or any(least_p(*pair) < SIGNIFICANT for pair in pairs):
        return ""
    one, two = max(pairs)
    return (
        f" With {one} and {two} repetitions the least p that this test can have is "
        f"{least_p(one, two):.2g}, before the correction: no difference, however large, is "
        "significant here. Four of each are the least that can be, and more with many pairs."
    )


def _unit_of_independence(problems: Sequence[Problem]) -> str:
    pooled = any(
        len(np.unique(problem.units[mine])) < mine.sum()
        for problem in problems
        for mine in (problem.searcher == n for n in np.unique(problem.searcher).tolist())
    )
    if not pooled:
        return "The unit of independence is the trial, each with a seed of its own."
    return (
        "The unit of independence is the seed: trials of one seed with several sets of "
        "hyperparameters share its luck, so intervals take the median of each seed's trials, "
        "tests their mean rank, and intervals of shares what varies between seeds. They speak of "
        "these sets of hyperparameters, not of others."
    )
