"""Simulations in time: by hand, and against counting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archgym.analysis.timeline import NEVER_US, busy_at, most_at_a_time, run_times

SPANS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted), min_size=1, max_size=20
)


@given(SPANS)
def test_busy_workers_are_counted(spans: list[list[int]]) -> None:
    begin, end = np.array(spans, dtype=np.float64).T
    grid = np.arange(0.0, 52.0, dtype=np.float64)
    counted = [sum(a <= second < b for a, b in spans) for second in range(51)]
    assert np.allclose(busy_at(begin, end, grid), counted)
    assert most_at_a_time(begin, end) == max(counted)
    assert np.isclose(
        busy_at(begin, end, np.array([0.0, 51.0], dtype=np.float64))[0] * 51, (end - begin).sum()
    )


def test_times_are_of_the_trial_without_interruptions() -> None:
    second = 10**6
    start = 1_700_000_000 * second
    started = start + np.array([0, 1, 5, 1005, 1006]) * second
    ended = start + np.array([4, 6, 9, 1010, 1008]) * second
    begin, end = run_times(started, ended, np.full(5, 3.0))
    assert begin.tolist() == [0, 1, 5, 9, 10]
    assert end.tolist() == [4, 6, 9, 14, 12]


def test_without_an_executor_simulations_follow_one_another() -> None:
    ended = np.array([2, 5, 105]) * 10**6
    begin, end = run_times(np.full(3, NEVER_US), ended, np.array([2.0, 3.0, 90.0]))
    assert end.tolist() == [2, 5, 105]
    assert begin.tolist() == end.tolist()
    assert [one.tolist() for one in run_times(*np.empty((3, 0)))] == [[], []]
