"""A table of a report: texts in cells, and the format of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archgym.analysis.statistics import least_p, seeds_needed
from archgym.analysis.study import Problem

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
    """The unit of independence in intervals and tests, and a warning if there are too few."""
    sizes = [sorted(len(np.unique(g.units)) for g in problem.groups) for problem in problems]
    pairs = [(some[-1], some[-2]) for some in sizes if len(some) > 1]
    pooled = any(sum(some) < len(p.trials) for some, p in zip(sizes, problems, strict=True))
    text = "The unit of independence is the trial, each with its own seed."
    if pooled:
        text = (
            "The unit of independence is the seed: trials of one seed with several sets of "
            "hyperparameters share its luck, so intervals take the median of each seed's trials, "
            "tests their mean rank, and intervals of shares what varies between seeds. They speak "
            "of these sets of hyperparameters, not of others."
        )
    if not pairs:
        return text
    some = min(sizes, key=least_p)
    least, groups = least_p(some), sum(n > 1 for n in some)
    if groups < 2:
        return f"{text} With one seed nothing is compared."
    compared = math.comb(groups, 2)
    of = "one pair" if compared == 1 else f"{compared} pairs"
    text += f" The least p that a pair can have here, corrected for {of}, is {least:.2g}"
    if least < SIGNIFICANT:
        return f"{text}."
    text += (
        f": no difference, however large, is significant. {seeds_needed(groups)} seeds can show one"
    )
    if groups > 2:
        text += "; a comparison of two agents that was planned needs fewer (report --agent A,B)"
    return f"{text}."
