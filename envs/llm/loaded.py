"""What the environments of language models share: the workload that is loaded decides the space."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from archgym.environment.environment import Environment
from archgym.errors import UnknownNameError
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
    """

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

    @abstractmethod
    def _own_space(self) -> DesignSpace:
        """The space of the loaded workload; the only one that is offered."""

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            return space
        if space != "default":
            raise UnknownNameError("space", str(space), ["default"])
        return self._own_space()
