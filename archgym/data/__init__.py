"""Trajectory datasets: recording, reading, choosing, checking, exporting."""

from archgym.data.checks import validate
from archgym.data.dataset import TIMING_COLUMNS, Dataset, equal_trajectories
from archgym.data.examples import Examples
from archgym.data.export.files import export
from archgym.data.files import find_dataset, find_datasets
from archgym.data.merging import merge
from archgym.data.recorder import TrialRecorder
from archgym.data.replay import replay
from archgym.data.schema import Sidecar
from archgym.data.selection import Selection, load
from archgym.data.splits import Split, split

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
