"""The accelerator environment: hardware, dataflow and mapping of DNN accelerators."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Dict
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from archgym.environment import Environment
from archgym.envs.accelerator import (
    space_eyeriss,
    space_mapping,
    space_per_layer,
    space_template,
)
from archgym.envs.accelerator.cost import MAPPERS, Costs, evaluate, evaluate_mappings
from archgym.envs.accelerator.energy import area, clock_mhz
from archgym.envs.accelerator.hardware import Hardware
from archgym.envs.accelerator.kernel.layout import FOUND, LEVELS
from archgym.envs.accelerator.layer import LayerTable, Network
from archgym.envs.accelerator.technology import TECHNOLOGIES
from archgym.envs.accelerator.workload import (
    WorkloadSpec,
    load_workload,
    network_sha256,
    workload_label,
    workload_names,
)
from archgym.errors import InvalidValueError, NotCoveredError, UnknownNameError
from archgym.metrics import Metric
from archgym.reference import Reference
from archgym.simulator import Simulation, Simulator
from archgym.space import Designs, DesignSpace
from archgym.space.nearest import nearest_legal

__all__ = ["SPACES", "AcceleratorEnvironment", "LayerCost"]

SPACES: dict[str, str] = {
    "template": "dataflow, array, register files, buffer, links, format, technology",
    "mapping": "GAMMA's two-level mappings, and the hardware under them",
    "per_layer": "ConfuciuX's PEs and buffers of every layer, under a budget",
    "eyeriss": "exactly the knobs of ArchGym's Timeloop environment (ISCA 2023)",
}
_DEFAULT_WORKLOAD = "resnet18"
_TOGETHER = ("buffer_split_bytes", "prefetch")
"""Fields of the hardware that are possible or not with others."""
_STARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "scalesim": ("minimize latency_ns", {"dataflow": "systolic_ws"}),
    "maestro": ("minimize latency_ns", {}),
    "timeloop": ("minimize edp_js", {"dataflow": "eyeriss_rs"}),
}
"""What is minimised and how the baseline differs with simulators that do not give or cover those
of the embedded one."""


@dataclass(frozen=True)
class LayerCost:
    """What one layer costs on a design.

    Attributes:
        name: of the layer.
        count: how often it runs; the figures are those of one run.
        macs: multiply-accumulates.
        cycles: time, cycles.
        waits: cycles that each part alone would take: ``compute``, ``noc``, ``port`` (of the
            buffer), ``dram``, and ``fill``, before the first result.
        energy_pj: by level, from the multipliers outwards, pJ.
        words: words by level and operand, such as ``dram_input`` and ``buffer_weight``.
        dram_bytes: read from and written to memory.
        mapping: tiles and orders that the mapper chose, empty with a mapping of one's own.
    """

    name: str
    count: int
    macs: float
    cycles: float
    waits: Dict[str, float]
    energy_pj: Dict[str, float]
    words: Dict[str, float]
    dram_bytes: float
    mapping: Dict[str, int]


def _external(module: str, name: str, doc: str) -> Callable[[Any], Simulator]:
    """A simulator that is imported when it is asked for."""

    def make(environment: Any) -> Simulator:
        from importlib import import_module

        cls = getattr(import_module(f"archgym.envs.accelerator.{module}"), name)
        simulator: Simulator = cls.of(environment)
        return simulator

    make.__doc__ = doc
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
            space of one's own with the parameters of one of them.
        workload: name of a network, path of a file, or a mapping; see
            :func:`archgym.envs.accelerator.workload.load_workload`.
        mapper: what the built-in mapper minimises for each layer: ``latency``, ``energy`` or
            ``edp``; ``off`` (or False) for the dataflow's published mapping.
        hardware: fields of :class:`archgym.envs.accelerator.hardware.Hardware` that hold for all
            designs, whatever the space says.
        budget: for ``template``: most ``pes`` and ``memory_kib``; for ``per_layer``: ``of``
            (``area`` or ``power``) and ``share``, what of the largest design's may be used.
        simulator_options: for the external simulators.
        **arguments: those of :class:`archgym.Environment`. With ``simulator="scalesim"`` or
            ``"maestro"``, which know no energy that could be compared, the default objective is
            ``minimize latency_ns``; with ``"scalesim"`` the baseline is a systolic array, with
            ``"timeloop"`` a row-stationary one.

    Attributes:
        network: what the designs run.
    """

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
    default_workload: ClassVar[Any] = _DEFAULT_WORKLOAD
    not_modelled: ClassVar[tuple[str, ...]] = (
        "leakage and clock tree: energy is that of operations and accesses",
        "sparsity",
        "what stays in the buffer from one layer to the next",
        "a systolic array used in part: data pass all its rows and columns, so more may be slower",
        "more than one word a port of a scratch pad: a PE does one multiply-accumulate a cycle",
        "pages and banks of the memory outside the chip: it has a bandwidth and an energy a bit",
    )
    simulators: ClassVar[Dict[str, Callable[[Any], Simulator]]] = {
        "scalesim": _external(
            "scalesim", "ScaleSimSimulator", "SCALE-Sim 3 (extra scalesim): systolic arrays."
        ),
        "zigzag": _external(
            "zigzag", "ZigZagSimulator", "ZigZag (extra zigzag): best temporal mappings."
        ),
        "maestro": _external(
            "maestro", "MaestroSimulator", "MAESTRO, a program of one's own: spatial arrays."
        ),
        "timeloop": _external(
            "timeloop", "TimeloopSimulator", "Timeloop, a program of one's own: row-stationary."
        ),
    }

    spaces_of_workload: ClassVar[tuple[str, ...]] = ("mapping", "per_layer")

    def __init__(
        self,
        *,
        space: str | DesignSpace | None = None,
        workload: WorkloadSpec | None = None,
        mapper: str | bool = "latency",
        hardware: Dict[str, Any] | None = None,
        budget: Dict[str, Any] | None = None,
        simulator_options: Dict[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        for name, value in (
            ("hardware", hardware),
            ("budget", budget),
            ("simulator_options", simulator_options),
        ):
            if value is not None and not isinstance(value, Dict):
                raise InvalidValueError(f"{name} is {value!r:.80}; it is a mapping")
        # YAML reads a bare off as false.
        chosen = "off" if mapper is False else mapper
        if chosen not in MAPPERS:
            raise UnknownNameError("mapper", mapper, MAPPERS)
        self.mapper = str(chosen)
        self.hardware_fields = dict(hardware or {})
        known = [field.name for field in fields(Hardware)]
        for name in self.hardware_fields:
            if name not in known:
                raise UnknownNameError("field of the hardware", name, known, "hardware")
        # What of it is wrong by itself is said before the rules of the space go by it.
        alone = {k: v for k, v in self.hardware_fields.items() if k not in _TOGETHER}
        Hardware(**{"dataflow": "nvdla_ws", "rows": 1, "columns": 1, **alone})
        self.budget = dict(budget or {})
        self.simulator_options = dict(simulator_options or {})
        if self.simulator_options and arguments.get("simulator") not in self.simulators:
            raise InvalidValueError(
                f"simulator_options are for simulator={' or '.join(map(repr, self.simulators))}, "
                f"not {arguments.get('simulator', 'embedded')!r}"
            )
        self.network: Network
        # The spaces of mappings and layers depend on the network, which is therefore loaded first.
        space, network = _space_and_network(space, workload, arguments.get("simulator"))
        self.load_workload(network)
        self.space_name = _space_name(space)
        self._check_budget()
        self._check_hardware()
        self.baseline = self._baseline(space)  # type: ignore[misc]
        simulator = arguments.get("simulator")
        if isinstance(simulator, str) and simulator in _STARTS:
            self.default_objective, changes = _STARTS[simulator]  # type: ignore[misc]
            if self.space_name == "template":
                self.baseline = {**self.baseline, **changes}  # type: ignore[misc]
        super().__init__(space=space, workload=workload, **arguments)

    def simulate_batch(self, designs: Designs) -> list[tuple[Simulation, float]]:
        """Runs the network on the designs, on all cores."""
        start = time.perf_counter()
        rows = list(designs)
        if self.space_name == "per_layer":
            results = self._per_layer(rows)
        else:
            costs = self._costs(rows)
            columns = costs.metrics()
            results = [
                self._result(costs, i, {name: float(c[i]) for name, c in columns.items()})
                for i in range(len(rows))
            ]
        each = (time.perf_counter() - start) / max(1, len(rows))
        return [(result, each) for result in results]

    def hardware(self, design: Dict[str, Any]) -> Hardware:
        """The hardware that a design describes.

        Raises:
            InvalidValueError: in space ``per_layer``, where every layer has its own.
        """
        if self.space_name == "per_layer":
            raise InvalidValueError(
                "space 'per_layer': every layer has hardware of its own; there is no one piece"
            )
        build: Callable[..., Hardware] = {
            "mapping": space_mapping.hardware,
            "eyeriss": space_eyeriss.hardware,
        }.get(self.space_name, space_template.hardware)
        return build(design, **self.hardware_fields)

    def costs(self, design: Dict[str, Any]) -> Costs:
        """What each layer costs on a design, all figures of the cost model.

        Raises:
            InvalidValueError: in space ``per_layer``, see :meth:`layers`.
        """
        return self._costs([self.design_space.canonical(design)])

    def layers(self, design: Dict[str, Any]) -> list[LayerCost]:
        """What each layer costs on a design, in the order of the network.

        Raises:
            NotCoveredError: if a layer does not fit the design.
        """
        canonical = self.design_space.canonical(design)
        if self.space_name == "per_layer":
            parts = [part for part, _ in self._layer_parts([canonical])]
        else:
            parts = [self._costs([canonical])]
        found: list[LayerCost] = []
        for costs in parts:
            if missing := costs.unmapped(0):
                raise NotCoveredError(_unmapped(costs.hardware[0], missing))
            for i, name in enumerate(costs.table.names):
                found.append(_layer_cost(name, int(costs.table.counts[i]), costs.layer(0, i)))
        return found

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Loads the network."""
        self.network = load_workload(spec)
        self._table = self.network.table

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """Networks, with a line on each."""
        return workload_names()

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The mapper, the hardware and the budget."""
        return {
            "mapper": ", ".join(MAPPERS),
            "hardware": "a mapping with any of " + ", ".join(f.name for f in fields(Hardware)),
            "budget": "space 'template': pes, memory_kib; space 'per_layer': of ('area' or "
            "'power'), share",
            "simulator_options": "for the external simulators: a mapping with any of "
            "time_limit_s, threads, program",
            "technology": ", ".join(TECHNOLOGIES) + " (a field of hardware)",
        }

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Figures of SCALE-Sim, MAESTRO, ZigZag and Timeloop on known designs.

        :mod:`archgym.envs.accelerator.reference` says which tables can be read.
        """
        from archgym.envs.accelerator.reference import read_reference, shipped_references

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
        from archgym.envs.accelerator.pictures import design_figures, save_figure

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
        where = ("program", "threads")
        options = {k: v for k, v in self.simulator_options.items() if k not in where}
        return {
            "mapper": self.mapper,
            **({"hardware": self.hardware_fields} if self.hardware_fields else {}),
            **({"budget": self.budget} if self.budget else {}),
            **({"simulator_options": options} if options else {}),
        }

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The design spaces, for the default workload."""
        network = load_workload(_DEFAULT_WORKLOAD)
        return {
            "template": space_template.template_space(),
            "mapping": space_mapping.mapping_space(network),
            "per_layer": space_per_layer.per_layer_space(network),
            "eyeriss": space_eyeriss.eyeriss_space(),
        }

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            return space
        if space in ("default", "template"):
            return space_template.template_space(self.budget, self.hardware_fields)
        if space == "mapping":
            return space_mapping.mapping_space(self.network, self.hardware_fields)
        if space == "per_layer":
            return space_per_layer.per_layer_space(self.network, self.budget, self.hardware_fields)
        if space == "eyeriss":
            return space_eyeriss.eyeriss_space()
        raise UnknownNameError("space", space, SPACES)

    def _baseline(self, space: str | DesignSpace) -> dict[str, Any]:
        if self.space_name == "mapping":
            design = space_mapping.baseline(self.network)
        elif self.space_name == "per_layer":
            design = space_per_layer.baseline(self.network, self.budget, self.hardware_fields)
        elif self.space_name == "eyeriss":
            design = space_eyeriss.BASELINE
        else:
            design = space_template.baseline(self.budget)
        if self.hardware_fields and isinstance(space, str):
            return _near(self._choose_space(space), design)
        return design

    def _check_budget(self) -> None:
        if self.budget and self.space_name in ("mapping", "eyeriss"):
            raise InvalidValueError(
                f"budget is for spaces 'template' and 'per_layer', not {self.space_name!r}; "
                "put limits on metrics in the objective"
            )

    def _check_hardware(self) -> None:
        """Refuses an array beside the one that a space's own parameters describe."""
        sources = {
            "mapping": "pes and cluster_size",
            "per_layer": "pes_0, pes_1, ...",
            "eyeriss": "n_pes and mesh_x",
        }
        if self.space_name not in sources:
            return
        for name in ("dataflow", "rows", "columns", "spare_pes"):
            if name in self.hardware_fields and (name, self.space_name) != ("dataflow", "eyeriss"):
                source = sources[self.space_name]
                if (name, self.space_name) == ("dataflow", "per_layer"):
                    source = "the parameter dataflow"
                raise InvalidValueError(
                    f"hardware: {name} follows from {source} in space {self.space_name!r}; "
                    "hold parameters with fixed="
                )

    def _costs(self, designs: Sequence[Dict[str, Any]]) -> Costs:
        hardware = [self.hardware(design) for design in designs]
        if self.space_name == "mapping":
            mappings = [space_mapping.mapping(design) for design in designs]
            return evaluate_mappings(self._table, hardware, mappings)
        return evaluate(self._table, hardware, mapper=self.mapper)

    def _layer_parts(self, designs: Sequence[Dict[str, Any]]) -> list[tuple[Costs, list[Hardware]]]:
        """For each layer its costs on the designs' arrays for it."""
        parts: list[tuple[Costs, list[Hardware]]] = []
        pairs = zip(self.network.layers, self.network.counts, strict=True)
        for i, pair in enumerate(pairs):
            arrays = [
                space_per_layer.hardware(design, i, **self.hardware_fields) for design in designs
            ]
            table = LayerTable.of([pair])
            parts.append((evaluate(table, arrays, mapper=self.mapper), arrays))
        return parts

    def _per_layer(self, designs: Sequence[Dict[str, Any]]) -> list[Simulation]:
        """Layers run one after another, each on its own array; the arrays are all on the chip."""
        parts = self._layer_parts(designs)
        results: list[Simulation] = []
        for i in range(len(designs)):
            missing = [name for costs, _ in parts for name in costs.unmapped(i)]
            if missing:
                results.append(NotCoveredError(_unmapped(parts[0][1][i], missing)))
                continue
            cycles = sum(float(costs.total("cycles")[i]) for costs, _ in parts)
            energy = sum(float(costs.total("energy_pj")[i]) for costs, _ in parts)
            macs = sum(float(costs.total("macs")[i]) for costs, _ in parts)
            peak = sum(arrays[i].macs_per_cycle for _, arrays in parts)
            latency = cycles * 1000 / clock_mhz(parts[0][1][i])
            areas = [area(arrays[i]) for _, arrays in parts]
            # The arrays share one buffer and one memory interface.
            shared = areas[0].buffer_um2 + areas[0].interface_um2
            own = sum(a.macs_um2 + a.register_files_um2 + a.noc_um2 for a in areas)
            results.append(
                {
                    "latency_cycles": cycles,
                    "latency_ns": latency,
                    "energy_pj": energy,
                    "area_um2": own + shared,
                    "power_mw": energy / latency,
                    "utilisation_rate": macs / (cycles * peak),
                    "dram_bytes": sum(float(costs.total("dram_bytes")[i]) for costs, _ in parts),
                    "edp_js": energy * latency * 1e-21,
                }
            )
        return results

    def _result(self, costs: Costs, design: int, metrics: dict[str, float]) -> Simulation:
        if missing := costs.unmapped(design):
            return NotCoveredError(_unmapped(costs.hardware[design], missing))
        return metrics


def _space_and_network(
    space: str | DesignSpace | None, workload: WorkloadSpec | None, simulator: object
) -> tuple[str | DesignSpace, WorkloadSpec]:
    """What is searched and run: as given, else a table's own, else the defaults."""
    if isinstance(simulator, str) and simulator.startswith("tabular:"):
        from archgym.tabular import table_named  # only where it is needed

        header = table_named(simulator).header
        return (
            header.space if space is None else space,
            header.workload if workload is None else workload,
        )
    return (
        "template" if space is None else space,
        _DEFAULT_WORKLOAD if workload is None else workload,
    )


def _space_name(space: str | DesignSpace) -> str:
    """Which of `SPACES` the designs of a space are read by."""
    if isinstance(space, str):
        return "template" if space == "default" else space
    marks = {"outer_order": "mapping", "pes_0": "per_layer", "mesh_x": "eyeriss"}
    return next((name for mark, name in marks.items() if mark in space), "template")


def _near(space: DesignSpace, design: dict[str, Any]) -> dict[str, Any]:
    """The design, or the legal one nearest to it where there is one near."""
    codes = space.codes(design)
    if not space.illegal_reason(codes):
        return design
    near = nearest_legal(space, np.maximum(np.array(codes, dtype=np.int64), 0))
    return design if near is None else space.design(near)


def _unmapped(hardware: Hardware, layers: Sequence[str]) -> str:
    more = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
    return f"no tile of layer {layers[0]!r}{more} fits a buffer of {hardware.buffer_bytes} bytes"


def _layer_cost(name: str, count: int, column: Dict[str, float]) -> LayerCost:
    waits = ("compute", "noc", "port", "dram", "fill")
    words = [c for c in FOUND if c.endswith("_words")]
    first = FOUND.index("spatial_K")
    mapped = any(column[c] for c in FOUND[first:])
    return LayerCost(
        name=name,
        count=count,
        macs=column["macs"],
        cycles=column["cycles"],
        waits={part: column[f"{part}_cycles"] for part in waits},
        energy_pj={level: column[f"{level}_pj"] for level in LEVELS},
        words={c.removesuffix("_words"): column[c] for c in words},
        dram_bytes=column["dram_bytes"],
        mapping={c: int(column[c]) for c in FOUND[first:]} if mapped else {},
    )
