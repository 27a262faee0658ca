"""What the environments of language models share: the workload that is loaded decides the space."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.objective import Limit
from archgym.space import DesignSpace

__all__ = ["LoadedEnvironment", "LoadedWorkload"]


class LoadedWorkload(Protocol):
    """A workload with its records in place."""

    @property
    def name(self) -> str:
        """Short label."""

    @property
    def sha256(self) -> str:
        """Hash of everything that it names."""


class LoadedEnvironment(Environment):
    """Base of the environments of language models.

    Attributes:
        named_workloads: a line on each workload, and the mapping that it stands for, by name.
        loaded: the workload.
        read_parameters: parameters that the model reads, whatever the workload.
        needed_parameters: those of them that a space of the user cannot lack.
    """

    read_parameters: ClassVar[frozenset[str]]
    needed_parameters: ClassVar[tuple[str, ...]] = ()
    named_workloads: ClassVar[Mapping[str, tuple[str, Mapping[str, Any]]]]
    loaded: LoadedWorkload

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """Workloads, with a line on each."""
        return {name: doc for name, (doc, _) in cls.named_workloads.items()}

    @property
    def workload_name(self) -> str:
        """The label of the workload."""
        return self.loaded.name

    def hash_workload(self) -> str:
        """Hash of everything that the workload names."""
        return self.loaded.sha256

    def _unlimited_memory(self, limit: str, *others: str) -> list[str]:
        """A warning where designs that do not fit into a memory count as feasible.

        Args:
            limit: what an objective has against them.
            *others: metrics by which an objective can say the same.
        """
        metric = Limit.parse(limit).metric
        seen = self.objective.metric_names()
        if metric not in self.simulator.metric_names or {metric, *others} & {*seen}:
            return []
        return [
            f"the objective does not look at {metric}, so designs that do not fit into the memory "
            f"count as feasible; limits: [{limit}] rules them out"
        ]

    @abstractmethod
    def _own_space(self) -> DesignSpace:
        """The space of the loaded workload; the only one that is offered."""

    @classmethod
    def check_space(cls, space: DesignSpace) -> None:
        """Refuses a space of the user that the model does not read, or cannot do with.

        Raises:
            UnknownNameError: for a parameter that is not read, with the nearest that is.
            InvalidValueError: if it lacks parameters; names them.
        """
        for name in space.names:
            if name not in cls.read_parameters:
                raise UnknownNameError("parameter", name, cls.read_parameters, "space")
        if missing := [name for name in cls.needed_parameters if name not in space.names]:
            raise InvalidValueError(
                f"space: the parameters {', '.join(missing)} are missing; a space needs at least "
                f"{', '.join(cls.needed_parameters)}"
            )

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            return space
        if space != "default":
            raise UnknownNameError("space", str(space), ["default"])
        return self._own_space()
