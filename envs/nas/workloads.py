"""Workloads: the tasks that share a chip, and the specifications that it has to meet.

``W1``, ``W2`` and ``W3`` are those of NASAIC (DAC 2020), in its units: MAESTRO's constants of 2019,
the published specifications, and **synthetic** accuracies
(:mod:`archgym.envs.nas.accuracy.published`) unless the data are at hand to train on. The others
have networks that were really trained and the accelerator environment's own technology. Their
specifications follow a rule that was written before any search (:mod:`archgym.envs.nas.specs`):
0.7 of the best value that any chip gives the most accurate networks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from archgym.envs.nas.families import Task
from archgym.envs.nas.hardware.chip import MODES
from archgym.envs.nas.reward import Specs
from archgym.envs.nas.tasks import task_of
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["SPECS_FILE", "WORKLOADS", "Workload", "WorkloadSpec", "load_workload", "stored_specs"]

WorkloadSpec = str | Mapping[str, Any]
SPECS_FILE: Final = "specs.json"
"""Our own specifications, as :mod:`archgym.envs.nas.specs` computed them."""


@dataclass(frozen=True)
class Workload:
    """Tasks that share a chip.

    Attributes:
        name: what tables and datasets call it.
        doc: one line.
        tasks: one network each; a task may come twice.
        mode: ``own`` or ``paper``, whose figures of hardware.
        accuracy: where accuracies come from unless another source is asked for.
        weights: of the tasks' accuracies; they sum to 1.
        specs: what a design may take; ``None`` for no limits.
        bounds: what the penalty of an excess is measured by; ``None`` if there are no specs.
    """

    name: str
    doc: str
    tasks: tuple[Task, ...]
    mode: str
    accuracy: str
    weights: tuple[float, ...]
    specs: Specs | None
    bounds: Specs | None

    def to_json(self) -> dict[str, Any]:
        """What the metrics depend on, as a JSON object."""
        return {
            "tasks": [task.name for task in self.tasks],
            "mode": self.mode,
            "weights": list(self.weights),
            "specs": None if self.specs is None else vars(self.specs),
            "bounds": None if self.bounds is None else vars(self.bounds),
        }


@dataclass(frozen=True)
class _Named:
    """A workload that ships; without ``specs`` they are those that :data:`SPECS_FILE` holds."""

    doc: str
    tasks: tuple[str, ...]
    mode: str = "own"
    accuracy: str = "tabulated"
    specs: Specs | None = None
    limited: bool = True


WORKLOADS: Final[Mapping[str, _Named]] = {
    "digits_cells": _Named(
        "classify digits and segment cells at the same time", ("digits", "cells")
    ),
    "digits_twice": _Named("two classifiers of digits at the same time", ("digits", "digits")),
    "digits": _Named("classify digits", ("digits",)),
    "cells": _Named("segment cells", ("cells",)),
    "digits_mbconv": _Named(
        "classify digits with a chain of mobile bottlenecks", ("digits_mbconv",)
    ),
    "W1": _Named(
        "NASAIC: CIFAR-10 and nuclei; accuracies are synthetic",
        ("cifar10", "nuclei"),
        "paper",
        "synthetic",
        Specs(8e5, 2e9, 4e9),
    ),
    "W2": _Named(
        "NASAIC: CIFAR-10 and STL-10; accuracies are synthetic",
        ("cifar10", "stl10"),
        "paper",
        "synthetic",
        Specs(1e6, 3.5e9, 4e9),
    ),
    "W3": _Named(
        "NASAIC: CIFAR-10 twice; accuracies are synthetic",
        ("cifar10", "cifar10"),
        "paper",
        "synthetic",
        Specs(4e5, 1e9, 4e9),
    ),
    "imagenet_mbconv": _Named(
        "the whole space of ProxylessNAS, by zero-cost scores: nothing is trained",
        ("imagenet_mbconv",),
        "own",
        "proxy",
        limited=False,
    ),
    "imagenet_backbone": _Named(
        "vision backbones whose latency was measured, by zero-cost scores: nothing is trained",
        ("imagenet_backbone",),
        "own",
        "proxy",
        limited=False,
    ),
}
"""Workloads that ship. The specifications of W1 to W3 are NASAIC's."""

_KEYS = ("tasks", "mode", "specs", "bounds", "weights")
_MAX_TASKS: Final = 32


def load_workload(spec: WorkloadSpec) -> Workload:
    """A workload by name, or from a mapping.

    Args:
        spec: a name of :data:`WORKLOADS`, or a mapping with ``tasks`` (a list of names) and, if
            they are not the defaults, ``mode`` (``own`` or ``paper``), ``specs`` and ``bounds``
            (see :class:`archgym.envs.nas.reward.Specs`; none for no limits; bounds are twice the
            specs unless they are given) and ``weights``.

    Raises:
        UnknownNameError, InvalidValueError: if there is no such workload.
    """
    if isinstance(spec, str):
        if spec not in WORKLOADS:
            raise UnknownNameError("workload", spec, WORKLOADS)
        return _named(spec)
    if not isinstance(spec, Mapping):
        raise InvalidValueError(
            f"workload is {spec!r:.80}; it must be a name ({', '.join(WORKLOADS)}) or a mapping "
            f"with {', '.join(_KEYS)}"
        )
    return _of_mapping(spec)


@cache
def stored_specs() -> dict[str, Any]:
    """What :data:`SPECS_FILE` holds: for each workload its figures and how they were found."""
    text = resources.files("archgym.envs.nas").joinpath(SPECS_FILE).read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def _named(name: str) -> Workload:
    entry = WORKLOADS[name]
    specs = entry.specs
    if specs is None and entry.limited:
        specs = Specs.parse(stored_specs()["workloads"][name]["specs"])
    bounds = None if specs is None else _twice(specs)
    tasks = tuple(task_of(task) for task in entry.tasks)
    return Workload(
        name, entry.doc, tasks, entry.mode, entry.accuracy, _even(len(tasks)), specs, bounds
    )


def _of_mapping(spec: Mapping[str, Any]) -> Workload:
    for key in spec:
        if key not in _KEYS:
            raise UnknownNameError("key", str(key), _KEYS, "workload")
    names = spec.get("tasks")
    if not isinstance(names, list | tuple) or not 1 <= len(names) <= _MAX_TASKS:
        raise InvalidValueError(
            f"workload: tasks is {names!r:.80}; it must be a list of 1 to {_MAX_TASKS} tasks"
        )
    tasks = tuple(task_of(str(name)) for name in names)
    mode = spec.get("mode", "own")
    if mode not in MODES:
        raise UnknownNameError("mode", str(mode), MODES, "workload")
    specs = None if spec.get("specs") is None else Specs.parse(spec["specs"], "workload: specs")
    bounds = None
    if specs is not None:
        bounds = Specs.parse(spec.get("bounds") or _twice(specs), "workload: bounds")
        for name, value in vars(specs).items():
            if vars(bounds)[name] <= value:
                raise InvalidValueError(
                    f"workload: bounds: {name} is {vars(bounds)[name]:g}; it must be above the "
                    f"specification, {value:g}"
                )
    elif spec.get("bounds") is not None:
        raise InvalidValueError("workload: bounds are for specs, and there are none")
    label = "+".join(task.name for task in tasks)
    accuracy = "synthetic" if mode == "paper" else "tabulated"
    weights = _weights(spec.get("weights"), len(tasks))
    return Workload(label, label, tasks, mode, accuracy, weights, specs, bounds)


def _weights(given: Any, count: int) -> tuple[float, ...]:
    if given is None:
        return _even(count)
    good = isinstance(given, list | tuple) and len(given) == count
    if not good or not all(
        isinstance(w, int | float) and not isinstance(w, bool) and 0 < w < 1e12 for w in given
    ):
        raise InvalidValueError(
            f"workload: weights is {given!r:.80}; it must be a positive number for each of the "
            f"{count} tasks"
        )
    return tuple(w / math.fsum(given) for w in given)


def _twice(specs: Specs) -> Specs:
    """The bounds unless others are given: NASAIC's are not published."""
    return Specs(**{name: 2 * value for name, value in vars(specs).items()})


def _even(count: int) -> tuple[float, ...]:
    """NASAIC's weights: one over the number of tasks."""
    return (1.0 / count,) * count
