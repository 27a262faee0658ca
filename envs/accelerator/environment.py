"""The accelerator environment: hardware, dataflow and mapping of DNN accelerators."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Dict
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

from archgym.environment.environment import Environment
from archgym.envs.accelerator.arrays_per_layer import costs_of_layers, simulations
from archgym.envs.accelerator.cost.energy import clock_mhz
from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.layer_costs import LayerCost, layer_costs, unmapped_error
from archgym.envs.accelerator.cost.model import MAPPERS, Costs, evaluate, evaluate_mappings
from archgym.envs.accelerator.cost.technology import SOURCES, TECHNOLOGIES
from archgym.envs.accelerator.external.by_name import DEFAULTS, DESCRIPTIONS, PROGRAMS
from archgym.envs.accelerator.mapper_for_objective import mapper_for
from archgym.envs.accelerator.spaces import mapping as space_mapping
from archgym.envs.accelerator.spaces import template as space_template
from archgym.envs.accelerator.spaces.by_name import (
    SPACES,
    baseline_in,
    check_budget,
    check_hardware,
    hardware_in,
    space_name,
    space_named,
)
from archgym.envs.accelerator.workload.features import FEATURES, network_features
from archgym.envs.accelerator.workload.layer import Network
from archgym.envs.accelerator.workload.varied import VARIED
from archgym.envs.accelerator.workload.workload import (
    WorkloadSpec,
    load_workload,
    network_sha256,
    workload_label,
    workload_names,
)
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult, Simulator
from archgym.space import Designs, DesignSpace

__all__ = ["SPACES", "AcceleratorEnvironment", "LayerCost"]

_DEFAULT_WORKLOAD = "resnet18"
_TOGETHER = ("buffer_split_bytes", "prefetch", "tiles")
"""Fields of the hardware whose allowed values depend on other fields."""


def _external(name: str) -> Callable[[AcceleratorEnvironment], Simulator]:
    """Makes an external simulator for an environment."""

    def make(environment: AcceleratorEnvironment) -> Simulator:
        return PROGRAMS[name].with_options(
            environment.simulator_options, environment.network, environment.hardware
        )

    make.__doc__ = DESCRIPTIONS[name]
    return make


class AcceleratorEnvironment(Environment):
    """Search the hardware, dataflow and mapping of a DNN accelerator for a network.

    >>> import archgym
    >>> env = archgym.make("Accelerator-v0", workload="alexnet")
    >>> outcome = env.evaluate(env.baseline_design)
    >>> 0 < outcome.metrics["utilisation_rate"] <= 1
    True
    >>> sum(layer.macs * layer.count for layer in env.layers(outcome.design)) == env.network.macs
    True

    Args:
        space: ``template`` (the default), ``mapping``, ``per_layer`` or ``eyeriss``, or a design
            space of the user with the parameters of one of them.
        workload: name of a network, path of a file, or a mapping; see
            :func:`archgym.envs.accelerator.workload.workload.load_workload`.
        mapper: what the built-in mapper minimises for each layer: ``latency``, ``energy`` or
            ``edp``; ``off`` (or False) for the dataflow's published mapping. By default what the
            objective asks for (:func:`archgym.envs.accelerator.mapper_for_objective.mapper_for`).
        hardware: fields of :class:`archgym.envs.accelerator.cost.hardware.Hardware` that hold for
            all designs, whatever the space says.
        budget: for ``template``: maximum ``pes`` and ``memory_kib``; for ``per_layer``: ``of``
            (``area`` or ``power``) and ``share``, the usable share of the largest design's.
        simulator_options: for the external simulators.
        **arguments: those of :class:`archgym.Environment`. With ``simulator="scalesim"`` or
            ``"maestro"``, which know no energy that could be compared, the default objective is
            ``minimize latency_ns``; with ``"scalesim"`` the baseline is a systolic array, with
            ``"timeloop"`` a row-stationary one.

    Attributes:
        network: what the designs run.
    """

    version: ClassVar = "2"
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("latency_cycles", "cycles", "minimize", "time of one run of the network"),
        Metric("latency_ns", "ns", "minimize", "the same, at the design's clock"),
        Metric("energy_pj", "pJ", "minimize", "dynamic energy of one run, memory included"),
        Metric("area_um2", "µm²", "minimize", "of the chip with its memory interface, no pads"),
        Metric("power_mw", "mW", "minimize", "energy over time"),
        Metric("utilisation_rate", "", "maximize", "share of the peak multiply-accumulates"),
        Metric("dram_bytes", "bytes", "minimize", "read from and written to memory"),
        Metric("edp_js", "Js", "minimize", "energy times time"),
    )
    default_objective: ClassVar[str | Dict[str, Any]] = "minimize edp_js"
    baseline: ClassVar[Dict[str, Any]] = space_template.BASELINE
    compiles: ClassVar = True
    default_workload: ClassVar[Any] = _DEFAULT_WORKLOAD
    modelled: ClassVar[tuple[str, ...]] = (
        "folds of a layer on a systolic array, exact to the cycle where memory does not stall it",
        "reuse in spatial arrays by dataflow and mapping; traffic at every level of memory",
        "stalls where the memory's bandwidth does not keep up",
        "a mapper: tiles, loop orders and parts of the array, for latency, energy or their product",
        "area of PEs, buffers, network on chip and memory interface; energy of operations, "
        "register files, buffers, wires and memory",
    )
    not_modelled: ClassVar[tuple[str, ...]] = (
        "leakage and clock tree: energy is that of operations and accesses",
        "sparsity",
        "what stays in the buffer from one layer to the next",
        "a systolic array used in part: data pass all its rows and columns, so more may be slower",
        "more than one word a port of a scratch pad: a PE does one multiply-accumulate a cycle",
        "pages and banks of the memory outside the chip: it has a bandwidth and an energy a bit",
    )
    simulators: ClassVar[Dict[str, Callable[[Any], Simulator]]] = {
        name: _external(name) for name in PROGRAMS
    }
    spaces_of_workload: ClassVar[tuple[str, ...]] = ("mapping", "per_layer")

    def __init__(
        self,
        *,
        space: str | DesignSpace | None = None,
        workload: WorkloadSpec | None = None,
        mapper: str | bool | None = None,
        hardware: Dict[str, Any] | None = None,
        budget: Dict[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        for name, value in (("hardware", hardware), ("budget", budget)):
            if value is not None and not isinstance(value, Dict):
                raise InvalidValueError(f"{name} is {value!r:.80}; it must be a mapping")
        self.hardware_fields = dict(hardware or {})
        known = [field.name for field in fields(Hardware)]
        for name in self.hardware_fields:
            if name not in known:
                raise UnknownNameError("field of the hardware", name, known, "hardware")
        # Wrong fields are reported first: the rules of the space depend on them.
        alone = {k: v for k, v in self.hardware_fields.items() if k not in _TOGETHER}
        Hardware(**{"dataflow": "nvdla_ws", "rows": 1, "columns": 1, **alone})
        self.budget = dict(budget or {})
        self.network: Network
        # The spaces of mappings and layers depend on the network, which is therefore loaded first.
        simulator = arguments.get("simulator")
        kept = _kept(simulator)
        space = kept.get("space", "template") if space is None else space
        self.load_workload(
            kept.get("workload", _DEFAULT_WORKLOAD) if workload is None else workload
        )
        self.space_name = space_name(space)
        check_budget(self.space_name, self.budget)
        check_hardware(self.space_name, self.hardware_fields)
        baseline = baseline_in(space, self.network, self.budget, self.hardware_fields)
        if isinstance(simulator, str) and simulator in DEFAULTS:
            self.default_objective, changes = DEFAULTS[simulator]  # type: ignore[misc]
            if self.space_name == "template":
                baseline = {**baseline, **changes}
        self.baseline = baseline  # type: ignore[misc]
        if mapper is None:
            mapper = kept.get("mapper")
        if mapper is None:
            objective = arguments.get("objective")
            mapper = mapper_for(self.default_objective if objective is None else objective)
        # YAML reads a bare off as false.
        self.mapper = "off" if mapper is False else str(mapper)
        if self.mapper not in MAPPERS:
            raise UnknownNameError("mapper", mapper, MAPPERS)
        super().__init__(space=space, workload=workload, **arguments)
        if self.hardware_fields and self.space_name != "per_layer":
            self.hardware(self.baseline_design)  # refuses what is possible only with other fields

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Runs the network on the designs, on all cores."""
        start = time.perf_counter()
        rows = list(designs)
        if self.space_name == "per_layer":
            results = simulations(self._costs_of_layers(rows)) if rows else []
        else:
            results = _results(self._costs(rows))
        each = (time.perf_counter() - start) / max(1, len(rows))
        return [(result, each) for result in results]

    def hardware(self, design: Dict[str, Any]) -> Hardware:
        """The hardware that a design describes.

        Raises:
            InvalidValueError: in space ``per_layer``, where every layer has its own.
        """
        return hardware_in(self.space_name, design, self.hardware_fields)

    def assumptions(self, design: Dict[str, Any]) -> list[str]:
        """The clock, which is the technology's unless an argument sets it."""
        if self.space_name == "per_layer":
            return []
        hardware = self.hardware(design)
        clock = f"clock {clock_mhz(hardware):g} MHz"
        given = "as given" if hardware.clock_mhz else f"of technology {hardware.technology}"
        return [f"{clock}, {given}"]

    def costs(self, design: Dict[str, Any]) -> Costs:
        """Costs of each layer on a design, all figures of the cost model.

        Raises:
            InvalidValueError: in space ``per_layer``, see :meth:`layers`.
        """
        return self._costs([self.design_space.canonical(design)])

    def layers(self, design: Dict[str, Any]) -> list[LayerCost]:
        """Costs of each layer on a design, in the order of the network.

        Raises:
            NotCoveredError: if a layer does not fit the design.
        """
        canonical = self.design_space.canonical(design)
        if self.space_name != "per_layer":
            return layer_costs(self._costs([canonical]))
        parts = self._costs_of_layers([canonical])
        return [layer for costs in parts for layer in layer_costs(costs)]

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Loads the network."""
        self.network = load_workload(spec)
        self._table = self.network.table

    @property
    def workload_features(self) -> dict[str, float]:
        """Size, kinds of layers, reuse and shapes of the network."""
        return network_features(self.network)

    @classmethod
    def workload_feature_docs(cls) -> dict[str, str]:
        """Meaning of :attr:`workload_features`."""
        return dict(FEATURES)

    @classmethod
    def varied_workloads(cls) -> tuple[WorkloadSpec, ...]:
        """The networks, and variants of them in image, batch, tokens and size."""
        return VARIED

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """Networks, with a line on each."""
        return workload_names()

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The mapper, the hardware and the budget."""
        return {
            "mapper": ", ".join(MAPPERS) + "; by default what the objective asks for",
            "hardware": "a mapping with any of " + ", ".join(f.name for f in fields(Hardware)),
            "budget": "space 'template': pes, memory_kib; space 'per_layer': of ('area' or "
            "'power'), share",
            "simulator_options": "for the external simulators: a mapping with any of "
            "time_limit_s, threads, program",
            "technology": ", ".join(TECHNOLOGIES) + " (a field of hardware)",
        }

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Of the technologies' constants."""
        return dict(SOURCES)

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Figures of SCALE-Sim, MAESTRO, ZigZag and Timeloop on known designs.

        :mod:`archgym.envs.accelerator.validation.reference` says which tables can be read.
        """
        from archgym.envs.accelerator.validation.reference import read_reference, shipped_references

        if table is None:
            return shipped_references()
        return read_reference(table)

    @classmethod
    def draw(cls, design: Dict[str, Any], path: Path) -> None:
        """Draws a design of the default space into a file, PNG, SVG or PDF by its ending.

        Beside the schematic, files whose names end in ``-roofline`` and ``-energy`` show the
        layers of the default workload under the design's roofline, and where their energy goes.

        Raises:
            InvalidValueError: if a layer does not fit the design, or a file cannot be written.
        """
        from archgym.envs.accelerator.drawing.pictures import design_figures, save_figure

        environment = cls()
        for name, figure in design_figures(environment.costs(design), environment.network).items():
            ending = "" if name == "schematic" else f"-{name}"
            save_figure(figure, path.with_name(f"{path.stem}{ending}{path.suffix}"))

    @property
    def workload_name(self) -> str:
        """Short label of the network."""
        return workload_label(self.workload)

    def hash_workload(self) -> str:
        """Hash of the network's layers."""
        return network_sha256(self.network)

    @property
    def settings(self) -> dict[str, Any]:
        """The mapper, and what is set of hardware and budget."""
        return {
            "mapper": self.mapper,
            **({"hardware": self.hardware_fields} if self.hardware_fields else {}),
            **({"budget": self.budget} if self.budget else {}),
        }

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The design spaces, for the default workload."""
        network = load_workload(_DEFAULT_WORKLOAD)
        return {name: space_named(name, network, {}, {}) for name in SPACES}

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            return space
        return space_named(space, self.network, self.budget, self.hardware_fields)

    def _costs(self, designs: Sequence[Dict[str, Any]]) -> Costs:
        hardware = [self.hardware(design) for design in designs]
        if self.space_name == "mapping":
            mappings = [space_mapping.mapping(design) for design in designs]
            return evaluate_mappings(self._table, hardware, mappings)
        return evaluate(self._table, hardware, mapper=self.mapper)

    def _costs_of_layers(self, designs: Sequence[Dict[str, Any]]) -> list[Costs]:
        return costs_of_layers(self.network, designs, self.hardware_fields, self.mapper)


def _kept(simulator: object) -> dict[str, Any]:
    """Space, workload and mapper of a table of kept results, if that is the simulator."""
    if not (isinstance(simulator, str) and simulator.startswith("tabular:")):
        return {}
    from archgym.simulators.tabular import table_named  # only where it is needed

    header = table_named(simulator).header
    return {
        "space": header.space,
        "workload": header.workload,
        "mapper": header.settings.get("mapper"),
    }


def _results(costs: Costs) -> list[SimulationResult]:
    """Metrics of each design, or why there are none."""
    columns = costs.metrics()
    results: list[SimulationResult] = []
    for i, hardware in enumerate(costs.hardware):
        if missing := costs.unmapped(i):
            results.append(unmapped_error(hardware, missing))
        else:
            results.append({name: float(column[i]) for name, column in columns.items()})
    return results
