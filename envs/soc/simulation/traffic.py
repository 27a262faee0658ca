"""Which way data take, and how fast tasks that share buses and memories can run."""

from __future__ import annotations

from typing import Any

from archgym.envs.soc.simulation.compiled import compiled
from archgym.envs.soc.simulation.layout import READ, WRITE

__all__ = ["RUNNING", "load_traffic", "set_speeds"]

RUNNING = 2


@compiled
def load_traffic(graphs: Any, systems: Any, n: Any, work: Any) -> Any:
    """Works out what each task moves through each bus and memory of a system."""
    _find_routes(systems.bus_parent[n], work.hop)
    work.burst[:] = 0.0
    work.bus_b[:] = 0.0
    work.memory_b[:] = 0.0
    for e in range(len(graphs.producer)):
        producer, consumer = graphs.producer[e], graphs.consumer[e]
        if producer >= 0:
            memory = systems.memory[n, producer]
            _add_route(
                systems, n, work, producer, WRITE, memory, graphs.data_b[e], graphs.write_burst_b[e]
            )
        else:
            memory = systems.input_memory[n, -1 - producer]
        if consumer >= 0:
            _add_route(
                systems, n, work, consumer, READ, memory, graphs.data_b[e], graphs.read_burst_b[e]
            )


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
    systems: Any, n: Any, work: Any, task: Any, way: Any, memory: Any, data_b: Any, burst_b: Any
) -> Any:
    """Adds data between a task's processor and a memory."""
    buses = systems.bus_rate.shape[1]
    bus, last = systems.bus[n, task], systems.memory_bus[n, memory]
    while bus != last:
        following = work.hop[bus, last]
        work.bus_b[task, way, bus] += data_b
        work.burst[task, way, bus * buses + following] += burst_b
        bus = following
    work.bus_b[task, way, bus] += data_b
    work.burst[task, way, buses * buses + memory] += burst_b
    work.memory_b[task, way, memory] += data_b


@compiled
def set_speeds(graphs: Any, systems: Any, n: Any, work: Any) -> Any:
    """Sets how fast each running task runs: as the slowest of its blocks allows.

    A processor runs one task at a time. A memory, in each direction, is shared in proportion to the
    bursts of the running tasks. A connection that leaves a bus is shared equally by the connections
    that feed it, and each of these by its tasks in proportion to their bursts. Whatever share a
    task has of a bus, all of its bytes through that bus in that direction take it.
    """
    buses, memories = systems.bus_rate.shape[1], systems.memory_rate.shape[1]
    for task in range(len(work.state)):
        if work.state[task] != RUNNING:
            continue
        operations = graphs.operations[task]
        speed = systems.rate[n, task]
        for way in range(2):
            for memory in range(memories):
                moved = work.memory_b[task, way, memory]
                if moved == 0:
                    continue
                edge = buses * buses + memory
                share = work.burst[task, way, edge] / _running_bursts(work, way, edge)
                speed = min(speed, systems.memory_rate[n, memory] * share * operations / moved)
                bus = systems.memory_bus[n, memory]
                share = _share_of_bus(systems, n, work, task, way, bus, edge)
                through = work.bus_b[task, way, bus]
                speed = min(speed, systems.bus_rate[n, bus] * share * operations / through)
            for bus in range(buses):
                through = work.bus_b[task, way, bus]
                if through == 0:
                    continue
                for following in range(buses):
                    edge = bus * buses + following
                    if work.burst[task, way, edge] > 0:
                        share = _share_of_bus(systems, n, work, task, way, bus, edge)
                        speed = min(speed, systems.bus_rate[n, bus] * share * operations / through)
        work.speed[task] = speed


@compiled
def _running_bursts(work: Any, way: Any, edge: Any) -> Any:
    total = 0.0
    for task in range(len(work.state)):
        if work.state[task] == RUNNING:
            total += work.burst[task, way, edge]
    return total


@compiled
def _share_of_bus(
    systems: Any, n: Any, work: Any, task: Any, way: Any, bus: Any, edge: Any
) -> Any:
    """Share of a task in a connection that leaves a bus."""
    buses = systems.bus_rate.shape[1]
    feeding = 0  # connections into the bus that feed this one now
    for other in range(len(work.state)):  # processors, of which each runs one task
        if (
            work.state[other] == RUNNING
            and systems.bus[n, other] == bus
            and work.burst[other, way, edge] > 0
        ):
            feeding += 1
    for source in range(buses):
        incoming = source * buses + bus
        for other in range(len(work.state)):
            if (
                work.state[other] == RUNNING
                and work.burst[other, way, incoming] > 0
                and work.burst[other, way, edge] > 0
            ):
                feeding += 1
                break
    own = systems.bus[n, task]
    if own == bus:
        return 1.0 / feeding
    incoming = work.hop[bus, own] * buses + bus
    return work.burst[task, way, incoming] / _running_bursts(work, way, incoming) / feeding
