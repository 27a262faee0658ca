"""How good predictions are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from archgym.proxy.models.base import Array


@dataclass(frozen=True)
class Scores:
    """Agreement of predictions with the truth, for one metric.

    Attributes:
        n: designs.
        rmse: root mean squared error, in the unit of the metric.
        relative_rmse: RMSE by the mean of the true values: the figure that is compared with the
            0.61 % of ArchGym (ISCA 2023), whose abstract does not define its own.
        rms_relative_error: root mean square of each error by its true value; NaN if one is 0.
        mape: mean of the absolute errors, each by its true value; NaN if one is 0.
        r2: share of the variance that is explained; NaN for a constant.
        spearman: rank correlation; NaN for a constant.
        top1_regret, top10_regret: by which share the truly best of the 1 (or 10) designs that
            are predicted to be best is worse than the best of all.
        coverage: share of true values within the 90 % interval; NaN without intervals.
        width: mean width of that interval by the mean of the true values.
    """

    n: int
    rmse: float
    relative_rmse: float
    rms_relative_error: float
    mape: float
    r2: float
    spearman: float
    top1_regret: float
    top10_regret: float
    coverage: float = float("nan")
    width: float = float("nan")

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def score(
    truth: Array,
    predicted: Array,
    *,
    maximize: bool = False,
    low: Array | None = None,
    high: Array | None = None,
) -> Scores:
    """Compares predictions with the truth.

    >>> score(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.3])).relative_rmse.__round__(4)
    0.0866

    Args:
        truth: values of one metric, shape (n,).
        predicted: shape (n,).
        maximize: whether larger is better, for the regret.
        low: lower ends of the intervals, shape (n,).
        high: upper ends.
    """
    from scipy.stats import spearmanr

    error = predicted - truth
    rmse = float(np.sqrt(np.mean(error**2)))
    mean = abs(float(truth.mean()))
    nowhere_zero = bool((truth != 0).all())
    relative = error / truth if nowhere_zero else np.full(1, np.nan)
    variance = float(np.mean((truth - truth.mean()) ** 2))
    inside, width = float("nan"), float("nan")
    if low is not None and high is not None:
        inside = float(np.mean((low <= truth) & (truth <= high)))
        width = float(np.mean(high - low)) / mean if mean else float("nan")
    varied = (truth != truth[0]).any() and (predicted != predicted[0]).any()
    return Scores(
        n=len(truth),
        rmse=rmse,
        relative_rmse=rmse / mean if mean else float("nan"),
        rms_relative_error=float(np.sqrt(np.mean(relative**2))),
        mape=float(np.mean(np.abs(relative))),
        r2=1.0 - rmse**2 / variance if variance > 0 else float("nan"),
        spearman=float(spearmanr(truth, predicted).statistic) if varied else float("nan"),
        top1_regret=_regret(truth, predicted, 1, maximize),
        top10_regret=_regret(truth, predicted, 10, maximize),
        coverage=inside,
        width=width,
    )


def _regret(truth: Array, predicted: Array, k: int, maximize: bool) -> float:
    sign = -1.0 if maximize else 1.0
    chosen = np.argsort(sign * predicted, kind="stable")[:k]
    best, found = float((sign * truth).min()), float((sign * truth)[chosen].min())
    return (found - best) / abs(best) if best else (0.0 if found == best else float("inf"))
