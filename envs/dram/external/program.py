"""What the programs that simulate DRAM for the environment have in common."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.device.mapping import AddressMapping, address_mapping
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.simulator import SimulationResult
from archgym.simulators.external import find_program, simulate_in_parallel
from archgym.space import Designs

if TYPE_CHECKING:
    from archgym.envs.dram.environment import DramEnvironment

__all__ = ["DramProgram"]


class DramProgram(ABC):
    """An external program as a simulator of the DRAM environment.

    A subclass names the program and writes :meth:`simulate_one`.

    Args:
        memory: the memory.
        trace: the requests.
        controller: settings of :class:`~archgym.envs.dram.controller.config.ControllerConfig` that designs
            do not have.
        mappings: address mappings of one's own, by name.
        program: the executable; default as :func:`archgym.simulators.external.find_program` finds it.
        time_limit_s: wall-clock time of one design, s.
        threads: designs at a time; default one for each core.

    Attributes:
        name: what ``simulator=`` calls it.
        version: the beginning of the executable's SHA-256.
        metric_names: the metrics that it gives.

    Raises:
        MissingDependencyError: if there is no such program.
        InvalidValueError: for a bad option.
    """

    name: str
    executable: ClassVar[str]
    """File name of the executable, as it is looked for on PATH."""
    variable: ClassVar[str]
    """Environment variable that may hold its path."""
    install: ClassVar[str]
    """How to get it."""
    options: ClassVar[tuple[str, ...]] = ("program", "time_limit_s", "threads")
    """Arguments that the environment's ``simulator_options`` may hold."""
    metric_names: tuple[str, ...]

    def __init__(
        self,
        memory: Memory,
        trace: Trace,
        *,
        controller: Mapping[str, Any] | None,
        mappings: Mapping[str, AddressMapping] | None,
        program: Path | str | None,
        time_limit_s: float,
        threads: int | None,
    ) -> None:
        good = isinstance(time_limit_s, int | float) and not isinstance(time_limit_s, bool)
        if not good or not 0 < time_limit_s < 1e9:
            raise InvalidValueError(
                f"simulator_options: time_limit_s is {time_limit_s!r}, it must be above 0 s"
            )
        self.memory = memory
        self.device = memory.device
        self.trace = trace
        self.controller = dict(controller or {})
        self.mappings = dict(mappings or {})
        found = Path(program) if program else None
        self.program = found or find_program(self.executable, self.variable, self.install)
        self.time_limit_s = float(time_limit_s)
        self.threads = threads
        self.version = hashlib.sha256(self.program.read_bytes()).hexdigest()[:12]

    @classmethod
    def of(cls, environment: DramEnvironment) -> Self:
        """The simulator of an environment, with its ``simulator_options``.

        Raises:
            UnknownNameError: for an option that does not exist.
        """
        for option in environment.simulator_options:
            if option not in cls.options:
                raise UnknownNameError("option", option, cls.options, "simulator_options")
        return cls(
            environment.memory,
            environment.trace,
            controller=environment.controller,
            mappings=environment.address_mappings,
            metric_names=tuple(metric.name for metric in environment.metrics),  # type: ignore[call-arg]
            **environment.simulator_options,
        )

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Runs designs in parallel; see :class:`archgym.problem.simulator.Simulator`."""
        return simulate_in_parallel(self, designs, self.threads)

    @abstractmethod
    def simulate_one(self, design: Mapping[str, Any]) -> dict[str, float]:
        """Metrics of one design.

        Raises:
            NotCoveredError: if the program has no such setting.
            SimulationError: if it fails, or its output cannot be read.
            TimeoutError: if it takes too long.
        """

    def config(self, design: Mapping[str, Any]) -> ControllerConfig:
        """The controller that a design describes."""
        return ControllerConfig(**{**self.controller, **design})

    def mapping(self, config: ControllerConfig) -> AddressMapping:
        """Address mapping of a controller."""
        own = self.mappings.get(config.address_mapping)
        return own or address_mapping(
            config.address_mapping, self.memory, config.channel_interleave
        )
