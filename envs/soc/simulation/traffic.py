"""Which way data take, and how fast tasks that share buses and memories can run."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.soc.simulation.compiled import compiled
from archgym.envs.soc.simulation.layout import READ, WRITE

__all__ = ["RUNNING", "load_traffic", "set_speeds"]

RUNNING = 2


@compiled
def load_traffic(graphs: Any, systems: Any, n: Any, work: Any) -> Any:
    """Works out what each task moves through each bus and memory of a system."""
    _find_routes(systems.bus_parent[n], work.hop)
    work.bus_b[:] = 0.0
    work.memory_b[:] = 0.0
    work.burst[:] = 0.0
    work.legs[:] = 0
    for e in range(len(graphs.producer)):
        producer, consumer, size = graphs.producer[e], graphs.consumer[e], graphs.data_b[e]
        if producer >= 0:
            memory = systems.memory[n, producer]
            _add_route(systems, n, work, producer, WRITE, memory, size, graphs.write_burst_b[e])
        else:
            memory = systems.input_memory[n, -1 - producer]
        if consumer >= 0:
            _add_route(systems, n, work, consumer, READ, memory, size, graphs.read_burst_b[e])
    _set_limits(graphs, systems, n, work)


@compiled
def _find_routes(parent: Any, hop: Any) -> Any:
    """Next bus on the way between any two: buses form a tree, so there is one way."""
    buses = len(parent)
    for start in range(buses):
        for end in range(buses):
            below = end
            while below > 0 and parent[below] != start:
                below = parent[below]
            # ``below`` is the child of ``start`` above ``end``, or 0 if there is none.
            hop[start, end] = below if below > 0 else parent[start]


@compiled
def _add_route(
    systems: Any, n: Any, work: Any, task: Any, way: Any, memory: Any, size: Any, burst: Any
) -> Any:
    """Adds data between a task's processor and a memory."""
    buses, memories = systems.bus_rate.shape[1], systems.memory_rate.shape[1]
    first = way * (buses * buses + memories)
    bus, last = systems.bus[n, task], systems.memory_bus[n, memory]
    before = -1
    while True:
        following = work.hop[bus, last]
        at_end = bus == last
        leg = first + (buses * buses + memory if at_end else bus * buses + following)
        if work.burst[task, leg] == 0.0:
            place = work.legs[task]
            work.leg[task, place] = leg
            work.leg_before[task, place] = before
            work.legs[task] = place + 1
        work.burst[task, leg] += burst
        work.bus_b[task, way, bus] += size
        if at_end:
            break
        before = leg
        bus = following
    work.memory_b[task, way, memory] += size


@compiled
def _set_limits(graphs: Any, systems: Any, n: Any, work: Any) -> Any:
    """How fast a task could run if it had a whole bus, or a whole memory."""
    buses, memories = systems.bus_rate.shape[1], systems.memory_rate.shape[1]
    for task in range(len(graphs.operations)):
        operations = graphs.operations[task]
        for place in range(work.legs[task]):
            way, leg = divmod(work.leg[task, place], buses * buses + memories)
            if leg < buses * buses:
                bus = leg // buses
                work.memory_limit[task, place] = np.inf
            else:
                memory = leg - buses * buses
                bus = systems.memory_bus[n, memory]
                moved = work.memory_b[task, way, memory]
                work.memory_limit[task, place] = systems.memory_rate[n, memory] * operations / moved
            through = work.bus_b[task, way, bus]
            work.leg_limit[task, place] = systems.bus_rate[n, bus] * operations / through


@compiled
def set_speeds(systems: Any, n: Any, work: Any) -> Any:
    """Sets how fast each running task runs: as the slowest of its blocks allows.

    A processor runs one task at a time. A memory, in each direction, is shared in proportion to the
    bursts of the running tasks. A connection that leaves a bus is shared equally by the connections
    that feed it, and each of these by its tasks in proportion to their bursts. Whatever share a
    task has of a bus, all of its bytes through that bus in that direction take it.
    """
    buses, memories = systems.bus_rate.shape[1], systems.memory_rate.shape[1]
    connections = buses * buses + memories
    work.total_burst[:] = 0.0
    work.feeding[:] = 0
    work.fed_by[:] = 0
    tasks = len(work.state)
    for task in range(tasks):
        if work.state[task] != RUNNING:
            continue
        for place in range(work.legs[task]):
            leg, before = work.leg[task, place], work.leg_before[task, place]
            work.total_burst[leg] += work.burst[task, leg]
            if before < 0:
                work.feeding[leg] += 1
            elif work.fed_by[leg, before % connections // buses] == 0:
                work.fed_by[leg, before % connections // buses] = 1
                work.feeding[leg] += 1
    for task in range(tasks):
        if work.state[task] != RUNNING:
            continue
        speed = systems.rate[n, task]
        for place in range(work.legs[task]):
            leg, before = work.leg[task, place], work.leg_before[task, place]
            limit = work.leg_limit[task, place] / work.feeding[leg]
            if before >= 0:
                limit *= work.burst[task, before] / work.total_burst[before]
            speed = min(speed, limit)
            share = work.burst[task, leg] / work.total_burst[leg]
            speed = min(speed, work.memory_limit[task, place] * share)
        work.speed[task] = speed
