"""The pipeline as an event graph: who waits for whom, by the order of each schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.llm.cost.compiled import compiled

__all__ = ["GPIPE", "INTERLEAVED", "ONE_F_ONE_B", "ZERO_BUBBLE", "in_flight", "run_pipeline"]

GPIPE, ONE_F_ONE_B, INTERLEAVED, ZERO_BUBBLE = 0, 1, 2, 3


@compiled
def _warm_up(schedule: int, stages: int, virtual: int, batches: int, stage: int) -> int:
    """Forward passes that a stage runs before its first backward pass but one."""
    units = batches * virtual
    if schedule == GPIPE:
        return units
    if virtual == 1:
        return min(units, stages - stage - 1)
    if batches <= stages:
        return units
    return min(units, (stages - stage - 1) * 2 + (virtual - 1) * stages)


@compiled
def in_flight(schedule: int, stages: int, virtual: int, batches: int, stage: int) -> float:
    """Micro-batches whose activations a stage keeps at most, in parts of its layers."""
    if schedule == ZERO_BUBBLE:
        return float(min(batches, stages))
    units = batches * virtual
    return min(units, _warm_up(schedule, stages, virtual, batches, stage) + 1) / virtual


@compiled
def _unit(k: int, stages: int, virtual: int, batches: int) -> tuple[int, int]:
    """Chunk and micro-batch of the k-th forward pass: groups of ``stages`` through all chunks."""
    if virtual == 1:
        return 0, k
    group = k // (stages * virtual)
    size = min(stages, batches - group * stages)
    rest = k - group * stages * virtual
    return rest // size, group * stages + rest % size


@compiled
def _pass(k: int, warm: int, units: int) -> tuple[bool, int]:
    """Whether the k-th pass of a stage is a forward one, and its number among its kind."""
    if k < warm:
        return True, k
    if k < 2 * units - warm:
        half = (k - warm) // 2
        return (True, warm + half) if (k - warm) % 2 == 0 else (False, half)
    return False, k - units


@compiled
def run_pipeline(
    schedule: int, batches: int, virtual: int, forward: Any, backward: Any, weights: Any,
    send: Any, ends: Any,
) -> bool:  # fmt: skip
    """Runs all passes of an iteration, each as soon as its stage is free and its input is there.

    With ``ZERO_BUBBLE`` each stage puts off the gradients of the weights by as many micro-batches
    as its number, so that the last ones fill the end of the pipeline (ZB-H1 of Qi et al., 2023).

    Args:
        schedule: one of the constants of this module.
        batches: micro-batches.
        virtual: chunks a stage; more than 1 only with ``INTERLEAVED``.
        forward: seconds, shape (stages, virtual).
        backward: of the gradients of the inputs, and with all schedules but ``ZERO_BUBBLE`` also
            of the weights; same shape.
        weights: of the gradients of the weights, with ``ZERO_BUBBLE``; same shape.
        send: of a message from each stage to the next one, shape (stages,); the last one's goes
            to the first stage (next chunk).
        ends: takes the time at which each stage is done, shape (stages,).

    Returns:
        Whether every pass ran: an order in which stages wait for each other does not.
    """
    stages = len(send)
    units = batches * virtual
    ahead = np.full((stages * virtual, batches), -1.0)
    back = np.full((stages * virtual, batches), -1.0)
    position = np.zeros(stages, np.int64)
    pending = np.zeros(stages, np.int64)
    ends[:] = 0.0
    left = stages
    moved = True
    while left and moved:
        moved = False
        for stage in range(stages):
            warm = _warm_up(schedule, stages, virtual, batches, stage)
            while position[stage] < 2 * units:
                is_forward, index = _pass(position[stage], warm, units)
                chunk, batch = _unit(index, stages, virtual, batches)
                if is_forward:
                    ready = _forward_ready(ahead, chunk, stage, batch, stages, send)
                else:
                    chunk = virtual - 1 - chunk
                    ready = _backward_ready(ahead, back, chunk, stage, batch, stages, send)
                if ready < 0.0:
                    break
                start = max(ready, ends[stage])
                # A stage that sends is busy until its message has left.
                row = chunk * stages + stage
                if is_forward:
                    out = send[stage] if row < stages * virtual - 1 else 0.0
                    ahead[row, batch] = start + forward[stage, chunk]
                    ends[stage] = ahead[row, batch] + out
                else:
                    out = send[(stage - 1) % stages] if row > 0 else 0.0
                    back[row, batch] = start + backward[stage, chunk]
                    ends[stage] = back[row, batch] + out
                    if schedule == ZERO_BUBBLE:
                        pending[stage] += 1
                        if pending[stage] > stage:
                            ends[stage] += weights[stage, 0]
                            pending[stage] -= 1
                position[stage] += 1
                moved = True
                if position[stage] == 2 * units:
                    left -= 1
                    if schedule == ZERO_BUBBLE:
                        ends[stage] += pending[stage] * weights[stage, 0]
    return left == 0


@compiled
def _forward_ready(ahead: Any, chunk: int, stage: int, batch: int, stages: int, send: Any) -> float:
    row = chunk * stages + stage
    if row == 0:
        return 0.0
    done = ahead[row - 1, batch]
    return -1.0 if done < 0 else done + send[(stage - 1) % stages]


@compiled
def _backward_ready(
    ahead: Any, back: Any, chunk: int, stage: int, batch: int, stages: int, send: Any
) -> float:
    row = chunk * stages + stage
    if ahead[row, batch] < 0:
        return -1.0
    if row == len(ahead) - 1:
        return float(ahead[row, batch])
    done = back[row + 1, batch]
    return -1.0 if done < 0 else done + send[stage]
