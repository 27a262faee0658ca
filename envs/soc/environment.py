"""Systems on chip: blocks, connections and mappings for graphs of tasks, under budgets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar

from archgym.environment.environment import Environment
from archgym.envs.soc.blocks.costs import SOURCE
from archgym.envs.soc.embedded import ACCOUNTING, PLAIN, simulated
from archgym.envs.soc.graphs.workload import (
    DEFAULT_WORKLOAD,
    Workload,
    WorkloadSpec,
    load_workload,
    workload_names,
)
from archgym.envs.soc.metrics import METRICS, graph_metrics
from archgym.envs.soc.space import SPACES, baseline_of, spaces
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult, Simulator
from archgym.simulators.resolve import meant_workload, simulator_file
from archgym.space import Designs, DesignSpace

__all__ = ["SoCEnvironment"]


def _farsi(environment: SoCEnvironment) -> Simulator:
    """Runs FARSI itself on each design."""
    from archgym.envs.soc.external.farsi import FarsiSimulator

    return FarsiSimulator.with_options(environment.simulator_options, environment.loaded)


class SoCEnvironment(Environment):
    """Search the blocks of a system on chip, and where the tasks of a graph run on it.

    >>> import archgym
    >>> env = archgym.make("SoC-v0", workload="cava")
    >>> round(env.evaluate(env.baseline_design).metrics["latency_ms"])
    84882

    Args:
        workload: name of a graph, path of one (``.json``), ``ar`` for three graphs at once, or a
            mapping; see :func:`archgym.envs.soc.graphs.workload.load_workload`.
        accounting: ``plain``; or ``farsi``, which counts power and sizes of memories as FARSI's
            program does, with two oversights of it.
        simulator_options: with ``simulator="farsi"``; see
            :class:`~archgym.envs.soc.external.farsi.FarsiSimulator`.
        **arguments: of :class:`archgym.Environment`; ``space="small"`` has one core, one memory
            and one bus.

    Attributes:
        loaded: the workload.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
        MissingDependencyError: with ``simulator="farsi"``, if FARSI is not there.
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    default_objective: ClassVar = "minimize budget_distance_share"
    default_workload: ClassVar = DEFAULT_WORKLOAD
    simulators: ClassVar = {"farsi": _farsi}
    compiles: ClassVar = True
    version: ClassVar = "0"
    spaces_of_workload: ClassVar = ("default", "full", "small")
    modelled: ClassVar = (
        "tasks that start when what they read is written, one at a time on a core or accelerator",
        "phases between ends of tasks, in which each task runs as fast as its processor, its share "
        "of each bus on the way, and its share of each memory allow",
        "shares in proportion to bursts; connections into a bus that want the same way out of it "
        "share that equally",
        "memories as large as the data that are alive in them at most; energy and area by CACTI",
        "power as the highest mean over 10 ms or longer",
    )
    not_modelled: ClassVar = (
        "latency of hops and arbitration: data flow as a fluid",
        "leakage, and energy and area of buses",
        "streaming between tasks: a task ends before those that read from it start",
        "leaving a task for another one, and what operating systems do",
    )

    def __init__(
        self,
        *,
        workload: WorkloadSpec | None = None,
        space: str | DesignSpace | None = None,
        accounting: str = PLAIN,
        **arguments: Any,
    ) -> None:
        if accounting not in ACCOUNTING:
            raise UnknownNameError("accounting", accounting, ACCOUNTING)
        self.accounting = accounting
        meant = meant_workload(workload, arguments.get("simulator"))  # its graphs decide the space
        self.loaded: Workload = load_workload(self.default_workload if meant is None else meant)
        if space is None and (file := simulator_file(arguments.get("simulator"))) is not None:
            space = file.space
        searched = self._choose_space("default" if space is None else space)
        self.baseline = baseline_of(searched)  # type: ignore[misc]
        super().__init__(workload=workload, space=space, **arguments)

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Takes the graphs."""
        self.loaded = load_workload(spec)

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Runs the graphs on each system."""
        start = time.perf_counter()
        results = simulated(self.loaded, designs, self.accounting)
        spent = (time.perf_counter() - start) / max(1, len(results))
        return [(result, spent) for result in results]

    @property
    def metrics_given(self) -> tuple[str, ...]:
        """All metrics; latencies of the workload's own graphs."""
        return graph_metrics(self.loaded)

    @property
    def workload_name(self) -> str:
        """Names of the graphs."""
        return self.loaded.name

    def hash_workload(self) -> str:
        """Hash of the graphs and their budgets."""
        return self.loaded.sha256

    @property
    def settings(self) -> dict[str, Any]:
        """How is counted."""
        return {"accounting": self.accounting}

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """The graphs that ship, with a line on each."""
        return workload_names()

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The options of FARSI."""
        return {
            "workload": "a name, the path of a graph (.json), or a mapping with graphs",
            "accounting": "plain, or farsi: power and sizes of memories as FARSI counts them",
            "simulator_options": "for 'farsi': a mapping with folder, program and time_limit_s",
        }

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Where mechanism and figures come from."""
        return {
            "mechanism": "Boroujerdian et al., ACM Trans. Embed. Comput. Syst. 22 (2023): FARSI",
            "blocks": SOURCE,
            "graphs": "FARSI's tables (facebookresearch/Project_FARSI, commit ce59c96, MIT)",
            "baseline": "the system with which FARSI begins a search: one core, one memory",
        }

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Figures of FARSI on known systems.

        :mod:`archgym.envs.soc.validation.reference` describes the tables.
        """
        from archgym.envs.soc.validation.reference import read_reference, shipped_references

        if hardware is not None:
            raise InvalidValueError("the tables of SoC-v0 have no hardware")
        return shipped_references() if table is None else read_reference(table, workloads)

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The design spaces of the default workload; those of others have its tasks."""
        return spaces(load_workload(DEFAULT_WORKLOAD))

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        offered = spaces(self.loaded)
        if isinstance(space, DesignSpace):
            known = {*offered["full"].names, *offered["small"].names}
            for name in space.names:
                if name not in known:
                    raise UnknownNameError("parameter of the space", name, known)
            return space
        if space not in offered:
            raise UnknownNameError("space", space, SPACES)
        return offered[space]
