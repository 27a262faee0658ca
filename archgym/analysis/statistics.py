"""Intervals, tests and ranks without assumptions on how results are distributed.

Scores are smaller-is-better; ``inf``, for a trial that found nothing feasible, is worse than any
number and equal to itself. Tests that only look at order need nothing else.

Trials that share a seed share their luck: with several sets of hyperparameters an agent has many
trials of each seed, which are no independent repetitions. A *unit* holds the trials of one seed;
intervals and tests count units, not trials.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
_RESAMPLES = 1000
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
        first: index of a group.
        second: index of another group.
        p: probability that groups of the same distribution differ by at least as much, from a
            two-sided Mann-Whitney U test of the units, corrected for the number of comparisons.
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
        friedman_p: p-value of the hypothesis that the groups are alike on all problems (Friedman's
            test); NaN if there are fewer than three groups or two problems.
        critical_difference: of mean ranks, at 5 % (Nemenyi's test); NaN as above.
    """

    ranks: list[Interval]
    by_problem: NDArray[np.float64]
    friedman_p: float
    critical_difference: float


def quantiles(
    values: Sequence[float] | NDArray[np.float64], shares: Sequence[float]
) -> NDArray[np.float64]:
    """Quantiles of scores along the first axis; between ``inf`` and a number it is ``inf``.

    Args:
        values: at least one score or row of scores.
        shares: of scores below each quantile.
    """
    found = np.quantile(np.minimum(values, _WORST), shares, axis=0)
    return np.where(found > _WORST / 1e6, np.inf, found)


def quantile(values: NDArray[np.float64], share: float) -> float:
    """One quantile of some scores, as of :func:`quantiles`; NaN for no scores."""
    return float(quantiles(values, [share])[0]) if len(values) else math.nan


def unit_medians(
    values: NDArray[np.float64], units: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Median of each unit's trials, shape (n_units,); the values themselves without units."""
    if units is None or len(np.unique(units)) == len(values):
        return values
    return np.array([quantile(values[units == unit], 0.5) for unit in np.unique(units).tolist()])


def median_interval(
    values: NDArray[np.float64], units: NDArray[np.int64] | None = None
) -> Interval:
    """Median and its interval from order statistics (the inversion of the sign test).

    The order is that of the units' medians; the interval is exact where each trial is a unit.
    Fewer than six units allow none at 95 %; then it is their range, and says so.

    Args:
        values: of the trials.
        units: unit of each; each trial is one by default.
    """
    from scipy.stats import quantile_test

    value = quantile(values, 0.5)
    if not len(values):
        return Interval(math.nan, math.nan, math.nan, False)
    middles = unit_medians(values, units)
    if len(middles) >= 6:
        bounded = np.minimum(middles, _WORST)
        found = quantile_test(bounded, q=0.0, p=0.5).confidence_interval(CONFIDENCE)
        if np.isfinite([found.low, found.high]).all():
            low, high = (math.inf if end >= _WORST else float(end) for end in found)
            return Interval(value, min(low, value), max(high, value))
    return Interval(value, float(middles.min()), float(middles.max()), False)


def share_interval(hits: NDArray[np.bool_], units: NDArray[np.int64] | None = None) -> Interval:
    """A share and its Wilson score interval.

    Where units hold several trials, the number of trials is replaced by the effective one, which
    gives the share the variance that it has between units (Kish 1965); if all trials are alike,
    it is the number of units.

    Args:
        hits: whether each trial is counted.
        units: unit of each; each trial is one by default.
    """
    n = len(hits)
    if not n:
        return Interval(math.nan, math.nan, math.nan, False)
    share, size = float(np.mean(hits)), float(n)
    if units is not None and (groups := len(np.unique(units))) < n:
        _, numbers = np.unique(units, return_inverse=True)
        beyond = np.bincount(numbers, np.asarray(hits, dtype=np.float64) - share)
        variance = groups / max(1, groups - 1) * float((beyond**2).sum()) / n**2
        size = float(groups)
        if 0 < share < 1:
            size = min(float(n), share * (1 - share) / variance) if variance else float(n)
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle = (share + z * z / (2 * size)) / (1 + z * z / size)
    half = z / (1 + z * z / size) * math.sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return Interval(share, low if share else 0.0, high if share < 1 else 1.0)


def mann_whitney(first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[float, float]:
    """Two-sided p of the Mann-Whitney U test, and the probability that the first is better.

    All values count as independent; :func:`compare` is for trials that are not.
    """
    from scipy.stats import mannwhitneyu

    one, two = np.minimum(first, _WORST), np.minimum(second, _WORST)
    if np.ptp(np.concatenate([one, two])) == 0:
        return 1.0, 0.5
    found = mannwhitneyu(one, two, alternative="two-sided")
    return float(found.pvalue), float(1.0 - found.statistic / (len(one) * len(two)))


def min_p(first: int, second: int) -> float:
    """The least two-sided p that a Mann-Whitney U test of groups of these sizes can have.

    It belongs to groups that do not overlap: 2 of all ways to divide the ranks (Mann and Whitney,
    1947). With ties it is larger.

    >>> round(min_p(3, 3), 3), round(min_p(4, 4), 3), min_p(1, 5)
    (0.1, 0.029, 0.3333333333333333)
    """
    return min(1.0, 2 / math.comb(first + second, first))


def least_p(units: Sequence[int]) -> float:
    """The least p, corrected for the number of pairs, that any pair of groups can have.

    >>> round(least_p([5, 5, 5, 5, 5]), 3), round(least_p([5, 5]), 4)
    (0.079, 0.0079)

    Args:
        units: number of units of each group; groups with fewer than two are not compared.
    """
    compared = [n for n in units if n >= 2]
    pairs = math.comb(len(compared), 2)
    if not pairs:
        return 1.0
    first, second = sorted(compared)[-2:]
    return min(1.0, pairs * min_p(first, second))


def seeds_needed(groups: int, significant: float = 0.05) -> int:
    """The number of seeds with which a pair among some groups can be significant.

    >>> seeds_needed(2), seeds_needed(5)
    (4, 6)

    Args:
        groups: that are all compared with each other, at least two.
        significant: p, corrected for the number of pairs, below which a difference is.
    """
    return next(n for n in itertools.count(2) if least_p([n] * groups) < significant)


def compare(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    units: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> tuple[float, float]:
    """Two-sided p of the Mann-Whitney U test, and the probability that the first is better.

    What is tested are the mean ranks of the units' trials among all trials of the two groups;
    the probability is that of trials.

    Args:
        first: of the trials of one group.
        second: of the other.
        units: of each group's trials.
    """
    from scipy.stats import rankdata

    p, superiority = mann_whitney(first, second)
    if units is None or sum(len(np.unique(one)) for one in units) == len(first) + len(second):
        return p, superiority
    ranks = np.asarray(rankdata(np.concatenate([first, second])), dtype=np.float64)
    parts = ranks[: len(first)], ranks[len(first) :]
    means = [
        np.array([values[mine == unit].mean() for unit in np.unique(mine).tolist()])
        for values, mine in zip(parts, units, strict=True)
    ]
    return mann_whitney(*means)[0], superiority


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number, so that the chance of any false alarm stays 5 %.

    Holm's step-down procedure (1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(values, kind="stable")
    found = np.arange(len(values), 0, -1) * np.asarray(values, dtype=np.float64)[order]
    corrected = np.maximum.accumulate(np.fmin(1.0, found))
    return [round(value, 15) for value in corrected[np.argsort(order)].tolist()]


def compare_all(
    groups: Sequence[NDArray[np.float64]], units: Sequence[NDArray[np.int64]] | None = None
) -> list[Comparison]:
    """Every pair of groups with at least two units each, corrected for the number of pairs.

    Args:
        groups: scores of each group's trials.
        units: of each group's trials; each trial is one by default.
    """
    units = units if units is not None else [np.arange(len(group)) for group in groups]
    enough = [i for i, some in enumerate(units) if len(np.unique(some)) > 1]
    pairs = list(itertools.combinations(enough, 2))
    found = [compare(groups[i], groups[j], (units[i], units[j])) for i, j in pairs]
    corrected = holm([p for p, _ in found])
    return [
        Comparison(i, j, p, superiority)
        for (i, j), p, (_, superiority) in zip(pairs, corrected, found, strict=True)
    ]


def rank(
    problems: Sequence[Sequence[NDArray[np.float64]]],
    rng: np.random.Generator,
    units: Sequence[Sequence[NDArray[np.int64]]] | None = None,
) -> Ranking:
    """Ranks groups on several problems by their median scores.

    The interval is a percentile bootstrap that draws problems and, crossed with them, units: a
    seed that is drawn is drawn on every problem, with all of its trials, since its luck may be
    the same there. With one problem only units are drawn.

    Args:
        problems: the scores of each group on each problem, none of them empty.
        rng: draws the bootstrap's samples.
        units: of each of these trials; by default the first trials of all groups are one unit,
            the second ones another, and so on, as seeds are.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    medians = np.array([[quantile(values, 0.5) for values in groups] for groups in problems])
    medians = np.minimum(medians, _WORST)
    by_problem = np.asarray(rankdata(medians, axis=1))
    n_problems, n_groups = by_problem.shape
    if units is None:
        units = [[np.arange(len(values)) for values in groups] for groups in problems]
    names, numbers = np.unique(
        np.concatenate([one for some in units for one in some]), return_inverse=True
    )
    weights = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=_RESAMPLES)
    scores = [values for groups in problems for values in groups]
    parts = np.split(numbers, np.cumsum([len(values) for values in scores])[:-1])
    resampled = [
        _weighted_medians(values, weights[:, mine])
        for values, mine in zip(scores, parts, strict=True)
    ]
    drawn = rankdata(np.reshape(resampled, (n_problems, n_groups, _RESAMPLES)), axis=1)
    picked = rng.integers(n_problems, size=(n_problems, _RESAMPLES))
    means = drawn[picked, :, np.arange(_RESAMPLES)].mean(axis=0)
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


def _weighted_medians(
    values: NDArray[np.float64], weights: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Median of the values, each as often as its weight says, for each row of weights.

    A row in which nothing is drawn has the median of all values.
    """
    order = np.argsort(values, kind="stable")
    ordered = np.minimum(values, _WORST)[order]
    so_far = np.cumsum(weights[:, order], axis=1)
    total = so_far[:, -1:]
    low = (2 * so_far >= total).argmax(axis=1)  # the middle one, or the lower of two
    high = (2 * so_far > total).argmax(axis=1)
    found = 0.5 * (ordered[low] + ordered[high])
    return np.asarray(np.where(total[:, 0] > 0, found, np.median(ordered)))
