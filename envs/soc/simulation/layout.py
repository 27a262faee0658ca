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
    "graph_arrays",
    "new_work",
]

_WORD_BITS: Final = 63

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
        tasks_of_graph: how many tasks each graph has, shape (graphs,).
        producer: task that writes each piece of data, or ``-1 - graph`` for an input of a graph,
            shape (edges,).
        consumer: task that reads it, or -1 for an output of the graph.
        data_b: size of the data, bytes.
        read_burst_b: bytes that the consumer reads of it before it is another task's turn.
        written_b: bytes that each task writes, shape (tasks,).
        written_burst_b: of them, what it writes before it is another task's turn.
        written: pieces of data by the task that writes them, inputs left out.
        first_written: where those of a task begin in ``written``, shape (tasks + 1,).
        read: pieces of data by the task that reads them, outputs left out.
        first_read: where those of a task begin in ``read``, shape (tasks + 1,).
        writers: how many tasks each task waits for, shape (tasks,).
        readers: how many pieces of data that each task writes are read, or are outputs.
    """

    operations: NDArray[np.float64]
    graph: NDArray[np.int64]
    tasks_of_graph: NDArray[np.int64]
    producer: NDArray[np.int64]
    consumer: NDArray[np.int64]
    data_b: NDArray[np.float64]
    read_burst_b: NDArray[np.float64]
    written_b: NDArray[np.float64]
    written_burst_b: NDArray[np.float64]
    written: NDArray[np.int64]
    first_written: NDArray[np.int64]
    read: NDArray[np.int64]
    first_read: NDArray[np.int64]
    writers: NDArray[np.int64]
    readers: NDArray[np.int64]


def graph_arrays(
    operations: NDArray[np.float64],
    graph: NDArray[np.int64],
    producer: NDArray[np.int64],
    consumer: NDArray[np.int64],
    data_b: NDArray[np.float64],
    write_burst_b: NDArray[np.float64],
    read_burst_b: NDArray[np.float64],
) -> GraphArrays:
    """The arrays of graphs.

    Args:
        operations: of each task, shape (tasks,).
        graph: number of the graph of each task.
        producer: as in :class:`GraphArrays`, shape (edges,).
        consumer: likewise.
        data_b: likewise.
        write_burst_b: bytes that the producer writes of a piece before it is another task's turn.
        read_burst_b: likewise for the consumer.
    """
    tasks = len(operations)
    written, first_written = _by_task(producer, tasks)
    read, first_read = _by_task(consumer, tasks)
    writers, of = producer[written], consumer[read]
    return GraphArrays(
        operations=operations,
        graph=graph,
        tasks_of_graph=np.bincount(graph),
        producer=producer,
        consumer=consumer,
        data_b=data_b,
        read_burst_b=read_burst_b,
        written_b=_sums(data_b[written], writers, tasks),
        written_burst_b=_sums(write_burst_b[written], writers, tasks),
        written=written,
        first_written=first_written,
        read=read,
        first_read=first_read,
        writers=np.bincount(of[producer[read] >= 0], minlength=tasks),
        readers=np.diff(first_written),
    )


def _by_task(task: NDArray[np.int64], tasks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pieces of data sorted by a task of theirs, and where those of each task begin."""
    order = np.argsort(task, kind="stable")
    first = np.searchsorted(task[order], np.arange(tasks + 1))
    return order[first[0] :], first - first[0]


def _sums(values: NDArray[np.float64], task: NDArray[np.int64], tasks: int) -> NDArray[np.float64]:
    return np.bincount(task, values, tasks).astype(np.float64)


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
    memory. Each task has a row of the arrays of legs.

    Attributes:
        hop: next bus from a bus to another, shape (buses, buses).
        bus_b: bytes of each task and direction through each bus, shape (tasks, 2, buses).
        memory_b: likewise of each memory, shape (tasks, 2, memories).
        read_burst: bytes of a burst that a task reads of each memory, shape (memories,).
        place: of each connection among a task's legs, -1 for none, shape (connections,).
        legs: number of legs of each task.
        leg: number of each leg's connection, shape (tasks, connections).
        leg_bus: the bus that it leaves.
        leg_memory: the memory at its end; -1 for none.
        leg_before: place of the leg into its bus; -1 for the task's own processor.
        leg_burst: bytes of a burst.
        leg_limit: operations a second that the bus would allow with all of its rate.
        memory_limit: likewise of the memory at its end; infinite without one.
        connections: of each task, a bit each.
        total_burst: of running tasks on each connection.
        feeding: processors and buses that now feed each connection.
        fed_by: running tasks that come to a connection from a bus, shape (connections, buses).
        leg_share: share of a connection that each leg of one task has now.
        running: tasks that run, ascending.
        queue: tasks that wait for their processor, in order, and then those that may start,
            shape (2, tasks).
        left: operations that are left.
        speed: operations a second in this phase.
        writers: tasks that a task still waits for.
        readers: pieces of data that a task wrote and that are still needed.
        ended: whether a task is on FARSI's list of tasks that have ended.
        busy: whether a processor runs a task.
        live_b, peak_b: bytes in use of each memory, now and at most.
        phase_s, phase_j: length and energy of each phase.
        phase_b: bytes of each phase, direction and memory.
        left_in_graph: tasks of a graph that are not done.
        moved_b: bytes of all tasks, in each direction, through each memory and then each bus.
    """

    hop: NDArray[np.int64]
    bus_b: NDArray[np.float64]
    memory_b: NDArray[np.float64]
    read_burst: NDArray[np.float64]
    place: NDArray[np.int64]
    legs: NDArray[np.int64]
    leg: NDArray[np.int64]
    leg_bus: NDArray[np.int64]
    leg_memory: NDArray[np.int64]
    leg_before: NDArray[np.int64]
    leg_burst: NDArray[np.float64]
    leg_limit: NDArray[np.float64]
    memory_limit: NDArray[np.float64]
    connections: NDArray[np.int64]
    total_burst: NDArray[np.float64]
    feeding: NDArray[np.int64]
    fed_by: NDArray[np.int64]
    leg_share: NDArray[np.float64]
    running: NDArray[np.int64]
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
    moved_b: NDArray[np.float64]


def new_work(tasks: int, graphs: int, processors: int, memories: int, buses: int) -> Work:
    """Scratch for systems of that many blocks.

    Raises:
        ValueError: for more connections than a word has bits.
    """

    def zeros(*shape: int) -> Any:
        return np.zeros(shape)

    def numbers(*shape: int) -> Any:
        return np.zeros(shape, np.int64)

    connections = 2 * (buses * buses + memories)
    if connections > _WORD_BITS:
        raise ValueError(f"{connections} connections, at most {_WORD_BITS} are possible")
    return Work(
        hop=numbers(buses, buses),
        bus_b=zeros(tasks, 2, buses),
        memory_b=zeros(tasks, 2, memories),
        read_burst=zeros(memories),
        place=numbers(connections),
        legs=numbers(tasks),
        leg=numbers(tasks, connections),
        leg_bus=numbers(tasks, connections),
        leg_memory=numbers(tasks, connections),
        leg_before=numbers(tasks, connections),
        leg_burst=zeros(tasks, connections),
        leg_limit=zeros(tasks, connections),
        memory_limit=zeros(tasks, connections),
        connections=numbers(tasks),
        total_burst=zeros(connections),
        feeding=numbers(connections),
        fed_by=numbers(connections, buses),
        leg_share=zeros(connections),
        running=numbers(tasks),
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
        phase_b=zeros(tasks, 2, memories),
        left_in_graph=numbers(graphs),
        moved_b=zeros(2, memories + buses),
    )
