"""How good a proxy is where it matters: within groups of designs, and near the best.

Over a whole design space a model looks good that knows one parameter, if this parameter alone
decides most of a metric. Within designs that share its value, and among the best, is where a
search has to tell designs apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.proxy.scores import score
from archgym.space import DesignSpace

BEST_SHARE = 0.1
"""Share of the designs that counts as near the best."""
_MIN_SIZE = 10
"""Fewest designs of which a rank correlation says anything."""
_MAX_GROUPS = 12

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """Agreement of predictions and truth among some of the designs.

    Attributes:
        name: which designs, such as ``policy=lru``.
        n: designs.
        spearman: rank correlation; NaN for a constant.
        relative_rmse: root mean squared error by the mean of the true values.
        coverage: share of true values within the intervals; NaN without intervals.
    """

    name: str
    n: int
    spearman: float
    relative_rmse: float
    coverage: float


@dataclass(frozen=True)
class Within:
    """Agreement where it matters.

    Attributes:
        parameter: the one whose values explain most of the metric; empty if there is none that
            splits the designs into groups.
        explained: share of the variance between its groups.
        groups: those of them that are large enough, in the order of its values.
        best: the best tenth of the designs by their true values; ``None`` if these are too few.
    """

    parameter: str
    explained: float
    groups: tuple[Part, ...]
    best: Part | None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def within(
    space: DesignSpace,
    codes: NDArray[np.int64],
    truth: Array,
    predicted: Array,
    low: Array,
    high: Array,
    *,
    maximize: bool = False,
) -> Within:
    """Splits designs by the parameter that explains most, and takes the best of them.

    Args:
        space: of the designs.
        codes: of the designs, shape (n, n_parameters).
        truth: values of a metric, shape (n,).
        predicted: shape (n,).
        low: lower ends of the intervals, shape (n,).
        high: upper ends.
        maximize: whether larger is better.
    """

    def part(name: str, rows: NDArray[Any]) -> Part:
        found = score(truth[rows], predicted[rows], low=low[rows], high=high[rows])
        return Part(name, found.n, found.spearman, found.relative_rmse, found.coverage)

    explained, position = _most_telling(space, codes, truth)
    groups = []
    if position >= 0:
        parameter = space.parameters[position]
        for code in np.unique(codes[:, position]).tolist():
            rows = np.flatnonzero(codes[:, position] == code)
            value = "inactive" if code < 0 else parameter.value(code)
            if len(rows) >= _MIN_SIZE:
                groups.append(part(f"{parameter.name}={value}", rows))
    count = math.ceil(BEST_SHARE * len(truth))
    best = None
    if count >= _MIN_SIZE:
        order = np.argsort(-truth if maximize else truth, kind="stable")
        best = part(f"best {BEST_SHARE:.0%}", order[:count])
    name = space.parameters[position].name if position >= 0 else ""
    return Within(name, explained, tuple(groups), best)


def _most_telling(space: DesignSpace, codes: NDArray[np.int64], truth: Array) -> tuple[float, int]:
    """The share that a parameter's values explain of the variance, and its position.

    Each group costs a degree of freedom, so that many small groups do not look telling. The
    position is -1 if no parameter has between two and twelve values here.
    """
    total = float(np.var(truth))
    best = (0.0, -1)
    for position in range(len(space.parameters)):
        _, group, counts = np.unique(codes[:, position], return_inverse=True, return_counts=True)
        freedom = len(truth) - len(counts)
        if not 2 <= len(counts) <= _MAX_GROUPS or freedom < 1 or total == 0:
            continue
        means = np.bincount(group, truth) / counts
        left = float(np.sum((truth - means[group]) ** 2)) / freedom
        explained = 1.0 - left / (total * len(truth) / (len(truth) - 1))
        best = max(best, (explained, position))
    return best


def mean_of(parts: Sequence[Part], name: str) -> float:
    """The mean of one of the scores over groups, by their sizes; NaN if none has it."""
    values = np.array([getattr(one, name) for one in parts], dtype=np.float64)
    sizes = np.array([one.n for one in parts], dtype=np.float64)
    there = np.isfinite(values)
    return float(np.average(values[there], weights=sizes[there])) if there.any() else math.nan
