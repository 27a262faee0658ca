"""The design spaces: blocks, their connections, and where tasks run and data lie."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, Final

from archgym.envs.soc.blocks.costs import KINDS, blocks
from archgym.envs.soc.graphs.task_graph import Task
from archgym.envs.soc.graphs.workload import Workload
from archgym.space import Categorical, DesignSpace, Ordinal, Parameter, param

__all__ = [
    "ACCELERATOR",
    "BUSES",
    "CORES",
    "MEMORIES",
    "SPACES",
    "baseline_of",
    "lanes_of",
    "spaces",
]

CORES: Final = 3
MEMORIES: Final = 3
BUSES: Final = 3
ACCELERATOR: Final = "accelerator"
SPACES: Final = {
    "full": "three cores, memories and buses, and an accelerator for each task",
    "small": "one core, memory and bus, and accelerators that are all alike; for one graph",
}
_POWERS: Final = 16
_FEW: Final = 9
_NUMBER: Final = {1: "one", 2: "two", 3: "three"}


def spaces(workload: Workload) -> dict[str, DesignSpace]:
    """The spaces of a workload by name, ``full`` as ``default`` too."""
    full = DesignSpace(_full(workload))
    return {"default": full, "full": full, "small": DesignSpace(_small(workload))}


def lanes_of(task: Task) -> tuple[int, ...]:
    """Numbers of lanes of a task's accelerator: powers of two, and as many as it has iterations."""
    powers = [1 << n for n in range(_POWERS) if 1 << n < task.iterations]
    return (*powers, task.iterations)


def baseline_of(space: DesignSpace) -> dict[str, Any]:
    """Everything on the first core, with one slow memory: where FARSI's searches begin."""
    values: dict[str, Any] = {}
    for parameter in space.parameters:
        allowed = space.allowed_codes(space.index(parameter.name))
        values[parameter.name] = parameter.value(allowed[0])
    return space.canonical(values)


def _full(workload: Workload) -> list[Parameter]:
    several = len(workload.graphs) > 1
    clocks, places = blocks().clocks_mhz, tuple(range(MEMORIES))
    cores = tuple(f"core{core}" for core in range(CORES))
    found: list[Parameter] = []
    for name, task in workload.tasks.items():
        if task.accelerator is None:
            found.append(Categorical(f"{name}_on", cores, doc=f"where {name} runs"))
        else:
            found.append(Categorical(f"{name}_on", (*cores, ACCELERATOR), doc=f"where {name} runs"))
            on = param(f"{name}_on") == ACCELERATOR
            found += [
                Ordinal(f"{name}_lanes", lanes_of(task), when=on, doc="lanes of its accelerator"),
                Ordinal(f"{name}_clock_mhz", clocks, unit="MHz", when=on, doc="its clock"),
                Ordinal(f"{name}_bus", tuple(range(BUSES)), when=on, doc="its bus"),
            ]
        found.append(Ordinal(f"{name}_memory", places, doc=f"memory to which {name} writes"))
    for graph in workload.graphs:
        name = f"{graph.name}_input_memory" if several else "input_memory"
        found.append(Ordinal(name, places, doc=f"memory of the inputs of {graph.name}"))
    for core in range(CORES):
        found.append(Ordinal(f"core{core}_bus", tuple(range(BUSES)), doc=f"bus of core {core}"))
    for memory in range(MEMORIES):
        found += _memory(f"memory{memory}")
        found.append(
            Ordinal(f"memory{memory}_bus", tuple(range(BUSES)), doc=f"bus of memory {memory}")
        )
    for bus in range(BUSES):
        found += _channel(f"bus{bus}", f"bus {bus}")
    found += [
        Ordinal(f"bus{bus}_parent", tuple(range(bus)), doc=f"bus to which bus {bus} is connected")
        for bus in range(2, BUSES)
    ]
    return found


def _memory(name: str) -> list[Parameter]:
    return [
        Categorical(f"{name}_kind", KINDS, doc="kind of its cells"),
        *_channel(name, name),
    ]


def _channel(name: str, what: str) -> list[Parameter]:
    b = blocks()
    return [
        Ordinal(f"{name}_width_b", b.widths_b, unit="B", doc=f"bytes a cycle of {what}"),
        Ordinal(f"{name}_clock_mhz", b.clocks_mhz, unit="MHz", doc=f"clock of {what}"),
    ]


def _small(workload: Workload) -> list[Parameter]:
    b = blocks()
    found: list[Parameter] = []
    with_accelerator = [n for n, task in workload.tasks.items() if task.accelerator is not None]
    for name in workload.tasks:
        where = ("core0", ACCELERATOR) if name in with_accelerator else ("core0",)
        found.append(Categorical(f"{name}_on", where, doc=f"where {name} runs"))
    if with_accelerator:
        most = max(workload.tasks[name].iterations for name in with_accelerator)
        step = 2 if most > 1 << _FEW else 1
        lanes = tuple(dict.fromkeys(min(1 << step * n, most) for n in range(_FEW)))
        some = reduce(or_, (param(f"{name}_on") == ACCELERATOR for name in with_accelerator))
        found += [
            Ordinal(
                "lanes", lanes, when=some, doc="lanes of accelerators, at most a task's iterations"
            ),
            Ordinal("clock_mhz", b.clocks_mhz, unit="MHz", when=some, doc="clock of accelerators"),
        ]
    return [
        *found,
        Categorical("memory0_kind", KINDS, doc="kind of cells of the memory"),
        Ordinal("memory0_width_b", b.widths_b, unit="B", doc="bytes a cycle of the memory"),
        Ordinal("bus0_width_b", b.widths_b, unit="B", doc="bytes a cycle of the bus"),
    ]
