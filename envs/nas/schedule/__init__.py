"""Mapping and scheduling of networks onto the sub-accelerators of a chip.

>>> problem = SchedulingProblem([[2, 5], [3, 1], [4, 4]], [[1, 4], [2, 9], [3, 5]], [2, 1])
>>> schedule = solve(problem, "hap", latency_limit=5)
>>> schedule.assignment.tolist(), schedule.makespan, schedule.energy, schedule.meets_limit
([0, 0, 1], 5.0, 8.0, True)
"""

from __future__ import annotations

import math
from typing import Final

from archgym.envs.nas.schedule.problem import Schedule, SchedulingProblem
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["SCHEDULERS", "Schedule", "SchedulingProblem", "solve"]

SCHEDULERS: Final = ("hap", "list", "exact")
"""NASAIC's heuristic, the list scheduler that looks at time alone, and branch and bound."""


def solve(
    problem: SchedulingProblem, scheduler: str = "hap", latency_limit: float | None = None
) -> Schedule:
    """Return a schedule of a problem.

    Args:
        problem: what to schedule.
        scheduler: one of `SCHEDULERS`.
        latency_limit: cycles; None is no limit.

    Raises:
        UnknownNameError: for a scheduler that does not exist.
        InvalidValueError: for a limit that is not above 0.
        SpaceTooLargeError: for a problem that is too large for ``exact``.
    """
    if scheduler not in SCHEDULERS:
        raise UnknownNameError("scheduler", scheduler, SCHEDULERS)
    limit = math.inf if latency_limit is None else latency_limit
    if not limit > 0:
        raise InvalidValueError(f"latency_limit is {latency_limit!r}; cycles, above 0, or None")
    from archgym.envs.nas.schedule import (  # they compile
        exact_scheduler,
        hap_scheduler,
        list_scheduler,
    )

    solvers = {
        "hap": hap_scheduler.solve,
        "list": list_scheduler.solve,
        "exact": exact_scheduler.solve,
    }
    return solvers[scheduler](problem, limit)
