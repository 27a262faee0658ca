"""When the simulations of a trial ran: how many at a time, and the wall time of every step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["NEVER_US", "WithoutBreaks", "busy_at", "most_at_a_time", "run_times"]

NEVER_US = -1
"""In place of the time at which a simulation began, where no executor recorded one."""
_INTERRUPTED_S = 60.0
"""A longer time in which nothing is simulated and nothing recorded is an interruption."""


def run_times(
    started_us: NDArray[np.int64], ended_us: NDArray[np.int64], busy_s: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """When each evaluation of a trial began and ended, since the trial began and without breaks.

    >>> begin, end = run_times(np.array([0, 0]), np.array([10, 20]) * 10**6, np.array([10.0, 20]))
    >>> begin.tolist(), end.tolist()
    ([0.0, 0.0], [10.0, 20.0])

    Args:
        started_us: when its simulation began, microseconds, shape (n,); :data:`NEVER_US` where
            that was not recorded.
        ended_us: when it was recorded, microseconds, shape (n,).
        busy_s: seconds in simulator and agent, shape (n,).

    Returns:
        Seconds since the trial began, two arrays of shape (n,). Evaluations whose begin was not
        recorded begin when they end.
    """
    if not len(ended_us):
        return np.empty(0), np.empty(0)
    known = started_us != NEVER_US
    # One design after the other: each took what simulator and agent did.
    low = np.where(known, started_us, ended_us - np.round(busy_s * 1e6).astype(np.int64))
    first = int(min(low.min(), ended_us.min()))
    seconds = np.stack([low, np.where(known, started_us, ended_us), ended_us]).astype(np.float64)
    low_s, begin_s, end_s = (seconds - first) * 1e-6
    cut = WithoutBreaks(low_s, end_s)
    return cut(begin_s), cut(end_s)


class WithoutBreaks:
    """Takes times in which a run was interrupted out of a clock.

    >>> cut = WithoutBreaks(np.array([0.0, 1000.0]), np.array([10.0, 1010.0]))
    >>> cut(np.array([10.0, 1000.0, 1010.0])).tolist()
    [10.0, 10.0, 20.0]

    Args:
        begin: when evaluations began, s, shape (n,).
        end: when they ended, s, shape (n,).
    """

    def __init__(self, begin: NDArray[np.float64], end: NDArray[np.float64]) -> None:
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], np.maximum.accumulate(end[order])
        gaps = begin[1:] - end[:-1]
        broken = np.flatnonzero(gaps > _INTERRUPTED_S)
        self._after, self._lost = begin[broken + 1], np.cumsum(gaps[broken])

    def __call__(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """The times without the interruptions before them, s."""
        before = np.searchsorted(self._after, times, side="right")
        return np.asarray(times - np.concatenate([[0.0], self._lost])[before])


def busy_at(
    begin: NDArray[np.float64], end: NDArray[np.float64], grid: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mean number of simulations that ran at a time, between the points of a grid.

    >>> busy_at(np.array([0.0, 0.0]), np.array([1.0, 2.0]), np.array([0.0, 1.0, 2.0])).tolist()
    [2.0, 1.0]

    Args:
        begin: when each began, s, shape (n,).
        end: when each ended, s, shape (n,).
        grid: ascending, s, shape (m + 1,).

    Returns:
        Shape (m,).
    """
    spent = _integral(begin, grid) - _integral(end, grid)
    return np.asarray(np.diff(spent) / np.maximum(np.diff(grid), 1e-12))


def most_at_a_time(begin: NDArray[np.float64], end: NDArray[np.float64]) -> int:
    """How many simulations ran at the same time at most."""
    if not len(begin):
        return 0
    times = np.concatenate([end, begin])  # at equal times, what ends comes first
    steps = np.concatenate([np.full(len(end), -1), np.full(len(begin), 1)])
    return int(np.cumsum(steps[np.argsort(times, kind="stable")]).max())


def _integral(events: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over events before each point of the time since them."""
    ordered = np.sort(events)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    count = np.searchsorted(ordered, grid, side="right")
    return np.asarray(count * grid - sums[count])
