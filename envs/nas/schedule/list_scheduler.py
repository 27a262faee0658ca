"""The list scheduler: every layer where it finishes first; it looks at time alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from archgym.envs.nas.schedule.compiled import Floats, Ints, entry
from archgym.envs.nas.schedule.problem import Schedule, SchedulingProblem
from archgym.envs.nas.schedule.timing import earliest_finish

__all__ = ["solve"]


def _run(sources: int) -> Callable[..., None]:
    def run(latency: Floats, starts: Ints, assignment: Ints, start: Floats, finish: Floats) -> None:
        """The schedule of a problem into the last three, shape (layers,) each."""
        assert sources
        earliest_finish(latency, starts, assignment, start, finish)

    return run


_compiled = entry(_run)


def solve(problem: SchedulingProblem, latency_limit: float = math.inf) -> Schedule:
    """Return a fast schedule, HEFT's (Topcuoglu, Hariri and Wu, TPDS 2002).

    Args:
        problem: what to schedule.
        latency_limit: cycles; only to say whether it is met.
    """
    layers = len(problem.latency)
    assignment = np.empty(layers, np.int64)
    start, finish = np.empty(layers), np.empty(layers)
    _compiled(problem.latency, problem.starts, assignment, start, finish)
    return problem.scheduled(assignment, start, finish, latency_limit)
