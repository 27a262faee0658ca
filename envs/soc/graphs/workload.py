"""Workloads: one or several task graphs that run on a system at the same time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from archgym.envs.soc.blocks.costs import blocks, largest_memory_b
from archgym.envs.soc.graphs.task_graph import (
    INPUT,
    MAX_TASKS,
    OUTPUT,
    Task,
    TaskGraph,
    read_graph,
    shipped_graphs,
)
from archgym.envs.soc.simulation.layout import GraphArrays, graph_arrays
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["DEFAULT_WORKLOAD", "Workload", "WorkloadSpec", "load_workload", "workload_names"]

WorkloadSpec = str | Mapping[str, Any]
DEFAULT_WORKLOAD: Final = "edge_detection"
_TOGETHER: Final = {"ar": ("audio", "cava", "edge_detection")}


@dataclass(frozen=True)
class Workload:
    """Graphs that start together.

    Attributes:
        name: label in tables and datasets.
        graphs: the graphs.
    """

    name: str
    graphs: tuple[TaskGraph, ...]

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """Every task; with several graphs, names begin with that of their graph."""
        return {self.label(g, name): t for g in self.graphs for name, t in g.tasks.items()}

    def label(self, graph: TaskGraph, task: str) -> str:
        """Name of a task among all tasks."""
        return task if len(self.graphs) == 1 else f"{graph.name}_{task}"

    @cached_property
    def arrays(self) -> GraphArrays:
        """The graphs as the simulation takes them."""
        numbers = {name: number for number, name in enumerate(self.tasks)}
        rows = []
        for index, graph in enumerate(self.graphs):
            bursts = {name: _bursts(graph, name) for name in graph.tasks}
            for producer, consumer, size in graph.data:
                first = -1 - index if producer == INPUT else numbers[self.label(graph, producer)]
                last = -1 if consumer == OUTPUT else numbers[self.label(graph, consumer)]
                write, read = (
                    size if name not in bursts else max(1.0, size // bursts[name])
                    for name in (producer, consumer)
                )
                rows.append((first, last, size, write, read))
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        return graph_arrays(
            np.array([task.operations for task in self.tasks.values()]),
            np.array([i for i, graph in enumerate(self.graphs) for _ in graph.tasks]),
            columns[0].astype(np.int64),
            columns[1].astype(np.int64),
            *(column.astype(np.float64) for column in columns[2:]),
        )

    @property
    def sha256(self) -> str:
        """Hash of everything that metrics depend on."""
        data = [
            [
                graph.latency_budget_ms,
                {n: {**asdict(t), "alias": ""} for n, t in graph.tasks.items()},
                list(graph.tasks),
                list(graph.data),
            ]
            for graph in self.graphs
        ]
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _bursts(graph: TaskGraph, name: str) -> int:
    """Into how many bursts a task's data are cut, as FARSI does it.

    The smallest of its inputs is cut into bursts of the size of the blocks; what it does and
    writes meanwhile is cut into as many. If that leaves less than a byte or operation, nothing is
    cut.
    """
    read = min(size for _, consumer, size in graph.data if consumer == name)
    written = min(size for producer, _, size in graph.data if producer == name)
    count = max(1, int(read // blocks().burst_b))
    return count if min(written, graph.tasks[name].operations) >= count else 1


def load_workload(spec: WorkloadSpec) -> Workload:
    """A workload.

    >>> len(load_workload("audio").tasks)
    15

    Args:
        spec: name of a graph; ``ar`` for the three graphs of FARSI's paper together; path of a
            graph's file (``.json``); or a mapping with ``graphs``, a list of names and paths.

    Raises:
        UnknownNameError, InvalidValueError: if there is no such graph, or a file is wrong.
    """
    if isinstance(spec, Mapping):
        for key in spec:
            if key != "graphs":
                raise UnknownNameError("workload key", str(key), ("graphs",))
        named = spec.get("graphs")
        good = isinstance(named, list | tuple) and all(isinstance(one, str) for one in named)
        if not good or not named:
            raise InvalidValueError(
                f"workload: graphs is {named!r:.80}, it must be a list of names and paths"
            )
        found = tuple(_graph(one) for one in named)
    elif isinstance(spec, str) and spec in _TOGETHER:
        found = tuple(_graph(one) for one in _TOGETHER[spec])
    else:
        found = (_graph(spec),)
    names = [graph.name for graph in found]
    if len(set(names)) < len(names):
        raise InvalidValueError(f"workload: graphs {', '.join(names)} have the same name twice")
    if sum(len(graph.tasks) for graph in found) > MAX_TASKS:
        raise InvalidValueError(f"workload: its graphs have more than {MAX_TASKS} tasks together")
    label = spec if isinstance(spec, str) and spec in _TOGETHER else "+".join(names)
    workload = Workload(label, found)
    _check_together(workload)
    return workload


def _check_together(workload: Workload) -> None:
    """Tasks differ in their names, and one memory can hold all data."""
    if len(workload.tasks) < sum(len(graph.tasks) for graph in workload.graphs):
        raise InvalidValueError(
            f"workload {workload.name}: tasks of two graphs are called the same once the names of "
            "their graphs are put before them; rename a graph"
        )
    needed = sum(size for graph in workload.graphs for _, _, size in graph.data)
    largest = largest_memory_b()
    if needed > largest:
        raise InvalidValueError(
            f"workload {workload.name}: its data are {needed:.4g} bytes together; the costs of "
            f"memories are known up to {largest:.4g} bytes"
        )


def _graph(spec: object) -> TaskGraph:
    if not isinstance(spec, str | Path):
        raise InvalidValueError(
            f"workload {spec!r:.80} must be a name, a path or a mapping with graphs"
        )
    if str(spec).endswith(".json"):
        return read_graph(Path(spec))
    if spec not in shipped_graphs():
        raise UnknownNameError("workload", str(spec), (*shipped_graphs(), *_TOGETHER))
    return shipped_graphs()[str(spec)]


def workload_names() -> dict[str, str]:
    """The workloads that ship, with a line on each."""
    single = {name: graph.doc for name, graph in shipped_graphs().items()}
    return {**single, "ar": "audio, CAVA and edge detection on one system"}
