"""Batches of systems, each simulated from the start of its graphs to the end of their last task."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from archgym.envs.soc.simulation.compiled import entry, inlined
from archgym.envs.soc.simulation.layout import (
    AREA,
    ENERGY,
    LATENCY,
    POWER,
    READ,
    UTILISATION,
    WRITE,
)
from archgym.envs.soc.simulation.traffic import (
    join_traffic,
    leave_traffic,
    load_traffic,
    set_speeds,
)

__all__ = ["run_systems"]

_UNFINISHED: Final = 0.01
"""A task of which at most this share is left when another one ends has ended too, as in FARSI."""
_WINDOW_S: Final = 0.01
"""Power is the highest mean over this time or longer, as in FARSI."""


@entry
def run_systems(sources: int) -> Any:
    """Simulate systems; the compiled function takes the arrays of ``layout`` and a result array."""

    def run_systems(
        graphs: Any, systems: Any, costs: Any, as_farsi: Any, work: Any, out: Any
    ) -> Any:
        _ = sources
        for n in range(len(systems.rate)):
            load_traffic(graphs, systems, n, work)
            phases = _run_graphs(graphs, systems, n, as_farsi, work, out)
            _set_energy(systems, n, costs, work, phases, out)
            out[n, POWER] = _power_as_farsi(work, phases) if as_farsi else _power(work, phases)
            _set_utilisation(graphs, systems, n, work, out)

    return run_systems


@inlined
def _run_graphs(graphs: Any, systems: Any, n: Any, as_farsi: Any, work: Any, out: Any) -> Any:
    """Runs all tasks; returns the number of phases."""
    ready = _reset(graphs, systems, n, work)
    phases = waiting = running = 0
    now = 0.0
    changed = 0
    while True:
        waiting, running, started = _start_tasks(graphs, systems, n, work, ready, waiting, running)
        if running == 0:
            return phases
        set_speeds(systems, n, work, running, changed | started)
        step = np.inf
        for number in range(running):
            task = work.running[number]
            step = min(step, work.left[task] / work.speed[task])
        now += step
        work.phase_s[phases] = step
        work.phase_j[phases] = 0.0
        work.phase_b[phases] = 0.0
        for number in range(running):
            _advance(graphs, systems, n, work, work.running[number], phases, step)
        kept = ready = changed = 0
        for number in range(running):
            task = work.running[number]
            if work.left[task] <= _UNFINISHED * graphs.operations[task]:
                changed |= work.connections[task]
                leave_traffic(work, task)
                ready = _end_task(graphs, systems, n, as_farsi, work, task, ready)
                out[n, LATENCY + graphs.graph[task]] = now
            else:
                work.running[kept] = task
                kept += 1
        running = kept
        phases += 1


@inlined
def _reset(graphs: Any, systems: Any, n: Any, work: Any) -> Any:
    """Everything as at the start; returns how many tasks may start."""
    ready = 0
    for task in range(len(graphs.operations)):
        work.left[task] = graphs.operations[task]
        work.writers[task] = graphs.writers[task]
        work.readers[task] = graphs.readers[task]
        if graphs.writers[task] == 0:
            work.queue[1, ready] = task
            ready += 1
    for graph in range(len(graphs.tasks_of_graph)):
        work.left_in_graph[graph] = graphs.tasks_of_graph[graph]
    work.busy[:] = 0
    work.ended[:] = 0
    work.live_b[:] = 0.0
    for e in range(len(graphs.producer)):
        producer = graphs.producer[e]
        if producer < 0:  # inputs stay in their memory
            work.live_b[systems.input_memory[n, -1 - producer]] += graphs.data_b[e]
    for memory in range(len(work.live_b)):
        work.peak_b[memory] = work.live_b[memory]
    return ready


@inlined
def _insert(tasks: Any, count: Any, task: Any) -> Any:
    """Puts a task in its place among ``count`` ascending ones; returns how many there are now."""
    place = count
    while place > 0 and tasks[place - 1] > task:
        tasks[place] = tasks[place - 1]
        place -= 1
    tasks[place] = task
    return count + 1


@inlined
def _start_tasks(
    graphs: Any, systems: Any, n: Any, work: Any, ready: Any, waiting: Any, running: Any
) -> Any:
    """Starts what can run: tasks that became ready, then those that wait for their processor.

    Returns:
        How many tasks wait, how many run, and the connections of those that were started.
    """
    queue = work.queue
    for place in range(ready):
        task = queue[1, place]
        memory = systems.memory[n, task]
        work.live_b[memory] += graphs.written_b[task]
        work.peak_b[memory] = max(work.peak_b[memory], work.live_b[memory])
    for place in range(waiting):
        queue[1, ready + place] = queue[0, place]
    kept = started = 0
    for place in range(ready + waiting):
        task = queue[1, place]
        processor = systems.processor[n, task]
        if work.busy[processor]:
            queue[0, kept] = task
            kept += 1
        else:
            work.busy[processor] = 1
            started |= work.connections[task]
            join_traffic(work, task)
            running = _insert(work.running, running, task)
    return kept, running, started


@inlined
def _advance(graphs: Any, systems: Any, n: Any, work: Any, task: Any, phase: Any, step: Any) -> Any:
    """What a task does in a phase, and its energy."""
    done = work.speed[task] * step
    work.left[task] -= done
    work.phase_j[phase] += done * systems.energy[n, task]
    share = done / graphs.operations[task]
    for way in range(2):
        for memory in range(systems.memory_rate.shape[1]):
            work.phase_b[phase, way, memory] += share * work.memory_b[task, way, memory]


@inlined
def _end_task(
    graphs: Any, systems: Any, n: Any, as_farsi: Any, work: Any, task: Any, ready: Any
) -> Any:
    """A task ends: its readers may start, and what nobody reads any more leaves its memory.

    Returns:
        How many tasks may start now; they stand in the queue, ascending.
    """
    work.busy[systems.processor[n, task]] = 0
    for place in range(graphs.first_written[task], graphs.first_written[task + 1]):
        consumer = graphs.consumer[graphs.written[place]]
        if consumer >= 0:
            work.writers[consumer] -= 1
            if work.writers[consumer] == 0:
                ready = _insert(work.queue[1], ready, consumer)
    if as_farsi:
        _release_as_farsi(graphs, systems, n, work, task)
        return ready
    for place in range(graphs.first_read[task], graphs.first_read[task + 1]):
        producer = graphs.producer[graphs.read[place]]
        if producer >= 0:
            _read_once(graphs, systems, n, work, producer)
    graph = graphs.graph[task]
    work.left_in_graph[graph] -= 1
    if work.left_in_graph[graph] == 0:  # its outputs are taken away
        for e in range(len(graphs.producer)):
            producer = graphs.producer[e]
            if graphs.consumer[e] < 0 and graphs.graph[producer] == graph:
                _read_once(graphs, systems, n, work, producer)
    return ready


@inlined
def _read_once(graphs: Any, systems: Any, n: Any, work: Any, producer: Any) -> Any:
    """A piece of what a task wrote is not needed any more; all leaves with the last one."""
    work.readers[producer] -= 1
    if work.readers[producer] == 0:
        work.live_b[systems.memory[n, producer]] -= graphs.written_b[producer]


@inlined
def _release_as_farsi(graphs: Any, systems: Any, n: Any, work: Any, task: Any) -> Any:
    """As FARSI: readers of one producer are struck off its list, so others may never be released.

    Producers are looked at one after the other. When all readers of one are on the list of tasks
    that have ended, its data are released and these readers leave the list.
    """
    work.ended[task] = 1
    for place in range(graphs.first_read[task], graphs.first_read[task + 1]):
        producer = graphs.producer[graphs.read[place]]
        all_ended = True
        for other in range(len(graphs.producer)):
            if graphs.producer[other] == producer:
                reader = graphs.consumer[other]
                all_ended = all_ended and reader >= 0 and work.ended[max(reader, 0)] == 1
        if not all_ended:
            continue
        if producer >= 0:
            work.live_b[systems.memory[n, producer]] -= graphs.written_b[producer]
        for other in range(len(graphs.producer)):
            if graphs.producer[other] == producer:
                work.ended[graphs.consumer[other]] = 0


@inlined
def _set_energy(systems: Any, n: Any, costs: Any, work: Any, phases: Any, out: Any) -> Any:
    """Energy of phases, and area, with the memories as large as they have to be."""
    energy = area = 0.0
    memories = systems.memory_rate.shape[1]
    for memory in range(memories):
        if work.peak_b[memory] == 0:
            continue
        dram = systems.memory_dram[n, memory]
        blocks = max(1, int(-(-work.peak_b[memory] // costs.block_b)))
        area += costs.area_m2[dram, blocks - 1]
        for phase in range(phases):
            work.phase_j[phase] += (
                work.phase_b[phase, READ, memory] * costs.read_j_per_b[dram, blocks - 1]
                + work.phase_b[phase, WRITE, memory] * costs.write_j_per_b[dram, blocks - 1]
            )
    for phase in range(phases):
        energy += work.phase_j[phase]
    for task in range(systems.rate.shape[1]):
        if not _counted(systems, n, work, task):
            area += systems.area[n, task]
    out[n, ENERGY], out[n, AREA] = energy, area


@inlined
def _power(work: Any, phases: Any) -> Any:
    """Highest mean over phases that last longer than a window together."""
    power = window_s = window_j = 0.0
    for phase in range(phases):
        window_s += work.phase_s[phase]
        window_j += work.phase_j[phase]
        if window_s > _WINDOW_S or phase == phases - 1:
            power = max(power, window_j / window_s)
            window_s = window_j = 0.0
    return power


@inlined
def _power_as_farsi(work: Any, phases: Any) -> Any:
    """As FARSI: the ends of windows are found without the two empty phases before the first one.

    So each window holds the phases two before those that filled it, and the last phases are one
    window.
    """
    power = 0.0
    budget = _WINDOW_S
    lower = 0
    for phase in range(phases):
        if work.phase_s[phase] > budget:
            budget = _WINDOW_S
            power = max(power, _mean_power(work, lower - 2, phase - 1))
            lower = phase + 1
        else:
            budget -= work.phase_s[phase]
    return max(power, _mean_power(work, lower - 2, phases))


@inlined
def _mean_power(work: Any, first: Any, end: Any) -> Any:
    seconds = joules = 0.0
    for phase in range(max(0, first), end):
        seconds += work.phase_s[phase]
        joules += work.phase_j[phase]
    return joules / seconds if seconds > 0 else 0.0


@inlined
def _counted(systems: Any, n: Any, work: Any, task: Any) -> Any:
    """Whether the processor of a task was counted already; marks it."""
    processor = systems.processor[n, task]
    before = work.busy[processor]
    work.busy[processor] = 1
    return before


@inlined
def _set_utilisation(graphs: Any, systems: Any, n: Any, work: Any, out: Any) -> Any:
    """Shares of the time, from start to end, that blocks would need at their full rate."""
    tasks, memories = systems.rate.shape[1], systems.memory_rate.shape[1]
    buses = systems.bus_rate.shape[1]
    total = 0.0
    for graph in range(systems.input_memory.shape[1]):
        total = max(total, out[n, LATENCY + graph])
    used = work.busy.sum()
    busy = 0.0
    work.moved_b[:] = 0.0
    for task in range(tasks):
        busy += graphs.operations[task] / systems.rate[n, task]
        for way in range(2):
            for memory in range(memories):
                work.moved_b[way, memory] += work.memory_b[task, way, memory]
            for bus in range(buses):
                work.moved_b[way, memories + bus] += work.bus_b[task, way, bus]
    out[n, UTILISATION] = min(1.0, busy / total / used)
    busiest_memory = busiest_bus = 0.0
    for way in range(2):
        for memory in range(memories):
            share = work.moved_b[way, memory] / systems.memory_rate[n, memory] / total
            busiest_memory = max(busiest_memory, share)
        for bus in range(buses):
            share = work.moved_b[way, memories + bus] / systems.bus_rate[n, bus] / total
            busiest_bus = max(busiest_bus, share)
    out[n, UTILISATION + 1] = min(1.0, busiest_memory)
    out[n, UTILISATION + 2] = min(1.0, busiest_bus)
