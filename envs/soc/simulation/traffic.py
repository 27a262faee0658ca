"""Which way data take, and how fast tasks that share buses and memories can run."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.soc.simulation.compiled import inlined
from archgym.envs.soc.simulation.layout import READ, WRITE

__all__ = ["join_traffic", "leave_traffic", "load_traffic", "set_speeds"]


@inlined
def load_traffic(graphs: Any, systems: Any, n: Any, work: Any) -> Any:
    """Works out what each task moves through each bus and memory of a system."""
    _find_routes(systems.bus_parent[n], work.hop)
    work.bus_b[:] = 0.0
    work.memory_b[:] = 0.0
    work.total_burst[:] = 0.0
    work.feeding[:] = 0
    work.fed_by[:] = 0
    memories = systems.memory_rate.shape[1]
    for task in range(len(graphs.operations)):
        work.legs[task] = 0
        work.connections[task] = 0
        work.place[:] = -1
        memory = systems.memory[n, task]
        work.memory_b[task, WRITE, memory] = graphs.written_b[task]
        _add_route(systems, n, work, task, WRITE, memory, graphs.written_burst_b[task])
        work.read_burst[:] = 0.0
        for place in range(graphs.first_read[task], graphs.first_read[task + 1]):
            e = graphs.read[place]
            producer = graphs.producer[e]
            if producer >= 0:
                memory = systems.memory[n, producer]
            else:
                memory = systems.input_memory[n, -1 - producer]
            work.memory_b[task, READ, memory] += graphs.data_b[e]
            work.read_burst[memory] += graphs.read_burst_b[e]
        for memory in range(memories):
            if work.read_burst[memory] > 0:
                _add_route(systems, n, work, task, READ, memory, work.read_burst[memory])
        _set_limits(graphs, systems, n, work, task)


@inlined
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


@inlined
def _add_route(
    systems: Any, n: Any, work: Any, task: Any, way: Any, memory: Any, burst: Any
) -> Any:
    """Adds what a task moves to or from a memory, on each leg of the way between them."""
    buses, memories = systems.bus_rate.shape[1], systems.memory_rate.shape[1]
    first = way * (buses * buses + memories)
    bus, last = systems.bus[n, task], systems.memory_bus[n, memory]
    size = work.memory_b[task, way, memory]
    before = -1
    while True:
        following = work.hop[bus, last]
        at_end = bus == last
        leg = first + (buses * buses + memory if at_end else bus * buses + following)
        place = work.place[leg]
        if place < 0:
            place = work.legs[task]
            work.place[leg] = place
            work.legs[task] = place + 1
            work.leg[task, place] = leg
            work.leg_bus[task, place] = bus
            work.leg_memory[task, place] = memory if at_end else -1
            work.leg_before[task, place] = before
            work.leg_burst[task, place] = 0.0
            work.connections[task] |= 1 << leg
        work.leg_burst[task, place] += burst
        work.bus_b[task, way, bus] += size
        if at_end:
            break
        before = place
        bus = following


@inlined
def _set_limits(graphs: Any, systems: Any, n: Any, work: Any, task: Any) -> Any:
    """How fast a task could run if it had a whole bus, or a whole memory."""
    buses, memories = systems.bus_rate.shape[1], systems.memory_rate.shape[1]
    operations = graphs.operations[task]
    for place in range(work.legs[task]):
        way = READ if work.leg[task, place] < buses * buses + memories else WRITE
        bus, memory = work.leg_bus[task, place], work.leg_memory[task, place]
        work.memory_limit[task, place] = np.inf
        if memory >= 0:
            moved = work.memory_b[task, way, memory]
            work.memory_limit[task, place] = systems.memory_rate[n, memory] * operations / moved
        through = work.bus_b[task, way, bus]
        work.leg_limit[task, place] = systems.bus_rate[n, bus] * operations / through


@inlined
def join_traffic(work: Any, task: Any) -> Any:
    """A task starts to run."""
    for place in range(work.legs[task]):
        leg, before = work.leg[task, place], work.leg_before[task, place]
        work.total_burst[leg] += work.leg_burst[task, place]
        if before < 0:
            work.feeding[leg] += 1
            continue
        bus = work.leg_bus[task, before]
        work.fed_by[leg, bus] += 1
        if work.fed_by[leg, bus] == 1:
            work.feeding[leg] += 1


@inlined
def leave_traffic(work: Any, task: Any) -> Any:
    """A running task has ended. Bursts are whole bytes, so that sums of them are exact."""
    for place in range(work.legs[task]):
        leg, before = work.leg[task, place], work.leg_before[task, place]
        work.total_burst[leg] -= work.leg_burst[task, place]
        if before < 0:
            work.feeding[leg] -= 1
            continue
        bus = work.leg_bus[task, before]
        work.fed_by[leg, bus] -= 1
        if work.fed_by[leg, bus] == 0:
            work.feeding[leg] -= 1


@inlined
def set_speeds(systems: Any, n: Any, work: Any, running: Any, changed: Any) -> Any:
    """Sets how fast each running task runs: as the slowest of its blocks allows.

    A processor runs one task at a time. A memory, in each direction, is shared in proportion to the
    bursts of the running tasks. A connection that leaves a bus is shared equally by the connections
    that feed it, and each of these by its tasks in proportion to their bursts. Whatever share a
    task has of a bus, all of its bytes through that bus in that direction take it.

    Args:
        systems: the systems.
        n: which of them.
        work: scratch.
        running: how many tasks run.
        changed: connections, a bit each, of tasks that have started or ended; tasks that use none
            of them run as fast as before.
    """
    for number in range(running):
        task = work.running[number]
        if work.connections[task] & changed == 0:
            continue
        speed = systems.rate[n, task]
        for place in range(work.legs[task]):
            leg, before = work.leg[task, place], work.leg_before[task, place]
            limit = work.leg_limit[task, place] / work.feeding[leg]
            if before >= 0:
                limit *= work.leg_share[before]
            speed = min(speed, limit)
            share = work.leg_burst[task, place] / work.total_burst[leg]
            work.leg_share[place] = share
            speed = min(speed, work.memory_limit[task, place] * share)
        work.speed[task] = speed
