"""Base classes of the external accelerator models that serve as simulators of the environment.

Each runs a design in a separate process, in an empty folder, with a time limit, and gives one
:class:`LayerResult` for each distinct layer. These classes compute the environment's metrics from
those results.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any, ClassVar, Self

from archgym.envs.accelerator.cost.energy import clock_mhz
from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.errors import (
    InvalidValueError,
    MissingDependencyError,
    NotCoveredError,
    SimulationError,
    UnknownNameError,
)
from archgym.problem.simulator import SimulationResult
from archgym.simulators.external import private_folder, run_program, simulate_in_parallel
from archgym.space import Designs

__all__ = ["AcceleratorProgram", "LayerResult", "PythonProgram"]


@dataclass(frozen=True)
class LayerResult:
    """What a program reports for one layer, all its groups; ``None`` where it reports nothing.

    Attributes:
        cycles: from the first to the last cycle.
        energy_pj: energy, pJ.
        dram_bytes: read from and written to memory.
        area_um2: area of the design, um2.
        power_mw: power of the design, mW, if that does not follow from energy and time.
    """

    cycles: float
    energy_pj: float | None = None
    dram_bytes: float | None = None
    area_um2: float | None = None
    power_mw: float | None = None


class AcceleratorProgram(ABC):
    """An external program as a simulator of the accelerator environment.

    Args:
        network: what the designs run.
        hardware: the hardware of a design.
        time_limit_s: wall-clock time of one design, s.
        threads: designs at a time; default one for each core.

    Attributes:
        name: what ``simulator=`` calls it.
        version: of the program.
        metric_names: the metrics that it gives.

    Raises:
        MissingDependencyError: if it is not installed.
        InvalidValueError: for a bad option.
    """

    name: str
    version: str
    metric_names: tuple[str, ...]
    options: ClassVar[tuple[str, ...]] = ("time_limit_s", "threads")
    """Arguments that the environment's ``simulator_options`` may hold."""

    def __init__(
        self,
        network: Network,
        hardware: Callable[[Mapping[str, Any]], Hardware],
        *,
        time_limit_s: float = 600.0,
        threads: int | None = None,
    ) -> None:
        _check_positive("time_limit_s", time_limit_s)
        self.network = network
        self.hardware = hardware
        self.time_limit_s = float(time_limit_s)
        self.threads = threads

    @classmethod
    def with_options(
        cls,
        options: Mapping[str, Any],
        network: Network,
        hardware: Callable[[Mapping[str, Any]], Hardware],
    ) -> Self:
        """The simulator with options that a user gave.

        Args:
            options: the environment's ``simulator_options``.
            network: what the designs run.
            hardware: the hardware of a design.

        Raises:
            UnknownNameError: for an option that does not exist.
            InvalidValueError: for an option's value that is not possible.
        """
        for option in options:
            if option not in cls.options:
                raise UnknownNameError("option", option, cls.options, "simulator_options")
        return cls(network, hardware, **options)

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Runs designs in parallel; see :class:`archgym.problem.simulator.Simulator`."""
        return simulate_in_parallel(self, designs, self.threads)

    def simulate_one(self, design: Mapping[str, Any]) -> dict[str, float]:
        """Metrics of one design.

        Raises:
            NotCoveredError: if the program cannot express it.
            SimulationError: if it fails, or its output cannot be read.
            TimeoutError: if it takes too long.
        """
        hardware = self.hardware(design)
        reason = self.not_covered(hardware, self.network)
        if reason:
            raise NotCoveredError(f"{self.name}: {reason}")
        with private_folder() as folder:
            results = self.run(hardware, self.network.layers, folder)
        if len(results) != len(self.network.layers):
            raise SimulationError(
                f"{self.name} gave {len(results)} results for {len(self.network.layers)} layers"
            )
        found = summed(results, self.network, hardware)
        return {name: found[name] for name in self.metric_names}

    @abstractmethod
    def not_covered(self, hardware: Hardware, network: Network) -> str:
        """Why the program cannot run this, or an empty string."""

    @abstractmethod
    def run(
        self, hardware: Hardware, layers: Sequence[Layer], folder: Path
    ) -> Sequence[LayerResult]:
        """Runs the layers and reads what came out.

        Args:
            hardware: the design.
            layers: what to run, one after another.
            folder: an empty one.
        """


class PythonProgram(AcceleratorProgram):
    """A Python package, run by an interpreter that has it.

    Args:
        network: what the designs run.
        hardware: the hardware of a design.
        time_limit_s: wall-clock time of one design, s.
        threads: designs at a time; default one for each core.
        program: the interpreter; default the environment variable's, else this one.
        memory_limit_gb: address space that a run may take, GB.
    """

    package: ClassVar[str]
    """Name of the distribution."""
    extra: ClassVar[str]
    """Extra of archgym that installs it."""
    variable: ClassVar[str]
    """Environment variable that may hold the path of another interpreter."""
    worker: ClassVar[str]
    """File name of the script that runs it."""
    options = (*AcceleratorProgram.options, "program", "memory_limit_gb")

    def __init__(
        self,
        network: Network,
        hardware: Callable[[Mapping[str, Any]], Hardware],
        *,
        time_limit_s: float = 600.0,
        threads: int | None = None,
        program: Path | str | None = None,
        memory_limit_gb: float = 8.0,
    ) -> None:
        super().__init__(network, hardware, time_limit_s=time_limit_s, threads=threads)
        _check_positive("memory_limit_gb", memory_limit_gb)
        self.memory_limit_gb = float(memory_limit_gb)
        given = program or os.environ.get(self.variable)
        self.program = Path(sys.executable)
        if given:
            found = shutil.which(given)
            if found is None:
                where = "simulator_options: program" if program else self.variable
                raise MissingDependencyError(
                    f"{where} is {str(given)!r}, which is no executable file. {self._advice()}"
                )
            self.program = Path(found).absolute()
        self.version = self._version(elsewhere=bool(given))

    def call(self, job: Mapping[str, Any], folder: Path) -> Any:
        """Runs the worker script on a job, and returns what it wrote.

        Raises:
            SimulationError: if it fails or writes nothing that can be read.
            TimeoutError: if it takes too long.
        """
        limit = {"memory_limit_bytes": int(self.memory_limit_gb * 1e9)}
        (folder / "job.json").write_text(json.dumps({**job, **limit}), encoding="utf-8")
        script = Path(__file__).parent / "workers" / self.worker
        run_program(
            # -P: the folder of the script is no place to import from.
            [self.program, "-P", "-B", script, "job.json", "result.json"],
            folder,
            time_limit_s=self.time_limit_s,
            environment={"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"},
        )
        try:
            return json.loads((folder / "result.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SimulationError(f"{self.name} wrote no result: {error}") from None

    def _version(self, *, elsewhere: bool) -> str:
        if not elsewhere:
            try:
                return package_version(self.package)
            except PackageNotFoundError:
                raise MissingDependencyError(
                    f"the package {self.package} is not installed. {self._advice()}"
                ) from None
        code = f"from importlib.metadata import version; print(version({self.package!r}))"
        with private_folder() as folder:
            try:
                ran = run_program(
                    [self.program, "-P", "-B", "-c", code],
                    folder,
                    time_limit_s=60.0,
                )
            except SimulationError as error:
                # A missing package needs no more than its name; any other error is shown.
                reason = "" if "PackageNotFoundError" in str(error) else f" ({error})"
                raise MissingDependencyError(
                    f"the Python interpreter {self.program} does not have the package "
                    f"{self.package}{reason}. {self._advice()}"
                ) from None
        return ran.stdout.strip()

    def _advice(self) -> str:
        return (
            f"Install it with pip install 'archgym[{self.extra}]', or set {self.variable} to the "
            f"path of a Python interpreter that has the package {self.package}."
        )


def summed(
    results: Sequence[LayerResult], network: Network, hardware: Hardware
) -> dict[str, float]:
    """Metrics of a network from those of its layers, which run one after another.

    A metric that some layer does not have is left out.
    """
    counts = network.counts
    cycles = sum(n * result.cycles for n, result in zip(counts, results, strict=True))
    if not (math.isfinite(cycles) and cycles > 0):
        raise SimulationError(f"the layers take {cycles} cycles")
    latency_ns = cycles * 1000 / clock_mhz(hardware)
    found: dict[str, float] = {
        "latency_cycles": float(cycles),
        "latency_ns": latency_ns,
        "utilisation_rate": network.macs / (cycles * hardware.macs_per_cycle),
    }
    energy = _total([result.energy_pj for result in results], counts)
    if energy is not None:
        found |= {
            "energy_pj": energy,
            "power_mw": energy / latency_ns,  # pJ / ns = mW
            "edp_js": energy * 1e-12 * latency_ns * 1e-9,
        }
    traffic = _total([result.dram_bytes for result in results], counts)
    if traffic is not None:
        found["dram_bytes"] = traffic
    # A design is as large as its hungriest layer needs, where the program sizes it for a layer.
    for name in ("area_um2", "power_mw"):
        values = [getattr(result, name) for result in results]
        if None not in values:
            found[name] = max(values)
    return found


def _total(values: Sequence[float | None], counts: Sequence[int]) -> float | None:
    if None in values:
        return None
    return float(sum(n * value for n, value in zip(counts, values, strict=True) if value))


def _check_positive(name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < 1e9:  # type: ignore[operator]
        raise InvalidValueError(f"simulator_options: {name} is {value!r}, it must be above 0")
