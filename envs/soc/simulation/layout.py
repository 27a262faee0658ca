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

    Attributes:
        burst: bytes of a burst of each task and direction on each connection, shape
            (tasks, 2, buses * buses + memories): from bus to bus, then from bus to memory.
        bus_b: bytes of each task and direction through each bus.
        memory_b: bytes of each task and direction of each memory.
        hop: next bus from a bus to another.
        state: of each task: waiting, queued, running, done.
        queue: tasks that wait for their processor, in order.
        left: operations that are left.
        speed: operations a second in this phase.
        writers: tasks that this task still waits for.
        readers: tasks that still need what this task wrote.
        busy: whether a processor runs a task.
        live_b, peak_b: bytes in use of each memory, now and at most.
        phase_s, phase_j: length and energy of each phase; of memories, bytes in phase_b, shape
            (phases, memories, 2).
        phase_b: bytes of each phase, memory and direction.
        left_in_graph: tasks of a graph that are not done.
    """

    burst: NDArray[np.float64]
    bus_b: NDArray[np.float64]
    memory_b: NDArray[np.float64]
    hop: NDArray[np.int64]
    state: NDArray[np.int64]
    queue: NDArray[np.int64]
    left: NDArray[np.float64]
    speed: NDArray[np.float64]
    writers: NDArray[np.int64]
    readers: NDArray[np.int64]
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

    return Work(
        zeros(tasks, 2, buses * buses + memories),
        zeros(tasks, 2, buses),
        zeros(tasks, 2, memories),
        numbers(buses, buses),
        numbers(tasks),
        numbers(2, tasks),
        zeros(tasks),
        zeros(tasks),
        numbers(tasks),
        numbers(tasks),
        numbers(processors),
        zeros(memories),
        zeros(memories),
        zeros(tasks),
        zeros(tasks),
        zeros(tasks, memories, 2),
        numbers(graphs),
    )
