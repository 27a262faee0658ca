"""Trajectory datasets: recording, reading, exporting."""

from archgym.data.dataset import TIMING_COLUMNS, Dataset, equal_trajectories
from archgym.data.export import export
from archgym.data.recorder import TrialRecorder
from archgym.data.schema import Sidecar

__all__ = [
    "TIMING_COLUMNS",
    "Dataset",
    "Sidecar",
    "TrialRecorder",
    "equal_trajectories",
    "export",
]
