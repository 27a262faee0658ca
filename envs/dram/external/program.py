"""External DRAM simulators: what all of them take, and how designs are run by them in parallel."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.device.address_mapping import AddressMapping, address_mapping
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.simulator import SimulationResult
from archgym.simulators.external import find_program, simulate_in_parallel
from archgym.space import Designs

__all__ = ["DramProgram"]


class DramProgram(ABC):
    """An external program as a simulator of the DRAM environment.

    A subclass names the program and writes :meth:`simulate_one`.

    Args:
        memory: the memory.
        trace: the requests.
        controller: settings of :class:`~archgym.envs.dram.controller.config.ControllerConfig`
            that designs do not have.
        mappings: user-defined address mappings, by name.
        program: the executable; by default the one that
            :func:`archgym.simulators.external.find_program` finds.
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
    """File name of the executable that is searched for on PATH."""
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
    def with_options(
        cls, options: Mapping[str, Any], memory: Memory, trace: Trace, **arguments: Any
    ) -> Self:
        """The simulator with options that a user gave.

        Args:
            options: the environment's ``simulator_options``.
            memory: the memory.
            trace: the requests.
            **arguments: further arguments of the class.

        Raises:
            UnknownNameError: for an option that does not exist.
        """
        for option in options:
            if option not in cls.options:
                raise UnknownNameError("option", option, cls.options, "simulator_options")
        return cls(memory, trace, **arguments, **options)

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
        user_defined = self.mappings.get(config.address_mapping)
        return user_defined or address_mapping(
            config.address_mapping, self.memory, config.channel_interleave
        )
