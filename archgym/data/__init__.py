"""Trajectory datasets: recording, reading, choosing, checking, merging.

Two documented functions work on datasets, but need more than data: ``archgym.data.export`` is
:func:`archgym.export.files.export`, and ``archgym.data.replay``, which makes the recorded
environments again, is :func:`archgym.validation.replay.replay`. Their modules lie above this
package, which therefore names them only here and loads them when they are first used.
"""

import importlib
from collections.abc import Callable
from typing import Any

from archgym.data.checks import validate
from archgym.data.dataset import TIMING_COLUMNS, Dataset, equal_trajectories
from archgym.data.examples import Examples
from archgym.data.files import find_dataset, find_datasets
from archgym.data.merging import merge
from archgym.data.schema import Sidecar
from archgym.data.selection import Selection, load
from archgym.data.splits import Split, split
from archgym.data.trial_recorder import TrialRecorder

__all__ = [
    "TIMING_COLUMNS",
    "Dataset",
    "Examples",
    "Selection",
    "Sidecar",
    "Split",
    "TrialRecorder",
    "equal_trajectories",
    "export",
    "find_dataset",
    "find_datasets",
    "load",
    "merge",
    "replay",
    "split",
    "validate",
]

export: Callable[..., int]
replay: Callable[..., Any]
_ABOVE = {"export": "archgym.export.files", "replay": "archgym.validation.replay"}


def __getattr__(name: str) -> Any:
    """Loads the functions that are defined above this package."""
    if name in _ABOVE:
        return getattr(importlib.import_module(_ABOVE[name]), name)
    raise AttributeError(f"module 'archgym.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is here, loaded or not: completion and the documentation ask for it."""
    return sorted({*globals(), *__all__})
