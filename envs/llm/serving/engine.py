"""Serving software: its kernels and the time of its host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from archgym.envs.llm.data.fields import Entry, catalogue, field, read_entry

__all__ = ["Engine", "engine_names", "load_engine"]

_FILE = "engines.yaml"


@dataclass(frozen=True)
class Engine(Entry):
    """Serving software.

    Attributes:
        stack: name or mapping of the stack of kernels and links.
        step_us: time of the host by iteration that no kernel hides, microseconds.
        sequence_us: the same by sequence of the iteration.
    """

    stack: Any
    step_us: float = field(0, default=0.0)
    sequence_us: float = field(0, default=0.0)


def load_engine(spec: str | Mapping[str, Any]) -> Engine:
    """An engine by name or from a mapping, where ``base`` names one to change.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    return read_entry(Engine, spec, _FILE, "engine")


def engine_names() -> dict[str, str]:
    """The engines that ship, with a line on each."""
    return {name: str(entry["doc"]) for name, entry in catalogue(_FILE).items()}
