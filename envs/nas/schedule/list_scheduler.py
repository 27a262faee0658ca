"""The list scheduler: every layer where it finishes first; it looks at time alone."""

from __future__ import annotations

import math
from collections.abc import Callable

from archgym.envs.nas.schedule.arrays import Floats, Ints, Layers, Plan
from archgym.envs.nas.schedule.compiled import entry
from archgym.envs.nas.schedule.problem import Schedule, SchedulingProblem
from archgym.envs.nas.schedule.timing import earliest_finish

__all__ = ["solve"]


def _run(sources: int) -> Callable[..., None]:
    def run(latency: Floats, starts: Ints, assignment: Ints, start: Floats, finish: Floats) -> None:
        """The schedule of a problem; arrays one by one, as a call with named tuples is slower."""
        assert sources
        # Neither the energy nor the networks of layers matter here.
        layers = Layers(latency, latency, starts, starts)
        earliest_finish(layers, Plan(assignment, start, finish))

    return run


_compiled = entry(_run)


def solve(problem: SchedulingProblem, latency_limit: float = math.inf) -> Schedule:
    """Return a fast schedule, HEFT's (Topcuoglu, Hariri and Wu, TPDS 2002).

    Args:
        problem: what to schedule.
        latency_limit: cycles; only to say whether it is met.
    """
    plan = problem.empty_plan()
    _compiled(problem.latency, problem.starts, *plan)
    return problem.scheduled(*plan, latency_limit)
