"""The arrays that the compiled simulation takes and gives."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AREA",
    "ENERGY",
    "LATENCY",
    "POWER",
    "READ",
    "UTILISATION",
    "WRITE",
    "GraphArrays",
    "MemoryCosts",
    "SystemArrays",
    "Work",
    "new_work",
]

READ: Final = 0
WRITE: Final = 1

POWER: Final = 0
ENERGY: Final = 1
AREA: Final = 2
UTILISATION: Final = 3
"""First of three columns: processors (mean of those used), busiest memory, busiest bus."""
LATENCY: Final = 6
"""First of a column for each graph."""


class GraphArrays(NamedTuple):
    """Tasks and data of all graphs of a workload.

    Attributes:
        operations: of each task, shape (tasks,).
        graph: number of the graph of each task.
        producer: task that writes each piece of data, or ``-1 - graph`` for an input of a graph,
            shape (edges,).
        consumer: task that reads it, or -1 for an output of the graph.
        data_b: size of the data, bytes.
        write_burst_b: bytes that the producer writes of it before it is another task's turn.
        read_burst_b: likewise for the consumer.
    """

    operations: NDArray[np.float64]
    graph: NDArray[np.int64]
    producer: NDArray[np.int64]
    consumer: NDArray[np.int64]
    data_b: NDArray[np.float64]
    write_burst_b: NDArray[np.float64]
    read_burst_b: NDArray[np.float64]


class SystemArrays(NamedTuple):
    """Systems, one a row.

    Attributes:
        processor: number of the processor or accelerator of each task, shape (n, tasks).
        rate: operations a second of a task where it runs.
        energy: J an operation.
        area: of a task's processor or accelerator, m2; once for a processor.
        bus: to which a task's processor or accelerator is connected.
        memory: to which a task writes.
        input_memory: in which the inputs of a graph lie, shape (n, graphs).
        memory_dram: 1 for DRAM, 0 for SRAM, shape (n, memories).
        memory_bus: to which a memory is connected.
        memory_rate: bytes a second in each direction.
        bus_parent: bus nearer to bus 0, shape (n, buses); of bus 0 it is not looked at.
        bus_rate: bytes a second in each direction to each neighbour.
    """

    processor: NDArray[np.int64]
    rate: NDArray[np.float64]
    energy: NDArray[np.float64]
    area: NDArray[np.float64]
    bus: NDArray[np.int64]
    memory: NDArray[np.int64]
    input_memory: NDArray[np.int64]
    memory_dram: NDArray[np.int64]
    memory_bus: NDArray[np.int64]
    memory_rate: NDArray[np.float64]
    bus_parent: NDArray[np.int64]
    bus_rate: NDArray[np.float64]


class MemoryCosts(NamedTuple):
    """Figures of memories of 1, 2, 3 ... blocks.

    Attributes:
        block_b: size of a block, bytes.
        read_j_per_b: J a byte, shape (2 kinds, sizes): SRAM, DRAM.
        write_j_per_b: likewise.
        area_m2: m2.
    """

    block_b: float
    read_j_per_b: NDArray[np.float64]
    write_j_per_b: NDArray[np.float64]
    area_m2: NDArray[np.float64]


class Work(NamedTuple):
    """Scratch of one simulation.

    A *leg* is a connection on a task's way to a memory in one direction: from bus to bus, or from
    bus to memory. Connections are numbered by direction, then from bus to bus, then from bus to
    memory.

    Attributes:
        hop: next bus from a bus to another, shape (buses, buses).
        bus_b: bytes of each task and direction through each bus, shape (tasks, 2, buses).
        memory_b: likewise of each memory.
        burst: bytes of a burst of each task on each connection, shape (tasks, connections).
        legs: number of legs of each task.
        leg: number of each leg's connection, shape (tasks, connections).
        leg_before: the connection before it into its bus; -1 for the task's own processor.
        leg_limit: operations a second that the bus would allow with all of its rate.
        memory_limit: likewise of the memory at its end, where there is one.
        total_burst: of running tasks on each connection.
        feeding: connections that now feed each connection.
        fed_by: last phase in which a bus fed a connection, shape (connections, buses).
        state: of each task: 0, queued, running, done.
        queue: tasks that wait for their processor, in order, shape (2, tasks).
        left: operations that are left.
        speed: operations a second in this phase.
        writers: tasks that a task still waits for.
        readers: tasks that still need what a task wrote.
        ended: whether a task is on FARSI's list of tasks that have ended.
        busy: whether a processor runs a task.
        live_b, peak_b: bytes in use of each memory, now and at most.
        phase_s, phase_j: length and energy of each phase.
        phase_b: bytes of each phase, memory and direction.
        left_in_graph: tasks of a graph that are not done.
    """

    hop: NDArray[np.int64]
    bus_b: NDArray[np.float64]
    memory_b: NDArray[np.float64]
    burst: NDArray[np.float64]
    legs: NDArray[np.int64]
    leg: NDArray[np.int64]
    leg_before: NDArray[np.int64]
    leg_limit: NDArray[np.float64]
    memory_limit: NDArray[np.float64]
    total_burst: NDArray[np.float64]
    feeding: NDArray[np.int64]
    fed_by: NDArray[np.int64]
    state: NDArray[np.int64]
    queue: NDArray[np.int64]
    left: NDArray[np.float64]
    speed: NDArray[np.float64]
    writers: NDArray[np.int64]
    readers: NDArray[np.int64]
    ended: NDArray[np.int64]
    busy: NDArray[np.int64]
    live_b: NDArray[np.float64]
    peak_b: NDArray[np.float64]
    phase_s: NDArray[np.float64]
    phase_j: NDArray[np.float64]
    phase_b: NDArray[np.float64]
    left_in_graph: NDArray[np.int64]


def new_work(tasks: int, graphs: int, processors: int, memories: int, buses: int) -> Work:
    """Scratch for systems of that many blocks."""

    def zeros(*shape: int) -> Any:
        return np.zeros(shape)

    def numbers(*shape: int) -> Any:
        return np.zeros(shape, np.int64)

    connections = 2 * (buses * buses + memories)
    return Work(
        hop=numbers(buses, buses),
        bus_b=zeros(tasks, 2, buses),
        memory_b=zeros(tasks, 2, memories),
        burst=zeros(tasks, connections),
        legs=numbers(tasks),
        leg=numbers(tasks, connections),
        leg_before=numbers(tasks, connections),
        leg_limit=zeros(tasks, connections),
        memory_limit=zeros(tasks, connections),
        total_burst=zeros(connections),
        feeding=numbers(connections),
        fed_by=numbers(connections, buses),
        state=numbers(tasks),
        queue=numbers(2, tasks),
        left=zeros(tasks),
        speed=zeros(tasks),
        writers=numbers(tasks),
        readers=numbers(tasks),
        ended=numbers(tasks),
        busy=numbers(processors),
        live_b=zeros(memories),
        peak_b=zeros(memories),
        phase_s=zeros(tasks),
        phase_j=zeros(tasks),
        phase_b=zeros(tasks, memories, 2),
        left_in_graph=numbers(graphs),
    )
