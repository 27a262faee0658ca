"""The statistics of runs: regrets, intervals, expected evaluations, ranks, tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "bootstrap_interval",
    "expected_evaluations",
    "first_within",
    "holm",
    "rank_sum",
    "regret_at",
    "scaled_ranks",
    "signed_rank",
]

Steps = Sequence[tuple[int, float]]
EXACT = 1e-9
"""Normalised regret up to which a design is the optimum."""


def regret_at(steps: Steps, n: int, optimum: float, median: float) -> float:
    """Normalised regret after n proposals: 0 is the optimum, 1 a median random design.

    Args:
        steps: number of the proposal and the new best value, whenever there was one.
        n: proposals.
        optimum: the least value.
        median: of random designs.

    Returns:
        ``inf`` if nothing feasible was found.
    """
    best = math.inf
    for at, value in steps:
        if at > n:
            break
        best = value
    return max(0.0, (best - optimum) / (median - optimum))


def first_within(steps: Steps, share: float, optimum: float, median: float) -> int | None:
    """The number of the proposal whose normalised regret was at most ``share`` first."""
    bar = optimum + share * (median - optimum)
    return next((at for at, value in steps if value <= bar), None)


def expected_evaluations(hits: Sequence[int | None], spent: int) -> float:
    """Evaluations that restarting until success takes: all that were spent by all successes.

    Args:
        hits: of each run, the evaluation that succeeded; ``None`` if none did.
        spent: evaluations of a run without success; a later success is none.
    """
    inside = [hit for hit in hits if hit is not None and hit <= spent]
    failed = len(hits) - len(inside)
    return (sum(inside) + failed * spent) / len(inside) if inside else math.inf


def bootstrap_interval(
    sample: Sequence[float], *, level: float = 0.95, repeats: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of the median, by resampling with a seed of its own."""
    values = np.sort(np.asarray(sample, dtype=float))
    drawn = np.random.default_rng(seed).integers(len(values), size=(repeats, len(values)))
    # The middle one or two are picked by place, since numpy's median of inf and inf is not one.
    places = np.sort(drawn, axis=1)
    low, high = values[places[:, (len(values) - 1) // 2]], values[places[:, len(values) // 2]]
    with np.errstate(invalid="ignore"):
        medians = np.sort(np.where(low == high, low, low + (high - low) / 2))
    tail = (1 - level) / 2
    return (
        float(medians[int(tail * (repeats - 1))]),
        float(medians[math.ceil((1 - tail) * (repeats - 1))]),
    )


def scaled_ranks(samples: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Mean rank of each contestant's runs among everybody's, on a scale of 1 to their number.

    Ties share their ranks. With one run each these are the ordinary ranks.
    """
    values = np.concatenate([np.asarray(sample, dtype=float) for sample in samples.values()])
    ranks = _ranks(values)
    found, start = {}, 0
    for name, sample in samples.items():
        mean = float(ranks[start : start + len(sample)].mean())
        found[name] = (mean - 0.5) / len(values) * len(samples) + 0.5
        start += len(sample)
    return found


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1, ties averaged."""
    _, same, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: NDArray[np.float64] = ((2 * ends - counts + 1) / 2)[same.ravel()]
    return ranks


def rank_sum(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Two-sided p of Wilcoxon's rank-sum test: independent runs on one problem."""
    from scipy.stats import mannwhitneyu

    ranks = _ranks(np.concatenate([np.asarray(ours, float), np.asarray(theirs, float)]))
    if len(set(ranks.tolist())) == 1:
        return 1.0
    return float(mannwhitneyu(ranks[: len(ours)], ranks[len(ours) :]).pvalue)


def signed_rank(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Two-sided p of Wilcoxon's signed-rank test: one pair a problem."""
    from scipy.stats import wilcoxon

    if all(a == b for a, b in zip(ours, theirs, strict=True)):
        return 1.0
    return float(wilcoxon(ours, theirs).pvalue)


def holm(pvalues: Mapping[str, float]) -> dict[str, float]:
    """P-values adjusted for their number by Holm's step-down procedure."""
    adjusted, least = {}, 0.0
    for i, name in enumerate(sorted(pvalues, key=lambda name: pvalues[name])):
        least = max(least, min(1.0, (len(pvalues) - i) * pvalues[name]))
        adjusted[name] = least
    return {name: adjusted[name] for name in pvalues}
