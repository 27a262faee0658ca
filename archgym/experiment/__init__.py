"""Experiments: a YAML file of environments, agents and seeds, run locally or through Ray Tune."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archgym.experiment.results.run_result import RunResult
    from archgym.experiment.run.run import RunOptions, run_experiment
    from archgym.experiment.simulate.simulators import environment_with_workers
    from archgym.experiment.spec.expand import Trial, expand
    from archgym.experiment.spec.from_mapping import read_experiment
    from archgym.experiment.spec.load import load_experiment, shipped_experiments
    from archgym.experiment.spec.schema import Experiment

__all__ = [
    "Experiment",
    "RunOptions",
    "RunResult",
    "Trial",
    "environment_with_workers",
    "expand",
    "load_experiment",
    "read_experiment",
    "run_experiment",
    "shipped_experiments",
]

_MODULES = {
    "Experiment": "spec.schema",
    "RunOptions": "run.run",
    "RunResult": "results.run_result",
    "Trial": "spec.expand",
    "environment_with_workers": "simulate.simulators",
    "expand": "spec.expand",
    "load_experiment": "spec.load",
    "read_experiment": "spec.from_mapping",
    "run_experiment": "run.run",
    "shipped_experiments": "spec.load",
}


def __getattr__(name: str) -> Any:
    """Loads what is used: processes that only simulate need none of it, and stay small."""
    if name in _MODULES:
        return getattr(importlib.import_module(f"archgym.experiment.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'archgym.experiment' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is here, loaded or not: completion and the documentation ask for it."""
    return sorted({*globals(), *__all__})
