"""Intervals, tests and ranks: all of them free of assumptions on how results are distributed.

Scores are smaller-is-better; ``inf``, for a trial that found nothing feasible, is worse than any
number and equal to itself. Tests that only look at order take that as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONFIDENCE",
    "Comparison",
    "Interval",
    "Ranking",
    "compare_all",
    "holm",
    "mann_whitney",
    "median_interval",
    "quantile",
    "rank",
    "share_interval",
]

CONFIDENCE = 0.95
_RESAMPLES = 1000
_MOST_RESAMPLED = 200
_WORST = 1e300


@dataclass(frozen=True)
class Interval:
    """A number and how sure it is.

    Attributes:
        value: the number.
        low: lower end.
        high: upper end.
        exact: whether it is a confidence interval; with too few trials it is their range.
    """

    value: float
    low: float
    high: float
    exact: bool = True


@dataclass(frozen=True)
class Comparison:
    """Two groups of trials on one problem.

    Attributes:
        first: number of a group.
        second: number of another.
        p: that groups drawn alike differ by at least as much, from a two-sided Mann-Whitney U
            test, corrected for the number of comparisons.
        superiority: probability that a trial of the first is better than one of the second,
            ties counting half (Vargha and Delaney's A, 2000).
    """

    first: int
    second: int
    p: float
    superiority: float


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over problems; 1 is the best.

    Attributes:
        ranks: mean rank of each group with its bootstrap interval.
        by_problem: rank of each group's median on each problem, shape (n_problems, n_groups).
        friedman_p: that the groups are alike on all problems (Friedman's test); NaN if there are
            fewer than three groups or two problems.
        critical_difference: of mean ranks, at 5 % (Nemenyi's test); NaN as above.
    """

    ranks: list[Interval]
    by_problem: NDArray[np.float64]
    friedman_p: float
    critical_difference: float


def quantile(values: NDArray[np.float64], share: float) -> float:
    """The quantile of some scores; between ``inf`` and a number it is ``inf``."""
    if not len(values):
        return math.nan
    bounded = np.minimum(values, _WORST)
    found = float(np.quantile(bounded, share))
    return math.inf if found > _WORST / 1e6 else found


def median_interval(values: NDArray[np.float64]) -> Interval:
    """Median and its exact interval from order statistics (the inversion of the sign test).

    Fewer than six trials allow none at 95 %; then it is their range, and says so.
    """
    from scipy.stats import quantile_test

    value = quantile(values, 0.5)
    if not len(values):
        return Interval(math.nan, math.nan, math.nan, False)
    if len(values) >= 6:
        bounded = np.minimum(values, _WORST)
        found = quantile_test(bounded, q=0.0, p=0.5).confidence_interval(CONFIDENCE)
        if np.isfinite([found.low, found.high]).all():
            low, high = (math.inf if end >= _WORST else float(end) for end in found)
            return Interval(value, low, high)
    return Interval(value, float(values.min()), float(values.max()), False)


def share_interval(hits: int, trials: int) -> Interval:
    """A share and its Wilson score interval."""
    from scipy.stats import binomtest

    if not trials:
        return Interval(math.nan, math.nan, math.nan, False)
    ends = binomtest(hits, trials).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(hits / trials, float(ends.low), float(ends.high))


def mann_whitney(first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[float, float]:
    """Two-sided p of the Mann-Whitney U test, and the probability that the first is better."""
    from scipy.stats import mannwhitneyu

    one, two = np.minimum(first, _WORST), np.minimum(second, _WORST)
    if np.ptp(np.concatenate([one, two])) == 0:
        return 1.0, 0.5
    found = mannwhitneyu(one, two, alternative="two-sided")
    return float(found.pvalue), float(1.0 - found.statistic / (len(one) * len(two)))


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number, so that the chance of any false alarm stays 5 %.

    Holm's step-down procedure (1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(values, kind="stable")
    found = np.zeros(len(values))
    so_far = 0.0
    for place, number in enumerate(order.tolist()):
        so_far = max(so_far, min(1.0, (len(values) - place) * values[number]))
        found[number] = so_far
    return [round(value, 15) for value in found.tolist()]


def compare_all(groups: Sequence[NDArray[np.float64]]) -> list[Comparison]:
    """Every pair of groups with at least two trials each, corrected for the number of pairs."""
    pairs = [
        (i, j)
        for i in range(len(groups))
        for j in range(i + 1, len(groups))
        if len(groups[i]) > 1 and len(groups[j]) > 1
    ]
    found = [mann_whitney(groups[i], groups[j]) for i, j in pairs]
    corrected = holm([p for p, _ in found])
    return [
        Comparison(i, j, p, superiority)
        for (i, j), p, (_, superiority) in zip(pairs, corrected, found, strict=True)
    ]


def rank(problems: Sequence[Sequence[NDArray[np.float64]]], rng: np.random.Generator) -> Ranking:
    """Ranks groups on several problems by their median scores.

    The interval is a percentile bootstrap that draws problems, and trials within each; with one
    problem only trials are drawn.

    Args:
        problems: the scores of each group on each problem, none of them empty.
        rng: draws the bootstrap's samples.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    medians = np.array([[quantile(values, 0.5) for values in groups] for groups in problems])
    medians = np.minimum(medians, _WORST)
    by_problem = np.asarray(rankdata(medians, axis=1))
    n_problems, n_groups = by_problem.shape
    drawn = np.empty((n_problems, _RESAMPLES, n_groups))
    for i, groups in enumerate(problems):
        resampled = np.column_stack([_medians(values, rng) for values in groups])
        drawn[i] = rankdata(resampled, axis=1)
    picked = rng.integers(n_problems, size=(n_problems, _RESAMPLES))
    means = drawn[picked, np.arange(_RESAMPLES)].mean(axis=0)
    ends = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    friedman, critical = math.nan, math.nan
    if n_groups > 2 and n_problems > 1 and np.ptp(by_problem) > 0:
        friedman = float(friedmanchisquare(*by_problem.T).pvalue)
        q = studentized_range.ppf(CONFIDENCE, n_groups, np.inf) / math.sqrt(2)
        critical = float(q * math.sqrt(n_groups * (n_groups + 1) / (6 * n_problems)))
    mean = by_problem.mean(axis=0)
    return Ranking(
        [Interval(float(mean[g]), float(ends[0, g]), float(ends[1, g])) for g in range(n_groups)],
        by_problem,
        friedman,
        critical,
    )


def _medians(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Medians of bootstrap samples, shape (n_resamples,)."""
    values = np.minimum(values, _WORST)
    if len(values) > _MOST_RESAMPLED:
        # The median of n values is normal around the true one with a spread that follows from
        # order statistics: the ranks of n/2 heads of n coin tosses.
        place = rng.binomial(len(values), 0.5, size=_RESAMPLES)
        return np.asarray(np.sort(values)[np.clip(place, 0, len(values) - 1)])
    picks = rng.integers(len(values), size=(_RESAMPLES, len(values)))
    return np.asarray(np.median(values[picks], axis=1))
