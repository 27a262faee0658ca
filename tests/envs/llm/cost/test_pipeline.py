"""The pipeline against known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from archgym.envs.llm.cost.pipeline import (
    GPIPE,
    INTERLEAVED,
    ONE_F_ONE_B,
    ZERO_BUBBLE,
    in_flight,
    run_pipeline,
)


@njit  # type: ignore[untyped-decorator]
def _run(
    schedule: int, batches: int, virtual: int, forward: Any, backward: Any, weights: Any,
    send: Any, ends: Any,
) -> bool:  # fmt: skip
    return run_pipeline(schedule, batches, virtual, forward, backward, weights, send, ends)


@njit  # type: ignore[untyped-decorator]
def _flight(schedule: int, stages: int, virtual: int, batches: int, stage: int) -> float:
    return in_flight(schedule, stages, virtual, batches, stage)


def run(
    schedule: int, stages: int, batches: int, virtual: int = 1, *, send: float = 0.0,
    forward: float = 1.0, backward: float = 2.0, late: float = 0.0,
) -> NDArray[np.float64]:  # fmt: skip
    ends = np.zeros(stages)
    shape = (stages, virtual)
    done = _run(
        schedule,
        batches,
        virtual,
        np.full(shape, forward / virtual),
        np.full(shape, backward / virtual),
        np.full(shape, late / virtual),
        np.full(stages, send),
        ends,
    )
    assert done
    return ends


@pytest.mark.parametrize("schedule", [GPIPE, ONE_F_ONE_B])
@pytest.mark.parametrize(("stages", "batches"), [(1, 4), (2, 2), (4, 4), (4, 16), (8, 3)])
def test_equal_stages_wait_as_the_formula_says(schedule: int, stages: int, batches: int) -> None:
    assert run(schedule, stages, batches).max() == pytest.approx(3.0 * (batches + stages - 1))


@pytest.mark.parametrize("virtual", [2, 3, 4])
def test_interleaving_divides_the_bubble(virtual: int) -> None:
    stages, batches = 4, 16
    expected = 3.0 * (batches + (stages - 1) / virtual)
    assert run(INTERLEAVED, stages, batches, virtual).max() == pytest.approx(expected)


def test_zero_bubble_fills_with_gradients_of_weights() -> None:
    stages, batches = 4, 16
    plain = run(ONE_F_ONE_B, stages, batches, backward=2.0).max()
    split = run(ZERO_BUBBLE, stages, batches, backward=1.0, late=1.0).max()
    work = 3.0 * batches
    assert split - work == pytest.approx((stages - 1) * (1 + 1 - 1))
    assert plain - work == pytest.approx((stages - 1) * 3)


def test_the_slowest_stage_sets_the_pace() -> None:
    forward, backward = np.ones((4, 1)), 2 * np.ones((4, 1))
    forward[3], backward[3] = 2, 4
    ends = np.zeros(4)
    _run(ONE_F_ONE_B, 20, 1, forward, backward, np.zeros((4, 1)), np.zeros(4), ends)
    assert ends[0] == pytest.approx(20 * 6 + 3 * 3)


def test_messages_take_time() -> None:
    assert run(ONE_F_ONE_B, 4, 8, send=0.1).max() > run(ONE_F_ONE_B, 4, 8).max()


def test_micro_batches_in_flight() -> None:
    flight = _flight
    assert [flight(ONE_F_ONE_B, 4, 1, 16, stage) for stage in range(4)] == [4, 3, 2, 1]
    assert flight(GPIPE, 4, 1, 16, 0) == 16
    assert flight(ONE_F_ONE_B, 8, 1, 3, 0) == 3
    assert flight(INTERLEAVED, 4, 2, 16, 0) == pytest.approx(4 * (1 + 3 / 8))
