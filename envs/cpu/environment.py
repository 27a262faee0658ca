"""The processor environment: caches, prefetchers and translation around real programs."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from archgym.environment.environment import Environment
from archgym.envs.cpu.core_run import CORE_OBJECTIVE, CoreRuns
from archgym.envs.cpu.core_space import CORE_METRICS
from archgym.envs.cpu.cost.sram import SOURCE
from archgym.envs.cpu.hierarchy.cachegrind import Cachegrind
from archgym.envs.cpu.hierarchy.config import HierarchyConfig
from archgym.envs.cpu.hierarchy.fast import LevelByLevel
from archgym.envs.cpu.hierarchy.layout import make_caches
from archgym.envs.cpu.hierarchy.prefetchers import make_prefetchers
from archgym.envs.cpu.hierarchy.run import run_references
from archgym.envs.cpu.hierarchy.translation import TranslationConfig, translate
from archgym.envs.cpu.metrics import METRICS, costs_of, mean_over_programs, metrics_of
from archgym.envs.cpu.space import (
    BASELINE,
    as_champsim,
    baseline_in,
    baseline_values,
    check_parameters,
    hierarchy_of,
    prefetchers_of,
    spaces,
    translation_of,
)
from archgym.envs.cpu.traces.preparation import references_of
from archgym.envs.cpu.traces.program import MODIFY, Program
from archgym.envs.cpu.traces.workload import (
    DEFAULT_WORKLOAD,
    Workload,
    WorkloadSpec,
    canonical_workload,
    load_workload,
    program_label,
    workload_names,
)
from archgym.errors import InvalidValueError, NotCoveredError, UnknownNameError
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult
from archgym.space import Designs, DesignSpace

__all__ = ["CPUEnvironment"]

_CORE_METRICS: Final = tuple(metric.name for metric in CORE_METRICS)
_PREFETCH_METRICS: Final = ("prefetch_accuracy_share", "prefetch_coverage_share", "page_walk_pki")
_KEPT_MODELS: Final = 8
_COUNTING: Final = ("plain", "champsim", "cachegrind")
_CACHEGRIND_OBJECTIVE: Final = {
    "product": {"l1i_mpki": 1, "l1d_mpki": 1, "llc_mpki": 1},
    "limits": ["area_um2 <= 4000000"],
}
_UNCOUNTED_BY_CACHEGRIND: Final = (
    "access_time_mean_ns",
    "l2_mpki",
    "dram_traffic_per_instruction_b",
    "energy_per_instruction_pj",
)


class CPUEnvironment(Environment):
    """Search the caches of a processor on instruction streams of real programs.

    >>> import archgym
    >>> env = archgym.make("CPU-v0", workload={"generator": "stream", "instructions": 20000})
    >>> outcome = env.evaluate(env.baseline_design)
    >>> 30 < outcome.metrics["l1d_mpki"] < 40
    True

    Args:
        workload: name of a recorded program or a generator, path of a ChampSim trace or of an
            ``.npz`` stream, a mapping, or a list of programs; see
            :func:`archgym.envs.cpu.traces.workload.load_workload`.
        memory_ns: time of a read of memory, ns.
        counting: ``plain``; ``champsim``, where hits of stores and write-backs are no use of a
            line except to SRRIP, and page tables are walked in every space; or ``cachegrind``,
            which has virtual addresses and counts a reference once in each level, for two levels
            with least recently used replacement. A space without ``l2_kib`` or ``llc_inclusion``
            then has no second level, and a last one that is not inclusive.
        **arguments: of :class:`archgym.Environment`; ``space="memory"`` adds prefetchers and
            translation buffers to the caches, ``space="core"`` the core and its cycles.

    Attributes:
        loaded: the programs.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not allowed.
        TraceError: if the workload's file cannot be read.
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    default_objective: ClassVar = {
        "product": {"access_time_mean_ns": 1, "energy_per_instruction_pj": 1},
        "limits": ["area_um2 <= 4000000"],
    }
    baseline: ClassVar[Mapping[str, Any]] = {
        name: BASELINE[name] for name in spaces()["default"].names
    }
    compiles: ClassVar = True
    default_workload: ClassVar[Any] = DEFAULT_WORKLOAD
    version: ClassVar = "0"
    fidelities: tuple[Fidelity, ...] = (
        Fidelity(0.1, 0.1, "the first tenth of the instructions of each program"),
        Fidelity(0.3, 0.3, "the first three tenths of the instructions of each program"),
        FULL,
    )
    modelled: ClassVar = (
        "every fetch, load and store of a recorded instruction stream, with accesses that straddle "
        "lines",
        "set-associative caches for instructions and data, a second and a last level; write-back "
        "and write-allocate; non-inclusive, inclusive and exclusive",
        "replacement: least recently used, SRRIP, DRRIP, random, SHiP",
        "prefetchers: next line, strides by instruction, streams, signature paths",
        "translation buffers and walks of a page table of five levels through the caches; page "
        "frames in the random order of ChampSim",
        "in the space core: an out-of-order core from branch prediction to retirement, with misses "
        "under way, prefetches that take time, and memory with banks and rows",
        "storage; area, energy, leakage and access times by a table of CACTI 7",
    )
    not_modelled: ClassVar = (
        "time, but in the space core: prefetches arrive at once, misses do not overlap",
        "misspeculated instructions, the operating system, and other cores",
        "bandwidth and queues of the memory; a read takes a fixed time",
        "energy of memory and of wires between caches",
    )

    def __init__(
        self,
        *,
        workload: WorkloadSpec | None = None,
        space: str | DesignSpace | None = None,
        memory_ns: float = 60.0,
        counting: str = "plain",
        **arguments: Any,
    ) -> None:
        if counting not in _COUNTING:
            raise UnknownNameError("counting", counting, _COUNTING)
        self.counting = counting
        good = isinstance(memory_ns, (int, float)) and not isinstance(memory_ns, bool)
        if not good or not 1 <= memory_ns <= 10_000:
            raise InvalidValueError(f"memory_ns={memory_ns!r} must be a number from 1 to 10000")
        self.memory_ns = float(memory_ns)
        self.loaded: Workload
        searched = self._choose_space("default" if space is None else space)
        self.baseline = baseline_in(searched, counting)  # type: ignore[misc]
        if "rob_size" in searched.names:
            self.default_objective = CORE_OBJECTIVE  # type: ignore[misc]
        if counting == "cachegrind" and arguments.get("objective") is None:
            arguments["objective"] = _CACHEGRIND_OBJECTIVE
        super().__init__(workload=workload, space=space, **arguments)

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Loads the programs; what is prepared of them is kept between designs."""
        self.loaded = load_workload(spec)
        self._cachegrind: dict[tuple[int, float], Cachegrind] = {}
        self._cores: dict[tuple[int, float], CoreRuns] = {}
        self._models: OrderedDict[tuple[Any, ...], tuple[LevelByLevel, int]] = OrderedDict()

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        """Runs each program, or its first instructions, through the caches of each design."""
        results: list[tuple[SimulationResult, float]] = []
        for design in designs:
            start = time.perf_counter()
            result: SimulationResult
            try:
                found = [
                    self._simulated(number, design, fidelity)
                    for number in range(len(self.loaded.programs))
                ]
            except NotCoveredError as error:
                result = error
            except InvalidValueError as error:  # sizes of a user's space that do not fit
                result = NotCoveredError(str(error))
            else:
                means = mean_over_programs(found)
                result = {name: means[name] for name in self.metrics_given}
            results.append((result, time.perf_counter() - start))
        return results

    def _simulated(
        self, number: int, design: Mapping[str, Any], fidelity: float
    ) -> dict[str, float]:
        """The metrics of one program."""
        config = hierarchy_of(design, baseline_values(self.counting))
        prefetchers = prefetchers_of(design)
        if self.counting == "cachegrind":
            return self._as_cachegrind(number, config, fidelity)
        if "rob_size" in design:
            key = (number, fidelity)
            if key not in self._cores:
                self._cores[key] = CoreRuns(self._part(number, fidelity), self.memory_ns)
            return self._cores[key].metrics(design, self.counting == "champsim")
        if self.counting == "champsim":
            config = as_champsim(config)
        model, walks = self._model(number, translation_of(design), fidelity)
        if all(one.kind == "none" for one in prefetchers):
            counted = model.run(config)
            counts, events = counted.counts, counted.events
        else:
            caches = make_caches(config)
            columns = model.references
            nothing = np.zeros(1, np.int64)
            run_references(
                caches,
                make_prefetchers(config, *prefetchers),
                columns.kind,
                columns.address,
                columns.size,
                columns.ip,
                nothing,
                nothing,
            )
            counts, events = caches.counts, caches.events
        return metrics_of(
            config,
            counts,
            events,
            instructions=model.references.instructions,
            walks=walks,
            memory_ns=self.memory_ns,
        )

    def _as_cachegrind(
        self, number: int, config: HierarchyConfig, fidelity: float
    ) -> dict[str, float]:
        """The metrics that cachegrind's counts give."""
        levels = (config.l1i, config.l1d, config.llc)
        if (
            config.l2 is not None
            or config.llc.inclusion != "non_inclusive"
            or any(level.replacement != "lru" for level in levels)
        ):
            raise NotCoveredError(
                "cachegrind has no second level, l2_kib=0, and only least recently used "
                "replacement in levels that are not inclusive"
            )
        key = (number, fidelity)
        if key not in self._cachegrind:
            program = self._part(number, fidelity)
            modified = int((program.data_kind == MODIFY).sum())
            self._cachegrind[key] = Cachegrind(references_of(program), modified)
        counts = self._cachegrind[key].counts(*levels)
        kilo = counts.Ir / 1000
        return costs_of(config) | {
            "l1i_mpki": counts.I1mr / kilo,
            "l1d_mpki": (counts.D1mr + counts.D1mw) / kilo,
            "llc_mpki": (counts.ILmr + counts.DLmr + counts.DLmw) / kilo,
        }

    def _part(self, number: int, fidelity: float) -> Program:
        """A program, or its first instructions."""
        program = self.loaded.programs[number]
        if fidelity == 1:
            return program
        return program.part(0, max(1, round(fidelity * len(program))))

    def _model(
        self, number: int, translation: TranslationConfig | None, fidelity: float
    ) -> tuple[LevelByLevel, int]:
        """A program with physical addresses, and its walks of the page table."""
        key = (number, translation, fidelity)
        found = self._models.get(key)
        if found is None:
            program = self._part(number, fidelity)
            walks = translation is not None or self.counting == "champsim"
            done = translate(
                references_of(program), translation or TranslationConfig(), walks=walks
            )
            found = self._models[key] = LevelByLevel(done.references), done.misses["stlb"]
            while len(self._models) > _KEPT_MODELS * len(self.loaded.programs):
                self._models.popitem(last=False)
        self._models.move_to_end(key)
        return found

    @property
    def metrics_given(self) -> tuple[str, ...]:
        """All metrics; those of prefetchers and translation only where these are searched."""
        left_out: tuple[str, ...] = (
            () if "itlb_entries" in self.design_space.names else _PREFETCH_METRICS
        )
        if "rob_size" not in self.design_space.names:
            left_out = (*left_out, *_CORE_METRICS)
        if self.counting == "cachegrind":
            left_out = (*_CORE_METRICS, *_PREFETCH_METRICS, *_UNCOUNTED_BY_CACHEGRIND)
        return tuple(metric.name for metric in self.metrics if metric.name not in left_out)

    @property
    def workload_name(self) -> str:
        """Labels of the programs."""
        chosen = canonical_workload(self.workload)
        return "+".join(program_label(one) for one in chosen.get("programs", [chosen]))

    def hash_workload(self) -> str:
        """Hash of the programs."""
        together = "".join(program.sha256 for program in self.loaded.programs)
        return hashlib.sha256(together.encode()).hexdigest()

    def held_out_workload(self) -> Any:
        """The programs that the workload names as held out."""
        held_out = canonical_workload(self.workload).get("held_out")
        return {"programs": held_out} if held_out else None

    @property
    def settings(self) -> dict[str, Any]:
        """The time of memory, and how is counted."""
        return {"memory_ns": self.memory_ns, "counting": self.counting}

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """Recorded programs and generators, with a line on each."""
        return workload_names()

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The time of memory, and how is counted."""
        return {
            "memory_ns": "time of a read of memory, ns, from 1 to 10000",
            "counting": f"one of {', '.join(_COUNTING)}",
        }

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Sources of the constants and mechanisms."""
        return {
            "area, energy, leakage, access times": SOURCE,
            "replacement": "LRU; RRIP: Jaleel et al., ISCA 2010; SHiP-PC: Wu et al., MICRO 2011",
            "branch prediction": "Smith, ISCA 1981; McFarling 1993; Jimenez and Lin, HPCA 2001; "
            "Tarjan and Skadron, TACO 2005; Seznec and Michaud, JILP 2006",
            "core": "stages, queues and latencies of ChampSim 2ff2501",
            "prefetchers": "Smith 1982; Fu et al., MICRO 1992; Srinath et al., HPCA 2007; Kim et "
            "al., MICRO 2016",
            "translation": "sizes of buffers and walk caches, and page frames: ChampSim's defaults",
            "baseline": "Intel's Optimization Reference Manual, Skylake client",
        }

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Counts of cachegrind and ChampSim on known designs.

        :mod:`archgym.envs.cpu.validation.reference` says which tables can be read.
        """
        from archgym.envs.cpu.validation.reference import read_reference, shipped_references

        if hardware is not None:
            raise InvalidValueError("the tables of CPU-v0 say what hardware their rows have")
        return shipped_references() if table is None else read_reference(table, workloads)

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The design spaces."""
        return spaces()

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        chosen = super()._choose_space(space)
        check_parameters(chosen)
        return chosen
