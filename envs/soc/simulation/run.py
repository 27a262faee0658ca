"""Batches of systems, each simulated from the start of its graphs to the end of their last task."""

from __future__ import annotations

from typing import Any, Final

from archgym.envs.soc.simulation.compiled import compiled, entry
from archgym.envs.soc.simulation.layout import (
    AREA,
    ENERGY,
    LATENCY,
    POWER,
    READ,
    UTILISATION,
    WRITE,
)
from archgym.envs.soc.simulation.traffic import RUNNING, load_traffic, set_speeds

__all__ = ["run_systems"]

_QUEUED: Final = 1
_DONE: Final = 3
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


@compiled
def _run_graphs(graphs: Any, systems: Any, n: Any, as_farsi: Any, work: Any, out: Any) -> Any:
    """Runs all tasks; returns the number of phases."""
    tasks = len(graphs.operations)
    _reset(graphs, systems, n, work)
    phases = waiting = 0
    now = 0.0
    while True:
        waiting = _start_tasks(graphs, systems, n, work, waiting)
        set_speeds(systems, n, work)
        step = -1.0
        for task in range(tasks):
            if work.state[task] == RUNNING:
                needed = work.left[task] / work.speed[task]
                if step < 0 or needed < step:
                    step = needed
        if step < 0:
            return phases
        now += step
        work.phase_s[phases] = step
        work.phase_j[phases] = 0.0
        work.phase_b[phases] = 0.0
        for task in range(tasks):
            if work.state[task] == RUNNING:
                _advance(graphs, systems, n, work, task, phases, step)
        for task in range(tasks):
            left = work.left[task]
            if work.state[task] == RUNNING and left <= _UNFINISHED * graphs.operations[task]:
                _end_task(graphs, systems, n, as_farsi, work, task)
                out[n, LATENCY + graphs.graph[task]] = now
        phases += 1


@compiled
def _reset(graphs: Any, systems: Any, n: Any, work: Any) -> Any:
    work.state[:] = 0
    work.busy[:] = 0
    work.left[:] = graphs.operations
    work.writers[:] = 0
    work.readers[:] = 0
    work.ended[:] = 0
    work.live_b[:] = 0.0
    work.left_in_graph[:] = 0
    for task in range(len(graphs.operations)):
        work.left_in_graph[graphs.graph[task]] += 1
    for e in range(len(graphs.producer)):
        producer, consumer = graphs.producer[e], graphs.consumer[e]
        if producer < 0:  # inputs stay in their memory
            work.live_b[systems.input_memory[n, -1 - producer]] += graphs.data_b[e]
            continue
        work.readers[producer] += 1
        if consumer >= 0:
            work.writers[consumer] += 1
    work.peak_b[:] = work.live_b


@compiled
def _start_tasks(graphs: Any, systems: Any, n: Any, work: Any, waiting: Any) -> Any:
    """Starts what can run: tasks that became ready, then those that wait for their processor."""
    found = 0
    for task in range(len(work.state)):
        if work.state[task] == 0 and work.writers[task] == 0:
            work.state[task] = _QUEUED
            work.queue[1, found] = task
            found += 1
            memory = systems.memory[n, task]
            for e in range(len(graphs.producer)):
                if graphs.producer[e] == task:
                    work.live_b[memory] += graphs.data_b[e]
            work.peak_b[memory] = max(work.peak_b[memory], work.live_b[memory])
    for place in range(waiting):
        work.queue[1, found] = work.queue[0, place]
        found += 1
    kept = 0
    for place in range(found):
        task = work.queue[1, place]
        processor = systems.processor[n, task]
        if work.busy[processor]:
            work.queue[0, kept] = task
            kept += 1
        else:
            work.busy[processor] = 1
            work.state[task] = RUNNING
    return kept


@compiled
def _advance(graphs: Any, systems: Any, n: Any, work: Any, task: Any, phase: Any, step: Any) -> Any:
    """What a task does in a phase, and its energy."""
    done = work.speed[task] * step
    work.left[task] -= done
    work.phase_j[phase] += done * systems.energy[n, task]
    share = done / graphs.operations[task]
    for memory in range(systems.memory_rate.shape[1]):
        for way in range(2):
            work.phase_b[phase, memory, way] += share * work.memory_b[task, way, memory]


@compiled
def _end_task(graphs: Any, systems: Any, n: Any, as_farsi: Any, work: Any, task: Any) -> Any:
    """A task ends: its readers may start, and what nobody reads any more leaves its memory."""
    work.state[task] = _DONE
    work.busy[systems.processor[n, task]] = 0
    work.left_in_graph[graphs.graph[task]] -= 1
    over = work.left_in_graph[graphs.graph[task]] == 0
    for e in range(len(graphs.producer)):
        producer, consumer = graphs.producer[e], graphs.consumer[e]
        if producer == task and consumer >= 0:
            work.writers[consumer] -= 1
        if producer < 0 or as_farsi:
            continue
        # An output of the graph is taken away when the graph ends.
        output = consumer < 0 and over and graphs.graph[producer] == graphs.graph[task]
        if consumer == task or output:
            work.readers[producer] -= 1
            if work.readers[producer] == 0:
                _release(graphs, systems, n, work, producer)
    if as_farsi:
        _release_as_farsi(graphs, systems, n, work, task)


@compiled
def _release(graphs: Any, systems: Any, n: Any, work: Any, producer: Any) -> Any:
    for e in range(len(graphs.producer)):
        if graphs.producer[e] == producer:
            work.live_b[systems.memory[n, producer]] -= graphs.data_b[e]


@compiled
def _release_as_farsi(graphs: Any, systems: Any, n: Any, work: Any, task: Any) -> Any:
    """As FARSI: readers of one producer are struck off its list, so others may never be released.

    Producers are looked at one after the other. When all readers of one are on the list of tasks
    that have ended, its data are released and these readers leave the list.
    """
    work.ended[task] = 1
    for e in range(len(graphs.producer)):
        if graphs.consumer[e] != task:
            continue
        producer = graphs.producer[e]
        all_ended = True
        for other in range(len(graphs.producer)):
            if graphs.producer[other] == producer:
                reader = graphs.consumer[other]
                all_ended = all_ended and reader >= 0 and work.ended[max(reader, 0)] == 1
        if not all_ended:
            continue
        if producer >= 0:
            _release(graphs, systems, n, work, producer)
        for other in range(len(graphs.producer)):
            if graphs.producer[other] == producer:
                work.ended[graphs.consumer[other]] = 0


@compiled
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
                work.phase_b[phase, memory, READ] * costs.read_j_per_b[dram, blocks - 1]
                + work.phase_b[phase, memory, WRITE] * costs.write_j_per_b[dram, blocks - 1]
            )
    for phase in range(phases):
        energy += work.phase_j[phase]
    for task in range(systems.rate.shape[1]):
        first = True
        for before in range(task):
            if systems.processor[n, before] == systems.processor[n, task]:
                first = False
        if first:
            area += systems.area[n, task]
    out[n, ENERGY], out[n, AREA] = energy, area


@compiled
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


@compiled
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


@compiled
def _mean_power(work: Any, first: Any, end: Any) -> Any:
    seconds = joules = 0.0
    for phase in range(max(0, first), end):
        seconds += work.phase_s[phase]
        joules += work.phase_j[phase]
    return joules / seconds if seconds > 0 else 0.0


@compiled
def _set_utilisation(graphs: Any, systems: Any, n: Any, work: Any, out: Any) -> Any:
    """Shares of the time, from start to end, that blocks would need at their full rate."""
    tasks, memories = systems.rate.shape[1], systems.memory_rate.shape[1]
    total = 0.0
    for graph in range(systems.input_memory.shape[1]):
        total = max(total, out[n, LATENCY + graph])
    used = 0
    busy = 0.0
    for task in range(tasks):
        busy += graphs.operations[task] / systems.rate[n, task]
        first = True
        for before in range(task):
            if systems.processor[n, before] == systems.processor[n, task]:
                first = False
        used += first
    out[n, UTILISATION] = min(1.0, busy / total / used)
    for kind in range(2):
        most = 0.0
        blocks = memories if kind == 0 else systems.bus_rate.shape[1]
        for block in range(blocks):
            for way in range(2):
                moved = 0.0
                for task in range(tasks):
                    if kind == 0:
                        moved += work.memory_b[task, way, block]
                    else:
                        moved += work.bus_b[task, way, block]
                rate = systems.memory_rate[n, block] if kind == 0 else systems.bus_rate[n, block]
                most = max(most, moved / rate / total)
        out[n, UTILISATION + 1 + kind] = min(1.0, most)
