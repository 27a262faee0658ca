"""The sources of accuracies by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from archgym.envs.nas.accuracy.source import AccuracySource
from archgym.envs.nas.families import Task
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["SOURCES", "accuracy_source", "source_options"]

SOURCES: Final[Mapping[str, str]] = {
    "tabulated": "networks that were really trained: tables that ship",
    "train": "trained on the spot with PyTorch, and remembered on disk",
    "proxy": "zero-cost scores: nothing is trained",
    "synthetic": "a curve through NASAIC's published points: nothing is trained",
}
_CLASSES: Final = {
    "tabulated": ("tabulated", "TabulatedAccuracy"),
    "train": ("train_on_demand", "TrainedAccuracy"),
    "proxy": ("zero_cost", "ProxyAccuracy"),
    "synthetic": ("published", "PublishedAccuracy"),
}


def accuracy_source(
    name: str | AccuracySource, options: Mapping[str, Any], tasks: Sequence[Task]
) -> AccuracySource:
    """A source of accuracies, checked to know the tasks.

    Args:
        name: one of :data:`SOURCES`, or a source.
        options: keyword arguments of a named source.
        tasks: what it is asked for.

    Raises:
        UnknownNameError: for a source or an option that does not exist.
        InvalidValueError: if it does not know a task, or for an option that is not possible.
    """
    if not isinstance(name, str):
        if options:
            raise InvalidValueError("accuracy_options are for sources by name, not for an object")
        return name
    if name not in SOURCES:
        raise UnknownNameError("source of accuracies", name, SOURCES)
    allowed = source_options(name)
    for option in options:
        if option not in allowed:
            raise UnknownNameError(f"option of accuracy={name!r}", str(option), allowed)
    source = _class_of(name)(**options)
    for task in tasks:
        source.accuracies(task, [], source.epochs[-1])  # raises for an unknown task
    return source


def source_options(name: str) -> list[str]:
    """Names of the options of a source of :data:`SOURCES`."""
    return list(inspect.signature(_class_of(name)).parameters)


def _class_of(name: str) -> Callable[..., AccuracySource]:
    module, kind = _CLASSES[name]
    found: Callable[..., AccuracySource] = getattr(
        import_module(f"archgym.envs.nas.accuracy.{module}"), kind
    )
    return found
