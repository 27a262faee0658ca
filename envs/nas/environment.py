"""The NAS environment: neural networks and the chip that runs them, searched together."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from archgym.environment.environment import Environment
from archgym.envs.accelerator.cost.technology import TECHNOLOGIES
from archgym.envs.accelerator.workload.layer import Network
from archgym.envs.nas.accuracy.choice import SOURCES, accuracy_source, source_options
from archgym.envs.nas.accuracy.source import AccuracySource
from archgym.envs.nas.accuracy.training_loop import Recipe
from archgym.envs.nas.backbone.measured import DEVICES as MEASURED
from archgym.envs.nas.baseline import baseline_design
from archgym.envs.nas.hardware.chip import DEFAULT_TECHNOLOGY, Chip
from archgym.envs.nas.hardware.devices import DEVICES, device_chip, device_name
from archgym.envs.nas.hardware.hardware_side import HardwareSide
from archgym.envs.nas.hardware.measured_latency import ESTIMATES
from archgym.envs.nas.metrics import accuracy_metrics, hardware_metrics, spec_metrics
from archgym.envs.nas.network_side import NetworkSide, training_fidelities
from archgym.envs.nas.reward import Specs
from archgym.envs.nas.schedule import SCHEDULERS, Schedule
from archgym.envs.nas.space import (
    CHIPS,
    GRIDS,
    ChipForm,
    Reader,
    form_of,
    name_networks,
    nas_space,
)
from archgym.envs.nas.workloads import WORKLOADS, WorkloadSpec, load_workload
from archgym.errors import (
    InvalidValueError,
    NotCoveredError,
)
from archgym.problem.fidelity import Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult, Simulator
from archgym.space import Designs, DesignSpace

__all__ = ["NASEnvironment"]

_DEFAULT_WORKLOAD = "digits_cells"
_DEFAULT_FORM: ChipForm = "heterogeneous"
_PLACES = ("cache", "data", "folder", "processes", "time_limit_s")
"""Options that set where and how a source works, but not its results."""
_HARDWARE = tuple(metric.name for metric in hardware_metrics())


def _latency_table(environment: NASEnvironment) -> Simulator:
    """The latency of the blocks of a network, from a table (ProxylessNAS)."""
    from archgym.envs.nas.latency_table_simulator import LatencyTableSimulator

    if environment.device is None:
        raise InvalidValueError(
            "simulator 'latency_table' models one device: use space='network', not "
            f"{environment.form!r}"
        )
    return LatencyTableSimulator.with_options(
        environment.simulator_options,
        environment.network_side,
        environment.architectures,
        environment.device,
        device_name=str(environment.settings["device"]),
        costs=environment.hardware_side.costs,
    )


def _objective(goal: str, specs: Specs | None) -> dict[str, Any]:
    """The most accurate networks within the specifications, if there are any."""
    return {"maximize": goal, **({} if specs is None else {"limits": specs.limits()})}


class NASEnvironment(Environment):
    """Search neural networks for several tasks and the heterogeneous chip that runs them at once.

    A design is a network for each task of the workload and a chip of one to four sub-accelerators.
    Its accuracies come from tables of networks that were really trained, from training on the
    spot, from zero-cost scores, or, for NASAIC's own tasks, from a synthetic curve; its latency,
    energy and area from the accelerator environment's cost model and a scheduler. Unless another
    objective is given, accuracy is maximised under the workload's specifications.

    >>> import archgym
    >>> env = archgym.make("NAS-v0", workload="W1")
    >>> outcome = env.evaluate(env.baseline_design)
    >>> outcome.feasible, outcome.metrics["accuracy_synthetic_share"]
    (False, 1.0)

    Args:
        workload: name of a workload, or a mapping; see
            :func:`archgym.envs.nas.workloads.load_workload`.
        space: ``heterogeneous`` (the default), ``homogeneous``, ``single`` or ``network``
            (:data:`archgym.envs.nas.space.CHIPS`), or a user's design space with the
            parameters of one of them.
        accuracy: where accuracies come from, one of
            :data:`archgym.envs.nas.accuracy.choice.SOURCES` or a user-defined source; by default
            what the workload says.
        accuracy_options: for the source of accuracies.
        scheduler: ``hap``, ``list`` or ``exact`` (:mod:`archgym.envs.nas.schedule`).
        technology: one of the accelerator environment's; workloads in paper mode have MAESTRO's.
        device: for space ``network``: what runs the networks, see
            :func:`archgym.envs.nas.hardware.devices.device_chip`.
        simulator_options: for ``simulator="latency_table"``: ``table``, a file or a measured
            device; by default the table that our own cost model gives for the device.
        **arguments: those of :class:`archgym.Environment`.

    Attributes:
        loaded: the workload: tasks, specifications, weights.
        network_side: accuracies and layers of the networks.
        networks: name and task of each network.
        source: where accuracies come from.
        hardware_side: costs of layers, and their scheduler.
        device: the chip of space ``network``, ``None`` elsewhere.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (
        *accuracy_metrics(name_networks(load_workload(_DEFAULT_WORKLOAD).tasks), "tabulated"),
        *hardware_metrics(),
        *spec_metrics(),
    )
    version: ClassVar = "2"
    default_objective: ClassVar[str | Mapping[str, Any]] = _objective(
        "accuracy_percent", load_workload(_DEFAULT_WORKLOAD).specs
    )
    baseline: ClassVar[Mapping[str, Any]] = baseline_design(
        load_workload(_DEFAULT_WORKLOAD), _DEFAULT_FORM
    )
    default_workload: ClassVar[Any] = _DEFAULT_WORKLOAD
    compiles: ClassVar = True
    incidental_arguments: ClassVar = ("accuracy_options", "technology")
    """The settings name them where metrics depend on them."""
    fidelities: tuple[Fidelity, ...] = training_fidelities(Recipe().epochs)
    simulators: ClassVar[Mapping[str, Callable[[Any], Simulator]]] = {
        "latency_table": _latency_table
    }
    modelled: ClassVar[tuple[str, ...]] = (
        "accuracy of every network: from tables of networks that were really trained (default), "
        "training on the spot, or zero-cost scores",
        "latency and energy of each layer on each sub-accelerator, by the cost model of "
        "Accelerator-v0 (W1 to W3: by MAESTRO's constants of 2019)",
        "the schedule of the layers of all networks over the sub-accelerators",
        "area of the chip, and totals of elements and bandwidth that sub-accelerators share",
    )
    not_modelled: ClassVar[tuple[str, ...]] = (
        "what W1 to W3 learn: their accuracies are synthetic, a curve through published points",
        "traffic between sub-accelerators, and the memory outside the chip that they share",
        "pooling, element-wise layers and activation functions",
        "what quantisation to 8 bits costs in accuracy",
    )
    spaces_of_workload: ClassVar[tuple[str, ...]] = ("default", *CHIPS)

    def __init__(
        self,
        *,
        workload: WorkloadSpec | None = None,
        space: str | DesignSpace | None = None,
        accuracy: str | AccuracySource | None = None,
        accuracy_options: Mapping[str, Any] | None = None,
        scheduler: str = "hap",
        technology: str = DEFAULT_TECHNOLOGY,
        device: Any = None,
        **arguments: Any,
    ) -> None:
        self.accuracy_options = _options("accuracy_options", accuracy_options)
        self._accuracy = accuracy
        space, chosen = _space_and_workload(space, workload, arguments.get("simulator"))
        self.form = form_of(space)
        self.load_workload(chosen)
        self.hardware_side = HardwareSide(
            self.loaded.mode, scheduler=scheduler, technology=technology
        )
        self._choose_device(device)
        self.metrics = self.network_side.metrics  # type: ignore[misc]
        goal = self.network_side.weighted_metric
        self.default_objective = _objective(goal, self.loaded.specs)  # type: ignore[misc]
        self.baseline = baseline_design(self.loaded, self.form)  # type: ignore[misc]
        super().__init__(space=space, workload=workload, **arguments)

    def load_workload(self, spec: WorkloadSpec) -> None:
        """Loads the tasks, and where their accuracies come from."""
        self.loaded = load_workload(spec)
        chosen = self.loaded.accuracy if self._accuracy is None else self._accuracy
        self.source = accuracy_source(chosen, self.accuracy_options, self.loaded.tasks)
        self.network_side = NetworkSide(self.loaded, self.source)
        self.networks = self.network_side.networks
        self.fidelities = self.network_side.fidelities

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        """Looks accuracies up (or trains), then maps and schedules the layers of the networks.

        Args:
            designs: legal, canonical ones.
            fidelity: share of the epochs of training.
        """
        start = time.perf_counter()
        rows = list(designs)
        architectures = [self.architectures(design) for design in rows]
        chips = [self.chip(design) for design in rows]
        accuracies = self.accuracies(architectures, fidelity)
        costs = self.hardware_side.evaluate(
            [self.layers(each) for each in architectures], chips, latency_limit=self.latency_limit
        )
        columns = {name: getattr(costs, name).tolist() for name in _HARDWARE}
        results: list[SimulationResult] = []
        for i, found in enumerate(accuracies.tolist()):
            if costs.reasons[i]:
                results.append(NotCoveredError(costs.reasons[i]))
            else:
                hardware = {name: column[i] for name, column in columns.items()}
                results.append(self.network_side.result(architectures[i], found, hardware))
        each_s = (time.perf_counter() - start) / max(1, len(rows))
        return [(result, each_s) for result in results]

    def architectures(self, design: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The architecture of each network of a canonical design."""
        return self._reader.architectures(design)

    def chip(self, design: Mapping[str, Any]) -> Chip:
        """The chip of a canonical design."""
        return self._reader.chip(design)

    @property
    def latency_limit(self) -> float | None:
        """Cycles within which the scheduler saves energy; ``None`` without specifications."""
        return None if self.loaded.specs is None else self.loaded.specs.latency_cycles

    def schedule(self, design: Mapping[str, Any]) -> Schedule:
        """Where and when each layer of a design runs; the layers are those of :meth:`layers`.

        Raises:
            UnknownNameError, DesignError: if the mapping is not a design of this space.
            InvalidValueError: if a layer has no mapping on any sub-accelerator.
        """
        canonical = self.design_space.canonical(design)
        networks = self.layers(self.architectures(canonical))
        return self.hardware_side.schedule(
            networks, self.chip(canonical), latency_limit=self.latency_limit
        )

    def accuracies(
        self, architectures: Sequence[Sequence[Mapping[str, Any]]], fidelity: float = 1.0
    ) -> NDArray[np.float64]:
        """Accuracy of each network of each design, percent, NaN if it is not known.

        Shape (n_designs, n_networks).

        Args:
            architectures: of each design, in the order of :attr:`networks`.
            fidelity: share of the epochs.
        """
        return self.network_side.accuracies(architectures, fidelity)

    def layers(self, architectures: Sequence[Mapping[str, Any]]) -> tuple[Network, ...]:
        """The layers of each network of a design."""
        return self.network_side.layers(architectures)

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """Workloads, with a line on each."""
        return {name: entry.doc for name, entry in WORKLOADS.items()}

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Sources of accuracies, of the hardware's constants and of the specifications."""
        return {
            "accuracies of the default workloads": "networks that were trained for the purpose; "
            "data, recipe and machine are in datasets/nas/README.md",
            "accuracies of W1, W2 and W3": "synthetic: a curve through the points that NASAIC "
            "publishes (Yang and others, DAC 2020, arXiv 2002.04116)",
            "hardware": "the technologies of Accelerator-v0; of W1, W2 and W3 the constants of "
            "MAESTRO (Kwon et al., MICRO 2019) at its version of 2019, which NASAIC used",
            "specifications": "W1, W2 and W3: NASAIC's; the others by the rule in "
            "archgym.envs.nas.specs, written before any search",
        }

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The sources of accuracies, the schedulers, and the devices."""
        return {
            "accuracy": "; ".join(f"{name}: {doc}" for name, doc in SOURCES.items())
            + "; unless given, W1 to W3 have synthetic ones, imagenet_... scores, others tables",
            "accuracy_options": "a mapping; "
            + "; ".join(f"{name}: {', '.join(source_options(name)) or 'none'}" for name in SOURCES),
            "scheduler": ", ".join(SCHEDULERS),
            "technology": ", ".join(name for name in TECHNOLOGIES if name != "maestro28"),
            "device": "space 'network': "
            + "; ".join(f"{name}: {doc}" for name, (doc, _) in DEVICES.items())
            + f"; {next(iter(DEVICES))} unless given",
            "simulator_options": "simulator 'latency_table': table, a file or, of backbones, "
            f"{', '.join(MEASURED)}; generated unless given; estimate: {', '.join(ESTIMATES)}",
        }

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The design spaces, for the default workload."""
        workload = load_workload(_DEFAULT_WORKLOAD)
        networks = name_networks(workload.tasks)
        return {str(form): nas_space(networks, form, GRIDS[workload.mode]) for form in CHIPS}

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """The areas of NASAIC's published solutions.

        :mod:`archgym.envs.nas.validation.reference` describes the tables that can be read.
        """
        from archgym.envs.nas.validation.reference import read_reference, shipped_references

        return shipped_references() if table is None else read_reference(table)

    @property
    def workload_name(self) -> str:
        """Name of the workload, or its tasks."""
        return self.loaded.name

    def hash_workload(self) -> str:
        """Hash of tasks, weights, specifications and bounds."""
        text = json.dumps(self.loaded.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def settings(self) -> dict[str, Any]:
        """Where accuracies come from, the scheduler, and the device if one is given."""
        own = self.loaded.mode == "own"
        options = {k: v for k, v in self.accuracy_options.items() if k not in _PLACES}
        return {
            "accuracy": self.source.name,
            **({"accuracy_options": options} if options else {}),
            "scheduler": self.hardware_side.scheduler,
            **({"technology": self.hardware_side.costs.technology} if own else {}),
            **({} if self.device is None else {"device": device_name(self._device_spec)}),
        }

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.networks, self.design_space, self.device)

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            return space
        return nas_space(self.networks, self.form, GRIDS[self.loaded.mode])

    def _choose_device(self, device: Any) -> None:
        if device is not None and self.form != "network":
            raise InvalidValueError(
                f"device is for space 'network'; space {self.form!r} searches the chip"
            )
        self._device_spec = device if device is not None else next(iter(DEVICES))
        self.device: Chip | None = (
            device_chip(self._device_spec) if self.form == "network" else None
        )


def _options(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise InvalidValueError(f"{name} is {value!r:.80}; it must be a mapping")
    return dict(value or {})


def _space_and_workload(
    space: str | DesignSpace | None, workload: WorkloadSpec | None, simulator: object
) -> tuple[str | DesignSpace, WorkloadSpec]:
    """The space and the workload: as given, else those of a table, else the defaults."""
    if isinstance(simulator, str) and simulator.startswith("tabular:"):
        from archgym.simulators.tabular import table_named  # only where it is needed

        header = table_named(simulator).header
        return (
            header.space if space is None else space,
            header.workload if workload is None else workload,
        )
    return (
        _DEFAULT_FORM if space is None or space == "default" else space,
        _DEFAULT_WORKLOAD if workload is None else workload,
    )
