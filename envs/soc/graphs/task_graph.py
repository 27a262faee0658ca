"""Task graphs: operations of tasks, and the data that they pass on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.reading.checked_json import checked_json
from archgym.reading.files import meant_file, read_text

__all__ = ["INPUT", "OUTPUT", "Accelerator", "Task", "TaskGraph", "read_graph", "shipped_graphs"]

INPUT: Final = "input"
OUTPUT: Final = "output"
MAX_TASKS: Final = 64
_LIMIT_BYTES: Final = 1 << 20
_SMALLEST, _LARGEST = 1e-6, 1e15
_BLOCKS: Final = ("core", "memory", "bus")
_KEYS: Final = ("name", "doc", "source", "licence", "alias", "latency_budget_ms", "tasks", "data")
_TASK_KEYS: Final = ("alias", "operations", "iterations", "accelerator")
_ACCELERATOR_KEYS: Final = ("cycles", "energy_fj", "area_um2")


@dataclass(frozen=True)
class Accelerator:
    """An accelerator of one task with one lane.

    Attributes:
        cycles: clocks that it takes for the task.
        energy_fj: energy of the task, fJ, before scaling to the technology of the blocks.
        area_um2: area, um2, likewise.
    """

    cycles: float
    energy_fj: float
    area_um2: float


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        operations: instructions of a core.
        iterations: of its loop, among which lanes of an accelerator may be divided.
        accelerator: if it has one.
        alias: its name in FARSI's tables; empty for none.
    """

    operations: float
    iterations: int = 1
    accelerator: Accelerator | None = None
    alias: str = ""


@dataclass(frozen=True)
class _File:
    """A graph as its file has it."""

    name: str
    tasks: dict[str, Task]
    data: list[tuple[str, str, float]]
    latency_budget_ms: float
    doc: str = ""
    source: str = ""
    alias: str = ""


@dataclass(frozen=True)
class TaskGraph:
    """Tasks and the data between them, without cycles.

    Attributes:
        name: of the graph.
        doc: one line on it.
        source: where its figures come from.
        alias: its name in FARSI; empty for none.
        latency_budget_ms: time that it may take, ms.
        tasks: by name, in the order in which those start that are ready together.
        data: producer or ``input``, consumer or ``output``, and bytes.
    """

    name: str
    doc: str
    source: str
    alias: str
    latency_budget_ms: float
    tasks: Mapping[str, Task]
    data: Sequence[tuple[str, str, float]]


@cache
def shipped_graphs() -> dict[str, TaskGraph]:
    """The graphs that ship, by name."""
    folder = resources.files("archgym.envs.soc.graphs").joinpath("data")
    names = ("edge_detection", "cava", "audio")
    return {
        name: parse_graph(folder.joinpath(f"{name}.json").read_text("utf-8"), name)
        for name in names
    }


def read_graph(path: Path) -> TaskGraph:
    """A graph from a file.

    Raises:
        InvalidValueError: if it cannot be read, or is no graph; names the field and what is
            allowed.
        UnknownNameError: for an unknown key or task.
    """
    try:
        text = read_text(path, _LIMIT_BYTES)
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            f"task graph {str(path)!r} cannot be read: {error}{meant_file(path)}"
        ) from None
    return parse_graph(text, str(path))


def parse_graph(text: str, place: str) -> TaskGraph:
    """A graph from the text of a file; errors as :func:`read_graph`.

    Args:
        text: JSON.
        place: what messages call it.
    """
    if not text.strip():
        raise InvalidValueError(f"task graph {place}: the file is empty")
    try:
        file = checked_json(text, _File)
        keys = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"task graph {place}: {error}") from None
    _check_keys(keys, place)
    _check_values(file, place)
    graph = TaskGraph(
        file.name,
        file.doc,
        file.source,
        file.alias,
        file.latency_budget_ms,
        file.tasks,
        tuple(file.data),
    )
    _check_data(graph, place)
    _check_order(graph, place)
    return graph


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, in which no key is given twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"{twice!r:.60} is given twice")
    return found


def _check_keys(data: Any, place: str) -> None:
    """No key is mistyped; the form is known to be right."""
    where = f"task graph {place}"
    for key in data:
        if key not in _KEYS:
            raise UnknownNameError("key", key, _KEYS, where)
    for name, task in data["tasks"].items():
        for key in task:
            if key not in _TASK_KEYS:
                raise UnknownNameError("key", key, _TASK_KEYS, f"{where}, task {name!r:.60}")
        for key in task.get("accelerator") or {}:
            if key not in _ACCELERATOR_KEYS:
                raise UnknownNameError(
                    "key", key, _ACCELERATOR_KEYS, f"{where}, accelerator of {name!r:.60}"
                )


def _check_values(file: _File, place: str) -> None:
    def refuse(field: str, value: object, allowed: str) -> InvalidValueError:
        return InvalidValueError(f"task graph {place}: {field} is {value!r:.80}, {allowed}")

    for name in (file.name, *file.tasks):
        good = name.isascii() and name.isidentifier() and name == name.lower() and len(name) <= 40
        if not good or name in (INPUT, OUTPUT):
            raise refuse("name", name, "it must be lower-case letters, digits and _, at most 40")
        if name.rstrip("0123456789") in _BLOCKS:
            raise refuse("name", name, "which is that of a block of the system")
    if not 1 <= len(file.tasks) <= MAX_TASKS:
        raise refuse("tasks", len(file.tasks), f"a graph has 1 to {MAX_TASKS} tasks")
    for name, task in file.tasks.items():
        if not 1 <= task.iterations <= 1 << 40:
            raise refuse(f"iterations of {name}", task.iterations, "it must be 1 to 2^40")
    for field, value in _numbers(file).items():
        if not _SMALLEST <= value <= _LARGEST:
            raise refuse(field, value, "it must be from 1e-6 to 1e15")


def _numbers(file: _File) -> dict[str, float]:
    """All numbers that may be fractions, by what messages call them."""
    found: dict[str, float] = {"latency_budget_ms": file.latency_budget_ms}
    for name, task in file.tasks.items():
        found[f"operations of {name}"] = task.operations
        if task.accelerator is not None:
            for field in _ACCELERATOR_KEYS:
                found[f"{field} of {name}"] = getattr(task.accelerator, field)
    for producer, consumer, size in file.data:
        found[f"data from {producer} to {consumer}"] = size
    return found


def _check_data(graph: TaskGraph, place: str) -> None:
    seen = set()
    where = f"task graph {place}, data"
    for producer, consumer, _ in graph.data:
        if producer != INPUT and producer not in graph.tasks:
            raise UnknownNameError("producer", producer, (INPUT, *graph.tasks), where)
        if consumer != OUTPUT and consumer not in graph.tasks:
            raise UnknownNameError("consumer", consumer, (OUTPUT, *graph.tasks), where)
        if (producer, consumer) in seen:
            raise InvalidValueError(f"{where}: {producer} to {consumer} is there twice")
        if producer == INPUT and consumer == OUTPUT:
            raise InvalidValueError(f"{where}: no task is between {INPUT} and {OUTPUT}")
        seen.add((producer, consumer))
    for name in graph.tasks:
        if not any(name == consumer for _, consumer, _ in graph.data):
            raise InvalidValueError(f"{where}: task {name} reads nothing; let it read from input")
        if not any(name == producer for producer, _, _ in graph.data):
            raise InvalidValueError(f"{where}: task {name} writes nothing; let it write to output")


def _check_order(graph: TaskGraph, place: str) -> None:
    """The tasks can run one after the other."""
    left = {name: {p for p, c, _ in graph.data if c == name and p != INPUT} for name in graph.tasks}
    while left:
        ready = [name for name, before in left.items() if not before & set(left)]
        if not ready:
            raise InvalidValueError(
                f"task graph {place}: {', '.join(sorted(left)[:6])} wait for each other"
            )
        for name in ready:
            del left[name]
