"""How well one set of figures agrees with another: ranking, values, and what a search would lose.

>>> same = agreement("stream", "time_ns", [1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
>>> same.spearman, same.mean_error, same.regret
(1.0, 9.0, 0.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

TIE = 1e-3
"""Values that differ by less than this share count as equal: those of two designs, and the two
sides' values of one design."""
TOP_SHARE = 0.05
"""Share of the designs that count as the best ones."""
STATISTICS = {
    "spearman": "largest",
    "kendall": "largest",
    "median_error": "smallest",
    "mean_error": "smallest",
    "max_error": "smallest",
    "bias": "nearest zero",
    "top_overlap": "largest",
    "regret": "smallest",
    "raw_regret": "smallest",
}
"""The statistics of an :class:`Agreement`, and which value of each is the best."""
_WORST: Mapping[str, Callable[[Sequence[float]], float]] = {
    "largest": min,
    "smallest": max,
    "nearest zero": lambda values: max(values, key=abs),
}


@dataclass(frozen=True)
class Agreement:
    """Agreement of one metric in one case (a workload on some hardware).

    Ratios, not percentages: 0.03 is 3 %. NaN where a figure is not defined.

    Attributes:
        case: what the designs ran.
        metric: name of the metric.
        n: designs that have a value on both sides.
        spread: largest by smallest reference value, less 1.
        spearman: rank correlation, ties averaged; NaN if the reference does not vary, 0 if only
            ours does not.
        kendall: tau-b, of the same ties.
        median_error: median of the absolute relative errors, over reference values other than 0.
        mean_error: their mean.
        max_error: the largest of them.
        bias: mean of the relative errors with their sign; above 0 where ours are larger.
        top_overlap: see :func:`top_overlap`.
        regret: see :func:`regret`, with ties.
        raw_regret: the same without ties: only exactly equal values of ours count as equal.
    """

    case: str
    metric: str
    n: int
    spread: float
    spearman: float
    kendall: float
    median_error: float
    mean_error: float
    max_error: float
    bias: float
    top_overlap: float
    regret: float
    raw_regret: float


@dataclass(frozen=True)
class Summary:
    """Agreement of one metric over those cases in which it varies enough to rank designs by it.

    Attributes:
        metric: name of the metric.
        varying: cases whose spread is above the least one.
        steady: the other cases; they are in none of the figures.
        median: median over the varying cases of each of :data:`STATISTICS`; NaN without any.
        worst: the worst of the varying cases, by statistic.
    """

    metric: str
    varying: int
    steady: int
    median: dict[str, float]
    worst: dict[str, float]


def agreement(
    case: str, metric: str, reference: ArrayLike, ours: ArrayLike, *, maximize: bool = False
) -> Agreement:
    """Compares one metric of the same designs; those without a value on both sides are left out.

    Args:
        case: what the designs ran.
        metric: name of the metric.
        reference: values that are taken for true, shape (n,).
        ours: values to judge, shape (n,).
        maximize: whether larger is better.
    """
    true, found = np.asarray(reference, np.float64), np.asarray(ours, np.float64)
    both = np.isfinite(true) & np.isfinite(found)
    true, found = true[both], found[both]
    nonzero = true != 0
    errors = (found[nonzero] - true[nonzero]) / np.abs(true[nonzero])
    sizes = np.abs(errors)
    # Else values that tie, but straddle the border of a group by a hair, would count as swapped.
    ranked = np.where(np.abs(found - true) <= TIE * np.abs(true), true, found)
    return Agreement(
        case=case,
        metric=metric,
        n=len(true),
        spread=_spread(true),
        spearman=spearman(true, ranked),
        kendall=kendall(true, ranked),
        median_error=float(np.median(sizes)) if len(errors) else math.nan,
        mean_error=float(sizes.mean()) if len(errors) else math.nan,
        max_error=float(sizes.max()) if len(errors) else math.nan,
        bias=float(errors.mean()) if len(errors) else math.nan,
        top_overlap=top_overlap(true, ranked, maximize=maximize),
        regret=regret(true, found, maximize=maximize),
        raw_regret=raw_regret(true, found, maximize=maximize),
    )


def summarise(agreements: Iterable[Agreement], min_spread: float = 0.02) -> list[Summary]:
    """Median and worst case of each metric, in the order in which the metrics appear.

    Args:
        agreements: of any metrics and cases.
        min_spread: a case counts if the reference varies by more than this.
    """
    of_metric: dict[str, list[Agreement]] = {}
    for one in agreements:
        of_metric.setdefault(one.metric, []).append(one)
    summaries = []
    for metric, cases in of_metric.items():
        varying = [case for case in cases if case.spread > min_spread]
        median, worst = dict.fromkeys(STATISTICS, math.nan), dict.fromkeys(STATISTICS, math.nan)
        for name, best in STATISTICS.items():
            values = [v for c in varying if not math.isnan(v := getattr(c, name))]
            if values:
                median[name], worst[name] = float(np.median(values)), _WORST[best](values)
        summaries.append(Summary(metric, len(varying), len(cases) - len(varying), median, worst))
    return summaries


def tie_groups(values: NDArray[np.float64], tolerance: float = TIE) -> NDArray[np.int64]:
    """Numbers the values in rising order so that ties have the same number, shape (n,).

    From the smallest value on, those up to ``tolerance`` above it are one group, then those up
    to ``tolerance`` above the next one, and so on.
    """
    order = np.argsort(values, kind="stable")
    rising = values[order]
    groups = np.empty(len(values), np.int64)
    start = number = 0
    while start < len(rising):
        reach = rising[start] + tolerance * abs(rising[start])
        stop = int(np.searchsorted(rising, reach, "right"))
        groups[order[start:stop]] = number
        start, number = stop, number + 1
    return groups


def average_ranks(groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rank from 1 of each value, the mean rank of its group for ties, shape (n,)."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(groups))


def spearman(reference: NDArray[np.float64], ours: NDArray[np.float64]) -> float:
    """Rank correlation, ties averaged; NaN if the reference ties throughout, 0 if only ours does.

    >>> round(spearman(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])), 6)
    0.8
    """
    a, b = tie_groups(reference), tie_groups(ours)
    if not a.any():
        return math.nan
    if not b.any():
        return 0.0
    x, y = average_ranks(a), average_ranks(b)
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip((x @ y) / math.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def kendall(reference: NDArray[np.float64], ours: NDArray[np.float64]) -> float:
    """Kendall's tau-b; NaN if the reference ties throughout, 0 if only ours does.

    >>> round(kendall(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])), 6)
    0.666667
    """
    from scipy.stats import kendalltau

    a, b = tie_groups(reference), tie_groups(ours)
    if not a.any():
        return math.nan
    return float(kendalltau(a, b).statistic) if b.any() else 0.0


def top_overlap(
    reference: NDArray[np.float64], ours: NDArray[np.float64], *, maximize: bool = False
) -> float:
    """How far the best twentieth of the designs by ours is the true one; NaN without designs.

    Each set holds the best 5 % of the designs (at least one) and what ties with the last of
    them; the overlap is the size of their intersection by that of the larger set.
    """
    if not len(reference):
        return math.nan
    count = math.ceil(TOP_SHARE * len(reference))
    true, found = (
        groups <= np.sort(groups)[count - 1]
        for groups in (_best_first(reference, maximize), _best_first(ours, maximize))
    )
    return int((true & found).sum()) / int(max(true.sum(), found.sum()))


def regret(
    reference: NDArray[np.float64], ours: NDArray[np.float64], *, maximize: bool = False
) -> float:
    """What a search on ours loses: true value of our best design by the true optimum, less 1.

    With ``maximize`` it is 1 less that ratio, so that 0 is the best either way. Of designs that
    tie for our best the truly best one counts. NaN without designs or with an optimum of 0.
    """
    if not len(reference):
        return math.nan
    candidates = reference[_best_first(ours, maximize) == 0]
    return _loss(reference, (np.max if maximize else np.min)(candidates), maximize)


def raw_regret(
    reference: NDArray[np.float64], ours: NDArray[np.float64], *, maximize: bool = False
) -> float:
    """The regret of taking the very best design by ours, however little it leads by.

    Where several designs have exactly our best value, it is that of their mean true value: what
    taking any of them loses on average. NaN without designs or with an optimum of 0.

    >>> true, ours = np.array([10.0, 11.0]), np.array([5.001, 5.0])
    >>> regret(true, ours), round(raw_regret(true, ours), 6)
    (0.0, 0.1)
    """
    if not len(reference):
        return math.nan
    candidates = reference[ours == (np.max if maximize else np.min)(ours)]
    return _loss(reference, candidates.mean(), maximize)


def _loss(reference: NDArray[np.float64], chosen: float, maximize: bool) -> float:
    optimum = (np.max if maximize else np.min)(reference)
    if optimum == 0:
        return 0.0 if chosen == 0 else math.nan
    return float(abs(chosen - optimum) / abs(optimum))


def _best_first(values: NDArray[np.float64], maximize: bool) -> NDArray[np.int64]:
    groups = tie_groups(values)
    return groups.max() - groups if maximize else groups


def _spread(values: NDArray[np.float64]) -> float:
    if not len(values) or values.max() == values.min():
        return 0.0
    least = np.abs(values).min()
    return float((values.max() - values.min()) / least) if least else math.inf
