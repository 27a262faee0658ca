"""A system in FARSI's words: names of its blocks, connections, and what lies where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from archgym.envs.soc.blocks.costs import KINDS, blocks
from archgym.envs.soc.graphs.workload import Workload
from archgym.envs.soc.space import ACCELERATOR, BUSES, CORES, MEMORIES
from archgym.envs.soc.systems import SMALL_CLOCK_MHZ
from archgym.errors import NotCoveredError

__all__ = ["describe"]

_SOURCE: Final = "souurce"
_SINK: Final = "siink"
_MORE_ENDS: Final = {"audio_decoder": ("dummy_last",)}
_MEMORIES: Final = {"sram": "LMEM", "dram": "GMEM"}


def describe(workload: Workload, design: Mapping[str, Any]) -> dict[str, Any]:
    """What :mod:`archgym.envs.soc.external.driver` builds of FARSI's blocks.

    Blocks that nothing uses are left out.

    Raises:
        NotCoveredError: if the workload is not one graph of FARSI's own tables.
    """
    graph = workload.graphs[0]
    if len(workload.graphs) > 1 or not graph.alias:
        raise NotCoveredError("FARSI runs one of its own graphs: edge_detection, cava, audio")
    processors: list[dict[str, Any]] = []
    numbers: dict[str, int] = {}

    def processor(name: str, block: str, bus: int) -> int:
        if name not in numbers:
            numbers[name] = len(processors)
            processors.append({"block": block, "bus": bus})
        return numbers[name]

    cores = [int(design.get(f"core{core}_bus", 0)) for core in range(CORES)]
    runs = {_SOURCE: processor("core0", "A53_pe", cores[0])}
    for end in (*_MORE_ENDS.get(graph.alias, ()), _SINK):
        runs[end] = runs[_SOURCE]
    writes = {_SOURCE: int(design.get("input_memory", 0))}
    for name, task in workload.tasks.items():
        on = str(design[f"{name}_on"])
        if on == ACCELERATOR:
            lanes = min(int(design.get(f"{name}_lanes", design.get("lanes", 1))), task.iterations)
            clock = int(design.get(f"{name}_clock_mhz", design.get("clock_mhz", 100)))
            block = f"{task.alias}_IP0_{lanes}_{_times(clock)}_pe"
            runs[task.alias] = processor(name, block, int(design.get(f"{name}_bus", 0)))
        else:
            runs[task.alias] = processor(on, "A53_pe", cores[int(on.removeprefix("core"))])
        writes[task.alias] = int(design.get(f"{name}_memory", 0))
    for end in _MORE_ENDS.get(graph.alias, ()):
        writes[end] = writes[_SOURCE]  # a byte without effect
    used = [memory for memory in range(MEMORIES) if memory in writes.values()]
    return {
        "workload": graph.alias,
        "buses": [f"LMEM_ic_{_channel(design, f'bus{bus}')}_ic" for bus in range(BUSES)],
        "links": [[bus, int(design.get(f"bus{bus}_parent", 0))] for bus in range(1, BUSES)],
        "memories": [
            {
                "block": f"{_MEMORIES[design.get(f'memory{memory}_kind', KINDS[0])]}_"
                f"{_channel(design, f'memory{memory}')}_mem",
                "bus": int(design.get(f"memory{memory}_bus", 0)),
            }
            for memory in used
        ],
        "processors": processors,
        "task_processor": runs,
        "task_memory": {name: used.index(memory) for name, memory in writes.items()},
    }


def _channel(design: Mapping[str, Any], name: str) -> str:
    """Number of the width and clock, as FARSI's names have them."""
    widths = blocks().widths_b
    width = widths.index(int(design.get(f"{name}_width_b", widths[0])))
    return f"{width}_{_times(int(design.get(f'{name}_clock_mhz', SMALL_CLOCK_MHZ)))}"


def _times(clock_mhz: int) -> int:
    return clock_mhz // blocks().clocks_mhz[0]
