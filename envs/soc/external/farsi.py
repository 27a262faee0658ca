"""FARSI as a simulator of SoC-v0.

FARSI (facebookresearch/Project_FARSI) is not on PyPI: it is a folder of Python sources, whose path
is in the environment variable ``ARCHGYM_FARSI``. It needs numpy below 2, pandas below 2, sympy,
dill, plotly, psutil and matplotlib, which may be in another Python: ``ARCHGYM_FARSI_PYTHON`` names
its interpreter. CACTI is not needed: FARSI gets the shipped figures of memories.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final, Self

from archgym.envs.soc.blocks.costs import KINDS, memory_costs
from archgym.envs.soc.external.description import describe
from archgym.envs.soc.graphs.workload import Workload
from archgym.envs.soc.metrics import budget_metrics
from archgym.errors import (
    InvalidValueError,
    MissingDependencyError,
    SimulationError,
    UnknownNameError,
)
from archgym.problem.simulator import SimulationResult
from archgym.simulators.external import find_program, private_folder, run_program
from archgym.space import Designs

__all__ = ["FarsiSimulator"]

_OPTIONS: Final = ("folder", "program", "time_limit_s")
_START_S: Final = 120.0
_INSTALL: Final = (
    "Clone https://github.com/facebookresearch/Project_FARSI and set ARCHGYM_FARSI to its folder."
)
_CACTI_NAMES: Final = {"sram": "ram", "dram": "main memory"}
_UNITS: Final = {
    "latency_ms": ("latency", 1e3),
    "power_mw": ("power", 1e3),
    "energy_mj": ("energy", 1e3),
    "area_mm2": ("area", 1e6),
}


class FarsiSimulator:
    """Runs batches of systems in a process of FARSI, without a shell, with limits of time.

    Args:
        workload: one graph of FARSI's own tables.
        folder: of FARSI's sources; by default that of ``ARCHGYM_FARSI``.
        program: the interpreter that has what FARSI imports; by default that of
            ``ARCHGYM_FARSI_PYTHON``, or ``python3``.
        time_limit_s: of one system, s. FARSI does not end on some.

    Attributes:
        name: ``farsi``.
        version: of the way in which FARSI is run; FARSI's sources have none.
        metric_names: latency, power, energy and area.

    Raises:
        MissingDependencyError: if FARSI is not there.
        InvalidValueError: for a bad option, or another workload.
    """

    name = "farsi"
    version = "1"

    def __init__(
        self,
        workload: Workload,
        *,
        folder: Path | str | None = None,
        program: Path | str | None = None,
        time_limit_s: float = 60.0,
    ) -> None:
        good = isinstance(time_limit_s, int | float) and not isinstance(time_limit_s, bool)
        if not good or not 0 < time_limit_s < 1e6:
            raise InvalidValueError(
                f"simulator_options: time_limit_s is {time_limit_s!r}, it must be above 0 s"
            )
        if len(workload.graphs) > 1 or not workload.graphs[0].alias:
            raise InvalidValueError(
                f"workload {workload.name!r}: FARSI runs edge_detection, cava or audio"
            )
        self.workload = workload
        self.time_limit_s = float(time_limit_s)
        self.folder = Path(folder or os.environ.get("ARCHGYM_FARSI", "")).absolute()
        if not (self.folder / "top" / "main_FARSI.py").is_file():
            given = folder or os.environ.get("ARCHGYM_FARSI")
            what = f"{str(given)!r} is not FARSI's folder" if given else "FARSI is not there"
            raise MissingDependencyError(f"{what}. {_INSTALL}")
        self.program = Path(program) if program else find_program("python3", "ARCHGYM_FARSI_PYTHON")
        graph = workload.graphs[0]
        self.metric_names: tuple[str, ...] = (
            "latency_ms",
            f"{graph.name}_latency_ms",
            "power_mw",
            "energy_mj",
            "area_mm2",
            "budget_distance_share",
            "latency_budget_share",
        )

    @classmethod
    def with_options(cls, options: Mapping[str, Any], workload: Workload) -> Self:
        """The simulator with options that a user gave.

        Raises:
            UnknownNameError: for an option that does not exist.
        """
        for option in options:
            if option not in _OPTIONS:
                raise UnknownNameError("option", option, _OPTIONS, "simulator_options")
        return cls(workload, **options)

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Runs designs one after the other; see :class:`archgym.problem.simulator.Simulator`."""
        start = time.perf_counter()
        systems = [json.dumps(describe(self.workload, design)) for design in designs]
        driver = resources.files("archgym.envs.soc.external").joinpath("driver.py")
        with private_folder() as folder, resources.as_file(driver) as script:
            (folder / "systems").write_text("\n".join(systems), encoding="utf-8")
            (folder / "memories.csv").write_text(self._memories(), encoding="utf-8")
            output = run_program(
                [
                    self.program,
                    script,
                    self.folder,
                    "systems",
                    folder / "memories.csv",
                    str(self.time_limit_s),
                ],
                folder,
                time_limit_s=_START_S + self.time_limit_s * len(systems),
                name="FARSI",
            )
        results = [self._result(line) for line in output.stdout.splitlines()]
        if len(results) != len(systems):
            raise SimulationError(f"FARSI gave {len(results)} results for {len(systems)} systems")
        spent = (time.perf_counter() - start) / max(1, len(results))
        return [(result, spent) for result in results]

    def _result(self, line: str) -> SimulationResult:
        try:
            found = json.loads(line)
            if found.get("timeout"):
                return TimeoutError(f"FARSI took longer than {self.time_limit_s:g} s")
            if "error" in found:
                return SimulationError(f"FARSI: {found['error']}")
            values = {name: float(found[key]) * unit for name, (key, unit) in _UNITS.items()}
            figures = {**values, **budget_metrics(self.workload, values)}
        except (ValueError, KeyError, TypeError, AttributeError):
            return SimulationError(f"FARSI gave {line!r:.80} as a result")
        return {**figures, self.metric_names[1]: values["latency_ms"]}

    def _memories(self) -> str:
        """The figures of memories in the form of FARSI's cache of CACTI."""
        costs = memory_costs()
        most = sum(size for _, _, size in self.workload.graphs[0].data)
        lines = ["mem_subtype,mem_size,read_energy_per_byte,write_energy_per_byte,area"]
        for row, kind in enumerate(KINDS):
            for blocks in range(1, int(most // costs.block_b) + 2):
                figures = (table[row, blocks - 1] for table in costs[1:])
                numbers = ",".join(repr(float(figure)) for figure in figures)
                lines.append(f"{_CACTI_NAMES[kind]},{int(blocks * costs.block_b)},{numbers}")
        return "\n".join(lines) + "\n"
