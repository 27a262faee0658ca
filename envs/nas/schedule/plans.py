"""Writes assignments and times into plans; compiled."""

from __future__ import annotations

import numpy as np

from archgym.envs.nas.schedule.arrays import Ints, Layers, Plan, Progress
from archgym.envs.nas.schedule.compiled import compiled, inlined

__all__ = ["empty_plan", "finish_of", "keep", "no_progress", "times_for"]


@compiled
def empty_plan(count: int) -> Plan:
    """An empty plan for a number of layers."""
    return times_for(np.empty(count, np.int64))


@inlined
def times_for(assignment: Ints) -> Plan:
    """A plan of an assignment, shared, whose times are yet to be written."""
    return Plan(assignment, np.empty(len(assignment)), np.empty(len(assignment)))


@inlined
def keep(plan: Plan, found: Plan) -> None:
    """Writes what was found into a plan; they may share the assignment."""
    for i in range(len(plan.assignment)):
        plan.assignment[i] = found.assignment[i]
        plan.start[i] = found.start[i]
        plan.finish[i] = found.finish[i]


@inlined
def finish_of(layers: Layers, plan: Plan) -> None:
    """Writes when each layer finishes from where it runs and when it starts."""
    for i in range(len(plan.assignment)):
        plan.finish[i] = plan.start[i] + layers.latency[i, plan.assignment[i]]


@inlined
def no_progress(layers: Layers) -> Progress:
    """Of a schedule that nothing has been put in yet."""
    chains = len(layers.starts) - 1
    return Progress(layers.starts[:-1].copy(), np.zeros(chains), np.zeros(layers.latency.shape[1]))
